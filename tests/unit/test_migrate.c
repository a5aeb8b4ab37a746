/* db/migrate: new files, files of others, files of other programs, files that a crash left. */
#include "db/migrate.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/schema.h"
#include "tests/unit/tdb.h"

/* Opens the file as the writer does; what came of it. */
static enum db_result migrate(void)
{
    struct db_conn c;
    memset(&tdb_error, 0, sizeof tdb_error);
    enum db_result result = db_conn_open(&c, tdb_config.path, DB_CREATE, tdb_config.write_cache_bytes, &tdb_error);
    if (result == DB_OK) {
        result = db_migrate(&c, &tdb_error);
        db_conn_close(&c);
    }
    return result;
}

/* The file works: a document can be written and nothing is found wrong. */
static void works(void)
{
    struct db_conn c;
    struct db_op *op = tdb_put("k", "v");
    tdb_open(&c);
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    tdb_free(op);
    db_conn_close(&c);
    tdb_is_sound();
}

/* A file made by SQLite alone. */
static void foreign(const char *sql)
{
    sqlite3 *db = tdb_shell();
    tdb_sql(db, sql);
    sqlite3_close(db);
}

/* Refused, with a reason, and not one byte of the file changed. */
static void refused_and_untouched(enum db_result expected, const char *reason)
{
    size_t before_n, after_n;
    struct db_reader *r;
    char *before = temp_read(tdb_config.path, &before_n);
    enum db_result result = migrate();
    ck_assert_msg(result == expected, "%d: %s", (int)result, tdb_error.text);
    ck_assert_msg(strstr(tdb_error.text, reason) != NULL, "\"%s\" does not say \"%s\"", tdb_error.text, reason);
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), expected);
    ck_assert_ptr_null(r);
    char *after = temp_read(tdb_config.path, &after_n);
    ck_assert_uint_eq(before_n, after_n);
    ck_assert_mem_eq(before, after, before_n);
    free(before);
    free(after);
}

/* ---- new files ------------------------------------------------------------------------------- */

START_TEST(a_new_file)
{
    struct stat st;
    ck_assert_int_eq(migrate(), DB_OK);
    ck_assert_int_eq(tdb_ask_file("PRAGMA application_id"), DB_APPLICATION_ID);
    ck_assert_int_eq(tdb_ask_file("SELECT value FROM meta WHERE name = 'schema_version'"), (int64_t)schema_step_count);
    ck_assert_int_eq(tdb_ask_file("SELECT value FROM meta WHERE name = 'min_program'"), DB_PROGRAM);
    ck_assert_int_eq(tdb_ask_file("PRAGMA page_size"), 4096);
    ck_assert_int_eq(stat(tdb_config.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    works();
}
END_TEST

START_TEST(the_log_and_its_index_stay_and_have_the_mode_of_the_file)
{
    static const char *const names[] = {"hanji.db-wal", "hanji.db-shm"};
    struct stat st;
    ck_assert_int_eq(migrate(), DB_OK);
    for (size_t i = 0; i < COUNT(names); i++) {
        ck_assert_int_eq(stat(temp_path(names[i]), &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0640);
    }
}
END_TEST

START_TEST(the_mode_does_not_follow_a_loose_umask)
{
    struct stat st;
    umask(0);
    ck_assert_int_eq(migrate(), DB_OK);
    ck_assert_int_eq(stat(tdb_config.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
}
END_TEST

START_TEST(again_changes_nothing)
{
    works();
    ck_assert_int_eq(migrate(), DB_OK);
    ck_assert_int_eq(migrate(), DB_OK);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 1);
    tdb_is_sound();
}
END_TEST

/* ---- what a crash may leave ------------------------------------------------------------------ */

START_TEST(a_file_of_no_bytes)
{
    temp_file("hanji.db", "", 0);
    ck_assert_int_eq(migrate(), DB_OK);
    works();
}
END_TEST

START_TEST(a_file_that_has_only_its_mark)
{
    char sql[100];
    snprintf(sql, sizeof sql, "PRAGMA page_size=4096; PRAGMA application_id=%d", DB_APPLICATION_ID);
    foreign(sql);
    ck_assert_int_eq(migrate(), DB_OK);
    works();
}
END_TEST

START_TEST(a_file_in_wal_mode_without_a_schema)
{
    char sql[100];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA journal_mode=WAL", DB_APPLICATION_ID);
    foreign(sql);
    ck_assert_int_eq(migrate(), DB_OK);
    works();
}
END_TEST

/* The process ends in the middle of the migration: nothing of it was committed. */
START_TEST(a_migration_that_was_cut_off)
{
    char sql[100];
    sqlite3 *db = tdb_shell();
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA journal_mode=WAL", DB_APPLICATION_ID);
    tdb_sql(db, sql);
    tdb_sql(db, "BEGIN IMMEDIATE");
    tdb_sql(db, schema_steps[0].sql);
    sqlite3_close_v2(db); /* rolls back */
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM sqlite_schema"), 0);
    ck_assert_int_eq(migrate(), DB_OK);
    works();
}
END_TEST

START_TEST(the_log_is_gone)
{
    works();
    ck_assert_int_eq(unlink(temp_path("hanji.db-wal")), 0);
    ck_assert_int_eq(unlink(temp_path("hanji.db-shm")), 0);
    works();
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 1);
}
END_TEST

/* ---- files of others ------------------------------------------------------------------------- */

START_TEST(a_file_of_another_program)
{
    foreign("CREATE TABLE doc (key, seq, type, modified, size, body); INSERT INTO doc (key) VALUES ('theirs')");
    refused_and_untouched(DB_REFUSED, "another program");
}
END_TEST

static const int32_t their_ids[] = {1, 0x68616e6a, 0x47504b47, DB_APPLICATION_ID + 1, INT32_MAX, INT32_MIN, -1, -2};

START_TEST(a_file_with_the_mark_of_another_program)
{
    char sql[100];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; CREATE TABLE t (x)", their_ids[_i]);
    foreign(sql);
    refused_and_untouched(DB_REFUSED, "another program");
}
END_TEST

/* -1 is also what stands for "cannot be asked". */
START_TEST(a_file_that_looks_like_ours_with_another_mark)
{
    foreign("PRAGMA application_id=-1; CREATE TABLE meta (name, value);"
            " INSERT INTO meta VALUES ('min_program', 1), ('schema_version', 0)");
    refused_and_untouched(DB_REFUSED, "another program");
}
END_TEST

START_TEST(a_file_of_another_program_without_tables)
{
    foreign("PRAGMA user_version=1; VACUUM");
    refused_and_untouched(DB_REFUSED, "another program");
}
END_TEST

START_TEST(a_file_of_another_program_in_wal_mode)
{
    foreign("PRAGMA journal_mode=WAL; CREATE TABLE meta (name, value); INSERT INTO meta VALUES ('min_program', 0)");
    refused_and_untouched(DB_REFUSED, "another program");
}
END_TEST

static const struct {
    const char *text;
    size_t n;
} no_sqlite[] = {
    {"this is a text file\n", 20},
    {"SQLite format 3", 15},
    {"SQLite format 2\0", 16},
    {"PK\3\4", 4},
};

START_TEST(a_file_that_is_no_sqlite)
{
    temp_file("hanji.db", no_sqlite[_i].text, no_sqlite[_i].n);
    refused_and_untouched(DB_REFUSED, "hanji.db");
}
END_TEST

START_TEST(a_large_file_that_is_no_sqlite)
{
    static char text[100000];
    memset(text, 'x', sizeof text);
    temp_file("hanji.db", text, sizeof text);
    refused_and_untouched(DB_REFUSED, "hanji.db");
}
END_TEST

/* ---- programs of other ages ------------------------------------------------------------------ */

START_TEST(a_file_for_a_newer_program)
{
    ck_assert_int_eq(migrate(), DB_OK);
    foreign("UPDATE meta SET value = 2 WHERE name = 'min_program'; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE");
    refused_and_untouched(DB_REFUSED, "upgrade");
}
END_TEST

/* Steps only add, so the release before opens the file of the next one. */
START_TEST(a_file_with_later_steps)
{
    ck_assert_int_eq(migrate(), DB_OK);
    foreign("UPDATE meta SET value = 99 WHERE name = 'schema_version'; CREATE TABLE later (x)");
    ck_assert_int_eq(migrate(), DB_OK);
    ck_assert_int_eq(tdb_ask_file("SELECT value FROM meta WHERE name = 'schema_version'"), 99);
    works();
}
END_TEST

START_TEST(a_reader_does_not_upgrade)
{
    struct db_reader *r;
    ck_assert_int_eq(migrate(), DB_OK);
    foreign("UPDATE meta SET value = 0 WHERE name = 'schema_version'");
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_REFUSED);
    ck_assert_ptr_null(r);
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "older"));
}
END_TEST

/* A file of each step before the last one, with documents in it. */
START_TEST(a_file_of_an_older_program)
{
    char version[200];
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "PRAGMA journal_mode=WAL; PRAGMA application_id = 0x686e6a69");
    for (int i = 0; i < _i; i++)
        tdb_sql(db, schema_steps[i].sql);
    snprintf(version, sizeof version, "INSERT INTO meta (name, value) VALUES ('schema_version', %d);"
                                      "INSERT INTO doc (key, body) VALUES ('a', 'four'), ('b', 'x')", _i);
    tdb_sql(db, version);
    sqlite3_close(db);
    ck_assert_int_eq(migrate(), DB_OK);
    ck_assert_int_eq(tdb_ask_file("SELECT value FROM meta WHERE name = 'schema_version'"), (int64_t)schema_step_count);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 2);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM line, courier"), 0);
    works();
}
END_TEST

/* ---- places that cannot be opened ------------------------------------------------------------ */

START_TEST(a_folder_that_is_not_there)
{
    tdb_config.path = temp_path("absent/hanji.db");
    ck_assert_int_eq(migrate(), DB_BROKEN);
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "absent/hanji.db"));
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "No such file"));
}
END_TEST

START_TEST(a_path_that_is_a_folder)
{
    tdb_config.path = temp_path("");
    ck_assert_int_eq(migrate(), DB_BROKEN);
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "directory"));
}
END_TEST

START_TEST(a_reader_makes_no_file)
{
    struct db_reader *r;
    struct stat st;
    ck_assert_int_ne(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    ck_assert_ptr_null(r);
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "No such file"));
    ck_assert_int_ne(stat(tdb_config.path, &st), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("migrate");
    TCase *t = run_case(s, "migrate");
    temp_use(t);
    tcase_add_checked_fixture(t, tdb_init, NULL);
    tcase_add_test(t, a_new_file);
    tcase_add_test(t, the_log_and_its_index_stay_and_have_the_mode_of_the_file);
    tcase_add_test(t, the_mode_does_not_follow_a_loose_umask);
    tcase_add_test(t, again_changes_nothing);
    tcase_add_test(t, a_file_of_no_bytes);
    tcase_add_test(t, a_file_that_has_only_its_mark);
    tcase_add_test(t, a_file_in_wal_mode_without_a_schema);
    tcase_add_test(t, a_migration_that_was_cut_off);
    tcase_add_test(t, the_log_is_gone);
    tcase_add_test(t, a_file_of_another_program);
    tcase_add_loop_test(t, a_file_with_the_mark_of_another_program, 0, COUNT(their_ids));
    tcase_add_test(t, a_file_that_looks_like_ours_with_another_mark);
    tcase_add_test(t, a_file_of_another_program_without_tables);
    tcase_add_test(t, a_file_of_another_program_in_wal_mode);
    tcase_add_loop_test(t, a_file_that_is_no_sqlite, 0, COUNT(no_sqlite));
    tcase_add_test(t, a_large_file_that_is_no_sqlite);
    tcase_add_test(t, a_file_for_a_newer_program);
    tcase_add_test(t, a_file_with_later_steps);
    tcase_add_loop_test(t, a_file_of_an_older_program, 1, (int)schema_step_count);
    tcase_add_test(t, a_reader_does_not_upgrade);
    tcase_add_test(t, a_folder_that_is_not_there);
    tcase_add_test(t, a_path_that_is_a_folder);
    tcase_add_test(t, a_reader_makes_no_file);
    return run_suite(s);
}
