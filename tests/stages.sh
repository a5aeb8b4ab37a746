#!/bin/sh
# stages.sh: `make test`. Runs every stage, also after one has failed, prints what each took, and fails if any failed.
# STAGES names others than all of them. The machine needs the packages of `make deps`; nothing is skipped without them.
set -u

cd "$(dirname "$0")/.." || exit 1
: "${MAKE:=make}" "${JOBS:=$(nproc)}"
unset MAKEFLAGS MFLAGS MAKELEVEL
summary=''
failed=0

stage() { # stage NAME COMMAND…
    name=$1
    shift
    printf '\n== %s\n' "$name"
    from=$(date +%s)
    if "$@"; then verdict=ok; else verdict=FAILED failed=$((failed + 1)); fi
    summary="$summary$(printf '%-12s %-6s %4d s' "$name" "$verdict" $(($(date +%s) - from)))
"
}

run() {
    case $1 in
    build) stage build "$MAKE" -j"$JOBS" all units ;;
    check) stage check "$MAKE" -j"$JOBS" check ;;
    lint) stage lint "$MAKE" -j"$JOBS" lint ;;
    e2e) stage e2e "$MAKE" e2e ;;
    asan) stage asan "$MAKE" -j"$JOBS" asan-check ;;
    asan-smoke) stage asan-smoke "$MAKE" -j"$JOBS" asan-e2e PYTEST_ARGS='-m smoke' ;;
    tsan) stage tsan "$MAKE" -j"$JOBS" tsan-check ;;
    fuzz) stage fuzz "$MAKE" -j"$JOBS" fuzz FUZZ_SECONDS="${QUICK_FUZZ_SECONDS:-5}" ;;
    *) stage "$1" false ;;
    esac
}

for s in ${STAGES:-build check lint asan tsan fuzz asan-smoke e2e}; do run "$s"; done

printf '\n== summary\n%s' "$summary"
[ $failed = 0 ] || { echo "make test: $failed stages FAILED" >&2; exit 1; }
echo "make test: all passed"
