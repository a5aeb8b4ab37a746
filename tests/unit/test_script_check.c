/* db_script_check: what is filled in of a script, and what is told of its faults. */
#include <stdio.h>
#include <string.h>

#include "db/app.h"
#include "tests/unit/run.h"
#include "tests/unit/tdb.h"

static struct db_reader *reader;
static const struct db_grant grant = {.app = "shop", .read = "", .write = ""};
static char told[8192];

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg;
    ck_assert_str_eq(file, "shop/x.sql");
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s%u: %s", told[0] != 0 ? "\n" : "", line, text);
}

static void setup(void)
{
    tdb_make();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "CREATE TABLE shop_item (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price REAL, note TEXT, kind,"
                " at DATETIME, made INTEGER, odd CHARINT);"
                "CREATE UNIQUE INDEX shop_item_made ON shop_item (made) WHERE made IS NOT NULL;"
                "CREATE INDEX shop_item_note ON shop_item (note);"
                "CREATE TABLE shop_pair (a TEXT, b TEXT, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;"
                "CREATE VIRTUAL TABLE shop_text USING fts5 (body);"
                "CREATE VIEW shop_all AS SELECT name AS x FROM shop_item UNION ALL SELECT a FROM shop_pair");
    sqlite3_close(db);
    ck_assert_int_eq(db_reader_open(&tdb_config, &reader, &tdb_error), DB_OK);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
}

static void teardown(void)
{
    db_reader_close(reader);
}

/* The script, or NULL with what was told. */
static struct db_script *check(enum db_script_kind kind, const char *text)
{
    struct db_faults faults = {.tell = tell};
    told[0] = 0;
    struct db_script *s = db_script_parse(kind, "shop/x.sql", text, strlen(text), &faults);
    ck_assert_msg(s != NULL, "%s", told);
    bool ok = db_script_check(reader, &grant, s, &faults);
    ck_assert_int_eq(ok, faults.count == 0);
    ck_assert_int_eq(ok, told[0] == 0);
    if (ok)
        return s;
    db_script_free(s);
    return NULL;
}

static struct db_script *check_ok(enum db_script_kind kind, const char *text)
{
    struct db_script *s = check(kind, text);
    ck_assert_msg(s != NULL, "%s", told);
    return s;
}

/* ---- what is filled in ----------------------------------------------------------------------- */

/* Statement by statement: "name?(columns)<parameters>", '!' when it steers; then the names of the file, those that are
 * set with '='. */
static const char *filled(enum db_script_kind kind, const char *text)
{
    static char out[4096];
    struct db_script *s = check_ok(kind, text);
    char *at = out;
    unsigned slots = 0;
    for (unsigned i = 0; i < s->count; i++) {
        const struct db_statement *of = &s->statement[i];
        ck_assert_int_eq(of->returns, of->columns > 0);
        ck_assert_uint_eq(of->slot, slots);
        slots += of->slots;
        at += sprintf(at, "%s%s%s(", i > 0 ? " " : "", of->name != NULL ? of->name : of->set ? "set" : "-",
                      of->steers ? "!" : "");
        for (unsigned j = 0; j < of->columns; j++)
            at += sprintf(at, "%s%s", j > 0 ? "," : "", of->column[j]);
        at += sprintf(at, ")<");
        for (unsigned j = 0; j < of->parameters; j++)
            at += sprintf(at, "%s%u", j > 0 ? "," : "", of->parameter[j]);
        at += sprintf(at, ">");
    }
    ck_assert_uint_eq(s->slots, slots);
    for (unsigned i = 0; i < s->names; i++)
        at += sprintf(at, " %c%s%s", s->name[i].sigil, s->name[i].name, s->name[i].own ? "=" : "");
    db_script_free(s);
    return out;
}

enum { R = DB_SCRIPT_READ, W = DB_SCRIPT_WRITE };

static const struct {
    int kind;
    const char *text, *is;
} fills[] = {
    {R, "SELECT id, name FROM shop_item", "rows(id,name)<>"},
    {R, "SELECT id AS a FROM shop_item WHERE name = :name OR name = $name OR note = @note OR name = :name",
     "rows(a)<0,1,2> :name $name @note"},
    {R, "-- name: a\nSELECT id FROM shop_item WHERE id = :x;\nSELECT note FROM shop_item WHERE name = :y OR id = :x",
     "a(id)<0> rows(note)<1,0> :x :y"},
    {R, "-- name: a\nSELECT 1 AS one", "a(one)<>"},
    {R, "-- name: rows\nSELECT 1 AS a;\n-- name: b\nSELECT 2 AS a", "rows(a)<> b(a)<>"},
    {R, "-- name: rows\nSELECT 1 AS a;\nSELECT 2 AS b, 3 AS _status", "rows(a)<> -!(b,_status)<>"},
    {R, "SELECT 1 AS a;\nSELECT 303 AS _status, '/' AS _location", "rows(a)<> -!(_status,_location)<>"},
    {R, "SELECT 1 AS a, 'no-store' AS _cache", "rows!(a,_cache)<>"},
    {R, "SELECT 404 AS _status, 'no' AS message WHERE :x IS NULL;\nSELECT 1 AS a",
     "-!(_status,message)<0> rows(a)<> :x"},
    {R, "-- set\nSELECT 1 AS x, 2 AS y;\nSELECT :x AS a, :z AS b", "set(x,y)<> rows(a,b)<0,2> :x= :y= :z"},
    {R, "SELECT :x AS a;\n-- set\nSELECT 1 AS x", "rows(a)<0> set(x)<> :x="},
    {R, "-- set\nSELECT 1 AS x;\n-- set\nSELECT :x AS y;\nSELECT :y AS a", "set(x)<> set(y)<0> rows(a)<1> :x= :y="},
    {R, "-- set\nSELECT 1 AS x;\n-- set\nSELECT 2 AS x WHERE :x = 1;\nSELECT 1 AS a",
     "set(x)<> set(x)<0> rows(a)<> :x="},
    {R, "SELECT :_user AS a, :_now AS b, :_request_id AS c, :_method AS d, :_app AS e, :_cookie_me AS f",
     "rows(a,b,c,d,e,f)<0,1,2,3,4,5> :_user :_now :_request_id :_method :_app :_cookie_me"},
    {R, "SELECT :\xc3\xa9 AS a, :1 AS b", "rows(a,b)<0,1> :\xc3\xa9 :1"},
    {R, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n", "rows(i)<>"},
    {R, "VALUES (1, 2)", "rows(column1,column2)<>"},
    {W, "INSERT INTO shop_item (name) VALUES (:name)", "-()<0> :name"},
    {W, "INSERT INTO shop_item (name) VALUES (:name) RETURNING id", "rows(id)<0> :name"},
    {W, "SELECT 422 AS _status, 'no' AS message WHERE :a IS NULL;\nDELETE FROM shop_item WHERE id = :a",
     "rows!(_status,message)<0> -()<0> :a"},
    {W, "-- set\nINSERT INTO shop_item (name) VALUES (:name) RETURNING id;\nSELECT '/item/' || :id AS _location",
     "set(id)<1> -!(_location)<0> :id= :name"},
    {W, "SELECT upper('list');\nUPDATE shop_item SET price = 1", "rows(upper('list'))<> -()<>"},
    {W, "SELECT 1 AS a;\nSELECT 2 AS b", "-(a)<> rows(b)<>"},
};

START_TEST(a_script_is_filled_in)
{
    ck_assert_str_eq(filled((enum db_script_kind)fills[_i].kind, fills[_i].text), fills[_i].is);
}
END_TEST

/* The SQL of a page but for the statement itself, which is "@" here; one slot a line, those of NULL once a key. */
static const char *paged(const char *text)
{
    static char out[8192];
    struct db_script *s = check_ok(DB_SCRIPT_READ, text);
    const struct db_statement *of = &s->statement[0];
    char *at = out;
    ck_assert_uint_eq(of->slots, 1 + 4 * of->page->keys);
    for (unsigned i = 0; i < of->slots; i++) {
        const char *sql = of->page->text[i].sql;
        ck_assert_uint_eq(strlen(sql), of->page->text[i].bytes);
        ck_assert_int_eq(strncmp(sql, "SELECT * FROM (\n", 16), 0);
        ck_assert_int_eq(strncmp(sql + 16, of->text, of->bytes), 0);
        ck_assert_int_eq(strncmp(sql + 16 + of->bytes, "\n)", 2), 0);
        const char *limit = " LIMIT coalesce(?,-1)", *end = strstr(sql, limit);
        ck_assert(end != NULL && end[strlen(limit)] == 0);
        at += sprintf(at, "%s%.*s", i > 0 ? "\n" : "", (int)(end - sql - 18 - (ptrdiff_t)of->bytes),
                      sql + 18 + of->bytes);
    }
    db_script_free(s);
    return out;
}

START_TEST(a_page_has_a_statement_for_each_scan)
{
    ck_assert_str_eq(paged("-- page: 2 by price desc, id\nSELECT id, price FROM shop_item WHERE kind = :k"),
                     " ORDER BY [price] DESC, [id]\n"
                     " WHERE [price] > ? ORDER BY [price], [id] DESC\n"
                     " WHERE [price] >= -9e999 ORDER BY [price], [id] DESC\n"
                     " WHERE [price] < ? ORDER BY [price] DESC, [id]\n"
                     " WHERE [price] IS NULL ORDER BY [id]\n"
                     " WHERE [price] IS ? AND [id] > ? ORDER BY [id]\n"
                     " WHERE [price] IS ? AND [id] >= -9e999 ORDER BY [id]\n"
                     " WHERE [price] IS ? AND [id] < ? ORDER BY [id] DESC\n"
                     " WHERE [price] IS ? AND [id] IS NULL");
}
END_TEST

/* What stands below all values of the last key, by what it is. */
static const struct {
    const char *keys, *from, *floor;
} floors[] = {
    {"id", "* FROM shop_item", ">= -9e999"},
    {"id, price", "* FROM shop_item", ">= -9e999"},
    {"id, kind", "* FROM shop_item", ">= -9e999"},
    {"id, at", "* FROM shop_item", ">= -9e999"},
    {"id, odd", "* FROM shop_item", ">= -9e999"},
    {"id, note", "* FROM shop_item", ">= ''"},
    {"name", "* FROM shop_item", ">= ''"},
    {"a, b", "* FROM shop_pair", ">= ''"},
    {"x", "* FROM (SELECT name AS x FROM shop_item)", ">= ''"},
    {"x", "x FROM shop_all", "IS NOT NULL"},
    {"x", "upper(name) AS x FROM shop_item", "IS NOT NULL"},
    {"x", "CAST(name AS TEXT) AS x FROM shop_item", "IS NOT NULL"},
    {"x", "DISTINCT name AS x FROM shop_item", "IS NOT NULL"},
    {"x", "name AS x FROM shop_item GROUP BY name", "IS NOT NULL"},
    {"x", "name AS x FROM shop_item UNION ALL SELECT a FROM shop_pair", "IS NOT NULL"},
    {"x", "max(name) AS x FROM shop_item", "IS NOT NULL"},
    {"key", "key FROM json_each(:x)", ">= -9e999"},
};

START_TEST(what_stands_below_a_key)
{
    char text[300];
    snprintf(text, sizeof text, "-- page: 2 by %s\nSELECT %s", floors[_i].keys, floors[_i].from);
    const char *lines = paged(text);
    for (unsigned i = strchr(floors[_i].keys, ',') != NULL ? 6 : 2; i > 0; i--)
        lines = strchr(lines, '\n') + 1;
    const char *last = strchr(floors[_i].keys, ',') != NULL ? strstr(lines, " AND [") + 5 : lines;
    const char *floor = strstr(last, "] ") + 2;
    ck_assert_msg(strncmp(floor, floors[_i].floor, strlen(floors[_i].floor)) == 0, "%s", lines);
}
END_TEST

START_TEST(keys_are_found_in_the_result)
{
    struct db_script *s = check_ok(DB_SCRIPT_READ, "-- page: 5 by price, ID\nSELECT id, name, price FROM shop_item");
    ck_assert_uint_eq(s->statement[0].page->key[0].index, 2);
    ck_assert_uint_eq(s->statement[0].page->key[1].index, 0);
    db_script_free(s);
}
END_TEST

/* Keys that nobody can say of that rows are alike in them. */
START_TEST(keys_that_may_be_unique)
{
    static const char *const scripts[] = {
        "-- page: 5 by name\nSELECT name FROM shop_item",
        "-- page: 5 by r\nSELECT rowid AS r FROM shop_item",
        "-- page: 5 by note, id\nSELECT id, note FROM shop_item",
        "-- page: 5 by b\nSELECT b FROM shop_pair WHERE a = :a",
        "-- page: 5 by note\nSELECT note, count(*) AS n FROM shop_item GROUP BY note",
        "-- page: 5 by note\nSELECT DISTINCT note FROM shop_item",
        "-- page: 5 by note\nSELECT note FROM shop_item UNION SELECT c FROM shop_pair",
        "-- page: 5 by n\nSELECT upper(note) AS n FROM shop_item",
        "-- page: 5 by x\nSELECT x FROM shop_all",
        "-- page: 5 by body\nSELECT body FROM shop_text",
        "-- page: 5 by n\nSELECT s.note AS n FROM shop_pair AS p LEFT JOIN"
        " (SELECT note, count(*) AS c FROM shop_item GROUP BY note) AS s ON s.c = p.c",
        "-- page: 5 by key\nSELECT key, value FROM json_each(:list)",
        "-- page: 5 by i\nWITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
        "-- page: 5 by column1\nVALUES (1), (2)",
    };
    db_script_free(check_ok(DB_SCRIPT_READ, scripts[_i]));
    ck_assert_int_lt(_i, (int)COUNT(scripts));
}
END_TEST

/* The reader's snapshot may be newer than what this connection knew of the schema. */
START_TEST(a_new_schema_is_seen)
{
    db_script_free(check_ok(DB_SCRIPT_READ, "SELECT kind FROM shop_item"));
    db_reader_end(reader);
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "ALTER TABLE shop_item RENAME COLUMN kind TO sort");
    sqlite3_close(db);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_ptr_null(check(DB_SCRIPT_READ, "SELECT kind FROM shop_item"));
    ck_assert_str_eq(told, "1: no such column: kind");
    db_script_free(check_ok(DB_SCRIPT_READ, "SELECT sort FROM shop_item"));
}
END_TEST

START_TEST(checking_writes_nothing_and_leaves_the_reader_free)
{
    db_script_free(check_ok(DB_SCRIPT_WRITE, "DELETE FROM shop_item"));
    uint64_t seq, documents;
    ck_assert_int_eq(db_reader_totals(reader, &seq, &documents), DB_OK);
    db_reader_end(reader);
    tdb_is_sound();
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

#define NOT_APART "the page's keys do not tell rows apart: none is in a PRIMARY KEY or UNIQUE"
#define NOBODY "nobody sees these rows: give them a name, as in -- name: items"
#define COLUMN_NAME "a column that is set is called by letters, digits and _ (AS name)"

static const struct {
    int kind;
    const char *text, *faults;
} wrongs[] = {
    {R, "SELECT 1 AS a;\nSELECT\n  x\n FROM shop_item", "3: no such column: x"},
    {R, "SELECT a\n FROM shop_none", "2: no such table: shop_none"},
    {R, "SELECT 1 +;", "1: incomplete input"},
    {R, "SELECT 'shop_none'\n FROM SHOP_NONE\n", "2: no such table: SHOP_NONE"},
    {R, "SELECT 1\n FROM shop_item\n, token", "3: the app shop may not read token"},
    {R, "\nSELECT 1\n  1 1", "3: near \"1\": syntax error"},
    {R, "SELEC 1", "1: near \"SELEC\": syntax error"},
    {R, "SELECT nope(1)", "1: no such function: nope"},
    {R, "SELECT :a(b;c)", "1: unrecognized token: \":a(b\"\n1: near \"c\": syntax error"},
    {R, "SELECT 1 AS a; SELECT x; SELECT y", "1: no such column: x\n1: no such column: y"},
    {R, "DELETE FROM shop_item", "1: a GET writes nothing: delete from shop_item"},
    {R, "SELECT 1 AS a;\nINSERT INTO shop_item (name) VALUES (1) RETURNING id", "2: a GET writes nothing: insert into shop_item"},
    {R, "EXPLAIN SELECT 1", "1: EXPLAIN is for the sqlite3 shell"},
    {W, "EXPLAIN QUERY PLAN SELECT 1", "1: EXPLAIN is for the sqlite3 shell"},
    {R, "SELECT ?", "1: a parameter has a name, as in :id"},
    {R, "SELECT ?9, :a", "1: a parameter has a name, as in :id"},
    {R, "SELECT #a", "1: #a is written :a"},
    {R, "SELECT :a$b AS x", "1: the name of a parameter is letters, digits and _, 64 bytes at most: :a$b"},
    {R, "SELECT $a::b AS x", "1: the name of a parameter is letters, digits and _, 64 bytes at most: $a::b"},
    {R, "SELECT $a(b) AS x", "1: the name of a parameter is letters, digits and _, 64 bytes at most: $a(b)"},
    {R, "SELECT :_users AS x", "1: no parameter is called :_users"},
    {R, "SELECT $_user AS x", "1: no parameter is called $_user"},
    {R, "SELECT @_now AS x", "1: no parameter is called @_now"},
    {R, "SELECT :_cookie_ AS x", "1: no parameter is called :_cookie_"},
    {R, "SELECT :__k0 AS x", "1: no parameter is called :__k0"},
    {R, "SELECT 1 AS a, 2 AS a", "1: two columns are called a"},
    {R, "SELECT 1 AS a, 2 AS A", "1: two columns are called A"},
    {R, "SELECT 1 AS a, 2 AS \"a:json\"", "1: two columns are called a:json"},
    {R, "SELECT * FROM shop_item AS a, shop_item AS b WHERE a.id = b.id AND :x = 1;",
     "1: two columns are called id\n1: two columns are called name\n1: two columns are called price\n"
     "1: two columns are called note\n1: two columns are called kind\n1: two columns are called at\n"
     "1: two columns are called made\n1: two columns are called odd"},
    {R, "SELECT 1 AS _satus", "1: no column that steers the answer is called _satus"},
    {R, "SELECT 1 AS _STATUS", "1: no column that steers the answer is called _STATUS"},
    {R, "SELECT 1 AS a;\nSELECT 2 AS b", "1: " NOBODY},
    {R, "-- page: 5 by id\nSELECT id FROM shop_item;\n-- name: x\nSELECT 1 AS a", "2: " NOBODY},
    {R, "-- page: 5 by id\nSELECT id, 'x' AS _cache FROM shop_item;\n-- name: x\nSELECT 1 AS a", "2: " NOBODY},
    {R, "-- page: 5 by _type\nSELECT name AS _type FROM shop_item", "2: " NOBODY},
    {R, "-- name: a\nSELECT 303 AS _status", "2: a has no rows: the statement returns none"},
    {W, "-- name: a\nDELETE FROM shop_item", "2: a has no rows: the statement returns none"},
    {W, "-- set\nDELETE FROM shop_item", "2: nothing is set: the statement returns no columns"},
    {R, "-- set\nSELECT count(*) FROM shop_item", "2: " COLUMN_NAME},
    {R, "-- set\nSELECT 1 AS \"a b\"", "2: " COLUMN_NAME},
    {R, "-- set\nSELECT 1 AS _user", "2: a name that begins with _ is not set: _user"},
    {R, "-- set\nSELECT coalesce(:page, 1) AS page", "2: :page is not known here: it is set in line 2"},
    {R, "-- set\nSELECT :b AS a;\n-- set\nSELECT 1 AS b", "2: :b is not known here: it is set in line 4"},
    {W, "SELECT :b AS a;\n-- set\nSELECT 1 AS b", "1: :b is not known here: it is set in line 3"},
    {R, "-- set\nSELECT 1 AS b;\nSELECT $b AS a", "3: $b is written :b"},
    {R, "-- set\nSELECT 1 AS b;\nSELECT @b AS a", "3: @b is written :b"},
    {R, "-- page: 5 by ids\nSELECT id FROM shop_item", "2: the page's key ids is not a column of the result"},
    {R, "-- page: 5 by a, b\nSELECT id FROM shop_item",
     "2: the page's key a is not a column of the result\n2: the page's key b is not a column of the result"},
    {R, "-- page: 5 by note\nSELECT note FROM shop_item", "2: " NOT_APART},
    {R, "-- page: 5 by note, price\nSELECT note, price AS PRICE FROM shop_item AS i", "2: " NOT_APART},
    {R, "-- page: 5 by made\nSELECT made FROM shop_item", "2: " NOT_APART},
    {R, "-- page: 5 by c\nSELECT c FROM (SELECT * FROM shop_pair)", "2: " NOT_APART},
    {R, "-- name: a\n-- page: 5 by id\nSELECT id FROM shop_item;\n-- name: a_next\nSELECT 1 AS x",
     "5: the name a_next is kept for the page a"},
    {R, "-- name: a_prev\nSELECT 1 AS x;\n-- name: a\n-- page: 5 by id\nSELECT id FROM shop_item",
     "2: the name a_prev is kept for the page a"},
    {R, "-- page: 5 by id\nSELECT id FROM shop_item WHERE id > :after", "2: the parameter after is kept for the page rows"},
    {R, "-- name: a\n-- page: 5 by id\nSELECT id FROM shop_item WHERE id > $a_before AND id > :before",
     "3: the parameter a_before is kept for the page a"},
    {R, "SELECT x;\nSELECT 1 AS a, 2 AS a, :_b AS b;\n-- set\nSELECT y AS c;\nSELECT $c AS d",
     "1: no such column: x\n4: no such column: y\n2: two columns are called a\n2: no parameter is called :_b"},
    {R, "SELECT 1 AS a FROM token", NULL},
    {W, "DELETE FROM doc", NULL},
    {R, "PRAGMA user_version", NULL},
    {W, "BEGIN", NULL},
    {W, "CREATE TABLE shop_x (a)", NULL},
    {W, "ATTACH '/tmp/x' AS x", NULL},
};

START_TEST(what_is_wrong_is_told)
{
    ck_assert_ptr_null(check((enum db_script_kind)wrongs[_i].kind, wrongs[_i].text));
    if (wrongs[_i].faults != NULL)
        ck_assert_str_eq(told, wrongs[_i].faults);
    else
        ck_assert_msg(strncmp(told, "1: ", 3) == 0 && strchr(told, '\n') == NULL, "%s", told);
}
END_TEST

START_TEST(there_are_at_most_64_names)
{
    char text[2000] = "SELECT 1 AS a WHERE 1 IN (:x";
    for (int i = 1; i < 64; i++)
        sprintf(text + strlen(text), ", :x%d", i);
    size_t n = strlen(text);
    strcat(text, ")");
    struct db_script *s = check_ok(DB_SCRIPT_READ, text);
    ck_assert_uint_eq(s->names, 64);
    ck_assert_uint_eq(s->statement[0].parameter[63], 63);
    db_script_free(s);
    strcpy(text + n, ", :x, $y, @z)");
    ck_assert_ptr_null(check(DB_SCRIPT_READ, text));
    ck_assert_str_eq(told, "1: a file has at most 64 names of parameters");
}
END_TEST

START_TEST(there_are_at_most_100_columns)
{
    char text[2000] = "SELECT 1 AS c";
    for (int i = 1; i < 100; i++)
        sprintf(text + strlen(text), ", %d AS c%d", i, i);
    struct db_script *s = check_ok(DB_SCRIPT_READ, text);
    ck_assert_uint_eq(s->statement[0].columns, 100);
    db_script_free(s);
    strcat(text, ", 1 AS d");
    ck_assert_ptr_null(check(DB_SCRIPT_READ, text));
    ck_assert_str_eq(told, "1: a result has at most 100 columns");
}
END_TEST

START_TEST(a_name_has_at_most_64_bytes)
{
    char text[200];
    for (int n = 64; n <= 65; n++) {
        snprintf(text, sizeof text, "SELECT :%0*d AS a", n, 1);
        struct db_script *s = check(DB_SCRIPT_READ, text);
        ck_assert_int_eq(s != NULL, n == 64);
        db_script_free(s);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("script_check");
    TCase *t = run_case(s, "filled");
    temp_use(t);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, a_script_is_filled_in, 0, COUNT(fills));
    tcase_add_test(t, a_page_has_a_statement_for_each_scan);
    tcase_add_loop_test(t, what_stands_below_a_key, 0, COUNT(floors));
    tcase_add_test(t, keys_are_found_in_the_result);
    tcase_add_loop_test(t, keys_that_may_be_unique, 0, 14);
    tcase_add_test(t, a_new_schema_is_seen);
    tcase_add_test(t, checking_writes_nothing_and_leaves_the_reader_free);
    t = run_case(s, "faults");
    temp_use(t);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, what_is_wrong_is_told, 0, COUNT(wrongs));
    tcase_add_test(t, there_are_at_most_64_names);
    tcase_add_test(t, there_are_at_most_100_columns);
    tcase_add_test(t, a_name_has_at_most_64_bytes);
    return run_suite(s);
}
