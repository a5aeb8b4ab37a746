#!/bin/sh
# build.sh: the measuring programs of this folder into build/bench/, when older than their sources. Prints nothing.
set -eu

cd "$(dirname "$0")"
out=../build/bench
mkdir -p "$out"
cc=${CC:-cc}
flags='-std=c11 -O2 -g -D_GNU_SOURCE -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes'
engine='http.c fastcgi.c drive.c options.c answer.c work.c hist.c util.c'

fresh() { # fresh PROGRAM: newer than every source?
    [ -e "$out/$1" ] && [ -z "$(find . -maxdepth 1 \( -name '*.[ch]' -o -name build.sh \) -newer "$out/$1")" ]
}

# $flags and $engine are lists of words.
# shellcheck disable=SC2086
for program in load fcgiload watch; do
    fresh $program || $cc $flags -o "$out/$program" $program.c $engine -lm
done
# shellcheck disable=SC2086
for program in fcginull hub memwatch; do
    fresh $program || $cc $flags -o "$out/$program" $program.c work.c util.c
done
# Peers of sends: libcurl and libsodium without hanji.
# shellcheck disable=SC2086,SC2046
fresh post || $cc $flags -o "$out/post" post.c util.c $(pkg-config --cflags --libs libcurl libsodium)
# shellcheck disable=SC2086,SC2046
fresh seal || $cc $flags -o "$out/seal" seal.c util.c $(pkg-config --cflags --libs libsodium)
# shellcheck disable=SC2086
fresh slowsync.so || $cc $flags -shared -fPIC -o "$out/slowsync.so" slowsync.c
