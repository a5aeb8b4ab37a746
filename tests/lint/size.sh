#!/bin/sh
# size.sh: a function fits a screen (70 lines between its braces), a file stays under 600 lines, a line
# within 100 columns, in tests and benchmarks within 120. C only; generated files are not looked at.
cd "$(dirname "$0")/../.." || exit 1
wrong=0
program=$(find fcgi handlers db seal -name '*.[ch]' 2>/dev/null | sort)
c_files="$program $(find bench tests -name '*.[ch]' 2>/dev/null | sort)"
[ -n "$program" ] || { echo "size.sh: no sources" >&2; exit 1; }

# shellcheck disable=SC2086 # names without blanks
awk '
    FNR == 1 { if (lines > 600) say(); lines = 0; name = FILENAME; open = 0 }
    { lines = FNR }
    /^\{/ { open = FNR }
    /^\}/ {
        n = FNR - open - 1
        if (open && n > 70) { printf "%s:%d: a function of %d lines (70 at most)\n", FILENAME, open, n; bad = 1 }
        open = 0
    }
    function say() { printf "%s: %d lines (600 at most)\n", name, lines; bad = 1 }
    END { if (lines > 600) say(); exit bad }' $c_files >&2 || wrong=1
# shellcheck disable=SC2086
LC_ALL=C.UTF-8 grep -nE '^.{101,}' $program >&2 && wrong=1
# shellcheck disable=SC2086
LC_ALL=C.UTF-8 grep -nE '^.{121,}' $c_files >&2 && wrong=1
exit $wrong
