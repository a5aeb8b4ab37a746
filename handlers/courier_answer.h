/* What a receiver's answer means: its status, and the codes of our inbox in its body. Foreign
 * bytes: anything may be in them. Pure functions, any thread. */
#ifndef HANJI_HANDLERS_COURIER_ANSWER_H
#define HANJI_HANDLERS_COURIER_ANSWER_H

#include "fcgi/buf.h"
#include "handlers/courier_plan.h"

/* Fills outcome, coded and expected of end from its status and the beginning of the body. Of an
 * object the members `code` (a string) and `expected` (a number), and `again` true of a message
 * that had come before; as they come first, and only when the body is whole JSON. */
void courier_answer(struct str body, struct courier_end *end);

/* Text for the log of tries, NUL-terminated: what is no UTF-8 or cannot be printed becomes a blank,
 * several of them one; cut between characters to fit room. */
void courier_printable(struct str text, char *out, size_t room);

#endif
