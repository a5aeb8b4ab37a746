/* hanji check: verifies the database, or a backup of it. */
#include "db/check.h"
#include "handlers/ctl.h"
#include "handlers/store.h"

static void print_finding(void *arg, bool fault, const char *finding)
{
    (void)arg;
    printf("%s: %s\n", fault ? "fault" : "note", finding);
}

int ctl_check(const struct conf *conf, int argc, char **argv)
{
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    if (argc > 1 || (argc == 1 && argv[0][0] == '-')) {
        fprintf(stderr, "usage: hanji [-c CONF] check [FILE]\n");
        return CTL_USAGE;
    }
    if (argc == 1)
        db.path = argv[0];
    printf("SQLite %s: %s\n", db_sqlite_version(),
           db_sqlite_has_wal_race()
               ? "has the WAL-reset race; only hanji's writer may checkpoint (to write beside a "
                 "running server use `hanji sql`, not a plain shell)"
               : "free of the WAL-reset race");
    enum db_result result = db_check(&db, print_finding, NULL, &error);
    if (result == DB_OK) {
        printf("%s: ok\n", db.path);
        return CTL_OK;
    }
    if (result != DB_INVALID)
        fprintf(stderr, "hanji check: %s\n",
                error.text[0] ? error.text : db_result_text(result));
    return CTL_FAILED;
}
