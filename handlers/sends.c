#include "handlers/sends.h"

#include <stdio.h>
#include <string.h>

#include "db/line.h"
#include "handlers/dispatch.h"
#include "handlers/problem.h"
#include "handlers/store.h"

enum { PREFIX_LEN = sizeof "/sends/" - 1 };

enum access sends_judge(struct call *c, struct str name, bool write)
{
    char path[PREFIX_LEN + DB_LINE_NAME_MAX + 1] = "/sends/";
    if (name.n > DB_LINE_NAME_MAX)
        return ACCESS_FORBIDDEN;
    if (name.n > 0)
        memcpy(path + PREFIX_LEN, name.p, name.n);
    return access_judge(c, access_who(c), (struct str){path, PREFIX_LEN + name.n}, write);
}

bool sends_allowed(struct call *c, struct str name, bool write)
{
    if (name.n > DB_LINE_NAME_MAX) {
        (void)sends_no_line(c, name);
        return false;
    }
    return !dispatch_refused(c, sends_judge(c, name, write));
}

bool sends_managed(struct call *c)
{
    enum access access = access_judge(c, access_who(c), STR_LIT("/"), true);
    if (access != ACCESS_FORBIDDEN)
        return !dispatch_refused(c, access);
    problem(c, 403, "Lines are managed with a credential that may write everything (\"/\").");
    return false;
}

enum verdict sends_no_line(struct call *c, struct str name)
{
    char detail[DB_LINE_NAME_MAX + 64];
    if (db_line_name_ok(name.p, name.n))
        snprintf(detail, sizeof detail, "There is no line %.*s.", (int)name.n, name.p);
    else
        snprintf(detail, sizeof detail, "There is no line of that name.");
    problem(c, 404, detail);
    return REPLY;
}

enum verdict sends_no_message(struct call *c)
{
    problem(c, 404, "There is no message of that id on this line.");
    return REPLY;
}

struct str sends_segment(const struct call *c, unsigned i)
{
    struct str left = {c->req->path.p + PREFIX_LEN, c->req->path.n - PREFIX_LEN};
    for (;; i--) {
        const char *slash = left.n > 0 ? memchr(left.p, '/', left.n) : NULL;
        size_t n = slash != NULL ? (size_t)(slash - left.p) : left.n;
        if (i == 0 || slash == NULL)
            return i == 0 ? (struct str){left.p, n} : (struct str){"", 0};
        left = (struct str){slash + 1, left.n - n - 1};
    }
}

enum verdict sends_line(struct call *c)
{
    struct str name = sends_segment(c, 0);
    switch (c->req->method) {
    case METHOD_POST:
        return sends_post(c, name);
    case METHOD_PUT:
        return sends_set(c, name);
    case METHOD_DELETE:
        return sends_remove(c, name);
    default:
        return sends_messages(c, name);
    }
}
