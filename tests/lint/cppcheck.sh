#!/bin/sh
# cppcheck.sh: cppcheck on the four rooms; anything it says fails.
cd "$(dirname "$0")/../.." || exit 1
command -v cppcheck >/dev/null || { echo "cppcheck.sh: cppcheck is not installed" >&2; exit 1; }
mkdir -p build/cppcheck
exec cppcheck -q -j"${JOBS:-2}" --std=c11 --language=c --error-exitcode=1 --inline-suppr \
    --cppcheck-build-dir=build/cppcheck --enable=warning,performance,portability --suppress=missingIncludeSystem --suppress=varFuncNullUB \
    -I. -D_GNU_SOURCE -DHANJI_VERSION='"0"' fcgi handlers db seal
