#!/bin/sh
# units.sh: systemd reads every unit of deploy/systemd without a word, and the two that are hardened stay so: the server has no
# network, the courier nothing but the network more.
cd "$(dirname "$0")/../.." || exit 1
command -v systemd-analyze >/dev/null || { echo "units.sh: systemd-analyze is not installed" >&2; exit 1; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
wrong=''
mkdir "$dir/bin"
for program in hanji hanji-courier; do printf '#!/bin/sh\n' >"$dir/bin/$program" && chmod 755 "$dir/bin/$program"; done
for unit in deploy/systemd/*; do sed "s|@PREFIX@|$dir|g" "$unit" >"$dir/${unit##*/}"; done
said=$(systemd-analyze verify --man=no "$dir"/*.service "$dir"/*.socket 2>&1) && [ -z "$said" ] || { printf '%s\n' "$said" >&2; wrong=1; }

# What takes something away from the server takes it away from the courier, but for the network.
needed='PrivateNetwork=yes|IPAddressDeny=any|RestrictAddressFamilies=AF_UNIX|ReadWritePaths=-/var/cache/hanji/blobs'
settings() { # the lines of its hardening
    sed -n '/^NoNewPrivileges=/,/^KeyringMode=/p' "deploy/systemd/$1" | grep -v '^#' | sort
}
settings hanji.service >"$dir/server"
settings hanji-courier.service >"$dir/courier"
for setting in $(echo $needed | tr '|' ' '); do
    grep -qxF "$setting" "$dir/server" || { echo "hanji.service: $setting is gone" >&2; wrong=1; }
done
gone=$(grep -vxE "$needed" "$dir/server" | grep -vxFf "$dir/courier")
[ -z "$gone" ] || { printf 'hanji-courier.service: not hardened as hanji.service is\n%s\n' "$gone" >&2; wrong=1; }
[ -z "$wrong" ]
