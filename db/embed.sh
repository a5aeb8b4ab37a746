#!/bin/sh
# embed.sh FILE.sql…: prints a C file that holds the schema steps in the order given (db/schema.h declares the array).
# Each file becomes one string literal, line by line, so that the generated text stays readable.
set -eu

echo '/* Made by db/embed.sh from db/schema; do not edit. */'
echo '#include "db/schema.h"'
echo
echo '#include <stddef.h>'
echo
echo 'const struct schema_step schema_steps[] = {'
n=0
for file in "$@"; do
    printf '    { "%s",\n' "${file##*/}"
    # A `?` is escaped too, so that no trigraph can arise.
    LC_ALL=C sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/?/\\?/g' -e 's/	/\\t/g' -e 's/^/      "/' -e 's/$/\\n"/' "$file"
    printf '      "" },\n'
    n=$((n + 1))
done
echo '    { NULL, NULL }'
echo '};'
echo "const size_t schema_step_count = $n;"
