#!/bin/sh
# run.sh [CHECK…]: `make lint`. Runs the checks of this folder (all, or those named) and fails if any failed. Each is a
# script of its own that prints what is wrong, with file and line, and nothing when all is well.
set -u

cd "$(dirname "$0")/../.." || exit 1
: "${MAKE:=make}" "${JOBS:=$(nproc)}" "${BUILD:=build}"
export MAKE JOBS BUILD
unset MAKEFLAGS MFLAGS MAKELEVEL
[ $# -gt 0 ] || set -- rooms linked size documented openapi tests shell man nginx units compile cppcheck tidy
failed=''
for check in "$@"; do
    from=$(date +%s)
    if sh "tests/lint/$check.sh"; then verdict=ok; else verdict=FAILED failed="$failed $check"; fi
    printf 'lint %-11s %-6s %3d s\n' "$check" "$verdict" $(($(date +%s) - from))
done
[ -z "$failed" ] || { echo "lint FAILED:$failed" >&2; exit 1; }
