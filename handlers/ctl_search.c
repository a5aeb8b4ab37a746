/* hanji search add|remove|list|rebuild */
#include <string.h>
#include <unistd.h>

#include "db/search.h"
#include "fcgi/path.h"
#include "handlers/ctl.h"
#include "handlers/store.h"

struct prefix {
    size_t n;
    char text[DB_KEY_MAX + 2];
};

static int usage(const char *why)
{
    fprintf(stderr,
            "hanji search: %s\n"
            "usage: hanji [-c CONF] search add PREFIX\n"
            "       hanji [-c CONF] search remove PREFIX\n"
            "       hanji [-c CONF] search list\n"
            "       hanji [-c CONF] search rebuild [PREFIX]\n"
            "A PREFIX is a collection: a key that ends in '/', or \"\" for all documents.\n",
            why);
    return CTL_USAGE;
}

/* A collection as people write it: "notes/", "notes", "/docs/notes/". */
static bool read_prefix(const char *text, struct prefix *p)
{
    static const char docs[] = "/docs/";
    char path[sizeof p->text + sizeof docs];
    if (strncmp(text, docs, sizeof docs - 1) == 0)
        text += sizeof docs - 1;
    p->n = strlen(text);
    if (p->n > DB_KEY_MAX)
        return false;
    memcpy(p->text, text, p->n + 1);
    if (p->n > 0 && p->text[p->n - 1] != '/') {
        p->text[p->n++] = '/';
        p->text[p->n] = 0;
    }
    int n = snprintf(path, sizeof path, "%s%s", docs, p->text);
    return p->n <= DB_KEY_MAX && path_ok((struct str){path, (size_t)n});
}

static int fail(const char *why)
{
    fprintf(stderr, "hanji search: %s\n", why);
    return CTL_FAILED;
}

static const struct ctl_words words = {
    .command = "search",
    .exists = "it is searchable already, a part of it or something around it is "
              "(`hanji search list`), or there are 64 collections",
    .none = "there is no searchable collection of that name",
};

static int apply_kind(const struct conf *conf, enum db_op_kind kind, const struct prefix *p)
{
    struct db_op *op = db_op_new(kind, p != NULL ? p->n : 0);
    if (op == NULL)
        return fail(db_result_text(DB_NO_MEMORY));
    if (p != NULL)
        db_op_copy(op, 0, DB_VALUE_TEXT, p->text, p->n);
    int status = ctl_apply(conf, &words, op);
    db_op_free(op);
    return status;
}

/* ---- looking ------------------------------------------------------------------------------ */

static void print_collection(void *arg, const struct db_search_collection *c)
{
    (void)arg;
    printf("%s\t%s\t%llu\n", c->prefix_len > 0 ? c->prefix : "\"\"",
           c->damaged ? "damaged" : c->state, (unsigned long long)c->documents);
}

/* What is left to do, of one collection or of all. */
struct left {
    const struct prefix *only;
    bool work, damaged;
    uint64_t documents;
};

static void add_left(void *arg, const struct db_search_collection *c)
{
    struct left *l = arg;
    if (l->only != NULL &&
        (c->prefix_len != l->only->n || memcmp(c->prefix, l->only->text, c->prefix_len) != 0))
        return;
    l->work |= strcmp(c->state, "ready") != 0;
    l->damaged |= c->damaged;
    l->documents += c->documents;
}

static int look(struct db_reader *r, void (*each)(void *, const struct db_search_collection *),
                void *arg)
{
    enum db_result result = db_search_list(r, each, arg);
    return result == DB_OK ? CTL_OK : fail(db_result_text(result));
}

static int open_reader(const struct conf *conf, struct db_reader **r)
{
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    enum db_result result = db_reader_open(&db, r, &error);
    if (result == DB_OK)
        return CTL_OK;
    return fail(error.text[0] != 0 ? error.text : db_result_text(result));
}

static int list(const struct conf *conf)
{
    struct db_reader *r;
    int status = open_reader(conf, &r);
    if (status != CTL_OK)
        return status;
    printf("prefix\tstate\tdocuments\n");
    status = look(r, print_collection, NULL);
    db_reader_close(r);
    return status;
}

/* Counting the index costs by its size: the larger it is, the rarer that is done. */
enum { STEPS_BETWEEN_LOOKS = 64 };

static int make_steps(const struct conf *conf, unsigned n)
{
    int status = CTL_OK;
    for (unsigned i = 0; i < n && status == CTL_OK; i++)
        status = apply_kind(conf, DB_OP_SEARCH_SYNC, NULL);
    return status;
}

/* Asks for step after step until nothing is left; what a running server would do by itself, without
 * its pauses. */
static int finish(const struct conf *conf, const struct prefix *only, const char *verb)
{
    struct db_reader *r;
    struct left left = {.only = only};
    bool terminal = isatty(STDERR_FILENO) == 1;
    unsigned steps = 1;
    int status = open_reader(conf, &r);
    if (status != CTL_OK)
        return status;
    while ((status = look(r, add_left, &left)) == CTL_OK && left.work && !left.damaged) {
        if (terminal)
            fprintf(stderr, "\r%s: %llu documents in the index ", verb,
                    (unsigned long long)left.documents);
        status = make_steps(conf, steps);
        if (status != CTL_OK)
            break;
        steps = steps < STEPS_BETWEEN_LOOKS ? 2 * steps : steps;
        left = (struct left){.only = only};
    }
    db_reader_close(r);
    if (terminal)
        fprintf(stderr, "\r\033[K");
    if (status == CTL_OK && left.damaged)
        return fail("the index is damaged; `hanji search rebuild` makes it anew");
    if (status == CTL_OK)
        printf("%s: %llu documents in the index\n", verb, (unsigned long long)left.documents);
    return status;
}

static int change(const struct conf *conf, enum db_op_kind kind, const char *text,
                  const char *verb)
{
    struct prefix prefix = {0};
    const struct prefix *p = text != NULL ? &prefix : NULL;
    if (text != NULL && !read_prefix(text, &prefix))
        return usage("the prefix is malformed");
    int status = apply_kind(conf, kind, p);
    return status == CTL_OK ? finish(conf, p, verb) : status;
}

int ctl_search(const struct conf *conf, int argc, char **argv)
{
    const char *what = argc > 0 ? argv[0] : "";
    if (strcmp(what, "add") == 0 && argc == 2)
        return change(conf, DB_OP_SEARCH_ADD, argv[1], "added");
    if (strcmp(what, "remove") == 0 && argc == 2)
        return change(conf, DB_OP_SEARCH_REMOVE, argv[1], "removed");
    if (strcmp(what, "rebuild") == 0 && argc <= 2)
        return change(conf, DB_OP_SEARCH_REBUILD, argc == 2 ? argv[1] : NULL, "rebuilt");
    if (strcmp(what, "list") == 0 && argc == 1)
        return list(conf);
    return usage(argc > 0 ? "the arguments do not fit" : "add, remove, list or rebuild is missing");
}
