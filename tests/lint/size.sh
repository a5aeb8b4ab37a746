#!/bin/sh
# size.sh: a function fits a screen (70 lines between its braces), a file of the program stays under 600 lines and its
# lines within 100 columns; tests and benchmarks, where tables are wide, under 800 lines and within 130 columns.
cd "$(dirname "$0")/../.." || exit 1
wrong=0
program=$(find fcgi handlers db seal -name '*.[ch]' 2>/dev/null | sort)
c_files="$program $(find bench tests -name '*.[ch]' 2>/dev/null | sort)"
[ -n "$program" ] || { echo "size.sh: no sources" >&2; exit 1; }

# shellcheck disable=SC2086 # names without blanks
awk '
    FNR == 1 { judge(); name = FILENAME; open = 0; most = name ~ /^(tests|bench)/ ? 800 : 600 }
    { lines = FNR }
    /^\{/ { open = FNR }
    /^\}/ {
        n = FNR - open - 1
        if (open && n > 70) { printf "%s:%d: a function of %d lines (70 at most)\n", FILENAME, open, n; bad = 1 }
        open = 0
    }
    function judge() { if (lines > most) { printf "%s: %d lines (%d at most)\n", name, lines, most; bad = 1 } }
    END { judge(); exit bad }' $c_files >&2 || wrong=1
# shellcheck disable=SC2086
LC_ALL=C.UTF-8 grep -nE '^.{101,}' $program >&2 && wrong=1
# shellcheck disable=SC2086
LC_ALL=C.UTF-8 grep -nE '^.{131,}' $c_files >&2 && wrong=1
exit $wrong
