/* A store in the test's folder (tdb.h) with a fifo line `orders`, another `news`, and a courier's fence. */
#ifndef HANJI_TESTS_UNIT_ODB_H
#define HANJI_TESTS_UNIT_ODB_H

#include "db/courier.h"
#include "db/outbox.h"
#include "tests/unit/tdb.h"

extern struct db_conn odb_conn;
extern struct db_reader *odb_reader;
extern uint64_t odb_fence;

/* A checked fixture. odb_close looks whether all that must hold does. */
void odb_open(void);
void odb_close(void);

/* One operation in a burst of its own: its result, its seq (NULL: not wanted); freed. */
enum db_result odb_apply(struct db_op *op, uint64_t *seq);

/* A line without keys, that must be taken. */
void odb_line(const char *name, bool fifo);

/* A message of 5 bytes, with an id of its own; share: its body is that of the part before. */
struct db_op *odb_send_op(const char *line, bool share);
uint64_t odb_send(const char *line);

/* outbox.n and id (static) of a number on a line. */
int64_t odb_number(const char *line, uint64_t seq);
const char *odb_id(const char *line, uint64_t seq);

/* A try of a message that ended so, due again in an hour; to be changed and reported. */
struct db_mark odb_try(const char *line, uint64_t seq, enum db_send_state state);
enum db_result odb_report(const struct db_mark *marks, unsigned count);

/* The same at once, which must go well. */
void odb_mark(const char *line, uint64_t seq, enum db_send_state state);

/* The state of a message as its first letter. */
char odb_state(const char *line, uint64_t seq);

/* line.due; -1: nothing. */
int64_t odb_due(const char *line);

/* Fails the test when counts or due times of lines are not what their messages say. */
void odb_is_settled(void);

#endif
