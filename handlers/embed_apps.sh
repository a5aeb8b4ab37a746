#!/bin/sh
# embed_apps.sh NAME…: prints a C file that holds the apps handlers/bundled/NAME, file by file (handlers/app_embedded.h declares
# the table). Bytes are numbers: such files need not be text.
set -eu
cd "$(dirname "$0")/bundled"
LC_ALL=C
export LC_ALL

echo '/* Made by handlers/embed_apps.sh from handlers/bundled; do not edit. */'
echo '#include "handlers/app_embedded.h"'
table=''
total=0
for app in "$@"; do
    [ -d "$app" ] || continue
    list='' n=0
    for file in $(cd "$app" && find . -type f ! -name '.*' ! -name '*~' | sed 's|^\./||' | sort); do
        printf '\nstatic const unsigned char %s_%d[] = { /* %s */\n' "$app" $n "$file"
        od -An -v -tu1 "$app/$file" | sed 's/ *\([0-9][0-9]*\)/\1,/g'
        echo '0 };'
        list="$list    { \"$file\", ${app}_$n, sizeof ${app}_$n - 1 },
"
        n=$((n + 1))
    done
    printf '\nstatic const struct app_file %s_files[] = {\n%s    { 0 }\n};\n' "$app" "$list"
    console=false
    [ "$app" != console ] || console=true
    table="$table    { .name = \"$app\", .file = ${app}_files, .count = $n, .console = $console },
"
    total=$((total + 1))
done
printf '\nconst struct app_source embedded_apps[] = {\n%s    { 0 }\n};\n' "$table"
echo "const size_t embedded_app_count = $total;"
