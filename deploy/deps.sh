#!/bin/sh
# deps.sh [-n] GROUP…: installs the Debian packages of the groups run, build, test, bench that are missing, and nothing else.
#   -n  only name them; the exit status is 1 if something is missing
# Works on a minimal Debian (needs only dpkg and apt), without questions, as root or through sudo.
set -eu

run='nginx openssl curl sqlite3 ca-certificates util-linux libsqlite3-0 libsodium23 libinih1 libcurl4'
build='make gcc libc6-dev pkgconf libfcgi-dev libsqlite3-dev libsodium-dev libinih-dev libcurl4-openssl-dev'
test='lighttpd check chromium chromium-driver python3-nacl python3-selenium python3-pytest-xdist clang clang-tidy libclang-rt-dev cppcheck shellcheck mandoc systemd python3 python3-pytest python3-requests python3-yaml python3-jsonschema sqlite3'
bench='valgrind python3 sqlite3 util-linux curl'

usage() { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
only_name=''
wanted=''
for word in "$@"; do
    case $word in
    -n) only_name=1 ;;
    run) wanted="$wanted $run" ;;
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    bench) wanted="$wanted $bench" ;;
    *) usage ;;
    esac
done
[ -n "$wanted" ] || usage
command -v dpkg-query >/dev/null || { echo "deps.sh: this needs Debian (dpkg)" >&2; exit 1; }

missing=''
for package in $wanted; do
    case " $missing " in *" $package "*) continue ;; esac
    # shellcheck disable=SC2016 # dpkg's own variable
    case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true) in
    installed*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0
echo "packages to install:$missing"
[ -z "$only_name" ] || exit 1

sudo=''
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "deps.sh: install them as root, or install sudo" >&2; exit 1; }
    sudo=sudo
fi
apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"
}
# A list that cannot be had (some other repository's, perhaps) need not stop what is wanted here.
apt update || echo "deps.sh: not all package lists could be refreshed; going on" >&2
# shellcheck disable=SC2086 # a list of words
apt install -y --no-install-recommends $missing >/dev/null
