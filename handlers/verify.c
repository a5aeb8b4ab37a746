#include "handlers/verify.h"

#include <stdatomic.h>
#include <string.h>

#include "fcgi/log.h"
#include "handlers/problem.h"

static atomic_uint in_flight;
static atomic_uint_fast64_t right, wrong, refused;

static void copy_cut(char *to, size_t cap, struct str text)
{
    size_t n = text.n < cap ? text.n : cap - 1;
    if (n > 0)
        memcpy(to, text.p, n);
    to[n] = 0;
}

static void work(struct task *t, struct worker *w)
{
    struct verify *v = (struct verify *)t;
    struct seal_text password = {v->password, v->password_len};
    (void)w;
    v->result = seal_password_check(v->hash, password);
    if (v->result == SEAL_PASSWORD_RIGHT && seal_password_outdated(v->hash) &&
        !seal_password_hash(password, v->renewed))
        v->renewed[0] = 0;
}

static void renew(struct call *c, const struct verify *v)
{
    size_t was = strlen(v->hash), is = strlen(v->renewed);
    struct db_op *op = db_op_new(DB_OP_USER_RENEW, was + is);
    if (op == NULL)
        return;
    db_op_int(op, 0, v->user);
    db_op_copy(op, 1, DB_VALUE_TEXT, v->hash, was);
    db_op_copy(op, 2, DB_VALUE_TEXT, v->renewed, is);
    store_note(c, op);
}

static enum verdict judged(struct verify *v, struct call *c)
{
    if (v->result == SEAL_PASSWORD_NO_MEMORY) {
        problem_result(c, DB_NO_MEMORY, 0);
        return REPLY;
    }
    atomic_fetch_add(v->result == SEAL_PASSWORD_RIGHT ? &right : &wrong, 1);
    if (v->result == SEAL_PASSWORD_WRONG)
        log_line(LOG_WARN, "login failed", "user", v->name, "address", v->address, NULL);
    enum verdict verdict = v->answer(v, c);
    if (v->renewed[0] != 0)
        renew(c, v); /* behind what the answer may have written, which names the old hash */
    return verdict;
}

static enum verdict done(struct task *t, struct call *c)
{
    struct verify *v = (struct verify *)t;
    enum verdict verdict = REPLY;
    atomic_fetch_sub(&in_flight, 1);
    if (c->resp != NULL)
        verdict = judged(v, c);
    seal_wipe(v->password, sizeof v->password);
    if (v->release != NULL)
        v->release(v);
    return verdict;
}

/* What the snapshot says about the user; a name that nobody can have is one that nobody has. */
static enum db_result find(struct call *c, struct verify *v, struct str name)
{
    struct db_user user;
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_user_find(reader, name.p, name.n, &user) : DB_BROKEN;
    if (result == DB_OK && v->password_len <= SEAL_PASSWORD_MAX) {
        v->user = user.id;
        copy_cut(v->hash, sizeof v->hash, (struct str){user.hash, strlen(user.hash)});
        copy_cut(v->known, sizeof v->known, (struct str){user.name, strlen(user.name)});
    }
    return result == DB_NONE ? DB_OK : result;
}

void *verify_new(struct call *c, size_t size, struct str name, struct str password)
{
    struct verify *v = store_task(c, size);
    if (v == NULL) {
        problem_result(c, DB_NO_MEMORY, 0);
        return NULL;
    }
    v->password_len = password.n;
    enum db_result result = find(c, v, name);
    if (result != DB_OK) {
        loop_unpark(c, &v->task.park);
        problem_result(c, result, 0);
        return NULL;
    }
    copy_cut(v->name, sizeof v->name, name);
    copy_cut(v->address, sizeof v->address, c->req->remote_addr);
    if (v->password_len > SEAL_PASSWORD_MAX)
        v->password_len = SEAL_PASSWORD_MAX; /* none is so long: it is compared with nobody's */
    if (v->password_len > 0)
        memcpy(v->password, password.p, v->password_len);
    v->task.work = work;
    v->task.done = done;
    return v;
}

enum verdict verify_run(struct call *c, struct verify *v)
{
    if (atomic_fetch_add(&in_flight, 1) < VERIFY_MAX)
        return store_run(c, &v->task);
    struct call gone = *c;
    gone.resp = NULL;
    (void)done(&v->task, &gone);
    loop_unpark(c, &v->task.park);
    atomic_fetch_add(&refused, 1);
    problem_with(c, 503, "Too many people log in at once; try again shortly.",
                 (struct problem_header){"Retry-After", "1"});
    return REPLY;
}

struct verify_stats verify_get_stats(void)
{
    return (struct verify_stats){atomic_load(&right), atomic_load(&wrong), atomic_load(&refused)};
}
