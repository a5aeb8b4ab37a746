/* db/conn and db.h: settings of every connection, named causes, who owns a new file. */
#include "db/conn.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/tdb.h"

START_TEST(settings_of_every_connection)
{
    static const int accesses[] = {DB_READ, DB_WRITE, DB_CREATE};
    for (size_t i = 0; i < COUNT(accesses); i++) {
        struct db_conn c;
        ck_assert_int_eq(db_conn_open(&c, tdb_config.path, (enum db_access)accesses[i], 123 << 10, &tdb_error), DB_OK);
        ck_assert_int_eq(tdb_ask(c.db, "PRAGMA wal_autocheckpoint"), 0);
        ck_assert_int_eq(tdb_ask(c.db, "PRAGMA synchronous"), 2);
        ck_assert_int_eq(tdb_ask(c.db, "PRAGMA mmap_size"), 0);
        ck_assert_int_eq(tdb_ask(c.db, "PRAGMA cache_size"), -123);
        ck_assert_int_eq(tdb_ask(c.db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
        db_conn_close(&c);
        db_conn_close(&c);
    }
}
END_TEST

/* SQLite's codes, with and without their extensions. */
static const struct {
    int code;
    enum db_result cause;
} causes[] = {
    {SQLITE_OK, DB_OK},
    {SQLITE_ROW, DB_OK},
    {SQLITE_DONE, DB_OK},
    {SQLITE_BUSY, DB_BUSY},
    {SQLITE_BUSY_SNAPSHOT, DB_BUSY},
    {SQLITE_BUSY_RECOVERY, DB_BUSY},
    {SQLITE_LOCKED, DB_BUSY},
    {SQLITE_FULL, DB_FULL},
    {SQLITE_NOMEM, DB_NO_MEMORY},
    {SQLITE_CONSTRAINT, DB_INVALID},
    {SQLITE_CONSTRAINT_CHECK, DB_INVALID},
    {SQLITE_CONSTRAINT_TRIGGER, DB_INVALID},
    {SQLITE_TOOBIG, DB_INVALID},
    {SQLITE_NOTADB, DB_REFUSED},
    {SQLITE_IOERR, DB_BROKEN},
    {SQLITE_IOERR_FSYNC, DB_BROKEN},
    {SQLITE_IOERR_WRITE, DB_BROKEN},
    {SQLITE_CORRUPT, DB_BROKEN},
    {SQLITE_CORRUPT_INDEX, DB_BROKEN},
    {SQLITE_READONLY, DB_BROKEN},
    {SQLITE_PERM, DB_BROKEN},
    {SQLITE_CANTOPEN, DB_BROKEN},
    {SQLITE_ERROR, DB_BROKEN},
    {SQLITE_MISUSE, DB_BROKEN},
};

START_TEST(a_code_has_a_cause)
{
    ck_assert_int_eq(db_cause(causes[_i].code), causes[_i].cause);
}
END_TEST

START_TEST(every_cause_has_words)
{
    for (int a = DB_OK; a <= DB_REFUSED; a++) {
        ck_assert_uint_gt(strlen(db_result_text((enum db_result)a)), 3);
        for (int b = DB_OK; b < a; b++)
            ck_assert_str_ne(db_result_text((enum db_result)a), db_result_text((enum db_result)b));
    }
}
END_TEST

START_TEST(the_version_is_that_of_the_library)
{
    ck_assert_str_eq(db_sqlite_version(), sqlite3_libversion());
    if (strcmp(sqlite3_libversion(), "3.40.1") == 0 || strcmp(sqlite3_libversion(), "3.46.1") == 0)
        ck_assert(db_sqlite_has_wal_race());
    if (sqlite3_libversion_number() >= 3051003)
        ck_assert(!db_sqlite_has_wal_race());
}
END_TEST

/* Everything that a session beside the server must have is said to the shell. */
START_TEST(settings_of_a_shell)
{
    static const char *const wanted[] = {"wal_autocheckpoint=0", "synchronous=FULL", ".timeout", "persist_wal"};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        bool said = false;
        for (const char *const *c = db_shell_commands; *c != NULL; c++)
            said |= strstr(*c, wanted[i]) != NULL;
        ck_assert_msg(said, "%s", wanted[i]);
    }
}
END_TEST

/* A file that root makes belongs to whoever owns its folder. */
START_TEST(a_new_file_belongs_to_the_owner_of_its_folder)
{
    struct db_conn c;
    struct stat st;
    uid_t owner = geteuid() == 0 ? 12345 : geteuid();
    ck_assert_int_eq(chown(temp_path(""), owner, getegid()), 0);
    tdb_open(&c);
    db_conn_close(&c);
    static const char *const names[] = {"hanji.db", "hanji.db-wal", "hanji.db-shm"};
    for (size_t i = 0; i < COUNT(names); i++) {
        ck_assert_int_eq(stat(temp_path(names[i]), &st), 0);
        ck_assert_uint_eq(st.st_uid, owner);
    }
}
END_TEST

START_TEST(a_file_that_is_there_keeps_its_owner_and_mode)
{
    struct db_conn c;
    struct stat before, after;
    tdb_open(&c);
    db_conn_close(&c);
    ck_assert_int_eq(chmod(temp_path("hanji.db"), 0600), 0);
    ck_assert_int_eq(stat(temp_path("hanji.db"), &before), 0);
    ck_assert_int_eq(chown(temp_path(""), geteuid() == 0 ? 12345 : geteuid(), getegid()), 0);
    tdb_open(&c);
    db_conn_close(&c);
    ck_assert_int_eq(stat(temp_path("hanji.db"), &after), 0);
    ck_assert_uint_eq(after.st_uid, before.st_uid);
    ck_assert_uint_eq(after.st_mode, before.st_mode);
}
END_TEST

START_TEST(a_statement_is_prepared_once)
{
    struct db_conn c;
    tdb_open(&c);
    sqlite3_stmt *s = db_conn_statement(&c, SLOT_SEQ, "SELECT 1");
    ck_assert_ptr_nonnull(s);
    ck_assert_ptr_eq(db_conn_statement(&c, SLOT_SEQ, "SELECT 1"), s);
    ck_assert_ptr_null(db_conn_statement(&c, SLOT_META, "SELECT nonsense FROM nowhere"));
    db_conn_close(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conn");
    TCase *t = run_case(s, "conn");
    temp_use(t);
    tcase_add_checked_fixture(t, tdb_make, NULL);
    tcase_add_test(t, settings_of_every_connection);
    tcase_add_test(t, a_statement_is_prepared_once);
    t = run_case(s, "file");
    temp_use(t);
    tcase_add_checked_fixture(t, tdb_init, NULL);
    tcase_add_test(t, a_new_file_belongs_to_the_owner_of_its_folder);
    tcase_add_test(t, a_file_that_is_there_keeps_its_owner_and_mode);
    t = run_case(s, "causes");
    tcase_add_loop_test(t, a_code_has_a_cause, 0, COUNT(causes));
    tcase_add_test(t, every_cause_has_words);
    tcase_add_test(t, the_version_is_that_of_the_library);
    tcase_add_test(t, settings_of_a_shell);
    return run_suite(s);
}
