#!/bin/sh
# armhf.sh: `make check-armhf`. Builds the unit tests for 32-bit ARM (Raspberry Pi OS, armhf) with Debian's cross compiler
# and libraries of that architecture, and runs them under qemu-user. Installs what it needs, so it is only run when asked.
set -eu

cd "$(dirname "$0")/.."
sh deploy/deps.sh build
# SQLite's header is the same everywhere and its -dev package would pull in the C library's, kernel headers and more of
# the other architecture: the library alone is enough.
packages='gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user libfcgi-dev:armhf libsqlite3-0:armhf'
packages="$packages libsodium-dev:armhf libinih-dev:armhf libcurl4-openssl-dev:armhf check:armhf"
missing=''
for package in $packages; do
    # shellcheck disable=SC2016 # dpkg's own variable
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "packages to install:$missing"
    sudo=''
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo dpkg --add-architecture armhf
    $sudo apt-get -qq update || echo "armhf.sh: not all package lists could be refreshed; going on" >&2
    # shellcheck disable=SC2086 # a list of words
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends $missing >/dev/null
fi

triple=arm-linux-gnueabihf
mkdir -p build/armhf/pkgconfig
printf 'Name: sqlite3\nDescription: SQLite\nVersion: 3\nLibs: -l:libsqlite3.so.0\n' >build/armhf/pkgconfig/sqlite3.pc
exec "${MAKE:-make}" -j"$(nproc)" BUILD=build/armhf CC=$triple-gcc AR=$triple-ar RUNNER=qemu-arm UNIT_TIMEOUT=600 \
    PKG_CONFIG="env PKG_CONFIG_LIBDIR=build/armhf/pkgconfig:/usr/lib/$triple/pkgconfig:/usr/share/pkgconfig pkg-config" check
