#include "handlers/console.h"

#include <stdlib.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/app_set.h"
#include "handlers/apps.h"
#include "handlers/auth.h"
#include "handlers/auth_page.h"
#include "handlers/problem.h"
#include "handlers/status.h"
#include "handlers/store.h"
#include "seal/token.h"

enum { BASE_LEN = sizeof "/console/" - 1 };

/* The page that was asked for, as it stands in a URL, for whoever logs in first. {NULL, 0}: it
 * would not be taken. */
static struct str here(struct call *c)
{
    struct buf *to = &session_of(c)->value;
    struct str query = c->req->query;
    to->len = 0;
    if (!path_encode(to, c->req->mount) || !path_encode(to, c->req->path) ||
        (query.n > 0 && (!buf_add(to, "?", 1, RESP_HEAD_MAX) ||
                         !buf_add(to, query.p, query.n, RESP_HEAD_MAX))))
        return (struct str){NULL, 0};
    struct str url = {(const char *)to->data, to->len};
    return auth_next_ok(url) ? url : (struct str){NULL, 0};
}

/* A person who is not logged in gets the page for that, in this place. */
static bool login_first(struct call *c)
{
    if (c->req->method != METHOD_GET || !problem_for_browser(c->req) ||
        access_check(c, false) != ACCESS_NO_CREDENTIAL)
        return false;
    auth_page(c, &(struct auth_page){.status = 401, .next = here(c)});
    return true;
}

static enum verdict add_slash(struct call *c)
{
    struct buf *link = &session_of(c)->link;
    link->len = 0;
    if (!path_encode(link, c->req->mount) || !buf_add(link, "/console/", BASE_LEN, RESP_HEAD_MAX))
        return FAIL;
    resp_start(c->resp, 308);
    resp_header(c->resp, "Location", (struct str){(const char *)link->data, link->len});
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    resp_body(c->resp, NULL, 0);
    return REPLY;
}

enum verdict console(struct call *c)
{
    bool broken;
    if (c->req->path.n < BASE_LEN)
        return add_slash(c);
    const struct app *app = app_find(session_of(c), STR_LIT("console"), &broken);
    if (app == NULL) {
        problem(c, 500, "The console could not be loaded. The server's log says why.");
        return REPLY;
    }
    if (login_first(c))
        return REPLY;
    return apps_serve(c, app, BASE_LEN);
}

/* ---- what its SQL asks ---- */

/* Any thread. */
static char *say(void *arg, const char *what, size_t n)
{
    struct store *store = arg;
    struct buf out = {0};
    struct json j = json_start(&out);
    if (str_eq((struct str){what, n}, STR_LIT("status")))
        status_process_json(store, &out);
    else if (str_eq((struct str){what, n}, STR_LIT("apps")) && store->apps != NULL)
        apps_json(store->apps, &j);
    char *text = out.len > 0 && !j.failed ? malloc(out.len + 1) : NULL;
    if (text != NULL) {
        memcpy(text, out.data, out.len);
        text[out.len] = 0;
    }
    buf_free(&out);
    return text;
}

static bool make_token(void *arg, char token[64], unsigned char hash[32])
{
    _Static_assert(SEAL_TOKEN_LEN < 64 && SEAL_TOKEN_HASH_BYTES == 32, "what db/guard.h says");
    (void)arg;
    seal_token_new(token);
    return seal_token_hash(token, SEAL_TOKEN_LEN, hash);
}

void console_hooks(struct store *store)
{
    db_guard_set_hooks(&(struct db_guard_hooks){say, make_token, store});
}
