/* Handing a message of an inbox to an app: EVENT.inbox.sql, in the transaction that stores it. */
#ifndef HANJI_HANDLERS_INBOX_APP_H
#define HANJI_HANDLERS_INBOX_APP_H

#include "db/inbox.h"
#include "handlers/app_param.h"

/* The members of a message that is a JSON object, of others none. They point into body and in,
 * which app_input_free frees. APP_FIELDS_BAD: a name is there twice, or a string is broken. Any
 * thread. */
enum app_fields_result inbox_app_fields(struct app_input *in, struct str type, struct str body)
    __attribute__((warn_unused_result));

/* The script that a message is for; it holds its app. */
struct inbox_app {
    const struct app *app;
    const struct db_script *script;
    const struct app_input *input; /* looked at by inbox_app_take alone */
};

/* On the loop. NULL: it was answered, with 503: the app or its script is not there now. */
struct inbox_app *inbox_app_find(struct call *c, const char *app, const char *event,
                                 const struct app_input *input);
void inbox_app_free(struct inbox_app *a); /* safe with NULL */

/* The operation that stores a message and runs the script (a NULL: none). NULL: memory is
 * short. */
struct db_op *inbox_app_take(const struct db_inbox_message *m, const struct inbox_app *a,
                             const char *request_id) __attribute__((warn_unused_result));

/* Answers for a script that refused the message, by what its rows say. */
void inbox_app_stopped(struct call *c, const struct db_op *script);

/* Answers for a script that failed, and tells the app's owner. */
void inbox_app_failed(struct call *c, const struct inbox_app *a, const struct db_op *script);

#endif
