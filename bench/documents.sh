#!/bin/sh
# documents.sh [--quick] [--rounds N] [--seconds S] [--quiet] [--save] [BAR]...
#
# The bars for complete documents, measured on this machine in about ten minutes (--quick: below two, with smaller numbers, to
# see that all of it runs): get accel upload snapshot list batch watchers backup (all). Its own nginx and its own servers on free
# ports, in folders of its own; it leaves nothing running and nothing but build/bench/documents-*.json (--save:
# docs/measurements/ too). bench/README.md says how to read the result.
set -eu

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
export PATH
missing=''
for tool in cc nginx sqlite3 setpriv taskset valgrind callgrind_control curl python3; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
[ -z "$missing" ] || { echo "documents.sh: missing:$missing" >&2; exit 2; }
[ -x build/hanji ] || { echo "documents.sh: build/hanji is missing: run make" >&2; exit 2; }
sh bench/build.sh
python=/usr/bin/python3
[ -x "$python" ] || python=python3
PYTHONDONTWRITEBYTECODE=1 exec "$python" bench/documents.py "$@"
