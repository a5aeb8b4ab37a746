#!/bin/sh
# linked.sh: the server is not linked with the library that delivers, nor with what that one needs: neither by itself nor by
# way of another library. (rooms.sh sees to it that only handlers/courier* includes its header.)
cd "$(dirname "$0")/../.." || exit 1
program=${BUILD:-build}/hanji
libraries=$(ldd "$program") || { echo "linked.sh: $program cannot be read" >&2; exit 1; }
printf '%s\n' "$libraries" | grep -q 'libsqlite3\.so' || { echo "linked.sh: ldd does not say what $program needs" >&2; exit 1; }
wrong=$(printf '%s\n' "$libraries" | grep -E 'lib(curl|ssl|crypto|gnutls|nss3|nghttp2|ssh2)[-.]') || exit 0
printf '%s is linked with\n%s\n' "$program" "$wrong" >&2
exit 1
