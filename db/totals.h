/* Totals that cost the same however many rows there are: a row that triggers keep.
 *
 * The text of a file of schema/ that makes it, for people: nothing here runs it. */
#ifndef HANJI_DB_TOTALS_H
#define HANJI_DB_TOTALS_H

#include "db/db.h"

enum { DB_TOTALS_COLUMNS_MAX = 16 };

/* Memory from malloc: TABLE_total with the number of rows and the sum of each column, and its
 * triggers. NULL: memory is short. Names are what SQL takes without quotes. */
char *db_totals_schema(const char *table, const char *const *column, unsigned count)
    __attribute__((warn_unused_result));

#endif
