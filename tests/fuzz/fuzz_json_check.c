/* handlers/json_check agrees with SQLite's json_valid (SQLite stops at a NUL, does not look at the encoding and goes
 * deeper), and does not mind how the bytes are cut. The first byte says where. */
#include <sqlite3.h>

#include "fcgi/path.h"
#include "handlers/json_check.h"
#include "tests/fuzz/must.h"

static bool sqlite_says(const uint8_t *p, size_t n)
{
    static sqlite3 *db;
    static sqlite3_stmt *s;
    if (db == NULL)
        MUST(sqlite3_open(":memory:", &db) == SQLITE_OK &&
             sqlite3_prepare_v2(db, "SELECT json_valid(?1)", -1, &s, NULL) == SQLITE_OK);
    sqlite3_bind_text(s, 1, (const char *)p, (int)n, SQLITE_STATIC);
    MUST(sqlite3_step(s) == SQLITE_ROW);
    bool yes = sqlite3_column_int(s, 0) == 1;
    sqlite3_reset(s);
    return yes && memchr(p, 0, n) == NULL && utf8_ok((const char *)p, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_check c;
    uint64_t wrong = 0;
    if (size < 2)
        return 0;
    size_t cut = data[0] % size;
    const uint8_t *p = data + 1;
    size_t n = size - 1;
    bool ok = json_check_all(p, n, &wrong);
    MUST(wrong <= n && (wrong == n || !ok));
    MUST(!ok || sqlite_says(p, n));
    if (!ok && n < JSON_DEPTH_MAX)
        MUST(!sqlite_says(p, n));
    json_check_start(&c);
    bool first = json_check_feed(&c, p, cut < n ? cut : n);
    bool second = cut >= n || json_check_feed(&c, p + cut, n - cut);
    MUST((first && second && json_check_end(&c)) == ok);
    return 0;
}
