/* The migrations, db/schema/NNN-name.sql, put into the program by the build in order of name. */
#ifndef HANJI_DB_SCHEMA_H
#define HANJI_DB_SCHEMA_H

#include <stddef.h>

struct schema_step {
    const char *name; /* "001-documents.sql" */
    const char *sql;
};

extern const struct schema_step schema_steps[];
extern const size_t schema_step_count;

#endif
