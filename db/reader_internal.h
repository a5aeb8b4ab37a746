/* Private to db/: the families of tables read through this. */
#ifndef HANJI_DB_READER_INTERNAL_H
#define HANJI_DB_READER_INTERNAL_H

#include "db/change.h"
#include "db/conn.h"
#include "db/reader.h"
#include "db/session.h"
#include "db/token.h"

/* The token that was found last in the open snapshot: most requests of a round carry the same one.
 * Another snapshot forgets it, so a revoked token is not found again. */
struct db_token_kept {
    bool valid;
    unsigned char hash[DB_TOKEN_HASH_BYTES];
    struct db_token token; /* points into text */
    char text[512];
};

/* The same for the session that was found last. */
struct db_session_kept {
    bool valid;
    unsigned char hash[DB_SESSION_HASH_BYTES];
    struct db_session session; /* points into text */
    char text[512];
};

struct db_app_reading;

struct db_reader {
    struct db_conn conn;
    sqlite3_stmt *open_row; /* whose row the caller may still look at */
    bool begun;
    struct db_token_kept kept;
    struct db_session_kept kept_session;
    struct db_app_reading *app; /* made at the first run of an app */
    struct db_search_tools *search; /* made at the first search */
    bool bounds_kept; /* those of the feed in the open snapshot, for all that ask in a round */
    struct db_change_bounds bounds;
};

/* Frees what the runs of apps left; safe with NULL. */
void db_app_reading_free(struct db_app_reading *a);

/* Resets the statement whose row was lent, and lends that of s from now on (NULL: none). */
void db_reader_lend(struct db_reader *r, sqlite3_stmt *s);

#endif
