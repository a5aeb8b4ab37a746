#!/bin/sh
# unit.sh PROGRAM…: runs the unit test programs, JOBS at a time, and fails if any failed, or if there are none. Each says one line; one
# that failed, everything. RUNNER is put before each (qemu-arm, valgrind); UNIT_TIMEOUT is the seconds each may take.
# UNIT_ONLY=threads: only those that can start a thread (where something that calls pthread_create was linked), for ThreadSanitizer.
set -u

: "${JOBS:=$(nproc)}" "${UNIT_TIMEOUT:=300}" "${RUNNER=}"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

wanted() {
    case ${UNIT_ONLY:-} in
    '') true ;;
    threads) nm -u "$1" | grep -q pthread_create ;;
    *) echo "unit.sh: UNIT_ONLY=$UNIT_ONLY is not known" >&2; exit 1 ;;
    esac
}

# The slowest first, as the last run of any build found, so that no long one is left for the end.
times=build/unit.times
cat $times >"$dir/old" 2>/dev/null
for program in "$@"; do
    if wanted "$program"; then echo "$(sed -n "s/^${program##*/} //p" "$dir/old") $program"; fi
done | sort -rn | sed 's/^[0-9]* *//' >"$dir/programs"
count=$(wc -l <"$dir/programs")
[ "$count" -gt 0 ] || { echo "unit.sh: no unit tests" >&2; exit 1; }

export dir RUNNER UNIT_TIMEOUT
# shellcheck disable=SC2016 # expanded by the inner shell
xargs -P "$JOBS" -n 1 sh -c '
    name=${1##*/}
    log=$dir/$name.log
    from=$(date +%s%N)
    timeout -k 5 "$UNIT_TIMEOUT" $RUNNER "$1" >"$log" 2>&1
    rc=$?
    exec 9>"$dir/lock"
    flock 9
    echo "$name $((($(date +%s%N) - from) / 1000000))" >>"$dir/times"
    if [ $rc = 0 ]; then
        echo "$name: $(sed -n "s/^100%: //p" "$log")"
    else
        cat "$log"
        [ $rc = 124 ] && echo "$name: killed after $UNIT_TIMEOUT s"
        echo "$name: FAILED ($rc)" | tee -a "$dir/failed" >&2
    fi' unit <"$dir/programs"
[ -n "${UNIT_ONLY:-}" ] || { mkdir -p build && cp "$dir/times" $times.$$ && mv $times.$$ $times; }
[ ! -s "$dir/failed" ] || { echo "unit tests FAILED:" "$(sed 's/:.*//' "$dir/failed" | tr '\n' ' ')" >&2; exit 1; }
echo "unit tests: $count programs passed"
