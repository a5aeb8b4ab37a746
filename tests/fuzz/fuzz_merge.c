/* db/merge: what comes of two JSON texts is JSON, and the same patch again changes nothing more. The first byte says where
 * one ends and the other begins. */
#include <sqlite3.h>

#include "db/merge.h"
#include "tests/fuzz/must.h"

static struct db_conn conn;

static bool valid(const unsigned char *p, size_t n)
{
    static sqlite3_stmt *s;
    if (s == NULL)
        MUST(sqlite3_prepare_v2(conn.db, "SELECT json_valid(?1)", -1, &s, NULL) == SQLITE_OK);
    sqlite3_bind_text(s, 1, (const char *)p, (int)n, SQLITE_STATIC);
    MUST(sqlite3_step(s) == SQLITE_ROW);
    bool yes = sqlite3_column_int(s, 0) == 1;
    sqlite3_reset(s);
    return yes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (conn.db == NULL)
        MUST(sqlite3_open(":memory:", &conn.db) == SQLITE_OK);
    if (size < 2)
        return 0;
    size_t cut = 1 + data[0] % (size - 1);
    struct db_merge m = {.target = (const char *)data + 1, .target_len = cut - 1, .patch = (const char *)data + cut,
                         .patch_len = size - cut};
    enum db_result result = db_merge(&conn, &m);
    MUST((result == DB_OK) == (m.out != NULL));
    if (result != DB_OK)
        return 0;
    MUST(valid(m.out, m.out_len));
    struct db_merge again = m;
    again.target = (const char *)m.out;
    again.target_len = m.out_len;
    MUST(db_merge(&conn, &again) == DB_OK);
    MUST(again.out_len == m.out_len && memcmp(again.out, m.out, m.out_len) == 0);
    free(m.out);
    free(again.out);
    return 0;
}
