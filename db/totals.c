#include "db/totals.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct text {
    sqlite3_str *s;
    const char *table;
    const char *const *column;
    unsigned count;
};

/* For each column, with its name in the place of the format's %1$s, which SQLite does not have: up
 * to four times. */
static void each(const struct text *t, const char *format)
{
    for (unsigned i = 0; i < t->count; i++)
        sqlite3_str_appendf(t->s, format, t->column[i], t->column[i], t->column[i], t->column[i]);
}

static void total(const struct text *t)
{
    sqlite3_str_appendf(t->s,
                        "-- Totals of %s, kept by triggers: reading them costs the same however "
                        "many rows there are.\n"
                        "--     SELECT count",
                        t->table);
    each(t, ", sum_%s");
    sqlite3_str_appendf(t->s,
                        " FROM %s_total;\n"
                        "-- Replace rows with ON CONFLICT ... DO UPDATE, never with INSERT OR "
                        "REPLACE: that one deletes\n"
                        "-- without telling a trigger.\n"
                        "CREATE TABLE %s_total (\n"
                        "    one   INTEGER PRIMARY KEY CHECK (one = 1), -- there is one row\n"
                        "    count INTEGER NOT NULL",
                        t->table, t->table);
    each(t, ",\n    sum_%s NUMERIC NOT NULL");
    sqlite3_str_appendf(t->s, "\n);\nINSERT INTO %s_total SELECT 1, count(*)", t->table);
    each(t, ", coalesce(sum(%s), 0)");
    sqlite3_str_appendf(t->s, " FROM %s;\n\n", t->table);
}

static void row_trigger(const struct text *t, const char *what, const char *sign,
                        const char *row)
{
    sqlite3_str_appendf(t->s,
                        "CREATE TRIGGER %s_total_%s AFTER %s ON %s BEGIN\n"
                        "    UPDATE %s_total SET count = count %s 1",
                        t->table, what, what, t->table, t->table, sign);
    for (unsigned i = 0; i < t->count; i++)
        sqlite3_str_appendf(t->s, ",\n        sum_%s = sum_%s %s coalesce(%s.%s, 0)",
                            t->column[i], t->column[i], sign, row, t->column[i]);
    sqlite3_str_appendf(t->s, ";\nEND;\n");
}

static void update_trigger(const struct text *t)
{
    sqlite3_str_appendf(t->s, "CREATE TRIGGER %s_total_update AFTER update OF ", t->table);
    for (unsigned i = 0; i < t->count; i++)
        sqlite3_str_appendf(t->s, "%s%s", i > 0 ? ", " : "", t->column[i]);
    sqlite3_str_appendf(t->s, " ON %s BEGIN\n    UPDATE %s_total SET", t->table, t->table);
    for (unsigned i = 0; i < t->count; i++)
        sqlite3_str_appendf(t->s,
                            "%s\n        sum_%s = sum_%s - coalesce(OLD.%s, 0) + "
                            "coalesce(NEW.%s, 0)",
                            i > 0 ? "," : "", t->column[i], t->column[i], t->column[i],
                            t->column[i]);
    sqlite3_str_appendf(t->s, ";\nEND;\n");
}

char *db_totals_schema(const char *table, const char *const *column, unsigned count)
{
    struct text t = {sqlite3_str_new(NULL), table, column, count};
    total(&t);
    row_trigger(&t, "insert", "+", "NEW");
    row_trigger(&t, "delete", "-", "OLD");
    if (count > 0)
        update_trigger(&t);
    char *made = sqlite3_str_finish(t.s), *copy = made != NULL ? strdup(made) : NULL;
    sqlite3_free(made);
    return copy;
}
