/* hanji export: the documents as lines of JSON, to standard output or into a file. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "db/export.h"
#include "db/place.h"
#include "handlers/ctl.h"
#include "handlers/export_out.h"
#include "handlers/progress.h"
#include "handlers/store.h"

struct wanted {
    const char *prefix; /* "" or ending in '/' */
    const char *after;
    const char *file; /* NULL: standard output */
    bool force;
};

/* What was done. */
struct outcome {
    uint64_t documents;
    uint64_t left_out; /* keys that no JSON can hold */
    int failed;        /* errno of a write that failed */
};

static int usage(const char *why)
{
    fprintf(stderr,
            "hanji export: %s\n"
            "usage: hanji [-c CONF] export [--prefix PREFIX/] [--after KEY] [-o FILE [--force]]\n",
            why);
    return CTL_USAGE;
}

static const char *parse(struct wanted *w, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--force") == 0) {
            w->force = true;
            continue;
        }
        const char **to = strcmp(argv[i], "--prefix") == 0  ? &w->prefix
                          : strcmp(argv[i], "--after") == 0 ? &w->after
                          : strcmp(argv[i], "-o") == 0      ? &w->file
                                                            : NULL;
        if (to == NULL)
            return "unknown argument";
        if (value == NULL)
            return "a flag has no value";
        *to = value;
        i++;
    }
    size_t n = strlen(w->prefix);
    if (n > DB_KEY_MAX || (n > 0 && (w->prefix[n - 1] != '/' || w->prefix[0] == '/')))
        return "a prefix ends in '/' and does not begin with it";
    if (strlen(w->after) > DB_KEY_MAX)
        return "a key has at most 512 bytes";
    if (w->file != NULL && w->file[0] == 0)
        return "the name of the file is empty";
    return w->force && w->file == NULL ? "--force goes with -o" : NULL;
}

/* Every document goes out whole before the next snapshot begins. */
static enum db_result write_all(struct export_out *o, struct db_export *e, const struct wanted *w,
                                struct outcome *done)
{
    struct db_export_doc doc;
    uint64_t all = w->prefix[0] == 0 && w->after[0] == 0 ? db_export_documents(e) : 0;
    enum db_result result;
    export_header(o, db_export_seq(e), (struct str){w->prefix, strlen(w->prefix)},
                  (struct str){w->after, strlen(w->after)});
    while ((result = db_export_next(e, &doc)) == DB_OK && o->failed == 0) {
        result = export_document(o, e, &doc);
        if (result != DB_OK && result != DB_INVALID)
            return result;
        done->documents += result == DB_OK;
        done->left_out += result == DB_INVALID;
        if (export_full(o)) {
            db_export_pause(e);
            export_flush(o);
        }
        if (o->fd != STDOUT_FILENO || isatty(STDOUT_FILENO) == 0)
            progress_show(NULL, "export", done->documents, all);
    }
    db_export_pause(e);
    export_end(o, done->documents);
    export_flush(o);
    return result == DB_NONE ? DB_OK : result;
}

static int tell(const struct wanted *w, const struct outcome *done, enum db_result result,
                const struct db_error *error)
{
    int failed = done->failed;
    progress_end();
    if (failed != 0)
        fprintf(stderr, "hanji export: %s: %s\n", w->file ? w->file : "standard output",
                strerror(failed));
    else if (result != DB_OK)
        fprintf(stderr, "hanji export: %s\n",
                error->text[0] ? error->text : db_result_text(result));
    else if (done->left_out > 0)
        fprintf(stderr, "hanji export: %" PRIu64 " documents were left out: their keys are no "
                        "UTF-8 (hanji check)\n",
                done->left_out);
    else if (w->file != NULL)
        printf("%s: %" PRIu64 " documents\n", w->file, done->documents);
    return failed == 0 && result == DB_OK && done->left_out == 0 ? CTL_OK : CTL_FAILED;
}

static enum db_result export_to(int fd, const struct conf *conf, const struct wanted *w,
                                struct outcome *done, struct db_error *error)
{
    struct db_config db = store_db_config(conf);
    struct export_out o = {.fd = fd};
    struct db_export *e;
    struct db_doc_range range = {.prefix = w->prefix,
                                 .prefix_len = strlen(w->prefix),
                                 .after = w->after,
                                 .after_len = strlen(w->after)};
    enum db_result result = db_export_open(&db, &range, &e, error);
    if (result == DB_OK)
        result = write_all(&o, e, w, done);
    db_export_close(e);
    buf_free(&o.buf);
    done->failed = o.failed;
    return result;
}

/* A hidden file beside the name, which it gets when it is whole and synced. */
static int to_file(const struct conf *conf, const struct wanted *w)
{
    static struct db_watch watch;
    struct db_place to, part;
    struct db_error error = {""};
    struct outcome done = {0};
    int fd = -1;
    enum db_result result = db_place_open(&to, w->file, &error);
    if (result == DB_OK)
        result = db_place_judge(&to, conf->database, w->force, &error);
    part = to;
    if (result == DB_OK && (!db_place_name(&part, ".hanji-export.%ld.part", (long)getpid()) ||
                            !db_place_path(&part, "", watch.temp)))
        done.failed = ENAMETOOLONG;
    progress_watch(&watch);
    if (result == DB_OK && done.failed == 0) {
        watch.unfinished = 1; /* before it is there: a signal may come at once */
        fd = db_place_make(&part, 0600);
        done.failed = fd < 0 ? errno : 0;
    }
    if (fd >= 0) {
        result = export_to(fd, conf, w, &done, &error);
        if (result == DB_OK && done.failed == 0 &&
            (fsync(fd) != 0 || !db_place_put(&to, part.name, w->force) || !db_place_sync(&to)))
            done.failed = errno;
        if (result != DB_OK || done.failed != 0)
            unlink(watch.temp);
        close(fd);
    }
    watch.unfinished = 0;
    db_place_close(&to);
    return tell(w, &done, result, &error);
}

int ctl_export(const struct conf *conf, int argc, char **argv)
{
    struct wanted w = {.prefix = "", .after = ""};
    struct outcome done = {0};
    struct db_error error = {""};
    const char *wrong = parse(&w, argc, argv);
    if (wrong != NULL)
        return usage(wrong);
    if (w.file != NULL)
        return to_file(conf, &w);
    enum db_result result = export_to(STDOUT_FILENO, conf, &w, &done, &error);
    return tell(&w, &done, result, &error);
}
