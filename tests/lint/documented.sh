#!/bin/sh
# documented.sh: every configuration key is in docs/man/hanji.conf.5 with its default, every command in docs/man/hanji.1,
# every route in docs/api.md, every metric in docs/operations.md; and no page describes a key or command that is gone.
# The tables in the sources are the truth: fcgi/conf.c, fcgi/main.c, handlers/routes.c, handlers/status.c.
cd "$(dirname "$0")/../.." || exit 1
wrong=''
say() { echo "$*" >&2; wrong=1; }

# rows FILE TABLE [N]: the Nth string (the first) of each row of `… TABLE[] = {`; the row's first line holds it
rows() {
    awk -F'"' -v table="$2" -v n="${3:-1}" '
        index($0, " " table "[] = {") { inside = 1; next }
        /^};/ { inside = 0 }
        inside && /^ +\{"/ { print $(2 * n) }' "$1"
}
page() { mandoc -T ascii "$1" | sed 's/.\x08//g'; }
need() { [ -f "$1" ] || { say "$1 is missing"; return 1; }; }

keys=$(rows fcgi/conf.c keys)
commands=$(awk '/^} commands\[\] = \{/ { inside = 1; next } /^};/ { inside = 0 } inside' fcgi/main.c |
    tr '\n' ' ' | sed 's/}, */}\n/g' | grep -v ', NULL,' | sed -n 's/^ *{"\([a-z-]*\)".*/\1/p')
routes=$(rows handlers/routes.c routes | sort -u | grep -v '^/control/')
metrics=$(grep -ohE '\bhanji_[a-z_]*[a-z]\b' handlers/status.c | grep -vE '_(sum|count)$' | sort -u)
for list in "$keys" "$commands" "$routes" "$metrics"; do
    [ -n "$list" ] || say "documented.sh: cannot find a table any more"
done

if need docs/man/hanji.conf.5; then
    text=$(page docs/man/hanji.conf.5)
    described=$(printf '%s\n' "$text" | sed -n 's/^ *\([a-z][a-z_]*\) = .*/\1/p' | sort -u)
    for key in $keys; do
        printf '%s\n' "$text" | grep -qw -- "$key" || say "docs/man/hanji.conf.5: the key $key is missing"
    done
    for default in $(rows fcgi/conf.c keys 2); do
        printf '%s\n' "$text" | grep -qwF -- "$default" || say "docs/man/hanji.conf.5: the default $default is missing"
    done
    for key in $described; do
        printf '%s\n' "$keys" | grep -qx -- "$key" || say "docs/man/hanji.conf.5: there is no key $key"
    done
fi
if need docs/man/hanji.1; then
    text=$(page docs/man/hanji.1)
    for command in $commands; do
        printf '%s\n' "$text" | grep -qw -- "$command" || say "docs/man/hanji.1: the command $command is missing"
    done
fi
if need docs/api.md; then
    for route in $routes; do
        # a '*' of the table is a word such as LINE on the page
        grep -q -- "$(echo "$route" | sed 's/[.]/[.]/g; s/[*]/[A-Z][A-Z]*/g')" docs/api.md || say "docs/api.md: the route $route is missing"
    done
fi
if need docs/operations.md; then
    for metric in $metrics; do
        grep -qw -- "$metric" docs/operations.md || say "docs/operations.md: the metric $metric is missing"
    done
fi
[ -z "$wrong" ]
