#!/bin/sh
# man.sh: mandoc's own lint on every man page; a warning fails.
cd "$(dirname "$0")/../.." || exit 1
command -v mandoc >/dev/null || { echo "man.sh: mandoc is not installed" >&2; exit 1; }
set -- docs/man/*.[1-8]
[ -f "$1" ] || { echo "man.sh: docs/man has no pages" >&2; exit 1; }
exec mandoc -T lint -W warning "$@"
