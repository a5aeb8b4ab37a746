/* What an operation is applied in: the open write transaction of a burst. Private to db/. */
#ifndef HANJI_DB_WRITE_H
#define HANJI_DB_WRITE_H

#include "db/conn.h"
#include "db/op.h"

enum { DB_BOOT_BYTES = 16 };

/* What the clocks say. */
struct db_clock {
    int64_t wall_s;   /* Unix time, as far as the machine knows */
    int64_t uptime_s; /* since the machine was started, asleep or not */
    unsigned char boot[DB_BOOT_BYTES]; /* which start that was */
};

struct db_write {
    struct db_conn *conn;
    uint64_t seq;  /* last sequence number given; an operation that changes a row takes the next */
    int64_t now_s; /* wall clock, Unix seconds, one for the burst */
    struct db_clock now; /* where an operation of the burst has an idempotency key */
    bool careful;  /* numbers are read back, not foreseen: somebody's triggers take some, too */
    int undone;    /* changes that were rolled back within the transaction */
    bool searched; /* the search index has had its step of this burst */
    int64_t shared_body; /* of the message that was sent last by this operation, 0: none */
    int64_t shared_size;
};

/* Applies one operation. DB_OK, or a cause of its own (DB_NONE, DB_PRECONDITION, DB_INVALID,
 * DB_EXISTS) that leaves the transaction as it was, or a cause that ends the whole burst. */
typedef enum db_result db_apply_fn(struct db_write *w, struct db_op *op);

db_apply_fn db_doc_put, db_doc_delete, db_doc_patch, db_token_new, db_token_revoke;
db_apply_fn db_user_new, db_user_password, db_user_grant, db_user_remove, db_user_renew;
db_apply_fn db_session_new, db_session_touch, db_session_end, db_session_end_all,
    db_session_end_user;
db_apply_fn db_app_schema_apply, db_secret_new;
db_apply_fn db_inbox_set, db_inbox_state, db_inbox_remove;
db_apply_fn db_search_add, db_search_remove, db_search_rebuild, db_search_sync;
db_apply_fn db_line_set, db_line_state, db_line_remove;
db_apply_fn db_send, db_send_retry, db_send_skip, db_send_replay;
db_apply_fn db_courier_lease, db_courier_marks;

/* Reads back the sequence number the triggers gave a document that was just put. */
enum db_result db_doc_read_seq(struct db_write *w, struct db_op *op);

/* Binds value i of the operation to parameter n. */
int db_write_bind(sqlite3_stmt *s, int n, const struct db_op *op, int i);

#endif
