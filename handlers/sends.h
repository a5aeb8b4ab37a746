/* Sends over HTTP: messages for others, queued on lines, delivered by hanji-courier.
 *
 *   GET    /sends/                     the lines
 *   PUT    /sends/LINE                 makes one, or sets it anew
 *   DELETE /sends/LINE                 with all that is on it
 *   POST   /sends/LINE, /sends/A,B     queues a message on a line, or on several: all or none
 *   GET    /sends/LINE                 the line and its messages
 *   GET    /sends/LINE/ID              one, with its tries
 *   POST   /sends/LINE/ID/retry|skip, /sends/LINE/retry|pause|resume|replay
 *
 * Who may write /sends/LINE sends on it, who may read it sees what is on it. Lines are managed by
 * those who may write everything. */
#ifndef HANJI_HANDLERS_SENDS_H
#define HANJI_HANDLERS_SENDS_H

#include "handlers/access.h"
#include "handlers/routes.h"

enum { SENDS_LINES_MAX = 100 }; /* that one request sends on */

handler_fn sends_lines, sends_line, sends_line_verb, sends_message, sends_message_verb;

/* Whether the call may send on a line, or read it. */
enum access sends_judge(struct call *c, struct str name, bool write);

/* Private to the files of sends: what it consists of. Names are as in the path, not judged yet. */
enum verdict sends_post(struct call *c, struct str names);
enum verdict sends_messages(struct call *c, struct str name);
enum verdict sends_set(struct call *c, struct str name);
enum verdict sends_remove(struct call *c, struct str name);

/* A segment of the call's path, behind /sends/: 0 the line, 1 a message or a verb, 2 a verb. */
struct str sends_segment(const struct call *c, unsigned i);

/* The same; false: it may not, and was answered. */
bool sends_allowed(struct call *c, struct str name, bool write) __attribute__((warn_unused_result));

/* Likewise, for managing lines. */
bool sends_managed(struct call *c) __attribute__((warn_unused_result));

/* 404 for a line, 404 for a message. */
enum verdict sends_no_line(struct call *c, struct str name);
enum verdict sends_no_message(struct call *c);

#endif
