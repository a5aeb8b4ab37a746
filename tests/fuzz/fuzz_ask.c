/* A request to the change feed: three lines (query, Accept, Last-Event-ID). What is taken is within its bounds, a prefix is the
 * beginning of a key that can be, and a stream is only for those who named it. */
#include <strings.h>

#include "fcgi/path.h"
#include "handlers/ask.h"
#include "handlers/store.h"
#include "tests/fuzz/must.h"

static struct store store;
static struct session session = {.store = &store};

static bool names_stream(struct str accept)
{
    static const char type[] = "text/event-stream";
    for (size_t i = 0; i + sizeof type - 1 <= accept.n; i++)
        if (strncasecmp(accept.p + i, type, sizeof type - 1) == 0)
            return true;
    return false;
}

static void is_possible(struct str prefix)
{
    char path[6 + DB_KEY_MAX + 1] = "/docs/";
    MUST(prefix.n <= DB_KEY_MAX);
    memcpy(path + 6, prefix.p, prefix.n);
    path[6 + prefix.n] = 'k';
    MUST(path_ok((struct str){path, 6 + prefix.n + 1}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = {0};
    struct resp resp;
    struct ask ask;
    char *text = malloc(size + 1), *rest = text, *line[3];
    MUST(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    for (int i = 0; i < 3; i++) {
        line[i] = rest != NULL ? strsep(&rest, "\n") : text + size;
    }
    struct req req = {.query = {line[0], strlen(line[0])},
                      .accept = {line[1], strlen(line[1])},
                      .last_event_id = {line[2], strlen(line[2])},
                      .request_id = STR_LIT("")};
    struct call call = {.req = &req, .resp = &resp, .thread = &session};
    resp_init(&resp, &out, 1, false);
    if (ask_take(&call, &ask)) {
        struct credential nobody = {.kind = CREDENTIAL_NONE};
        struct str prefix = {ask.prefix, ask.prefix_len};
        MUST(ask.limit <= ASK_LIMIT_MAX && ask.wait_s <= ASK_WAIT_MAX_S && ask.since <= INT64_MAX);
        MUST(!ask.stream || names_stream(req.accept));
        MUST(!(ask.now && ask.stream && req.last_event_id.n > 0));
        is_possible(prefix);
        MUST(ask_judge(&call, &nobody, prefix, false) == ACCESS_NO_CREDENTIAL);
    } else {
        MUST(resp.status == 400 && !resp.failed);
    }
    buf_free(&out);
    free(text);
    return 0;
}
