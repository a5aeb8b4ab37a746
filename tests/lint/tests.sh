#!/bin/sh
# tests.sh: no test is skipped, expected to fail, commented out of a suite, or left without a file that runs it.
cd "$(dirname "$0")/../.." || exit 1
wrong=0
grep -rnE 'mark\.(skip|skipif|xfail)|pytest\.(skip|xfail|importorskip)|unittest\.skip|collect_ignore|--deselect' \
    --include='*.py' --include='*.ini' --include='*.toml' --include='*.cfg' tests >&2 && wrong=1
grep -nE '^[[:space:]]*(//|/\*)[[:space:]]*(tcase_add|suite_add|srunner_add)' tests/unit/*.c >&2 && wrong=1
for file in tests/unit/test_*.c; do
    [ -f "$file" ] || { echo "tests/unit: no unit tests" >&2; wrong=1; break; }
    # A test that is defined is named a second time, where it is added to its case.
    lonely=$(sed -n 's/^START_TEST(\([a-z0-9_A-Z]*\)).*/\1/p' "$file" | while read -r name; do
        [ "$(grep -cw "$name" "$file")" -ge 2 ] || echo "$name"
    done)
    [ -z "$lonely" ] || { echo "$file: in no test case: $lonely" >&2; wrong=1; }
done
for file in tests/fuzz/fuzz_*.c; do
    [ -f "$file" ] || { echo "tests/fuzz: no targets" >&2; wrong=1; break; }
    name=${file##*/fuzz_}
    corpus=tests/fuzz/corpus/${name%.c}
    [ -n "$(ls "$corpus" 2>/dev/null)" ] || { echo "$file: $corpus is empty" >&2; wrong=1; }
done
exit $wrong
