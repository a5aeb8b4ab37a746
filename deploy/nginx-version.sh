#!/bin/sh
# nginx-version.sh X.Y.Z: succeeds if the installed nginx is at least that version.
set -eu
PATH=$PATH:/usr/sbin:/sbin
have=$(nginx -v 2>&1 | sed -n 's|^nginx version: [^/]*/\([0-9.]*\).*|\1|p')
[ -n "$have" ] || { echo "nginx-version.sh: no nginx" >&2; exit 2; }
[ "$(printf '%s\n%s\n' "$1" "$have" | sort -V | head -n 1)" = "$1" ]
