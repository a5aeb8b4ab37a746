#!/bin/sh
# shell.sh: shellcheck on every script, whatever its name.
# Left out: SC2015 (A && B || C; used here only where B cannot fail), SC2030 and SC2031 (variables of a pipe's loop are
# meant to stay in it).
cd "$(dirname "$0")/../.." || exit 1
command -v shellcheck >/dev/null || { echo "shell.sh: shellcheck is not installed" >&2; exit 1; }
find . \( -path ./build -o -path ./.git \) -prune -o -type f \( -name '*.sh' -o -perm -100 -o -path './.ci/*' \) -print |
    while read -r file; do
        case $(head -c 64 "$file" | head -n 1 | tr -d '\0') in '#!'*sh | '#!'*sh' '*) printf '%s\n' "$file" ;; esac
    done | sort | xargs shellcheck --exclude=SC2015,SC2030,SC2031 --external-sources
