#!/bin/sh
# fuzz.sh DIR: runs every libFuzzer program of DIR for FUZZ_SECONDS over its corpus tests/fuzz/corpus/NAME (NAME is the
# program's without `fuzz_`), JOBS at a time. New inputs and crashes go to a scratch folder beside DIR, never into the
# committed corpus.
set -u

cd "$(dirname "$0")/.." || exit 1
: "${JOBS:=$(nproc)}" "${FUZZ_SECONDS:=60}"
dir=${1:?usage: fuzz.sh DIR}
scratch=${dir%/*}/found
mkdir -p "$scratch/crashes"
rm -f "$scratch/failed"
export dir scratch FUZZ_SECONDS
# shellcheck disable=SC2016 # expanded by the inner shell
for source in tests/fuzz/fuzz_*.c; do
    name=${source##*/fuzz_}
    echo "${name%.c}"
done | xargs -P "$JOBS" -n 1 sh -c '
    corpus=tests/fuzz/corpus/$1
    log=$scratch/$1.log
    dict=tests/fuzz/$1.dict
    mkdir -p "$scratch/$1"
    fail() { echo "fuzz $1: $2" | tee -a "$scratch/failed" >&2; exit 0; }
    [ -n "$(ls "$corpus" 2>/dev/null)" ] || fail "$1" "$corpus has no inputs"
    set -- "$1" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1
    [ ! -f "$dict" ] || set -- "$@" "-dict=$dict"
    name=$1
    shift
    "$dir/fuzz_$name" "$@" -artifact_prefix="$scratch/crashes/$name-" "$scratch/$name" "$corpus" >"$log" 2>&1 || {
        tail -n 60 "$log"
        fail "$name" "FAILED (log: $log)"
    }
    runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "$log")
    echo "fuzz $name: $runs runs, $(find "$corpus" -type f | wc -l) in the corpus, ok"' fuzz
[ ! -s "$scratch/failed" ] || { echo "fuzz FAILED:" "$(sed 's/^fuzz //; s/:.*//' "$scratch/failed" | tr '\n' ' ')" >&2; exit 1; }
