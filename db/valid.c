#include "db/valid.h"

#include <string.h>

#include "db/doc.h"

bool db_valid_text(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        unsigned c = p[i++];
        size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0x80 ? 1 : 0;
        if (c == 0 || (c >= 0x80 && c < 0xc2) || c > 0xf4 || n - i < more)
            return false;
        if ((c == 0xe0 && p[i] < 0xa0) || (c == 0xed && p[i] > 0x9f) ||
            (c == 0xf0 && p[i] < 0x90) || (c == 0xf4 && p[i] > 0x8f))
            return false;
        for (; more > 0; more--)
            if ((p[i++] & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static bool segment_ok(const unsigned char *p, size_t n)
{
    return n > 0 && !(p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.')));
}

bool db_valid_key(const unsigned char *p, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f || p[i] == '\\')
            return false;
        if (p[i] != '/')
            continue;
        if (!segment_ok(p + start, i - start))
            return false;
        start = i + 1;
    }
    return n <= DB_KEY_MAX && segment_ok(p + start, n - start) && db_valid_text(p, n);
}

/* SQLite reads up to a NUL, and JSON has none. */
enum db_result db_valid_json(struct db_conn *c, const char *p, size_t n, bool *yes)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_JSON_VALID, "SELECT json_valid(?1)");
    *yes = false;
    if (s == NULL)
        return db_conn_failed(c);
    if (n == 0 || memchr(p, 0, n) != NULL)
        return DB_OK;
    sqlite3_bind_text64(s, 1, p, n, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    *yes = rc == SQLITE_ROW && sqlite3_column_int(s, 0) == 1;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return db_cause(rc);
}
