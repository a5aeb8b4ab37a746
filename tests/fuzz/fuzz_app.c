/* SQL of an app, compiled and run: a first byte for the kind and where pages begin, then the file. Whatever it is, it
 * writes nothing, ends at its time, and what is filled in agrees with what it does; a page has its number of rows. */
#include <stdio.h>
#include <unistd.h>

#include "db/app.h"
#include "db/migrate.h"
#include "db/reader_internal.h"
#include "tests/fuzz/must.h"

static struct db_conn conn;
static struct db_reader *reader;
static const struct db_grant grant = {.app = "shop", .read = "", .write = ""};

static void open_store(void)
{
    static char path[128];
    struct db_config config = {.path = path, .read_cache_bytes = 1 << 20, .write_cache_bytes = 1 << 20};
    struct db_error error;
    snprintf(path, sizeof path, "/tmp/hanji-fuzz-app-%d.db", (int)getpid());
    MUST(db_init() == DB_OK && db_conn_open(&conn, path, DB_CREATE, 1 << 20, &error) == DB_OK);
    MUST(db_migrate(&conn, &error) == DB_OK);
    MUST(sqlite3_exec(conn.db,
                      "CREATE TABLE shop_t (id INTEGER PRIMARY KEY, a, b TEXT UNIQUE, c REAL);"
                      "CREATE INDEX shop_ta ON shop_t (a DESC, id); CREATE VIRTUAL TABLE shop_f USING fts5 (t);"
                      "INSERT INTO shop_t (id, a, b, c) VALUES (1, NULL, 'x', 1), (2, 'a', '', NULL), (3, 'a', NULL, 2),"
                      " (4, x'00', '10', -1), (5, 7, '9', 9e999), (6, 7, 'y', 0); INSERT INTO shop_f VALUES ('a b')",
                      NULL, NULL, NULL) == SQLITE_OK);
    MUST(db_reader_open(&config, &reader, &error) == DB_OK);
    for (const char *const *end = (const char *const[]){"", "-wal", "-shm", NULL}; *end != NULL; end++) {
        char name[160]; /* the descriptors stay; nothing is left behind, however the program ends */
        snprintf(name, sizeof name, "%s%s", path, *end);
        MUST(unlink(name) == 0);
    }
}

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg;
    MUST(strcmp(file, "x.sql") == 0 && line >= 1 && text[0] != 0);
}

static void is_sound(const struct db_script *s)
{
    unsigned slots = 0;
    MUST(s->names <= DB_SCRIPT_NAMES_MAX);
    for (unsigned i = 0; i < s->count; i++) {
        const struct db_statement *of = &s->statement[i];
        MUST(of->columns <= DB_APP_COLUMNS_MAX && of->returns == (of->columns > 0) && of->slot == slots);
        for (unsigned j = 0; j < of->parameters; j++)
            MUST(of->parameter[j] < s->names);
        for (unsigned j = 0; of->page != NULL && j < of->page->keys; j++)
            MUST(of->page->key[j].index < of->columns);
        slots += of->slots;
    }
    MUST(slots == s->slots);
}

static void read_rows(const struct db_statement *of, struct db_cursor *c, unsigned most)
{
    struct db_cell cell;
    MUST(db_cursor_columns(c) == of->columns);
    for (unsigned rows = 0; rows < most && db_cursor_next(c) == DB_OK; rows++)
        for (unsigned i = 0; i < of->columns; i++) {
            db_cursor_cell(c, i, &cell);
            MUST(cell.type <= DB_CELL_BLOB);
        }
}

static void read_page(const struct db_script *s, unsigned statement, unsigned from)
{
    static const struct db_value keys[] = {{.type = DB_VALUE_INT, .i = 7},
                                           {.type = DB_VALUE_TEXT, .p = "a", .n = 1},
                                           {.type = DB_VALUE_NONE},
                                           {.type = DB_VALUE_BLOB, .p = "", .n = 0}};
    struct db_page_at at = {.from = (enum db_page_from)(from % 3)};
    struct db_page_read page;
    for (unsigned i = 0; i < DB_PAGE_KEYS_MAX; i++)
        at.key[i] = keys[(from / 3 + i) % 4];
    if (db_app_page(reader, statement, &at, &page) == DB_OK) {
        MUST(page.rows <= s->statement[statement].page->rows);
        MUST(page.rows > 0 || (!page.before && !page.after));
        read_rows(&s->statement[statement], page.cursor, page.rows);
        MUST(db_cursor_next(page.cursor) == DB_NONE);
    }
    db_page_read_free(&page);
}

static void run(const struct db_script *s, unsigned from)
{
    static const struct db_value given[DB_SCRIPT_NAMES_MAX] = {{.type = DB_VALUE_INT, .i = 7},
                                                              {.type = DB_VALUE_TEXT, .p = "a", .n = 1}};
    struct db_app_run r = {.grant = &grant, .script = s, .value = given, .limit_us = 20000};
    struct db_app_fault fault;
    if (db_app_begin(reader, &r, &fault) != DB_OK)
        return;
    for (unsigned i = 0; i < s->count; i++) {
        struct db_cursor *c = NULL;
        if (s->statement[i].page != NULL)
            read_page(s, i, from);
        if (db_app_open(reader, i, &c) == DB_OK)
            read_rows(&s->statement[i], c, 20);
        db_cursor_close(c);
    }
    db_app_end(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct db_faults faults = {.tell = tell};
    if (reader == NULL)
        open_store();
    if (size == 0)
        return 0;
    enum db_script_kind kind = data[0] % 4 == 0 ? DB_SCRIPT_WRITE : DB_SCRIPT_READ;
    struct db_script *s = db_script_parse(kind, "x.sql", (const char *)data + 1, size - 1, &faults);
    if (s == NULL)
        return 0;
    MUST(db_reader_begin(reader) == DB_OK);
    if (db_script_check(reader, &grant, s, &faults)) {
        is_sound(s);
        if (kind == DB_SCRIPT_READ)
            run(s, data[0] / 4);
    } else {
        MUST(faults.count > 0);
    }
    MUST(reader->conn.guard.mode == DB_GUARD_OFF);
    db_reader_end(reader);
    db_script_free(s);
    return 0;
}
