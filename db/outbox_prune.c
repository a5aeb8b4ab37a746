/* Deleting messages that are over, when it is quiet. The writer's thread. */
#include "db/outbox.h"

/* A message of the oldest that ended, in any line: lines are few, and each has its own in order. */
#define ENDED(state)                                                                               \
    "(SELECT o.n FROM outbox AS o INDEXED BY outbox_state WHERE o.line = l.id AND o.state = '"     \
    state "' ORDER BY o.n LIMIT 1)"

static enum db_result remove_gone(struct db_conn *c, unsigned most, int *removed)
{
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_OUTBOX_GONE,
        "DELETE FROM outbox WHERE n IN (SELECT o.n FROM outbox_gone AS g JOIN outbox AS o"
        " ON o.n BETWEEN g.line * 1099511627776 AND g.line * 1099511627776 + 1099511627775"
        " LIMIT ?1)");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, most);
    enum db_result result = db_cause(db_conn_run(s));
    *removed = sqlite3_changes(c->db);
    return result;
}

static enum db_result forget_gone(struct db_conn *c)
{
    return db_cause(db_conn_do(c, SLOT_OUTBOX_GONE_END,
                               "DELETE FROM outbox_gone WHERE NOT EXISTS (SELECT 1 FROM outbox AS o"
                               " WHERE o.n BETWEEN outbox_gone.line * 1099511627776"
                               " AND outbox_gone.line * 1099511627776 + 1099511627775)"));
}

/* Of what is over the oldest of each line, in each of the two states. */
#define OLDEST                                                                                     \
    "(SELECT l.id AS line, 'delivered' AS state, o.ended FROM line AS l, outbox AS o WHERE o.n = " \
    ENDED("delivered") " UNION ALL SELECT l.id, 'skipped', o.ended FROM line AS l, outbox AS o"    \
    " WHERE o.n = " ENDED("skipped") ")"

/* Deletes from the line whose oldest is the oldest of all, among its first `most`, those that ended
 * before the time. *oldest_s: of all, before that. */
static enum db_result remove_old(struct db_conn *c, int64_t before_s, unsigned most, int *removed,
                                 int64_t *oldest_s)
{
    sqlite3_stmt *oldest = db_conn_statement(c, SLOT_OUTBOX_OLD,
                                             "SELECT line, state, ended FROM " OLDEST
                                             " ORDER BY ended LIMIT 1");
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_OUTBOX_DELETE,
        "DELETE FROM outbox WHERE n IN (SELECT n FROM (SELECT o.n, o.ended FROM outbox AS o"
        " INDEXED BY outbox_state WHERE o.line = ?1 AND o.state = ?2 ORDER BY o.n LIMIT ?3)"
        " WHERE ended < ?4)");
    if (s == NULL || oldest == NULL)
        return db_conn_failed(c);
    int rc = sqlite3_step(oldest);
    *oldest_s = rc == SQLITE_ROW ? sqlite3_column_int64(oldest, 2) : 0;
    bool old = rc == SQLITE_ROW && *oldest_s < before_s;
    enum db_result result = db_cause(rc);
    if (result == DB_OK && old) {
        sqlite3_bind_value(s, 1, sqlite3_column_value(oldest, 0));
        sqlite3_bind_value(s, 2, sqlite3_column_value(oldest, 1));
        sqlite3_bind_int64(s, 3, most);
        sqlite3_bind_int64(s, 4, before_s);
    }
    sqlite3_reset(oldest);
    if (result == DB_OK && old)
        result = db_cause(db_conn_run(s));
    *removed = result == DB_OK && old ? sqlite3_changes(c->db) : 0;
    return result;
}

enum db_result db_outbox_prune(struct db_conn *c, int64_t before_s, unsigned most, bool *more,
                               int64_t *oldest_s)
{
    int gone = 0, old = 0;
    enum db_result result = db_cause(db_conn_do(c, SLOT_BEGIN_WRITE, "BEGIN IMMEDIATE"));
    *more = false;
    *oldest_s = 0;
    if (result != DB_OK)
        return result;
    int before = sqlite3_total_changes(c->db);
    result = remove_gone(c, most, &gone);
    if (result == DB_OK && gone == 0)
        result = forget_gone(c);
    if (result == DB_OK && gone == 0)
        result = remove_old(c, before_s, most, &old, oldest_s);
    *more = result == DB_OK && gone + old > 0;
    if (result == DB_OK && sqlite3_total_changes(c->db) > before)
        result = db_cause(db_conn_do(c, SLOT_COMMIT, "COMMIT"));
    if (!sqlite3_get_autocommit(c->db))
        db_conn_do(c, SLOT_ROLLBACK, "ROLLBACK");
    return sqlite3_get_autocommit(c->db) ? result : DB_BROKEN;
}
