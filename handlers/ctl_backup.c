/* hanji backup: a verified copy of the database as it is at one moment, while the server runs. */
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "db/backup.h"
#include "handlers/ctl.h"
#include "handlers/progress.h"
#include "handlers/store.h"

enum { NICENESS = 10 }; /* the server goes first */

static void print_fault(void *arg, bool fault, const char *finding)
{
    (void)arg;
    progress_end();
    if (fault)
        fprintf(stderr, "fault: %s\n", finding);
}

static int usage(void)
{
    fprintf(stderr, "usage: hanji [-c CONF] backup [--force] DEST\n"
                    "DEST is a file that is not there yet, or a folder.\n");
    return CTL_USAGE;
}

static int report(const struct db_backup *b, enum db_result result, const struct db_error *error)
{
    if (result == DB_OK) {
        printf("%s: %" PRIu64 " documents, last change %" PRIu64 ", %" PRIu64 " bytes, verified\n",
               b->path, b->documents, b->seq, b->size_bytes);
        return fflush(stdout) == 0 ? CTL_OK : CTL_FAILED;
    }
    if (result == DB_INVALID)
        fprintf(stderr, "hanji backup: the database has these faults, and the copy with it; no "
                        "backup was made (hanji check)\n");
    else
        fprintf(stderr, "hanji backup: %s\n",
                error->text[0] ? error->text : db_result_text(result));
    return CTL_FAILED;
}

int ctl_backup(const struct conf *conf, int argc, char **argv)
{
    static struct db_watch watch;
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    struct db_backup backup = {.each = print_fault, .watch = &watch};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--force") == 0)
            backup.replace = true;
        else if (argv[i][0] == '-' || argv[i][0] == 0 || backup.dest != NULL)
            return usage();
        else
            backup.dest = argv[i];
    }
    if (backup.dest == NULL)
        return usage();
    setpriority(PRIO_PROCESS, 0, NICENESS);
    progress_watch(&watch);
    enum db_result result = db_backup(&db, &backup, &error);
    progress_end();
    return report(&backup, result, &error);
}
