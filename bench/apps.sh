#!/bin/sh
# apps.sh [--quick] [--rounds N] [--seconds S] [--quiet] [--save] [BAR]...
#
# The bars for apps, measured on this machine in about ten minutes (--quick: below two, with smaller numbers, to see that all
# of it runs): get page write mixed slow memory (all). Its own nginx and its own servers on free ports, in folders of its own;
# it leaves nothing running and nothing but build/bench/apps-*.json (--save: docs/measurements/ too). bench/README.md says how
# to read the result.
set -eu

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
export PATH
missing=''
for tool in cc nginx sqlite3 setpriv taskset valgrind callgrind_control python3; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
[ -z "$missing" ] || { echo "apps.sh: missing:$missing" >&2; exit 2; }
[ -x build/hanji ] || { echo "apps.sh: build/hanji is missing: run make" >&2; exit 2; }
sh bench/build.sh
python=/usr/bin/python3
[ -x "$python" ] || python=python3
PYTHONDONTWRITEBYTECODE=1 exec "$python" bench/apps.py "$@"
