#!/bin/sh
# compile.sh: gcc builds the program and the unit tests with warnings as errors (tidy.sh does the same for clang's).
cd "$(dirname "$0")/../.." && exec "${MAKE:-make}" -s -j"${JOBS:-2}" werror
