/* db/check: each kind of damage is found and named; a sound file has none. */
#include "db/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tdb.h"

/* The findings, one a line. */
static char findings[4096];

static void found(void *arg, bool fault, const char *finding)
{
    size_t at = strlen(findings);
    ck_assert_ptr_eq(arg, findings);
    snprintf(findings + at, sizeof findings - at, "%s%s\n", fault ? "" : "note: ", finding);
}

static enum db_result check(void)
{
    findings[0] = 0;
    return db_check(&tdb_config, found, findings, &tdb_error);
}

/* A store with a little of everything. */
static void fill(void)
{
    tdb_make();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "INSERT INTO doc (key, body) VALUES ('a', 'one'), ('b', 'two'), ('c', 'three'), ('gone', 'x')");
    tdb_sql(db, "UPDATE doc SET body = 'four' WHERE key = 'a'; DELETE FROM doc WHERE key = 'gone'");
    tdb_sql(db, "INSERT INTO token (name, hash, created) VALUES ('t', zeroblob(32), 1)");
    sqlite3_close(db);
}

START_TEST(a_new_store_is_sound)
{
    tdb_make();
    ck_assert_int_eq(check(), DB_OK);
    ck_assert_str_eq(findings, "");
}
END_TEST

START_TEST(a_store_in_use_is_sound)
{
    fill();
    ck_assert_int_eq(check(), DB_OK);
    ck_assert_str_eq(findings, "");
}
END_TEST

/* A line with two messages that share a body. */
#define SENDS                                                                                                          \
    "INSERT INTO line (id, name, seq, hash, due, waiting, created, url) VALUES (1, 'l', 2, x'" ONES "', 5, 2, 1, 'u');" \
    "INSERT INTO outbox_body VALUES (1, 2, 'hello');"                                                                  \
    "INSERT INTO outbox (n, id, line, seq, due, sealed, size, body, created, type, prev, hash) VALUES"                 \
    " ((1 << 40) + 1, 'a', 1, 1, 5, 0, 5, 1, 1, 't', NULL, x'" TWOS "'),"                                              \
    " ((1 << 40) + 2, 'b', 1, 2, 9, 0, 5, 1, 1, 't', x'" TWOS "', x'" ONES "');"
#define ONES "1111111111111111111111111111111111111111111111111111111111111111"
#define TWOS "2222222222222222222222222222222222222222222222222222222222222222"

START_TEST(sends_are_sound)
{
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, SENDS "DELETE FROM outbox WHERE seq = 9");
    sqlite3_close(db);
    ck_assert_int_eq(check(), DB_OK);
    ck_assert_str_eq(findings, "");
}
END_TEST

/* Damage that SQL can do, and what of it must be named. */
static const struct {
    const char *sql;
    const char *said;
} damages[] = {
    {SENDS "UPDATE line SET waiting = 5", "1 lines whose counts of messages are wrong"},
    {SENDS "UPDATE line SET parked = 1", "1 lines whose counts of messages are wrong"},
    {SENDS "UPDATE line SET due = 7", "1 lines that are tried next at another time"},
    {SENDS "UPDATE line SET due = NULL", "1 lines that are tried next at another time"},
    {SENDS "UPDATE outbox SET state = 'parked' WHERE seq = 1", "1 lines that are tried next at another time"},
    {SENDS "UPDATE line SET keys = 1", "1 lines with another number of keys"},
    {"INSERT INTO line_key VALUES (9, zeroblob(16), zeroblob(32), zeroblob(16), 0, 0, 0)", "1 keys of lines that are not there"},
    {SENDS "DELETE FROM line; DELETE FROM outbox_gone", "2 messages whose line is not there"},
    {SENDS "UPDATE line SET seq = 1", "1 messages with a number that their line has not given"},
    {SENDS "UPDATE line SET hash = zeroblob(32)", "1 lines whose last message has another hash"},
    {SENDS "UPDATE outbox SET hash = zeroblob(32) WHERE seq = 1", "1 messages that do not follow the one before"},
    {SENDS "UPDATE outbox SET prev = NULL WHERE seq = 2", "1 messages that do not follow the one before"},
    {SENDS "UPDATE outbox SET prev = hash WHERE seq = 1", "1 messages that do not follow the one before"},
    {SENDS "DELETE FROM outbox_body", "2 messages without their body"},
    {SENDS "UPDATE outbox_body SET body = 'longer'", "2 messages without their body, or with one of another size"},
    {SENDS "UPDATE outbox_body SET refs = 1", "1 bodies that other messages have than they say"},
    {SENDS "INSERT INTO outbox_body VALUES (7, 1, 'x')", "1 bodies that other messages have"},
    {SENDS "INSERT INTO attempt VALUES (7, 1, 0, 0, 200, 'delivered', '')", "1 tries of messages that are not there"},
    {SENDS "DROP TRIGGER outbox_delete", "the trigger outbox_delete is missing"},
    {"UPDATE doc SET seq = NULL WHERE key = 'b'", "1 documents without a sequence number"},
    {"UPDATE doc SET size = NULL", "3 documents without a sequence number, size or time"},
    {"UPDATE doc SET modified = NULL WHERE key = 'a'", "without a sequence number, size or time"},
    {"UPDATE doc SET size = 99 WHERE key = 'a'", "1 documents whose size"},
    {"UPDATE doc SET size = size + 1", "3 documents whose size"},
    {"DELETE FROM change WHERE seq = 2", "1 documents whose last change"},
    {"DELETE FROM change", "3 documents whose last change"},
    {"UPDATE change SET key = 'x' WHERE seq = 2", "1 documents whose last change"},
    {"UPDATE change SET op = 'delete' WHERE seq = 2", "1 documents whose last change"},
    {"UPDATE doc SET seq = 1000 WHERE key = 'b'", "1 documents whose last change"},
    {"UPDATE doc SET seq = 2", "2 sequence numbers that stand on two documents"},
    {"DELETE FROM change WHERE key = 'gone'", "1 keys that are gone without"},
    {"UPDATE tombstone SET seq = 1", "1 keys that are gone without"},
    {"INSERT INTO tombstone (key, seq) VALUES ('a', 6)", "1 keys that are both gone and there"},
    {"UPDATE meta SET value = 7 WHERE name = 'documents'", "4 documents more or fewer"},
    {"UPDATE meta SET value = 0 WHERE name = 'documents'", "3 documents more or fewer"},
    {"INSERT INTO change (key, op) VALUES ('a', 'delete')", "1 deleted keys in the feed"},
    {"UPDATE doc SET seq = 'many' WHERE key = 'a'", "1 documents without a sequence number"},
    {"UPDATE doc SET size = 'big' WHERE key = 'a'", "1 documents without a sequence number, size"},
    {"UPDATE doc SET modified = 1.5 WHERE key = 'a'", "1 documents without a sequence number, size"},
    {"UPDATE change SET prev = 2 WHERE seq = 3", "1 changes that would have the last one of a key removed"},
    {"UPDATE change SET prev = 3 WHERE seq = 3", "1 changes that would have the last one of a key removed"},
    {"INSERT INTO change (key, op) VALUES ('stranger', 'put')", "1 keys whose last change is neither"},
    {"DELETE FROM tombstone", "1 keys whose last change is neither"},
    {"UPDATE meta SET value = 7 WHERE name = 'pruned'", "1 marks (pruned, horizon)"},
    {"INSERT INTO meta VALUES ('horizon', 7)", "1 marks (pruned, horizon)"},
    {"INSERT INTO inbox_key VALUES (9, 'identity', zeroblob(16), zeroblob(32), zeroblob(16), 0, 0)",
     "1 keys of inboxes that are not there"},
    {"INSERT INTO inbox_line VALUES (1, 1, zeroblob(16), 'x', 5, NULL); INSERT INTO inbox_ahead VALUES (1, 5, zeroblob(32))",
     "1 numbers that are noted beyond a mark"},
    {"DROP TRIGGER doc_update", "the trigger doc_update is missing"},
    {"PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(sql, 'put', 'pat') WHERE name = 'doc_update'",
     "the trigger doc_update is not the one of hanji's schema"},
    {"DROP TRIGGER doc_insert; INSERT INTO doc (key, body) VALUES ('new', 'x')", "1 documents more or fewer"},
    {"DROP TRIGGER doc_delete; DELETE FROM doc WHERE key = 'a'", "1 documents more or fewer"},
};

START_TEST(damage_is_named)
{
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, damages[_i].sql);
    sqlite3_close(db);
    ck_assert_int_eq(check(), DB_INVALID);
    ck_assert_msg(strstr(findings, damages[_i].said) != NULL, "%s: %s", damages[_i].sql, findings);
}
END_TEST

/* Damage that is quiet: the feed says a key is there that is not, the counter is missing, a trigger is gone. */
static const char *const quiet[] = {
    "DROP TRIGGER doc_delete; DELETE FROM doc WHERE key = 'a'; UPDATE meta SET value = 2 WHERE name = 'documents'",
    "DELETE FROM meta WHERE name = 'documents'",
    "UPDATE meta SET value = NULL WHERE name = 'documents'",
    "DROP TRIGGER doc_update",
    "DROP TRIGGER doc_insert",
    "DROP TRIGGER doc_delete",
};

START_TEST(quiet_damage_is_found)
{
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, quiet[_i]);
    sqlite3_close(db);
    ck_assert_msg(check() == DB_INVALID && findings[0] != 0, "not found: %s", quiet[_i]);
}
END_TEST

/* Rows that the API would not have taken: told, and no fault. */
static const struct {
    const char *sql;
    const char *said;
} oddities[] = {
    {"INSERT INTO inbox_source (id, name, created) VALUES (1, 'x', 0);"
     " INSERT INTO inbox (source, id, type, sent, received, hash, body) VALUES (1, 'a', 't', 0, 10, x'', '')",
     "1 messages whose id is not known"},
    {"INSERT INTO inbox_source (id, name, created) VALUES (1, 'x', 0);"
     " INSERT INTO inbox_line VALUES (1, 1, zeroblob(16), 'l', 5, NULL);"
     " INSERT INTO inbox (source, id, sender, line, seq, type, sent, received, hash, body)"
     " VALUES (1, 'a', zeroblob(16), 'l', 6, 't', 0, 10, x'', '')", "1 messages of a line beyond its mark"},
    {"UPDATE doc SET key = 'a' || char(10) WHERE key = 'a'", "1 documents whose key"},
    {"UPDATE doc SET key = 'x/../y' WHERE key = 'a'", "1 documents whose key"},
    {"UPDATE doc SET key = '.' WHERE key = 'a'", "1 documents whose key"},
    {"UPDATE doc SET key = 'back\\slash' WHERE key = 'a'", "1 documents whose key"},
    {"UPDATE doc SET key = 'a' || char(127) WHERE key = 'a'", "1 documents whose key"},
    {"UPDATE doc SET key = CAST(x'61ff' AS TEXT) WHERE key = 'a'", "1 documents whose key"},
    {"UPDATE doc SET key = CAST(x'eda080' AS TEXT) WHERE key = 'a'", "1 documents whose key"},
    {"UPDATE doc SET body = CAST(x'c0af' AS TEXT) WHERE key = 'a'", "1 documents whose body is TEXT"},
    {"UPDATE doc SET body = CAST(x'610062' AS TEXT) WHERE key = 'a'", "1 documents whose body is TEXT"},
    {"UPDATE doc SET type = 'application/json', body = '{' WHERE key = 'a'", "1 documents of up to 1 MiB whose type says JSON"},
    {"UPDATE doc SET type = 'Application/X+JSON; charset=utf-8', body = 'x'", "3 documents of up to 1 MiB whose type says JSON"},
    {"UPDATE doc SET type = 'application/json', body = x'7b7d00' WHERE key = 'a'",
     "1 documents of up to 1 MiB whose type says JSON"},
};

START_TEST(oddities_are_noted)
{
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, oddities[_i].sql);
    sqlite3_close(db);
    ck_assert_msg(check() == DB_OK, "%s: %s", oddities[_i].sql, findings);
    ck_assert_msg(strstr(findings, "note: ") == findings, "%s: %s", oddities[_i].sql, findings);
    ck_assert_msg(strstr(findings, oddities[_i].said) != NULL, "%s: %s", oddities[_i].sql, findings);
}
END_TEST

START_TEST(what_only_looks_odd)
{
    static const char *const fine[] = {
        "UPDATE doc SET key = '...' WHERE key = 'a'", "UPDATE doc SET key = 'a/.b/c..' WHERE key = 'a'",
        "UPDATE doc SET key = 'é/' || char(0x10ffff) || '/' || char(0xd7ff) WHERE key = 'a'",
        "UPDATE doc SET type = 'application/json', body = '[1e999, 12345678901234567890]'",
        "UPDATE doc SET type = 'application/json', body = CAST('{}' AS BLOB)",
        "UPDATE doc SET type = 'application/jsonx', body = '{'", "UPDATE doc SET type = 'text/json', body = '{'",
        "CREATE TABLE my_own (x); CREATE INDEX my_index ON my_own (x); ANALYZE",
        "UPDATE doc SET body = x'00ff' WHERE key = 'a'",
    };
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, fine[_i]);
    sqlite3_close(db);
    ck_assert_int_eq(check(), DB_OK);
    ck_assert_str_eq(findings, "");
}
END_TEST

START_TEST(all_findings_are_told)
{
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "UPDATE doc SET size = 99 WHERE key = 'a'; UPDATE meta SET value = 7 WHERE name = 'documents'");
    sqlite3_close(db);
    ck_assert_int_eq(check(), DB_INVALID);
    ck_assert_ptr_nonnull(strstr(findings, "whose size"));
    ck_assert_ptr_nonnull(strstr(findings, "more or fewer"));
}
END_TEST

/* Writes a byte pattern over a page of the file, the log being empty. */
static void overwrite(int64_t page, off_t from, size_t n)
{
    static unsigned char junk[4096];
    memset(junk, 0xa5, sizeof junk);
    int fd = open(tdb_config.path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, junk, n, (off_t)(page - 1) * 4096 + from), n);
    close(fd);
}

START_TEST(a_damaged_page_is_found)
{
    static const char *const roots[] = {
        "SELECT rootpage FROM sqlite_schema WHERE name = 'doc'",
        "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_doc_1'",
        "SELECT rootpage FROM sqlite_schema WHERE name = 'change'",
        "SELECT rootpage FROM sqlite_schema WHERE name = 'token'",
    };
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    int64_t page = tdb_ask(db, roots[_i]);
    sqlite3_close(db);
    overwrite(page, 0, 200);
    findings[0] = 0;
    enum db_result result = check();
    ck_assert_msg(result == DB_INVALID || result == DB_BROKEN, "%d", (int)result);
    ck_assert(findings[0] != 0 || tdb_error.text[0] != 0);
}
END_TEST

/* One key of the index is not what its row says: only SQLite's own check can tell. */
START_TEST(an_index_that_lies_is_found)
{
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema"
                " WHERE name = 'sqlite_autoindex_token_1') WHERE name = 'sqlite_autoindex_doc_1'; PRAGMA writable_schema=OFF");
    sqlite3_close(db);
    ck_assert_int_ne(check(), DB_OK);
    ck_assert(findings[0] != 0 || tdb_error.text[0] != 0);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_told_so)
{
    tdb_init();
    ck_assert_int_ne(check(), DB_OK);
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "hanji.db"));
    ck_assert_str_eq(findings, "");
    temp_file("hanji.db", "no database", 11);
    ck_assert_int_eq(check(), DB_REFUSED);
    ck_assert_str_eq(findings, "");
}
END_TEST

START_TEST(checking_does_not_write)
{
    size_t before_n, after_n;
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "UPDATE doc SET size = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(db);
    char *before = temp_read(tdb_config.path, &before_n);
    ck_assert_int_eq(check(), DB_INVALID);
    char *after = temp_read(tdb_config.path, &after_n);
    ck_assert_uint_eq(before_n, after_n);
    ck_assert_mem_eq(before, after, before_n);
    free(before);
    free(after);
}
END_TEST

/* The writer works on: what it holds is no damage. */
START_TEST(checking_beside_a_writer)
{
    fill();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "BEGIN IMMEDIATE; INSERT INTO doc (key, body) VALUES ('open', 'x')");
    ck_assert_int_eq(check(), DB_OK);
    tdb_sql(db, "COMMIT");
    ck_assert_int_eq(check(), DB_OK);
    sqlite3_close(db);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("check");
    TCase *t = run_case(s, "check");
    temp_use(t);
    tcase_add_test(t, a_new_store_is_sound);
    tcase_add_test(t, a_store_in_use_is_sound);
    tcase_add_test(t, sends_are_sound);
    tcase_add_loop_test(t, damage_is_named, 0, COUNT(damages));
    tcase_add_loop_test(t, quiet_damage_is_found, 0, COUNT(quiet));
    tcase_add_loop_test(t, oddities_are_noted, 0, COUNT(oddities));
    tcase_add_loop_test(t, what_only_looks_odd, 0, 9);
    tcase_add_test(t, all_findings_are_told);
    tcase_add_loop_test(t, a_damaged_page_is_found, 0, 4);
    tcase_add_test(t, an_index_that_lies_is_found);
    tcase_add_test(t, a_file_that_cannot_be_read_is_told_so);
    tcase_add_test(t, checking_does_not_write);
    tcase_add_test(t, checking_beside_a_writer);
    return run_suite(s);
}
