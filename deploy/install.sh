#!/bin/bash
# install.sh [--mount /PATH] [--nginx-group GROUP]     puts hanji on this machine behind the nginx that is there
# install.sh --uninstall                               takes it off again; keeps the data, the apps, /etc/hanji and the user
# install.sh --purge                                   … and removes those too
#
# Needs root and Debian; safe to run again (that is also how to upgrade). It makes the system user hanji,
# /var/lib/hanji, /var/cache/hanji, /srv/hanji/apps, /etc/hanji/hanji.conf (kept if it is there), the programs and their man pages in
# /usr/local, systemd units, and three nginx files: conf.d/hanji-upstream.conf, snippets/hanji-params.conf, snippets/hanji-locations.conf.
# Files that you changed are kept, the new version beside them as FILE.new. If `nginx -t` objects, nginx's files are put
# back as they were.
#   --mount         mount below this path of the site (the one used before; at first its root, /)
#   --nginx-group   the group nginx's workers run in (default: what nginx says, else www-data)
set -eu

die() { echo "install.sh: $*" >&2; exit 1; }
usage() { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
say() { echo "  $*"; }

action=install mount='' mount_said='' group=''
while [ $# -gt 0 ]; do
    case $1 in
    --mount) [ $# -ge 2 ] || usage; mount=${2%/} mount_said=1; shift 2 ;;
    --nginx-group) [ $# -ge 2 ] || usage; group=$2; shift 2 ;;
    --uninstall | --purge) action=${1#--}; shift ;;
    *) usage ;;
    esac
done
if [ -n "$mount" ] && ! [[ $mount =~ ^(/[A-Za-z0-9._~-]+)+$ ]]; then
    die "--mount: a path such as /h, of letters, digits and . _ ~ -"
fi
[ "$(id -u)" = 0 ] || die "this needs root (sudo $0)"

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
umask 022
prefix=/usr/local units=/etc/systemd/system nginx=/etc/nginx
share=$prefix/share/hanji blobs=/var/cache/hanji/blobs apps=/srv/hanji/apps
# What was put into /etc/nginx the last time, to tell whether somebody changed it since; and where it was mounted.
placed=$share/placed
was_mount=$(cat $placed/mount 2>/dev/null || true)
[ -n "$mount_said" ] || mount=$was_mount
nginx_files='conf.d/hanji-upstream.conf snippets/hanji-params.conf snippets/hanji-locations.conf'

with_systemd() { [ -d /run/systemd/system ]; }
nginx_ok() { nginx -t >/dev/null 2>"$work/nginx-t"; }
nginx_reload() {
    if with_systemd; then
        systemctl is-active -q nginx && systemctl reload nginx && say "nginx reloaded"
    elif [ -s /run/nginx.pid ] && kill -0 "$(cat /run/nginx.pid)" 2>/dev/null; then
        nginx -s reload 2>/dev/null && say "nginx reloaded"
    fi || true
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- nginx's files: all of them or none ----

save_nginx() {
    for file in $nginx_files; do
        mkdir -p "$work/was/${file%/*}"
        [ ! -f "$nginx/$file" ] || cp -p "$nginx/$file" "$work/was/$file"
    done
}
restore_nginx() {
    for file in $nginx_files; do
        if [ -f "$work/was/$file" ]; then cp -p "$work/was/$file" "$nginx/$file"; else rm -f "$nginx/$file"; fi
    done
}

render_nginx() { # nginx-conf/ for this mount, into $work/new
    mkdir -p "$work/new/conf.d" "$work/new/snippets"
    cp nginx-conf/hanji-upstream.conf "$work/new/conf.d/"
    sed "s|^fastcgi_param SCRIPT_NAME .*|fastcgi_param SCRIPT_NAME \"$mount\" if_not_empty;|" \
        nginx-conf/hanji-params.conf >"$work/new/snippets/hanji-params.conf"
    sed -e "s|^\(location [= ]*\)/|\1$mount/|" \
        -e "s|^    fastcgi_param SCRIPT_NAME .*|    fastcgi_param SCRIPT_NAME \"$mount\" if_not_empty;|" \
        nginx-conf/hanji-locations.conf >"$work/new/snippets/hanji-locations.conf"
}

# With systemd the courier is a unit of its own, which has the network and the server has not.
units_courier() {
    local conf=/etc/hanji/hanji.conf
    has_key() { grep -q "^[[:blank:]]*$1[[:blank:]]*=" $conf; }
    if ! has_key courier; then
        printf '\n# hanji-courier.socket wakes hanji-courier.service.\ncourier = none\n' >>$conf
        has_key courier_socket || printf 'courier_socket = /run/hanji/courier.sock\n' >>$conf
        say "courier = none was added to $conf: hanji-courier.service delivers what is sent"
    fi
}

running() { # the processes of the installed program, supervisor first
    for exe in /proc/[0-9]*/exe; do
        case $(readlink "$exe" 2>/dev/null) in
        "$prefix/bin/hanji" | "$prefix/bin/hanji (deleted)")
            exe=${exe%/exe}
            echo "${exe#/proc/}"
            ;;
        esac
    done | sort -n
}

mine() { [ ! -f "$nginx/$1" ] || cmp -s "$nginx/$1" "$placed/$1" || cmp -s "$nginx/$1" "$work/new/$1"; }

keys_folder() { "$prefix/bin/hanji" -c /etc/hanji/hanji.conf conf 2>/dev/null | sed -n 's/^keys = //p'; }

# Once, by hanji itself, so that they are its own; keys that are somebody's care already are left as they are.
make_keys() {
    local keys
    keys=$(keys_folder)
    [ ! -e "$keys" ] || return 0
    runuser -u hanji -- "$prefix/bin/hanji" -c /etc/hanji/hanji.conf key new >/dev/null ||
        die "no keys could be made (see above)"
    say "keys $keys: secret, and in no backup of the database; keep a copy of them in a safe place"
}

put_nginx() {
    local changed='' file
    nginx_ok || { cat "$work/nginx-t" >&2; die "nginx's configuration is already broken; mend it first (nginx -t)"; }
    save_nginx
    render_nginx
    mkdir -p "$nginx/conf.d" "$nginx/snippets" "$placed/conf.d" "$placed/snippets"
    for file in $nginx_files; do
        if [ "$mount" != "$was_mount" ] && ! mine "$file"; then
            die "$nginx/$file was changed here: change the mount there and in its neighbours by hand," \
                "or move it away and run this again"
        fi
    done
    for file in $nginx_files; do
        cmp -s "$work/new/$file" "$nginx/$file" && { rm -f "$nginx/$file.new"; continue; }
        if ! mine "$file"; then
            cp "$work/new/$file" "$nginx/$file.new"
            say "$nginx/$file was changed here and is kept; the new version is $file.new"
            continue
        fi
        cp "$work/new/$file" "$nginx/$file"
        changed=1
    done
    if ! nginx_ok; then
        restore_nginx
        cat "$work/nginx-t" >&2
        die "nginx does not accept the new files; its configuration is as it was"
    fi
    for file in $nginx_files; do cp "$work/new/$file" "$placed/$file"; done
    echo "$mount" >$placed/mount
    [ -z "$changed" ] || nginx_reload
}

drop_nginx() {
    [ -d "$nginx" ] || return 0
    save_nginx
    for file in $nginx_files; do rm -f "$nginx/$file" "$nginx/$file.new"; done
    if command -v nginx >/dev/null && ! nginx_ok; then
        restore_nginx
        cat "$work/nginx-t" >&2
        die "nginx still uses hanji's files (see above): take those lines out first; nothing was removed"
    fi
    nginx_reload
}

# ---- install ----

nginx_group() { # the group of `user NAME [GROUP];`, whose default is a group of that name
    nginx -T 2>/dev/null | awk '$1 == "user" { sub(/;.*/, ""); print $3 != "" ? $3 : $2; found = 1; exit }
        END { if (!found) print "www-data" }'
}

install_hanji() {
    sh deploy/deps.sh run build
    echo "building"
    make -s -j"$(nproc)" BUILD=build all
    echo "installing"
    group=${group:-$(nginx_group)}
    getent group "$group" >/dev/null || die "there is no group $group; name nginx's with --nginx-group"

    getent passwd hanji >/dev/null || useradd --system --user-group --home-dir /var/lib/hanji --no-create-home \
        --shell /usr/sbin/nologin --comment 'hanji' hanji
    install -d -o hanji -g hanji -m 750 /var/lib/hanji
    install -d -m 755 /etc/hanji
    [ -f /etc/hanji/hanji.conf ] || install -m 644 deploy/hanji.conf /etc/hanji/hanji.conf
    if ! grep -q '^[[:blank:]]*blobs[[:blank:]]*=' /etc/hanji/hanji.conf; then # one from before there was this key
        printf '\nblobs = %s\n' $blobs >>/etc/hanji/hanji.conf
        say "blobs = $blobs was added to /etc/hanji/hanji.conf"
    fi
    if ! grep -q '^[[:blank:]]*apps[[:blank:]]*=' /etc/hanji/hanji.conf; then
        printf '\napps = %s\n' $apps >>/etc/hanji/hanji.conf
        say "apps = $apps was added to /etc/hanji/hanji.conf"
    fi
    if with_systemd; then units_courier; fi
    # For hanji and nginx's workers to read; root writes there, or whoever is given the folder.
    install -d -o root -g root -m 755 "${apps%/*}" $apps
    # For nginx's workers to read, for nobody else: hanji's group is in no way theirs.
    install -d -o root -g root -m 755 "${blobs%/*}"
    install -d -o hanji -g "$group" -m 2750 $blobs
    say "configuration /etc/hanji/hanji.conf, data /var/lib/hanji, copies of large documents $blobs, apps $apps"

    make -s BUILD=build install PREFIX="$prefix" UNITDIR="$units" >/dev/null
    sed "s|^SocketGroup=.*|SocketGroup=$group|" deploy/systemd/hanji.socket >"$units/hanji.socket"
    sed -i "/^ExecStartPre=.*blobs$/s/ -g [^ ]* / -g $group /" "$units/hanji.service"
    runuser -u hanji -- "$prefix/bin/hanji" -c /etc/hanji/hanji.conf conf >/dev/null ||
        die "the configuration is refused (see above)"
    make_keys
    put_nginx

    if with_systemd; then
        systemctl daemon-reload
        systemctl enable -q hanji.socket hanji.service hanji-courier.socket
        systemctl start hanji.socket hanji-courier.socket
        systemctl restart hanji.service # the courier, too, if it runs
        say "hanji.socket, hanji.service and hanji-courier.socket run"
    elif [ -n "$(running)" ]; then
        say "an older hanji runs; \`kill -USR2 $(running | head -n 1)\` hands over to the new one"
    else
        cat <<END
There is no systemd here. To start hanji by hand, as root (the socket gets its folder's group, so that nginx may use it):
  install -d -o hanji -g $group -m 2750 /run/hanji
  setpriv --reuid hanji --regid hanji --init-groups $prefix/bin/hanji -c /etc/hanji/hanji.conf serve
END
    fi
    cat <<END
Done. In the server {} that shall have hanji${mount:+ below $mount}, put
  include snippets/hanji-locations.conf;
then \`nginx -t && nginx -s reload\`, and see http://YOUR.NAME$mount/health. A first token:
  runuser -u hanji -- $prefix/bin/hanji -c /etc/hanji/hanji.conf token new --name admin --read / --write /
END
}

# ---- uninstall ----

uninstall_hanji() {
    if ! with_systemd && [ -n "$(running)" ]; then
        die "hanji runs (pid $(running | paste -sd ' ')): end it first; nothing was removed"
    fi
    keys=$(keys_folder)
    drop_nginx
    if with_systemd; then
        systemctl disable -q --now hanji-courier.socket hanji-courier.service hanji.service hanji.socket 2>/dev/null || true
    fi
    for unit in hanji.service hanji.socket hanji-courier.service hanji-courier.socket; do rm -f "$units/$unit"; done
    if with_systemd; then systemctl daemon-reload; fi
    rm -f "$prefix/bin/hanji" "$prefix/bin/hanji-courier"
    rm -rf "${blobs%/*}"
    for page in docs/man/*.[1-9]; do rm -f "$prefix/share/man/man${page##*.}/${page##*/}"; done
    rm -rf "$share" "$prefix/share/doc/hanji"
    if [ "$action" = uninstall ]; then
        say "removed; /var/lib/hanji (with the keys), $apps, /etc/hanji and the user hanji are kept (--purge removes them)"
        return
    fi
    rm -rf /var/lib/hanji /etc/hanji /run/hanji "$apps"
    [ -z "$keys" ] || [ ! -e "$keys" ] || say "the keys in $keys are left: that is a folder of your own"
    rmdir "${apps%/*}" 2>/dev/null || true
    if getent passwd hanji >/dev/null; then userdel hanji; fi
    say "removed, with all data"
}

case $action in
install) install_hanji ;;
*) uninstall_hanji ;;
esac
