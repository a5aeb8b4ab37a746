#!/bin/sh
# unit.sh PROGRAM…: runs the unit test programs one after the other and fails if any failed, or if there are none.
# RUNNER is put before each (qemu-arm, valgrind); UNIT_TIMEOUT is the seconds each may take.
set -u

[ $# -gt 0 ] || { echo "unit.sh: no unit tests were built" >&2; exit 1; }
failed=''
for program in "$@"; do
    name=${program##*/}
    # shellcheck disable=SC2086 # RUNNER is a command with words
    timeout -k 5 "${UNIT_TIMEOUT:-300}" ${RUNNER:-} "$program"
    rc=$?
    [ $rc = 124 ] && echo "$name: killed after ${UNIT_TIMEOUT:-300} s" >&2
    [ $rc = 0 ] || failed="$failed $name"
done
[ -z "$failed" ] || { echo "unit tests FAILED:$failed" >&2; exit 1; }
echo "unit tests: $# programs passed"
