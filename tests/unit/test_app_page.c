/* db_app_page: pages by keys. Walking forward repeats no row and misses none that was there all the time, whatever the
 * keys are and whoever writes meanwhile; walking backward gives the same rows; every scan is a range of an index. */
#include <stdio.h>
#include <string.h>

#include "db/app.h"
#include "db/page.h"
#include "tests/unit/run.h"
#include "tests/unit/tdb.h"

enum { ROWS_MAX = 400 };

static const struct db_grant grant = {.app = "shop", .read = "", .write = ""};
static struct db_reader *reader;
static struct db_script *script;
static sqlite3 *shell;

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg;
    ck_abort_msg("%s:%u: %s", file, line, text);
}

static void setup(void)
{
    tdb_make();
    shell = tdb_shell();
    tdb_sql(shell, "CREATE TABLE shop_t (id INTEGER PRIMARY KEY, a, b TEXT, c INTEGER, d REAL, e TEXT COLLATE NOCASE,"
                   " f NOT NULL DEFAULT 1);"
                   "CREATE TABLE shop_u (id INTEGER PRIMARY KEY, t INTEGER, n);"
                   "CREATE VIEW shop_v AS SELECT id, a AS x, c FROM shop_t WHERE f = 1");
    ck_assert_int_eq(db_reader_open(&tdb_config, &reader, &tdb_error), DB_OK);
    script = NULL;
}

static void teardown(void)
{
    db_script_free(script);
    db_reader_close(reader);
    sqlite3_close(shell);
}

static void use(const char *text)
{
    struct db_faults faults = {.tell = tell};
    db_script_free(script);
    script = db_script_parse(DB_SCRIPT_READ, "shop/x.sql", text, strlen(text), &faults);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert(db_script_check(reader, &grant, script, &faults));
    db_reader_end(reader);
}

/* ---- one page -------------------------------------------------------------------------------- */

/* A place: keys that outlive the page they are from. */
struct place {
    struct db_page_at at;
    char text[DB_PAGE_KEYS_MAX][64];
};

static void keep(struct place *place, enum db_page_from from, const struct db_cell *keys)
{
    place->at.from = from;
    for (unsigned i = 0; i < script->statement[0].page->keys; i++) {
        struct db_value *v = &place->at.key[i];
        *v = (struct db_value){.p = place->text[i], .n = keys[i].n};
        switch (keys[i].type) {
        case DB_CELL_INT:
            v->type = DB_VALUE_INT;
            v->i = keys[i].i;
            break;
        case DB_CELL_REAL:
            v->type = DB_VALUE_REAL;
            v->r = keys[i].r;
            break;
        case DB_CELL_TEXT:
        case DB_CELL_BLOB:
            v->type = keys[i].type == DB_CELL_TEXT ? DB_VALUE_TEXT : DB_VALUE_BLOB;
            ck_assert_uint_lt(keys[i].n, sizeof place->text[i]);
            memcpy(place->text[i], keys[i].n > 0 ? keys[i].p : "", keys[i].n);
            break;
        default:
            v->type = DB_VALUE_NONE;
        }
    }
}

struct read {
    unsigned rows;
    int64_t id[DB_PAGE_ROWS_MAX]; /* the first column */
    bool before, after;
    struct place first, last;
};

static struct db_value given[2] = {{.type = DB_VALUE_INT, .i = 1}, {.type = DB_VALUE_INT, .i = 1}};

/* Reads a page in a snapshot of its own; the result. */
static enum db_result try_page(const struct db_page_at *at, struct read *out, uint64_t limit_us)
{
    struct db_app_run run = {.grant = &grant, .script = script, .value = given, .limit_us = limit_us};
    struct db_app_fault fault;
    struct db_page_read page;
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(db_app_begin(reader, &run, &fault), DB_OK);
    enum db_result result = db_app_page(reader, 0, at, &page);
    *out = (struct read){.rows = page.rows, .before = page.before, .after = page.after};
    if (result == DB_OK && page.rows > 0) {
        keep(&out->first, DB_PAGE_BEFORE, page.first);
        keep(&out->last, DB_PAGE_AFTER, page.last);
    }
    for (unsigned i = 0; result == DB_OK && i < page.rows; i++) {
        struct db_cell cell;
        ck_assert_int_eq(db_cursor_next(page.cursor), DB_OK);
        db_cursor_cell(page.cursor, 0, &cell);
        ck_assert_int_eq(cell.type, DB_CELL_INT);
        out->id[i] = cell.i;
    }
    if (result == DB_OK)
        ck_assert_int_eq(db_cursor_next(page.cursor), DB_NONE);
    db_page_read_free(&page);
    db_app_end(reader);
    db_reader_end(reader);
    return result;
}

static void read_page(const struct db_page_at *at, struct read *out)
{
    enum db_result result = try_page(at, out, 5000000);
    ck_assert_msg(result == DB_OK, "%s", db_result_text(result));
}

/* The ids that SQL gives. */
static unsigned ids(const char *sql, int64_t *out)
{
    sqlite3_stmt *s;
    unsigned n = 0;
    ck_assert_msg(sqlite3_prepare_v2(shell, sql, -1, &s, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(shell));
    sqlite3_bind_int(s, 1, 1);
    while (sqlite3_step(s) == SQLITE_ROW) {
        ck_assert_uint_lt(n, ROWS_MAX);
        out[n++] = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return n;
}

/* ---- random rows ----------------------------------------------------------------------------- */

static unsigned seed;

static unsigned any(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % n;
}

/* Few values, so that many rows are alike. */
static const char *const a_values[] = {"NULL", "0", "1", "2", "10", "0.5", "'1'", "'10'", "'9'", "''", "x'31'", "x''"};
static const char *const b_values[] = {"NULL", "''", "'1'", "'10'", "'9'", "'a'", "'-Inf'", "'!'", "x'00'", "95"};
static const char *const c_values[] = {"NULL", "-1", "0", "1", "9223372036854775807", "'x'", "1.5",
                                       "'9223372036854775808'"};
static const char *const d_values[] = {"NULL", "9e999", "-9e999", "0.0", "-0.0", "1", "'x'", "''"};
static const char *const e_values[] = {"NULL", "'a'", "'A'", "'b'", "'B'", "''"};

/* A row that was deleted does not come again as another. */
static bool used[1000];

static void insert(unsigned n)
{
    char sql[300];
    tdb_sql(shell, "BEGIN");
    while (n-- > 0) {
        unsigned id = any(COUNT(used));
        if (used[id])
            continue;
        used[id] = true;
        snprintf(sql, sizeof sql, "INSERT INTO shop_t VALUES (%u, %s, %s, %s, %s, %s, %u)", id,
                 a_values[any(COUNT(a_values))], b_values[any(COUNT(b_values))], c_values[any(COUNT(c_values))],
                 d_values[any(COUNT(d_values))], e_values[any(COUNT(e_values))], any(8) > 0);
        tdb_sql(shell, sql);
    }
    tdb_sql(shell, "COMMIT");
}

static void fill(void)
{
    memset(used, 0, sizeof used);
    tdb_sql(shell, "DELETE FROM shop_t; DELETE FROM shop_u");
    insert(any(3) == 0 ? any(6) : any(120));
    tdb_sql(shell, "INSERT INTO shop_u SELECT id * 3 + n, id, n FROM shop_t, (SELECT 0 AS n UNION SELECT 1)");
}

static void index_some(void)
{
    if (any(2) == 0)
        tdb_sql(shell, "CREATE INDEX shop_ta ON shop_t (a, id); CREATE INDEX shop_tb ON shop_t (b DESC);"
                       "CREATE INDEX shop_tc ON shop_t (c DESC, b, id); CREATE INDEX shop_td ON shop_t (f, d);"
                       "CREATE INDEX shop_te ON shop_t (e)");
}

/* ---- walking --------------------------------------------------------------------------------- */

static const struct {
    const char *keys, *sql;
} walks[] = {
    {"id", "SELECT id FROM shop_t"},
    {"id desc", "SELECT id FROM shop_t"},
    {"a, id", "SELECT id, a FROM shop_t"},
    {"a desc, id", "SELECT id, a FROM shop_t"},
    {"a, id desc", "SELECT id, a FROM shop_t WHERE f = :one"},
    {"b, id", "SELECT id, b FROM shop_t"},
    {"b desc, id desc", "SELECT id, b FROM shop_t"},
    {"c, id", "SELECT id, c FROM shop_t"},
    {"c desc, b, id", "SELECT id, b, c FROM shop_t"},
    {"d, id", "SELECT id, d FROM shop_t WHERE f = :one"},
    {"d desc, c, b desc, id", "SELECT id, b, c, d FROM shop_t"},
    {"e, id", "SELECT id, e FROM shop_t"},
    {"e desc, a, id desc", "SELECT id, e, a FROM shop_t WHERE f = :one"},
    {"x, id desc", "SELECT id, x FROM shop_v"},
    {"x desc, c desc, id", "SELECT id, x, c FROM shop_v WHERE c IS NOT :one"},
    {"t, id", "SELECT id, CAST(c AS TEXT) AS t FROM shop_t"},
    {"n, id", "SELECT id, length(b) AS n FROM shop_t"},
    {"y desc, id", "SELECT id, CASE WHEN f = :one THEN a END AS y FROM shop_t"},
    {"z, id", "SELECT id, (SELECT max(e) FROM shop_t AS o WHERE o.a = t.a) AS z FROM shop_t AS t"},
    {"n desc, a, id", "SELECT u.id, n, a FROM shop_u AS u JOIN shop_t AS t ON t.id = u.t"},
    {"b, n, id", "SELECT u.id, n, b FROM shop_u AS u LEFT JOIN shop_t AS t ON t.id = u.t AND t.f = :one"},
    {"n desc, id", "SELECT max(id) AS id, count(*) AS n FROM shop_t GROUP BY a"},
    {"a, id", "SELECT DISTINCT id, a FROM shop_t"},
    {"c desc, id", "SELECT id, c FROM shop_t WHERE f = 1 UNION ALL SELECT id, c FROM shop_t WHERE f = 0"},
    {"c, id", "WITH w AS (SELECT id, c FROM shop_t WHERE f = :one) SELECT id, c FROM w"},
    {"r, id", "SELECT id, row_number() OVER (PARTITION BY a ORDER BY id) AS r FROM shop_t"},
};

static unsigned page_rows;
static const char *walk_sql;

/* Starts a walk: the page statement, and the SQL for all of it in order. */
static void begin_walk(int walk, unsigned rows)
{
    static char sql[500];
    char text[500];
    snprintf(text, sizeof text, "-- page: %u by %s\n%s", rows, walks[walk].keys, walks[walk].sql);
    use(text);
    snprintf(sql, sizeof sql, "SELECT * FROM (%s) ORDER BY %s", walks[walk].sql, walks[walk].keys);
    walk_sql = sql;
    page_rows = rows;
}

/* Nobody writes: page for page the same as all of it, forward and backward. */
static void walk_quietly(int walk)
{
    int64_t all[ROWS_MAX];
    struct read page;
    fill();
    begin_walk(walk, 1 + any(9));
    unsigned n = ids(walk_sql, all), at = 0;
    read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    for (;;) {
        ck_assert_int_eq(page.before, at > 0 && page.rows > 0);
        ck_assert_uint_eq(page.rows, n - at < page_rows ? n - at : page_rows);
        for (unsigned i = 0; i < page.rows; i++)
            ck_assert_int_eq(page.id[i], all[at + i]);
        at += page.rows;
        ck_assert_int_eq(page.after, at < n);
        if (!page.after)
            break;
        struct db_page_at next = page.last.at;
        read_page(&next, &page);
    }
    ck_assert_uint_eq(at, n);
    for (at -= page.rows; at > 0;) {
        struct db_page_at before = page.first.at;
        read_page(&before, &page);
        ck_assert_uint_eq(page.rows, at < page_rows ? at : page_rows);
        for (unsigned i = page.rows; i-- > 0;)
            ck_assert_int_eq(page.id[i], all[--at]);
        ck_assert_int_eq(page.before, at > 0);
        ck_assert(page.after);
    }
}

START_TEST(a_quiet_walk)
{
    seed = (unsigned)_i * 7919 + 1;
    index_some();
    for (int i = 0; i < (int)COUNT(walks); i++)
        walk_quietly(i);
}
END_TEST

static unsigned index_of(const int64_t *list, unsigned n, int64_t id)
{
    unsigned i = 0;
    while (i < n && list[i] != id)
        i++;
    return i;
}

/* Rows come and go between pages: those that stay are seen once, those that come or go once at most. */
static void walk_among_writers(int walk)
{
    int64_t stay[ROWS_MAX], seen[4 * ROWS_MAX];
    struct read page;
    struct db_page_at at = {.from = DB_PAGE_FIRST};
    unsigned count = 0;
    char sql[200];
    fill();
    begin_walk(walk, 1 + any(9));
    unsigned n = ids(walk_sql, stay);
    for (int turns = 0; turns < 1000; turns++) {
        read_page(&at, &page);
        for (unsigned i = 0; i < page.rows; i++) {
            ck_assert_uint_eq(index_of(seen, count, page.id[i]), count);
            ck_assert_uint_lt(count, COUNT(seen));
            seen[count++] = page.id[i];
        }
        if (!page.after)
            break;
        at = page.last.at;
        if (count < 3 * ROWS_MAX / 2)
            insert(any(4));
        /* one that is not among those that stay, or the row that the next page begins behind */
        int64_t gone = any(2) == 0 ? (int64_t)any(1000) : page.id[page.rows - 1];
        unsigned was = index_of(stay, n, gone);
        if (was < n)
            stay[was] = stay[--n];
        snprintf(sql, sizeof sql, "DELETE FROM shop_t WHERE id = %lld", (long long)gone);
        tdb_sql(shell, sql);
    }
    ck_assert(!page.after);
    for (unsigned i = 0; i < n; i++)
        ck_assert_msg(index_of(seen, count, stay[i]) < count, "row %lld was missed", (long long)stay[i]);
}

START_TEST(a_walk_among_writers)
{
    seed = (unsigned)_i * 104729 + 5;
    index_some();
    for (int i = 0; i < 17; i++) /* those whose rows do not depend on others */
        walk_among_writers(i);
}
END_TEST

/* ---- what is behind and ahead ---------------------------------------------------------------- */

static void three(void)
{
    tdb_sql(shell, "INSERT INTO shop_t (id, a) VALUES (1, 1), (2, 2), (3, 3)");
    use("-- page: 1 by a, id\nSELECT id, a FROM shop_t");
}

static bool page_is(const struct db_page_at *at, unsigned rows, int64_t first, bool before, bool after)
{
    struct read page;
    read_page(at, &page);
    return page.rows == rows && (rows == 0 || page.id[0] == first) && page.before == before && page.after == after;
}

START_TEST(a_row_that_was_deleted_is_a_place_still)
{
    struct read page;
    three();
    read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    tdb_sql(shell, "DELETE FROM shop_t WHERE id = 1");
    ck_assert(page_is(&page.last.at, 1, 2, true, true));
}
END_TEST

START_TEST(before_a_page_whose_rows_ahead_have_gone_is_the_first)
{
    struct read page;
    three();
    read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    read_page(&page.last.at, &page);
    tdb_sql(shell, "DELETE FROM shop_t WHERE id = 1");
    ck_assert(page_is(&page.first.at, 1, 2, false, true));
    tdb_sql(shell, "DELETE FROM shop_t WHERE id = 3");
    ck_assert(page_is(&page.first.at, 1, 2, false, false));
    tdb_sql(shell, "DELETE FROM shop_t");
    ck_assert(page_is(&page.first.at, 0, 0, false, false));
}
END_TEST

START_TEST(rows_behind_that_have_gone_are_not_behind)
{
    struct read page;
    three();
    tdb_sql(shell, "INSERT INTO shop_t (id, a) VALUES (4, 4)");
    use("-- page: 2 by a, id\nSELECT id, a FROM shop_t");
    read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    read_page(&page.last.at, &page);
    ck_assert(page_is(&page.first.at, 2, 1, false, true));
    tdb_sql(shell, "DELETE FROM shop_t WHERE id = 3");
    ck_assert(page_is(&page.first.at, 2, 1, false, true));
    tdb_sql(shell, "DELETE FROM shop_t WHERE id = 4");
    ck_assert(page_is(&page.first.at, 2, 1, false, false));
}
END_TEST

START_TEST(an_empty_page_has_nothing_around_it)
{
    three();
    ck_assert(page_is(&(struct db_page_at){.from = DB_PAGE_AFTER, .key = {{.type = DB_VALUE_INT, .i = 9}, {0}}}, 0, 0,
                      false, false));
    tdb_sql(shell, "DELETE FROM shop_t");
    ck_assert(page_is(&(struct db_page_at){.from = DB_PAGE_FIRST}, 0, 0, false, false));
}
END_TEST

START_TEST(a_page_stops_at_its_time)
{
    struct read page;
    tdb_sql(shell, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
                   " INSERT INTO shop_t (id, a) SELECT i, i FROM n");
    use("-- page: 5 by s, id\nSELECT id, (SELECT count(*) FROM shop_t AS x, shop_t AS y WHERE x.a > y.a + t.a) AS s"
        " FROM shop_t AS t");
    ck_assert_int_eq(try_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page, 20000), DB_TIMEOUT);
}
END_TEST

START_TEST(a_page_has_at_most_4_mib)
{
    struct read page;
    tdb_sql(shell, "INSERT INTO shop_t (id, a) VALUES (1, zeroblob(3000000)), (2, zeroblob(3000000))");
    use("-- page: 1 by id\nSELECT id, a FROM shop_t");
    read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    ck_assert(page.rows == 1 && page.after);
    use("-- page: 2 by id\nSELECT id, a FROM shop_t");
    ck_assert_int_eq(try_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page, 5000000), DB_TOO_LARGE);
}
END_TEST

START_TEST(a_page_can_be_read_whole)
{
    struct db_app_run run;
    struct db_app_fault fault;
    struct db_cursor *c;
    struct read page;
    three();
    use("-- page: 1 by a desc, id\nSELECT id, a FROM shop_t");
    if (_i == 1)
        read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    run = (struct db_app_run){.grant = &grant, .script = script, .limit_us = 5000000};
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(db_app_begin(reader, &run, &fault), DB_OK);
    ck_assert_int_eq(db_app_open(reader, 0, &c), DB_OK);
    for (int i = 3; i >= 1; i--) {
        struct db_cell cell;
        ck_assert_int_eq(db_cursor_next(c), DB_OK);
        db_cursor_cell(c, 0, &cell);
        ck_assert_int_eq(cell.i, i);
    }
    ck_assert_int_eq(db_cursor_next(c), DB_NONE);
    db_cursor_close(c);
    db_app_end(reader);
    db_reader_end(reader);
    read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    ck_assert_uint_eq(page.rows, 1);
    ck_assert_int_eq(page.id[0], 3);
}
END_TEST

/* ---- cost ------------------------------------------------------------------------------------ */

/* A slot's statement, with the keys of the row in the middle; 21 rows of it are read. */
static void run_slot(unsigned slot, int *sorts, int *steps)
{
    const struct db_statement *of = &script->statement[0];
    char middle[2000];
    sqlite3_stmt *s, *keys;
    snprintf(middle, sizeof middle, "%s 1 OFFSET 2500", of->page->text[0].sql);
    strcpy(strstr(middle, "coalesce"), "1 OFFSET 2500");
    ck_assert_int_eq(sqlite3_prepare_v2(shell, middle, -1, &keys, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(shell, of->page->text[slot].sql, -1, &s, NULL), SQLITE_OK);
    for (unsigned i = 1; i <= of->parameters; i++) {
        sqlite3_bind_int(keys, (int)i, 1);
        sqlite3_bind_int(s, (int)i, 1);
    }
    ck_assert_int_eq(sqlite3_step(keys), SQLITE_ROW);
    int last = sqlite3_bind_parameter_count(s);
    for (int i = (int)of->parameters; i < last - 1; i++)
        sqlite3_bind_value(s, i + 1, sqlite3_column_value(keys, (int)of->page->key[i - (int)of->parameters].index));
    sqlite3_bind_int(s, last, 21);
    while (sqlite3_step(s) == SQLITE_ROW)
        ;
    *sorts = sqlite3_stmt_status(s, SQLITE_STMTSTATUS_SORT, 0);
    *steps = sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0);
    sqlite3_finalize(keys);
    sqlite3_finalize(s);
}

static const struct {
    const char *columns, *index, *row, *script;
} indexed[] = {
    {"player TEXT PRIMARY KEY, score INTEGER NOT NULL) WITHOUT ROWID", "score DESC, player", "'p' || i, i % 100",
     "-- page: 20 by score desc, player\nSELECT player, score FROM shop_p"},
    {"id INTEGER PRIMARY KEY, score INTEGER)", "score", "i, i % 100",
     "-- page: 20 by score desc, id desc\nSELECT id, score FROM shop_p"},
    {"id INTEGER PRIMARY KEY, score INTEGER)", "score", "i, 7",
     "-- page: 20 by score, id\nSELECT id, score FROM shop_p"},
    {"id INTEGER PRIMARY KEY, score INTEGER)", "score DESC, id", "i, iif(i > 100, NULL, i)",
     "-- page: 20 by score desc, id\nSELECT id, score FROM shop_p"},
    {"id INTEGER PRIMARY KEY, list, score REAL)", "list, score DESC, id", "i, 1, i % 10",
     "-- page: 20 by score desc, id\nSELECT id, score FROM shop_p WHERE list = :list"},
    {"id INTEGER PRIMARY KEY, day TEXT, score)", "day, score DESC", "i, i % 3, i % 7",
     "-- page: 20 by day, score desc, id\nSELECT id, score, day FROM shop_p"},
    {"id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE)", "name, id", "i, iif(i > 4000, 'a', 'A')",
     "-- page: 20 by n desc, id desc\nSELECT id, p.name AS n FROM shop_p AS p"},
    {"id INTEGER PRIMARY KEY, name TEXT)", "lower(name), id", "i, 'N' || i % 9",
     "-- page: 20 by n, id\nSELECT id, lower(name) AS n FROM shop_p"},
};

/* Each page costs the same, wherever it is: an index is entered, and read in its order. */
START_TEST(every_scan_is_a_range_of_an_index)
{
    char sql[500];
    snprintf(sql, sizeof sql,
             "CREATE TABLE shop_p (%s; CREATE INDEX shop_by ON shop_p (%s);"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
             " INSERT INTO shop_p SELECT %s FROM n",
             indexed[_i].columns, indexed[_i].index, indexed[_i].row);
    tdb_sql(shell, sql);
    use(indexed[_i].script);
    for (unsigned slot = 0; slot < script->statement[0].slots; slot++) {
        int sorts, steps;
        run_slot(slot, &sorts, &steps);
        ck_assert_msg(sorts == 0 && steps < 600, "slot %u: %d sorts, %d steps", slot, sorts, steps);
    }
}
END_TEST

START_TEST(a_page_prepares_only_what_it_runs)
{
    struct read page;
    three();
    read_page(&(struct db_page_at){.from = DB_PAGE_FIRST}, &page);
    ck_assert_uint_eq(db_app_prepared(reader), 1);
    struct db_page_at next = page.last.at;
    read_page(&next, &page); /* the two scans that are ranges behind a row */
    ck_assert_uint_eq(db_app_prepared(reader), 3);
    read_page(&next, &page);
    ck_assert_uint_eq(db_app_prepared(reader), 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_page");
    TCase *t = run_case(s, "walks");
    temp_use(t);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, a_quiet_walk, 0, 10);
    tcase_add_loop_test(t, a_walk_among_writers, 0, 10);
    t = run_case(s, "pages");
    temp_use(t);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_row_that_was_deleted_is_a_place_still);
    tcase_add_test(t, before_a_page_whose_rows_ahead_have_gone_is_the_first);
    tcase_add_test(t, rows_behind_that_have_gone_are_not_behind);
    tcase_add_test(t, an_empty_page_has_nothing_around_it);
    tcase_add_test(t, a_page_stops_at_its_time);
    tcase_add_test(t, a_page_has_at_most_4_mib);
    tcase_add_loop_test(t, a_page_can_be_read_whole, 0, 2);
    tcase_add_loop_test(t, every_scan_is_a_range_of_an_index, 0, COUNT(indexed));
    tcase_add_test(t, a_page_prepares_only_what_it_runs);
    return run_suite(s);
}
