#include "handlers/basic.h"

#include <stdlib.h>
#include <string.h>

#include "handlers/dispatch.h"
#include "handlers/problem.h"
#include "handlers/verify.h"
#include "seal/base64.h"

enum { WAYS = 4, PAIR_MAX = DB_USER_NAME_MAX + 1 + SEAL_PASSWORD_MAX };

_Static_assert((int)SEAL_PAIR_BYTES == (int)DB_TOKEN_HASH_BYTES, "a credential holds one");

/* The two halves of what was decoded into text. */
struct halves {
    struct str name, password;
    char text[(PAIR_MAX + 2) / 3 * 3];
};

static bool decode(struct str credentials, struct halves *h)
{
    size_t n = 0;
    if (credentials.n > seal_base64_len(sizeof h->text) ||
        !seal_base64_decode(credentials.p, credentials.n, h->text, &n))
        return false;
    const char *colon = memchr(h->text, ':', n);
    if (colon == NULL)
        return false;
    h->name = (struct str){h->text, (size_t)(colon - h->text)};
    h->password = (struct str){colon + 1, n - h->name.n - 1};
    return h->name.n > 0 && h->name.n <= DB_USER_NAME_MAX &&
           memchr(h->text, 0, n) == NULL;
}

static void pair_of(const struct call *c, const char *hash, struct str password,
                    unsigned char *pair)
{
    seal_pair(session_of(c)->store->pair_key, hash, (struct seal_text){password.p, password.n},
              pair);
}

/* The places where a pair may stand. */
static struct basic_pair *places(struct call *c, const unsigned char *pair)
{
    struct session *s = session_of(c);
    if (s->basic == NULL)
        s->basic = calloc(1, sizeof *s->basic);
    return s->basic ? &s->basic->pairs[pair[0] % (BASIC_PAIRS / WAYS) * WAYS] : NULL;
}

static bool remembered(struct call *c, const unsigned char *pair)
{
    const struct basic_pair *p = places(c, pair);
    for (int i = 0; p != NULL && i < WAYS; i++)
        if (p[i].until_s > c->now_s && p[i].until_s <= c->now_s + BASIC_REMEMBER_S &&
            seal_token_same(p[i].pair, pair))
            return true;
    return false;
}

static void remember(struct call *c, const unsigned char *pair)
{
    struct basic_pair *p = places(c, pair), *oldest = p;
    if (p == NULL)
        return;
    for (int i = 0; i < WAYS; i++)
        if (p[i].until_s < oldest->until_s)
            oldest = &p[i];
    memcpy(oldest->pair, pair, SEAL_PAIR_BYTES);
    oldest->until_s = c->now_s + BASIC_REMEMBER_S;
}

static enum access identify(struct call *c, const struct halves *h, struct credential *who)
{
    struct db_user user;
    unsigned char pair[SEAL_PAIR_BYTES];
    struct db_reader *reader = session_reader(c);
    enum db_result result =
        reader ? db_user_find(reader, h->name.p, h->name.n, &user) : DB_BROKEN;
    if (result == DB_NONE)
        return ACCESS_VERIFY; /* takes as long as for one who is there */
    if (result != DB_OK)
        return ACCESS_NO_STORE;
    pair_of(c, user.hash, h->password, pair);
    if (!remembered(c, pair))
        return ACCESS_VERIFY;
    who->user = user.id;
    pair_of(c, user.hash, STR_LIT(""), who->hash);
    return ACCESS_OK;
}

enum access basic_identify(struct call *c, struct str credentials, struct credential *who)
{
    struct halves h;
    who->kind = CREDENTIAL_BASIC;
    enum access access = decode(credentials, &h) ? identify(c, &h, who) : ACCESS_BAD_CREDENTIAL;
    seal_wipe(h.text, sizeof h.text);
    return access;
}

enum access basic_judge(struct call *c, const struct credential *who, struct str path, bool write)
{
    struct db_user user;
    unsigned char now[SEAL_PAIR_BYTES];
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_user_get(reader, who->user, &user) : DB_BROKEN;
    if (result == DB_NONE)
        return ACCESS_BAD_CREDENTIAL;
    if (result != DB_OK)
        return ACCESS_NO_STORE;
    pair_of(c, user.hash, STR_LIT(""), now);
    if (!seal_token_same(now, who->hash))
        return ACCESS_BAD_CREDENTIAL;
    struct str read = {user.read, user.read_len};
    return !write && access_covers_or_public(c, read, path) ? ACCESS_OK : ACCESS_FORBIDDEN;
}

struct basic_call {
    struct verify verify;
    struct req *req; /* the request, to be dispatched again */
};

static void release(struct verify *v)
{
    free(((struct basic_call *)v)->req);
}

/* The password was compared; c->req is the request again. */
static enum verdict judged(const struct verify *v, struct call *c)
{
    unsigned char pair[SEAL_PAIR_BYTES];
    if (v->result != SEAL_PASSWORD_RIGHT) {
        session_of(c)->who = (struct credential){.kind = CREDENTIAL_BASIC};
        session_of(c)->offers_basic = true;
        (void)!dispatch_refused(c, ACCESS_BAD_CREDENTIAL);
        return REPLY;
    }
    pair_of(c, v->hash, (struct str){v->password, v->password_len}, pair);
    remember(c, pair);
    return dispatch(c);
}

static enum verdict verified(struct verify *v, struct call *c)
{
    c->req = ((struct basic_call *)v)->req;
    session_of(c)->mount = c->req->mount;
    enum verdict verdict = judged(v, c);
    c->req = NULL; /* release frees it */
    session_of(c)->mount = STR_LIT("");
    return verdict;
}

static enum verdict start(struct call *c, const struct halves *h)
{
    struct req *req = req_copy(c->req);
    struct basic_call *b = verify_new(c, sizeof *b, h->name, h->password);
    if (b == NULL) {
        free(req);
        return REPLY;
    }
    b->req = req;
    b->verify.answer = verified;
    b->verify.release = release;
    if (req != NULL)
        return verify_run(c, &b->verify);
    loop_unpark(c, &b->verify.task.park);
    problem_result(c, DB_NO_MEMORY, 0);
    return REPLY;
}

enum verdict basic_verify(struct call *c)
{
    struct halves h;
    struct str credentials = access_credentials(c->req->authorization, "basic");
    enum verdict verdict = FAIL;
    if (decode(credentials, &h))
        verdict = start(c, &h);
    seal_wipe(h.text, sizeof h.text);
    return verdict;
}
