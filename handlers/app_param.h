/* The parameters of an app's SQL: from the path, the body, the query and the server, in this order.
 *
 * Only what the script names is taken. Names that begin with '_' and those that a `-- set` gives
 * are never the client's. A name that is given twice in one place is refused, but for NAME[], of
 * which all become an array of JSON. */
#ifndef HANJI_HANDLERS_APP_PARAM_H
#define HANJI_HANDLERS_APP_PARAM_H

#include "handlers/app_visit.h"

/* What a loop's thread needs to run apps, made when it first does. */
struct app_desk {
    struct buf input;  /* what a visit on the loop points to */
    struct buf arrays;
    struct buf head, spare, pieces, text;
    struct app_slow {
        uint64_t script, until_ms; /* it was too slow for the loop a moment ago */
    } slow[16];
};

struct app_desk *app_desk(struct session *s); /* NULL: memory is short */
void app_desk_free(struct app_desk *d); /* safe with NULL */

/* Takes the body of the call, decoded. Answers and returns false when it is too large, of another
 * type, or malformed. The caller frees it in any case. */
bool app_input_take(struct call *c, const struct app *app, struct app_input *in)
    __attribute__((warn_unused_result));
void app_input_free(struct app_input *in);

const struct app_field *app_input_field(const struct app_input *in, unsigned i);

/* Fills v->value for v->script. The text is where the visit's is, in the desk, and in in (NULL:
 * there is no body). Answers 400 or 503 and returns false when a parameter is malformed. */
bool app_params_take(struct call *c, struct app_visit *v, const struct app_input *in)
    __attribute__((warn_unused_result));

/* Puts what a visit needs in the desk: its base, which is so many bytes of its path behind the
 * mount; the name of the person; and room for what app_params_take decodes. */
bool app_visit_start(struct call *c, struct app_visit *v, size_t base_len)
    __attribute__((warn_unused_result));

#endif
