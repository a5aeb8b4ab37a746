/* Queries and snippets: the input is a query and, behind the first NUL, the text of a document. Every query is an
 * expression that FTS5 takes, or refused with a reason; what is found has a score, and a snippet that is a piece of
 * the text. */
#include <stdio.h>
#include <unistd.h>

#include "db/burst.h"
#include "db/migrate.h"
#include "db/search.h"
#include "db/search_index.h"
#include "tests/fuzz/must.h"

static struct db_conn conn;
static struct db_reader *reader;

static void apply(struct db_op *op)
{
    uint64_t commit_us;
    MUST(op != NULL && db_burst_run(&conn, op, &commit_us) == DB_OK && op->result == DB_OK);
    db_op_free(op);
}

static void open_store(void)
{
    static char path[128];
    struct db_config config = {.path = path, .read_cache_bytes = 1 << 20, .write_cache_bytes = 1 << 20};
    struct db_error error;
    snprintf(path, sizeof path, "/tmp/hanji-fuzz-search-%d.db", (int)getpid());
    MUST(db_init() == DB_OK && db_conn_open(&conn, path, DB_CREATE, 1 << 20, &error) == DB_OK);
    MUST(db_migrate(&conn, &error) == DB_OK);
    MUST(sqlite3_exec(conn.db, "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=1000", NULL, NULL, NULL) == SQLITE_OK);
    struct db_op *op = db_op_new(DB_OP_SEARCH_ADD, 2);
    MUST(op != NULL);
    db_op_copy(op, 0, DB_VALUE_TEXT, "n/", 2);
    apply(op);
    MUST(db_reader_open(&config, &reader, &error) == DB_OK);
    for (const char *const *end = (const char *const[]){"", "-wal", "-shm", NULL}; *end != NULL; end++) {
        char name[160]; /* the descriptors stay; nothing is left behind, however the program ends */
        snprintf(name, sizeof name, "%s%s", path, *end);
        MUST(unlink(name) == 0);
    }
}

static void put(const char *text, size_t n)
{
    struct db_op *op = db_op_new(DB_OP_PUT, 3 + 10 + n);
    bool more = true;
    MUST(op != NULL);
    db_op_copy(op, 0, DB_VALUE_TEXT, "n/a", 3);
    db_op_copy(op, 1, DB_VALUE_TEXT, "text/plain", 10);
    db_op_copy(op, 2, DB_VALUE_TEXT, text, n);
    apply(op);
    while (more)
        MUST(db_search_step(&conn, &more) == DB_OK);
}

struct text {
    const unsigned char *p;
    size_t n;
};

static bool check_hit(void *arg, const struct db_search_hit *hit)
{
    const struct text *text = arg;
    unsigned splits = 0;
    MUST(hit->score > 0 && hit->row.key_len == 3 && hit->snippet != NULL && hit->snippet_len < 600);
    for (size_t at = 0; at < hit->snippet_len; at++)
        splits += hit->snippet[at] == DB_SEARCH_SPLIT;
    MUST(splits > 0 && splits < 49);
    /* what was found stands in the text as it stands there */
    const unsigned char *first = memchr(hit->snippet, DB_SEARCH_SPLIT, hit->snippet_len);
    size_t rest = hit->snippet_len - (size_t)(first - hit->snippet) - 1;
    const unsigned char *last = memchr(first + 1, DB_SEARCH_SPLIT, rest);
    if (last != NULL && memchr(text->p, 0xff, text->n) == NULL)
        MUST(memmem(text->p, text->n, first + 1, (size_t)(last - first - 1)) != NULL);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct db_search_match match;
    static const uint8_t plain[] = "green tea and black tea";
    const uint8_t *split = size > 0 ? memchr(data, 0, size) : NULL;
    size_t q_len = split != NULL ? (size_t)(split - data) : size;
    struct text text = {split != NULL ? split + 1 : plain, split != NULL ? size - q_len - 1 : sizeof plain - 1};
    struct db_search_ask ask = {.match = &match, .prefix = "n/", .prefix_len = 2, .limit = 10, .at_most_ms = 10000};
    enum db_search_state state;
    if (reader == NULL)
        open_store();
    put((const char *)text.p, text.n);
    MUST(db_reader_begin(reader) == DB_OK);
    enum db_result result = db_search_parse(reader, (const char *)data, q_len, &match);
    MUST(result == DB_OK || (result == DB_INVALID && match.wrong != NULL));
    if (result == DB_OK) {
        MUST(match.words > 0 && match.words <= DB_SEARCH_WORDS_MAX && match.must_len > 0);
        MUST(db_search_look(reader, "n/", 2, &state, &ask.collection) == DB_OK && state == DB_SEARCH_READY);
        MUST(db_search(reader, &ask, check_hit, &text) == DB_OK);
    }
    db_reader_end(reader);
    return 0;
}
