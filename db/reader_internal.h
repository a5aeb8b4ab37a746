/* Private to db/: the families of tables read through this. */
#ifndef HANJI_DB_READER_INTERNAL_H
#define HANJI_DB_READER_INTERNAL_H

#include "db/conn.h"
#include "db/reader.h"

struct db_reader {
    struct db_conn conn;
    sqlite3_stmt *open_row; /* whose row the caller may still look at */
    bool begun;
};

/* Resets the statement whose row was lent, and lends that of s from now on (NULL: none). */
void db_reader_lend(struct db_reader *r, sqlite3_stmt *s);

#endif
