/* hanji restore: puts a backup in place of the database, while no server runs. */
#include <inttypes.h>
#include <unistd.h>

#include "db/restore.h"
#include "fcgi/listen.h"
#include "handlers/ctl.h"
#include "handlers/progress.h"
#include "handlers/store.h"

static void print_fault(void *arg, bool fault, const char *finding)
{
    (void)arg;
    progress_end();
    if (fault)
        fprintf(stderr, "fault: %s\n", finding);
}

static int report(const struct conf *conf, const struct db_restore *r, enum db_result result,
                  const struct db_error *error)
{
    if (result == DB_INVALID) {
        fprintf(stderr, "hanji restore: %s has these faults; nothing was changed\n", r->source);
        return CTL_FAILED;
    }
    if (result != DB_OK) {
        fprintf(stderr, "hanji restore: %s; nothing was changed\n",
                error->text[0] ? error->text : db_result_text(result));
        return CTL_FAILED;
    }
    printf("%s: %" PRIu64 " documents, last change %" PRIu64 "; goes on from %" PRIu64 "\n",
           conf->database, r->documents, r->backup_seq, r->horizon);
    if (r->kept[0] != 0)
        printf("%s: the database as it was%s\n", r->kept,
               r->unreadable ? "; it could not be read" : "");
    return fflush(stdout) == 0 ? CTL_OK : CTL_FAILED;
}

int ctl_restore(const struct conf *conf, int argc, char **argv)
{
    static struct db_watch watch;
    struct conf_error locked;
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    if (argc != 1 || argv[0][0] == '-' || argv[0][0] == 0) {
        fprintf(stderr, "usage: hanji [-c CONF] restore FILE\n");
        return CTL_USAGE;
    }
    struct db_restore restore = {.source = argv[0], .each = print_fault, .watch = &watch};
    int lock = listen_lock(conf->database, &locked);
    if (lock < 0) {
        fprintf(stderr, "hanji restore: %s; stop it first\n", locked.text);
        return CTL_FAILED;
    }
    progress_watch(&watch);
    enum db_result result = db_restore(&db, &restore, &error);
    progress_end();
    close(lock);
    return report(conf, &restore, result, &error);
}
