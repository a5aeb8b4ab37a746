#!/bin/bash
# demo.sh start|stop|status [--port N] [--tls-port N] [--data DIR]
#
# A whole hanji on loopback: its own nginx (HTTP and HTTPS with HTTP/2), hanji, and a token that may do everything.
#   start    installs and builds what is missing, starts what is down, and succeeds only when it answers on both ports
#   stop     ends both, leaves no process, keeps the data
#   status   succeeds only when both run and answer
#   --port, --tls-port   8080 and 8443 at first; later the ones used before in the same DIR
#   --data   everything the demo writes: data, configuration, logs, certificate (default: /var/lib/hanji-demo for root,
#            ~/.local/state/hanji-demo for others). Several demos run side by side with other DIRs and ports.
# DIR/demo.env tells scripts where everything is. /etc/nginx is not touched. HANJI_BIN=FILE runs another binary.
set -u

die() { echo "demo.sh: $*" >&2; exit 1; }
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }

top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
PATH=$PATH:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
umask 022

# ---- what was asked ----

verb='' port='' tls_port='' data=''
while [ $# -gt 0 ]; do
    case $1 in
    --port | --tls-port | --data) [ $# -ge 2 ] || usage; key=${1#--} value=$2; shift 2 ;;
    --port=* | --tls-port=* | --data=*) key=${1%%=*} key=${key#--} value=${1#*=}; shift ;;
    start | stop | status) [ -z "$verb" ] || usage; verb=$1; shift; continue ;;
    *) usage ;;
    esac
    case $key in
    data) data=$value; [ -n "$data" ] || usage ;;
    *)
        case $value in '' | *[!0-9]* | ??????*) die "--$key: not a port: $value" ;; esac
        if [ "$value" -lt 1 ] || [ "$value" -gt 65535 ]; then die "--$key: not a port: $value"; fi
        if [ "$key" = port ]; then port=$value; else tls_port=$value; fi
        ;;
    esac
done
[ -n "$verb" ] || usage

uid=$(id -u)
if [ -z "$data" ]; then
    if [ "$uid" = 0 ]; then data=/var/lib/hanji-demo
    else data=${XDG_STATE_HOME:-${HOME:?HOME is not set; name a folder with --data}/.local/state}/hanji-demo; fi
fi
bin=${HANJI_BIN:-$top/build/hanji}
case $bin in /*) ;; *) bin=$PWD/$bin ;; esac
# hanji reads its settings from HANJI_*: what the caller has there (perhaps another demo.env) must not reach this one.
for name in $(env | sed -n 's/^\(HANJI_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done

# The user whose nginx workers must reach the socket; a user's own nginx runs as that user.
worker_user=''
[ "$uid" != 0 ] || worker_user=www-data

open_data() { # makes DIR (start) or finds it, and takes its lock until the end of this script
    if [ "$verb" = start ]; then mkdir -p "$data" || die "cannot make $data"; fi
    [ -d "$data" ] || [ "$verb" = stop ] || { echo "no demo in $data"; exit 1; }
    data=$(realpath -m -- "$data") || die "cannot enter the data folder"
    case $data in
    *[[:space:]]* | *[\'\"\\\;{}\$\#\`\|\&*?[\]]*)
        die "$data: this name would need quoting in nginx's configuration; choose another --data"
        ;;
    esac
    [ "$data" != / ] || die "/ is not for this"
    conf=$data/hanji.conf socket=$data/run/hanji.sock db=$data/data/hanji.db
    nginx_dir=$data/nginx nginx_conf=$data/nginx/nginx.conf env_file=$data/demo.env
    # A socket's name has at most 107 bytes, and /data/hanji.db.control is the longest here.
    [ ${#data} -le 85 ] || die "$data: too long for sockets below it (at most 85 bytes)"
    [ -d "$data" ] || return 0 # removed while the demo runs: it can be stopped all the same
    [ -O "$data" ] || die "$data belongs to someone else"
    exec 9>"$data/lock" || die "cannot write into $data"
    flock -w 180 9 || die "another start or stop is busy in $data"
}

remembered() { sed -n "s|^$1='[a-z]*://127.0.0.1:\([0-9]*\)'\$|\1|p" "$env_file" 2>/dev/null; }

# ---- processes ----
# A process is ours by what it is, never by a number in a file: hanji by its arguments, nginx's master by its
# title, nginx's workers by the folder they were started in (their title says nothing).

hanji_pids() { # hanji_pids [WORD]: the supervisor (serve) and its workers (worker), or one kind
    grep -lsaF -e "$conf" /proc/[0-9]*/cmdline | while read -r file; do
        { tr '\0' '\n' <"$file"; } 2>/dev/null | awk -v conf="$conf" -v word="${1:-serve|worker}" '
            { line[NR] = $0 }
            END {
                for (i = 2; i < NR; i++)
                    if (line[i] == "-c" && line[i + 1] == conf && line[i + 2] ~ "^(" word ")$") exit 0
                exit 1
            }' || continue
        pid=${file#/proc/}
        echo "${pid%/cmdline}"
    done
}
supervisor_pid() { hanji_pids serve; }
nginx_pids() {
    find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' \( -lname "$nginx_dir" -o -lname "$nginx_dir (deleted)" \) 2>/dev/null |
        while read -r link; do
            pid=${link#/proc/} pid=${pid%/cwd}
            [ "$({ cat "/proc/$pid/comm"; } 2>/dev/null)" != nginx ] || echo "$pid"
        done
}
master_pid() {
    for pid in $(nginx_pids); do
        case $({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null) in
        "nginx: master process "*" -c $nginx_conf"*) echo "$pid"; return ;;
        esac
    done
}

await_none() { # await_none SECONDS LISTER: true once LISTER names no process
    n=$(($1 * 10))
    while [ -n "$($2)" ]; do
        [ $n -gt 0 ] || return 1
        n=$((n - 1))
        sleep 0.1
    done
}
signal() { # signal NAME LISTER
    for pid in $($2); do kill -s "$1" "$pid" 2>/dev/null; done
}

stop_nginx() {
    [ -n "$(nginx_pids)" ] || return 0
    signal QUIT master_pid
    [ -n "$(master_pid)" ] && await_none 5 nginx_pids && return
    signal TERM nginx_pids
    await_none 5 nginx_pids && return
    signal KILL nginx_pids
    await_none 5 nginx_pids
}
stop_hanji() { # the drain may take as long as drain_timeout (30 s)
    [ -n "$(hanji_pids)" ] || return 0
    if [ -n "$(supervisor_pid)" ]; then
        signal TERM supervisor_pid
        await_none 40 hanji_pids && return
    fi
    signal KILL hanji_pids
    await_none 5 hanji_pids
}

# ---- start ----

started=''
fail() { # what this start has brought up goes down again
    echo "demo.sh: $*" >&2
    case $started in *nginx*) stop_nginx ;; esac
    case $started in *hanji*) stop_hanji ;; esac
    exit 1
}

prepare() { # packages and the binary; one at a time, also among several demos
    (
        flock 8
        cd "$top" || exit 1
        build=''
        if [ "$bin" = "$top/build/hanji" ]; then
            [ -x "$bin" ] && [ -z "$(find Makefile fcgi handlers db seal -type f -newer "$bin" | head -n 1)" ] || build=build
        fi
        # shellcheck disable=SC2086 # empty or a word
        sh deploy/deps.sh run $build || exit 1
        [ -n "$build" ] || exit 0
        echo "building hanji"
        make -s -j"$(nproc)" BUILD=build all || exit 1
        touch "$bin"
    ) 8<"$top/Makefile" || die "cannot install or build what the demo needs"
    [ -x "$bin" ] || die "$bin: no such program"
}

listening() { # is something bound to this TCP port on loopback or on every address?
    hex=$(printf '%04X' "$1")
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$hex" '
        $4 == "0A" { split($2, a, ":"); if (a[2] == port && (a[1] == "0100007F" || a[1] ~ /^0+$/)) found = 1 }
        END { exit !found }'
}

reachable() { # can nginx's workers get to DIR?
    [ -n "$worker_user" ] || return 0
    setpriv --reuid "$worker_user" --regid "$worker_user" --clear-groups test -x "$data" ||
        die "nginx's workers ($worker_user) cannot reach $data: a folder above it is closed to them;" \
            "choose another --data"
}

blobs_of_conf() { sed -n 's/^[[:blank:]]*blobs[[:blank:]]*=[[:blank:]]*//p' "$conf" | tail -n 1; }

lay_out() {
    mkdir -p "$data/data" "$data/run" "$data/log" "$nginx_dir/conf.d" "$nginx_dir/snippets" "$nginx_dir/tls" \
        "$nginx_dir/logs" "$nginx_dir/temp" || die "cannot make folders in $data"
    chmod 700 "$data/data" "$nginx_dir/tls"
    [ -f "$conf" ] || cat >"$conf" <<END
# Made once by deploy/demo.sh; yours to change. hanji.conf(5) explains every key.
database = $db
socket = $socket
socket_mode = 0660
${worker_user:+socket_group = $worker_user}
END
    # Large documents: nginx's workers cannot enter the database's folder.
    [ -n "$(blobs_of_conf)" ] || echo "blobs = $data/blobs" >>"$conf" || die "cannot write $conf"
    grep -q '^[[:blank:]]*apps[[:blank:]]*=' "$conf" || echo "apps = $data/apps" >>"$conf" || die "cannot write $conf"
    # A certificate for this machine only, made again when it is about to end.
    if ! openssl x509 -checkend 86400 -noout -in "$nginx_dir/tls/cert.pem" >/dev/null 2>&1; then
        (umask 077 && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 825 \
            -subj "/CN=localhost" -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" \
            -keyout "$nginx_dir/tls/key.pem" -out "$nginx_dir/tls/cert.pem" 2>"$data/log/openssl.log") ||
            die "openssl could not make a certificate: $data/log/openssl.log"
    fi
}

write_nginx() { # the files of nginx-conf/ as they are, but for the socket and the blobs, and a server around them
    local from=$top/nginx-conf blobs apps hard files connections tls_listen
    apps=$("$bin" -c "$conf" conf | sed -n 's/^apps = //p')
    blobs=$("$bin" -c "$conf" conf | sed -n 's/^blobs = //p')
    sed "s|unix:/run/hanji/hanji.sock|unix:$socket|" "$from/hanji-upstream.conf" \
        >"$nginx_dir/conf.d/hanji-upstream.conf" || fail "cannot write nginx's files"
    cp "$from/hanji-params.conf" "$nginx_dir/snippets/" &&
        sed "s|^\( *alias \)/var/cache/hanji/blobs/;|\1$blobs/;|; s|^\( *alias \)/srv/hanji/apps/;|\1$apps/;|" \
            "$from/hanji-locations.conf" \
            >"$nginx_dir/snippets/hanji-locations.conf" || fail "cannot write nginx's files"
    hard=$(ulimit -H -n)
    files=16384
    [ "$hard" = unlimited ] || [ "$hard" -ge $files ] || files=$hard
    ulimit -n "$files" 2>/dev/null || files=$(ulimit -n)
    connections=$((files / 4))
    tls_listen="listen 127.0.0.1:$tls_port ssl http2;"
    ! sh "$top/deploy/nginx-version.sh" 1.25.1 || tls_listen="listen 127.0.0.1:$tls_port ssl; http2 on;"
    cat >"$nginx_conf" <<END
# Made by deploy/demo.sh at every start of nginx; change it and it is gone the next time.
${worker_user:+user $worker_user;}
worker_processes 1;
pid $nginx_dir/nginx.pid;
error_log $nginx_dir/logs/error.log notice;
worker_shutdown_timeout 4s;
events { worker_connections $connections; }
http {
    access_log off;
    client_body_temp_path $nginx_dir/temp/client_body;
    fastcgi_temp_path $nginx_dir/temp/fastcgi;
    proxy_temp_path $nginx_dir/temp/proxy;
    scgi_temp_path $nginx_dir/temp/scgi;
    uwsgi_temp_path $nginx_dir/temp/uwsgi;
    server_tokens off;
    sendfile on;
    keepalive_requests 100000;
    include conf.d/hanji-upstream.conf;
    server {
        listen 127.0.0.1:$port;
        include snippets/hanji-locations.conf;
        # All other paths too, so that hanji's own answer to them shows.
        location / { include snippets/hanji-params.conf; }
    }
    server {
        $tls_listen
        ssl_certificate $nginx_dir/tls/cert.pem;
        ssl_certificate_key $nginx_dir/tls/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:demo:1m;
        ssl_session_tickets off;
        include snippets/hanji-locations.conf;
        location / { include snippets/hanji-params.conf; }
    }
}
END
}

# The apps that come with hanji, for everybody to read and write: this is loopback. What is there already stays as it is.
put_apps() {
    local apps app from=$top/handlers/bundled
    apps=$("$bin" -c "$conf" conf | sed -n 's/^apps = //p')
    [ "$apps" = "$data/apps" ] || return 0
    mkdir -p "$apps" || die "cannot make $apps"
    for app in scores household; do
        [ -d "$from/$app" ] && [ ! -e "$apps/$app" ] || continue
        rm -rf "$apps/.$app.new"
        cp -r "$from/$app" "$apps/.$app.new" && chmod -R u+w,a+rX "$apps/.$app.new" &&
            sed -i 's/^\(read\|write\) *=.*/\1 = public/' "$apps/.$app.new/app.ini" &&
            mv "$apps/.$app.new" "$apps/$app" || die "cannot write $apps/$app"
    done
}
demo_apps() { # their names
    for app in scores household; do [ ! -d "$data/apps/$app" ] || echo $app; done
}

start_hanji() {
    # A worker whose supervisor was killed drains and leaves by itself.
    await_none 10 hanji_pids || signal KILL hanji_pids
    await_none 5 hanji_pids || fail "cannot end what is left of an earlier hanji"
    started="$started hanji"
    setsid "$bin" -c "$conf" serve </dev/null >>"$data/log/hanji.log" 2>&1 9>&- &
    local child=$!
    until [ -n "$(supervisor_pid)" ]; do
        kill -0 $child 2>/dev/null || { tail -n 5 "$data/log/hanji.log" >&2; fail "hanji did not start"; }
        sleep 0.05
    done
}

start_nginx() {
    stop_nginx # workers whose master was killed
    for p in "$port" "$tls_port"; do
        ! listening "$p" || fail "port $p is in use by another program; choose with --port and --tls-port"
    done
    write_nginx
    rm -f "$nginx_dir/nginx.pid"
    started="$started nginx"
    (cd "$nginx_dir" && exec nginx -e "$nginx_dir/logs/error.log" -p "$nginx_dir" -c "$nginx_conf") \
        </dev/null >"$data/log/nginx-start.log" 2>&1 9>&- || {
        cat "$data/log/nginx-start.log" >&2
        fail "nginx did not start"
    }
}

healthy() { # healthy SCHEME PORT
    curl -fs -m 5 --noproxy '*' --cacert "$nginx_dir/tls/cert.pem" -o /dev/null "$1://127.0.0.1:$2/health"
}
await_health() {
    n=300
    until healthy http "$port" && healthy https "$tls_port"; do
        n=$((n - 1))
        if [ $n = 0 ] || [ -z "$(supervisor_pid)" ]; then
            tail -n 5 "$data/log/hanji.log" "$nginx_dir/logs/error.log" >&2
            [ $n = 0 ] || fail "hanji ended; its log is $data/log/hanji.log"
            fail "it does not answer on the ports $port and $tls_port"
        fi
        sleep 0.1
    done
}

token_works() {
    [ -s "$data/token" ] && curl -fs -m 5 --noproxy '*' -o /dev/null -K - "http://127.0.0.1:$port/status" <<END
header = "Authorization: Bearer $(cat "$data/token")"
END
}
make_keys() { # once, before hanji starts
    keys=$("$bin" -c "$conf" conf 2>/dev/null | sed -n 's/^keys = //p')
    [ -z "$keys" ] || [ -e "$keys" ] || "$bin" -c "$conf" key new >/dev/null || die "cannot make keys in $keys"
}

make_token() { # once; again only if the one that is kept is not known any more (the database was replaced)
    token_works && return
    "$bin" -c "$conf" token revoke demo >/dev/null 2>&1
    (umask 077 && "$bin" -c "$conf" token new --name demo --read / --write / >"$data/token.new") ||
        fail "cannot make a token"
    mv "$data/token.new" "$data/token"
    token_works || fail "the token does not work"
}

write_env() { # write_env HANJI_PID NGINX_PID
    (umask 077 && cat >"$env_file.new" <<END) && mv "$env_file.new" "$env_file"
HANJI_URL='http://127.0.0.1:$port'
HANJI_TLS_URL='https://127.0.0.1:$tls_port'
HANJI_TOKEN='$(cat "$data/token" 2>/dev/null)'
HANJI_DB='$db'
HANJI_SOCKET='$socket'
HANJI_BIN='$bin'
HANJI_CONF='$conf'
HANJI_APPS='$("$bin" -c "$conf" conf 2>/dev/null | sed -n 's/^apps = //p')'
HANJI_CERT='$nginx_dir/tls/cert.pem'
HANJI_PID='$1'
NGINX_PID='$2'
END
}

ports() { # those asked for, else those used before, else the usual ones
    was=$(remembered HANJI_URL) tls_was=$(remembered HANJI_TLS_URL)
    if [ -n "$(master_pid)" ]; then
        if [ "${port:-$was}" != "$was" ] || [ "${tls_port:-$tls_was}" != "$tls_was" ]; then
            die "this demo runs on the ports $was and $tls_was; stop it first to change them"
        fi
    fi
    port=${port:-${was:-8080}} tls_port=${tls_port:-${tls_was:-8443}}
    [ "$port" != "$tls_port" ] || die "--port and --tls-port are the same: $port"
}

start() {
    prepare
    open_data
    reachable
    ports
    lay_out
    put_apps
    [ -n "$(master_pid)" ] || { # before anything is started, the common mistake
        for p in "$port" "$tls_port"; do
            [ -n "$(nginx_pids)" ] || ! listening "$p" ||
                die "port $p is in use by another program; choose with --port and --tls-port"
        done
    }
    make_keys
    [ -n "$(supervisor_pid)" ] || start_hanji
    [ -n "$(master_pid)" ] || start_nginx
    await_health
    make_token
    write_env "$(supervisor_pid)" "$(master_pid)"
    case $(readlink "/proc/$(supervisor_pid)/exe") in
    *' (deleted)') echo "note: the hanji that runs is older than $bin; stop and start to change that" ;;
    esac
    url=http://127.0.0.1:$port
    token=$(cat "$data/token")
    cat <<END
hanji is up.
  URL    $url    https://127.0.0.1:$tls_port (certificate: $nginx_dir/tls/cert.pem)
  token  $token
  files  $data (demo.env, hanji.conf, log/)

Store a document, read it, list what is there:
  curl -i -X PUT -H 'Authorization: Bearer $token' -H 'Content-Type: text/plain' -d 'hello, paper' $url/docs/notes/hello
  curl -i -H 'Authorization: Bearer $token' $url/docs/notes/hello
  curl -H 'Authorization: Bearer $token' '$url/docs/notes/?limit=10'

$(for app in $(demo_apps); do printf 'An app   %s/apps/%s/\n' "$url" "$app"; done)

Make a shell ready for the examples of the documents:
  . $env_file
  auth="Authorization: Bearer \$HANJI_TOKEN"
  hanji() { "\$HANJI_BIN" -c "\$HANJI_CONF" "\$@"; }
END
}

stop() {
    open_data
    [ -d "$data" ] || [ -n "$(nginx_pids)$(hanji_pids)" ] || echo "no demo in $data"
    port=$(remembered HANJI_URL) tls_port=$(remembered HANJI_TLS_URL)
    stop_nginx || die "cannot end nginx: $(nginx_pids | tr '\n' ' ')"
    stop_hanji || die "cannot end hanji: $(hanji_pids | tr '\n' ' ')"
    rm -f "$nginx_dir/nginx.pid"
    [ ! -f "$env_file" ] || write_env '' ''
}

status() {
    open_data
    port=$(remembered HANJI_URL) tls_port=$(remembered HANJI_TLS_URL)
    hanji=$(supervisor_pid) nginx=$(master_pid) ok=0
    echo "hanji  ${hanji:+pid }${hanji:-down}"
    echo "nginx  ${nginx:+pid }${nginx:-down}"
    [ -n "$hanji" ] && [ -n "$nginx" ] || ok=1
    for scheme in http https; do
        p=$port
        [ $scheme = http ] || p=$tls_port
        [ -n "$p" ] || { ok=1; continue; }
        if healthy $scheme "$p"; then say=healthy; else say='does not answer' ok=1; fi
        echo "$scheme://127.0.0.1:$p  $say"
    done
    return $ok
}

"$verb"
