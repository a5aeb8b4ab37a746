#!/bin/sh
# sends.sh [--quick] [--rounds N] [--seconds S] [--quiet] [--save] [BAR]...
#
# The bars for sends, measured on this machine in about five minutes (--quick: below two, with smaller numbers, to see that
# all of it runs): accept seal deliver inbox fifo dead memory (all). Its own nginx and its own servers on free ports, in
# folders of its own; it leaves nothing running and nothing but build/bench/sends-*.json (--save: docs/measurements/ too).
# bench/README.md says how to read the result.
set -eu

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
export PATH
missing=''
for tool in cc nginx sqlite3 setpriv taskset python3; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
[ -z "$missing" ] || { echo "sends.sh: missing:$missing" >&2; exit 2; }
for program in hanji hanji-courier; do
    [ -x build/$program ] || { echo "sends.sh: build/$program is missing: run make" >&2; exit 2; }
done
sh bench/build.sh
python=/usr/bin/python3
[ -x "$python" ] || python=python3
PYTHONDONTWRITEBYTECODE=1 exec "$python" bench/sends.py "$@"
