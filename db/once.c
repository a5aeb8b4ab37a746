#include "db/once.h"

#include "db/outbox.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PART_TEXT_MAX = 32 + 3 + 30 }; /* "[18446744073709551615,1]," */

/* 1 January 2026, before which no record was made: a clock that says so has not been set yet. */
#define FIRST_S INT64_C(1767225600)

static bool same_boot(const struct db_clock *a, const struct db_clock *b)
{
    return memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

bool db_once_expired(const struct db_clock *made, const struct db_clock *now)
{
    if (same_boot(made, now))
        return now->uptime_s - made->uptime_s >= DB_ONCE_SECONDS;
    bool credible = made->wall_s >= FIRST_S && made->wall_s <= now->wall_s;
    return credible ? now->wall_s - made->wall_s >= DB_ONCE_SECONDS
                    : now->uptime_s >= DB_ONCE_SECONDS;
}

/* Which start of the machine this is. Where that cannot be told, each start of the program is one
 * of its own. */
static void read_boot(unsigned char boot[DB_BOOT_BYTES])
{
    char text[64] = "";
    size_t n = 0, digits = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < got && n < DB_BOOT_BYTES; i++) {
        char c = text[i];
        int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (v < 0)
            continue;
        boot[n] = (unsigned char)(digits % 2 == 0 ? v << 4 : boot[n] | v);
        n += digits++ % 2;
    }
    if (n < DB_BOOT_BYTES)
        sqlite3_randomness(DB_BOOT_BYTES, boot);
}

struct db_clock db_clock_now(void)
{
    static unsigned char boot[DB_BOOT_BYTES]; /* of the writer's thread alone */
    static bool read;
    struct timespec wall, up;
    struct db_clock now;
    if (!read)
        read_boot(boot);
    read = true;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_BOOTTIME, &up);
    now.wall_s = wall.tv_sec;
    now.uptime_s = up.tv_sec;
    memcpy(now.boot, boot, sizeof boot);
    return now;
}

/* The parts of a batch as they came out, in the form that the record has. NULL: memory is short. */
static char *write_parts(const struct db_op *op)
{
    size_t room = 3 + (size_t)op->part_count * PART_TEXT_MAX;
    char *text = malloc(room), *p = text;
    if (text == NULL)
        return NULL;
    *p++ = '[';
    for (const struct db_op *part = op->parts; part != NULL; part = part->next) {
        const struct db_value *id = &part->values[DB_SEND_VALUE_ID];
        p += strlen(sqlite3_snprintf(PART_TEXT_MAX, p, "%s[%llu,%d", part == op->parts ? "" : ",",
                                     (unsigned long long)part->seq, part->created));
        if (part->kind == DB_OP_SEND)
            p += strlen(sqlite3_snprintf(PART_TEXT_MAX, p, ",\"%.*s\"", (int)id->n,
                                         (const char *)id->p));
        *p++ = ']';
    }
    memcpy(p, "]", 2);
    return text;
}

/* The id of a message that a part sent, which is its answer; what is behind it, NULL when it is
 * another form, or memory is short. */
static const char *read_id(struct db_op *part, const char *p)
{
    if (strncmp(p, ",\"", 2) != 0 || strlen(p) < DB_MESSAGE_ID_LEN + 3 ||
        p[2 + DB_MESSAGE_ID_LEN] != '"')
        return NULL;
    part->answer = malloc(DB_MESSAGE_ID_LEN);
    if (part->answer == NULL)
        return NULL;
    memcpy(part->answer, p + 2, DB_MESSAGE_ID_LEN);
    part->answer_bytes = DB_MESSAGE_ID_LEN;
    return p + DB_MESSAGE_ID_LEN + 3;
}

/* Fills the parts from that form. False when it is another one. */
static bool read_parts(struct db_op *op, const char *text)
{
    const char *p = text;
    if (p == NULL || *p++ != '[')
        return false;
    for (struct db_op *part = op->parts; part != NULL; part = part->next) {
        char *end;
        if (*p++ != '[')
            return false;
        part->seq = strtoull(p, &end, 10);
        if (end == p || *end != ',' || (end[1] != '0' && end[1] != '1'))
            return false;
        part->created = end[1] == '1';
        part->result = DB_OK;
        p = part->kind == DB_OP_SEND ? read_id(part, end + 2) : end + 2;
        if (p == NULL || *p++ != ']')
            return false;
        if (part->next != NULL && *p++ != ',')
            return false;
    }
    return p[0] == ']' && p[1] == 0;
}

/* Answers with the key that was made for it the first time, or with what an app's script returned
 * then. */
static enum db_result take_answer(struct db_op *op, sqlite3_stmt *s)
{
    int column = op->kind == DB_OP_APP ? 7 : 2;
    const void *answer = sqlite3_column_blob(s, column);
    size_t n = (size_t)sqlite3_column_bytes(s, column);
    if (n == 0)
        return DB_OK;
    op->answer = answer != NULL ? malloc(n) : NULL;
    if (op->answer == NULL)
        return DB_NO_MEMORY;
    memcpy(op->answer, answer, n);
    op->answer_bytes = n;
    return DB_OK;
}

/* The record of s, which SLOT_ONCE_FIND found. */
static enum db_result take_record(struct db_write *w, struct db_op *op, sqlite3_stmt *s)
{
    struct db_clock made = {.wall_s = sqlite3_column_int64(s, 4),
                            .uptime_s = sqlite3_column_int64(s, 6)};
    if (sqlite3_column_bytes(s, 5) == DB_BOOT_BYTES)
        memcpy(made.boot, sqlite3_column_blob(s, 5), DB_BOOT_BYTES);
    if (db_once_expired(&made, &w->now))
        return DB_NONE;
    const void *request = sqlite3_column_blob(s, 0);
    if (sqlite3_column_bytes(s, 0) != DB_ONCE_HASH_BYTES ||
        memcmp(request, op->once->request, DB_ONCE_HASH_BYTES) != 0)
        return DB_REUSED;
    if (op->kind == DB_OP_BATCH && !read_parts(op, (const char *)sqlite3_column_text(s, 3)))
        return DB_REUSED;
    op->seq = (uint64_t)sqlite3_column_int64(s, 1);
    op->created = op->kind == DB_OP_PUT;
    op->replayed = true;
    return take_answer(op, s);
}

enum db_result db_once_find(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_ONCE_FIND,
                                        "SELECT request, seq, key, parts, created, boot, uptime,"
                                        " rows FROM idempotency WHERE scope = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_blob(s, 1, op->once->scope, DB_ONCE_HASH_BYTES, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    enum db_result result = rc == SQLITE_ROW ? take_record(w, op, s) : DB_NONE;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? result : db_cause(rc);
}

static enum db_result remove_until(struct db_conn *c, int64_t last)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_ONCE_OLDEST,
                                        "DELETE FROM idempotency WHERE id <= ?1");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, last);
    return db_cause(db_conn_run(s));
}

enum db_result db_once_note(struct db_write *w, const struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_ONCE_NOTE,
        "INSERT OR REPLACE INTO idempotency (scope, request, status, seq, key, parts, created,"
        " boot, uptime, rows) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    char *parts = op->kind == DB_OP_BATCH ? write_parts(op) : NULL;
    if (op->kind == DB_OP_BATCH && parts == NULL)
        return DB_NO_MEMORY;
    sqlite3_bind_blob(s, 1, op->once->scope, DB_ONCE_HASH_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(s, 2, op->once->request, DB_ONCE_HASH_BYTES, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, op->once->status);
    sqlite3_bind_int64(s, 4, (int64_t)op->seq);
    if (op->kind == DB_OP_PUT || op->kind == DB_OP_SEND) /* the key, or the message's id */
        db_write_bind(s, 5, op, op->kind == DB_OP_SEND ? DB_SEND_VALUE_ID : 0);
    sqlite3_bind_text(s, 6, parts, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 7, w->now.wall_s);
    sqlite3_bind_blob(s, 8, w->now.boot, DB_BOOT_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(s, 9, w->now.uptime_s);
    if (op->kind == DB_OP_APP)
        sqlite3_bind_blob64(s, 10, op->answer, op->answer_bytes, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    free(parts);
    int64_t id = sqlite3_last_insert_rowid(w->conn->db);
    return result == DB_OK ? remove_until(w->conn, id - DB_ONCE_ROWS_MAX) : result;
}

/* ---- when it is quiet ------------------------------------------------------------------------ */

/* The wall clock was set: what it should have said when the records of this start were made follows
 * from the other clock, and counts once this start is over. */
static enum db_result correct(struct db_conn *c, const struct db_clock *now)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_ONCE_CORRECT,
                                        "UPDATE idempotency SET created = ?1 + uptime"
                                        " WHERE boot = ?2 AND abs(created - uptime - ?1) > ?3");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, now->wall_s - now->uptime_s);
    sqlite3_bind_blob(s, 2, now->boot, DB_BOOT_BYTES, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, DB_ONCE_JUMP_SECONDS);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* How the newest record of this start differs: 0 when no clock was set. */
static enum db_result jumped(struct db_conn *c, const struct db_clock *now, bool *yes)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_ONCE_NEWEST,
                                        "SELECT boot, created - uptime FROM idempotency"
                                        " ORDER BY id DESC LIMIT 1");
    *yes = false;
    if (s == NULL)
        return db_conn_failed(c);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW && sqlite3_column_bytes(s, 0) == DB_BOOT_BYTES &&
        memcmp(sqlite3_column_blob(s, 0), now->boot, DB_BOOT_BYTES) == 0) {
        int64_t by = sqlite3_column_int64(s, 1) - (now->wall_s - now->uptime_s);
        *yes = by > DB_ONCE_JUMP_SECONDS || by < -DB_ONCE_JUMP_SECONDS;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

/* Sets *last to the last of the oldest rows that have all expired, 0 when the oldest has not. */
static enum db_result find_expired(struct db_conn *c, const struct db_clock *now, unsigned most,
                                   int64_t *last)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_ONCE_OLD,
                                        "SELECT id, created, boot, uptime FROM idempotency"
                                        " ORDER BY id LIMIT ?1");
    int rc;
    *last = 0;
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, most);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct db_clock made = {.wall_s = sqlite3_column_int64(s, 1),
                                .uptime_s = sqlite3_column_int64(s, 3)};
        if (sqlite3_column_bytes(s, 2) == DB_BOOT_BYTES)
            memcpy(made.boot, sqlite3_column_blob(s, 2), DB_BOOT_BYTES);
        if (!db_once_expired(&made, now))
            break;
        *last = sqlite3_column_int64(s, 0);
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_once_prune(struct db_conn *c, const struct db_clock *now, unsigned most,
                             bool *more)
{
    bool set = false;
    int64_t last = 0;
    enum db_result result = db_cause(db_conn_do(c, SLOT_BEGIN_WRITE, "BEGIN IMMEDIATE"));
    *more = false;
    if (result != DB_OK)
        return result;
    int before = sqlite3_total_changes(c->db);
    result = jumped(c, now, &set);
    if (result == DB_OK && set)
        result = correct(c, now);
    if (result == DB_OK)
        result = find_expired(c, now, most, &last);
    if (result == DB_OK && last != 0)
        result = remove_until(c, last);
    int changes = sqlite3_total_changes(c->db) - before;
    *more = result == DB_OK && last != 0 && (unsigned)changes >= most;
    if (result == DB_OK && changes > 0)
        result = db_cause(db_conn_do(c, SLOT_COMMIT, "COMMIT"));
    if (!sqlite3_get_autocommit(c->db))
        db_conn_do(c, SLOT_ROLLBACK, "ROLLBACK");
    return sqlite3_get_autocommit(c->db) ? result : DB_BROKEN;
}
