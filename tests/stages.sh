#!/bin/sh
# stages.sh: `make test`. Runs every stage, also after one has failed, prints what each took, and fails if any failed.
# STAGES names others than these (tsan: see CONTRIBUTING.md). The machine needs the packages of `make deps`; nothing is
# skipped without them. The program is built with warnings as errors, in build/werror: what lies in build/ stays as it is.
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

strict() { "$MAKE" -j"$JOBS" BUILD=build/werror WERROR=1 "$@"; }
plain() { "$MAKE" -j"$JOBS" "$@"; }

run() {
    case $1 in
    build) stage build strict all units ;;
    check) stage check strict check ;;
    lint) stage lint strict lint ;;
    e2e) stage e2e strict e2e E2E_JOBS=$((JOBS + 1)) ;; # they wait more than they work
    asan) stage asan plain asan-check ;;
    asan-smoke) stage asan-smoke plain asan-e2e PYTEST_ARGS='-m smoke' ;;
    asan-e2e) stage asan-e2e plain asan-e2e E2E_JOBS="$JOBS" ;;
    tsan) stage tsan plain tsan-check UNIT_ONLY=threads ;;
    tsan-all) stage tsan-all plain tsan-check ;;
    tsan-e2e) stage tsan-e2e plain tsan-e2e E2E_JOBS="$JOBS" ;;
    fuzz) stage fuzz plain fuzz FUZZ_SECONDS="${QUICK_FUZZ_SECONDS:-3}" ;;
    crash-long) HANJI_CRASH_SECONDS="${CRASH_SECONDS:-600}" stage crash-long strict e2e PYTEST_ARGS='-k sends_crash' ;;
    fuzz-long) stage fuzz-long plain fuzz FUZZ_SECONDS="${LONG_FUZZ_SECONDS:-300}" ;;
    *) stage "$1" false ;;
    esac
}

for s in ${STAGES:-build check lint asan fuzz asan-smoke e2e}; do run "$s"; done

printf '\n== summary\n%s' "$summary"
[ $failed = 0 ] || { echo "make test: $failed stages FAILED" >&2; exit 1; }
echo "make test: all passed"
