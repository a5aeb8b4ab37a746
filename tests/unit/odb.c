#include "tests/unit/odb.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct db_conn odb_conn;
struct db_reader *odb_reader;
uint64_t odb_fence;
static unsigned sent;

void odb_open(void)
{
    sent = 0;
    tdb_make();
    tdb_open(&odb_conn);
    ck_assert_int_eq(db_reader_open(&tdb_config, &odb_reader, &tdb_error), DB_OK);
    odb_line("orders", true);
    odb_line("news", false);
    ck_assert_int_eq(odb_apply(db_courier_lease_op(1), &odb_fence), DB_OK);
}

void odb_close(void)
{
    tdb_is_sound();
    db_reader_close(odb_reader);
    db_conn_close(&odb_conn);
}

enum db_result odb_apply(struct db_op *op, uint64_t *seq)
{
    ck_assert_ptr_nonnull(op);
    (void)tdb_burst(&odb_conn, op);
    enum db_result result = op->result;
    if (seq != NULL)
        *seq = op->seq;
    db_op_free(op);
    return result;
}

void odb_line(const char *name, bool fifo)
{
    struct db_line_set set = {.name = name, .url = "https://example.org/in", .fifo = fifo};
    ck_assert_int_eq(odb_apply(db_line_set_op(&set), NULL), DB_OK);
}

struct db_op *odb_send_op(const char *line, bool share)
{
    unsigned char hash[DB_MESSAGE_HASH_BYTES] = {0};
    char id[64];
    unsigned number = ++sent;
    memcpy(hash, &number, sizeof number);
    snprintf(id, sizeof id, "msg_%026u", number);
    return db_send_op(&(struct db_send){.line = line, .id = id, .type = "text/plain", .body = "hello", .bytes = 5,
                                        .hash = hash, .share = share});
}

uint64_t odb_send(const char *line)
{
    uint64_t seq = 0;
    ck_assert_int_eq(odb_apply(odb_send_op(line, false), &seq), DB_OK);
    return seq;
}

__attribute__((format(printf, 1, 2))) static int64_t ask(const char *format, ...)
{
    char sql[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    return tdb_ask(odb_conn.db, sql);
}

int64_t odb_number(const char *line, uint64_t seq)
{
    return db_outbox_number(ask("SELECT id FROM line WHERE name = '%s'", line), seq);
}

const char *odb_id(const char *line, uint64_t seq)
{
    static char id[40];
    snprintf(id, sizeof id, "msg_%026lld",
             (long long)ask("SELECT coalesce((SELECT CAST(substr(id, 5) AS INTEGER) FROM outbox WHERE n = %lld), 0)",
                            (long long)odb_number(line, seq)));
    return id;
}

struct db_mark odb_try(const char *line, uint64_t seq, enum db_send_state state)
{
    int64_t n = odb_number(line, seq), now_ms = (int64_t)time(NULL) * 1000;
    return (struct db_mark){.line = n >> DB_SEQ_BITS, .message = n, .attempted = true, .counted = true, .at_ms = now_ms,
                            .took_ms = 3, .status = 500, .outcome = "error", .detail = "x", .state = state,
                            .due_ms = now_ms + 3600000};
}

enum db_result odb_report(const struct db_mark *marks, unsigned count)
{
    return odb_apply(db_courier_marks_op(odb_fence, marks, count), NULL);
}

void odb_mark(const char *line, uint64_t seq, enum db_send_state state)
{
    struct db_mark m = odb_try(line, seq, state);
    ck_assert_int_eq(odb_report(&m, 1), DB_OK);
}

char odb_state(const char *line, uint64_t seq)
{
    return (char)ask("SELECT unicode(state) FROM outbox WHERE n = %lld", (long long)odb_number(line, seq));
}

int64_t odb_due(const char *line)
{
    return ask("SELECT coalesce(due, -1) FROM line WHERE name = '%s'", line);
}

void odb_is_settled(void)
{
    ck_assert_int_eq(ask("SELECT count(*) FROM line AS l WHERE"
                         " waiting <> (SELECT count(*) FROM outbox WHERE line = l.id AND state = 'waiting') OR"
                         " parked <> (SELECT count(*) FROM outbox WHERE line = l.id AND state IN ('parked', 'unopenable'))"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM line AS l WHERE l.due IS NOT (SELECT max(l.wait_until, o.due) FROM outbox AS o"
                         " WHERE o.line = l.id AND o.state = 'waiting' AND l.state = 'open' AND (l.ord = 'any' OR NOT EXISTS"
                         " (SELECT 1 FROM outbox AS p WHERE p.line = l.id AND p.n < o.n"
                         " AND p.state NOT IN ('delivered', 'skipped')))"
                         " ORDER BY o.due LIMIT 1)"), 0);
}
