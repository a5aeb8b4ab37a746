#!/bin/sh
# rooms.sh: who may know whom.
#  - fcgi/, db/ and seal/ include only themselves; fcgi/main.c composes and is the exception; handlers/ may include all.
#  - includes name the room ("fcgi/loop.h"), so that this can be seen.
#  - one room talks to one library: sqlite3 only in db/, libsodium only in seal/, libfcgi only in fcgi/codec.c, libcurl only in
#    handlers/courier*, the files of the program hanji-courier; what is not of it does not include them.
#  - SQL text stands in db/ only (handlers/ctl_sql.c hands a person's SQL to the shell).
#  - db/ and seal/ never print and never exit.
cd "$(dirname "$0")/../.." || exit 1
wrong=''
report() { # report TEXT: the lines on stdin are wrong
    lines=$(cat)
    [ -z "$lines" ] || { printf '%s\n%s\n' "$1:" "$lines" >&2; wrong=1; }
}
sql='SELECT |INSERT (INTO|OR) |REPLACE INTO |UPDATE [a-z_]+ SET|DELETE FROM|PRAGMA |BEGIN( |;|")|COMMIT( |;|")'
sql="$sql|ROLLBACK|SAVEPOINT |RELEASE |VACUUM|ATTACH |ALTER TABLE|(CREATE|DROP) (TABLE|INDEX|TRIGGER|VIEW|UNIQUE)"
loud='v?f?printf|dprintf|puts|fputs|putchar|perror|psignal|_?exit|quick_exit|errx?|warnx?'
sources() { find "$@" -name '*.[ch]' 2>/dev/null | sort; }

for room in fcgi db seal; do
    others=$(echo fcgi db seal handlers | tr ' ' '\n' | grep -vx $room | paste -sd '|')
    report "$room/ includes another room" <<END
$(sources $room | grep -vx fcgi/main.c | xargs -r grep -nE "^#[[:space:]]*include[[:space:]]+\"($others)/")
END
done
report 'an include without its room' <<END
$(sources fcgi db seal handlers | xargs -r grep -nE '^#[[:space:]]*include[[:space:]]+"' |
    grep -vE '"(fcgi|db|seal|handlers)/[a-z0-9_]+\.h"')
END
report 'sqlite3.h outside db/' <<END
$(sources fcgi seal handlers | xargs -r grep -n '<sqlite3\.h>')
END
report 'sodium.h outside seal/' <<END
$(sources fcgi db handlers | xargs -r grep -nE '<sodium(/[a-z_]+)?\.h>')
END
report 'libfcgi outside fcgi/codec.c' <<END
$(sources fcgi db seal handlers | grep -vx fcgi/codec.c | xargs -r grep -nE '<fcgi[a-z]*\.h>')
END
report 'libcurl outside handlers/courier*' <<END
$(sources fcgi db seal handlers | grep -v '^handlers/courier' | xargs -r grep -nE '<curl/|"handlers/courier')
END
report 'SQL outside db/' <<END
$(sources fcgi seal handlers | grep -vx handlers/ctl_sql.c | xargs -r grep -nE "\"[[:space:]]*($sql)")
END
report 'db/ and seal/ never print and never exit' <<END
$(sources db seal | xargs -r grep -nE "(^|[^a-z_])($loud) *\(")
END
[ -z "$wrong" ]
