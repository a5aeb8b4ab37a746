#!/bin/sh
# fuzz.sh DIR: runs every libFuzzer program of DIR for FUZZ_SECONDS over its corpus tests/fuzz/corpus/NAME (NAME is the
# program's without `fuzz_`). New inputs and crashes go to a scratch folder beside DIR, never into the committed corpus.
set -u

cd "$(dirname "$0")/.." || exit 1
dir=${1:?usage: fuzz.sh DIR}
seconds=${FUZZ_SECONDS:-60}
scratch=${dir%/*}/found
failed=''
count=0
for source in tests/fuzz/fuzz_*.c; do
    [ -f "$source" ] || continue
    name=${source##*/fuzz_}
    name=${name%.c}
    corpus=tests/fuzz/corpus/$name
    count=$((count + 1))
    mkdir -p "$scratch/$name" "$scratch/crashes"
    if [ -z "$(ls "$corpus" 2>/dev/null)" ]; then
        echo "fuzz.sh: $corpus has no inputs" >&2
        failed="$failed $name"
        continue
    fi
    dict=''
    [ -f "tests/fuzz/$name.dict" ] && dict="-dict=tests/fuzz/$name.dict"
    log=$scratch/$name.log
    # shellcheck disable=SC2086 # $dict is empty or one word
    if "$dir/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 $dict \
        -artifact_prefix="$scratch/crashes/$name-" "$scratch/$name" "$corpus" >"$log" 2>&1; then
        echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, $(find "$corpus" -type f | wc -l) in the corpus, ok"
    else
        tail -n 60 "$log"
        echo "fuzz $name: FAILED (log: $log)" >&2
        failed="$failed $name"
    fi
done
[ $count -gt 0 ] || { echo "fuzz.sh: no fuzz targets" >&2; exit 1; }
[ -z "$failed" ] || { echo "fuzz FAILED:$failed" >&2; exit 1; }
