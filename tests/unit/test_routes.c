/* handlers/routes: which address leads where. */
#include "handlers/routes.h"

#include <string.h>

#include "handlers/batch.h"
#include "handlers/changes.h"
#include "handlers/auth.h"
#include "handlers/control.h"
#include "handlers/docs.h"
#include "handlers/keys.h"
#include "handlers/sends.h"
#include "handlers/snapshot.h"
#include "handlers/status.h"
#include "tests/unit/run.h"

static const struct {
    const char *path;
    handler_fn *handler; /* NULL: 404 */
} addresses[] = {
    {"/docs/a", docs_item},
    {"/docs/a/b.txt", docs_item},
    {"/docs/docs", docs_item},
    {"/docs/ ", docs_item},
    {"/docs/", docs_collection},
    {"/docs/a/", docs_collection},
    {"/docs/a/b/", docs_collection},
    {"/changes", changes},
    {"/batch", batch},
    {"/snapshot", snapshot},
    {"/keys", keys_card},
    {"/keys/", NULL},
    {"/keys/x", NULL},
    {"/key", NULL},
    {"/health", status_health},
    {"/status", status_json},
    {"/metrics", status_metrics},
    {"/auth/login", auth_login},
    {"/auth/logout", auth_logout},
    {"/auth/session", auth_session},
    {"/auth/check", auth_check},
    {"/sends/", sends_lines},
    {"/sends/a", sends_line},
    {"/sends/a,b", sends_line},
    {"/sends/retry", sends_line},
    {"/sends/a/retry", sends_line_verb},
    {"/sends/a/pause", sends_line_verb},
    {"/sends/a/resume", sends_line_verb},
    {"/sends/a/replay", sends_line_verb},
    {"/sends/a/skip", sends_message},
    {"/sends/a/msg_1", sends_message},
    {"/sends/a/msg_1/retry", sends_message_verb},
    {"/sends/a/msg_1/skip", sends_message_verb},
    {"/sends/a/msg_1/pause", NULL},
    {"/sends/a/msg_1/retry/x", NULL},
    {"/sends/a/msg_1/", NULL},
    {"/sends/a/msg_1/retry/", NULL},
    {"/sends/a/", NULL},
    {"/sends", NULL},
    {"/sends//retry", NULL},
    {"/auth", NULL},
    {"/auth/", NULL},
    {"/auth/login/", NULL},
    {"/auth/login/x", NULL},
    {"/auth/sessions", NULL},
    {"/control/op", control_op},
    {"/", NULL},
    {"/docs", NULL},
    {"/doc", NULL},
    {"/docsa", NULL},
    {"/docs.", NULL},
    {"/Docs/a", NULL},
    {"/x/docs/a", NULL},
    {"/changes/", NULL},
    {"/change", NULL},
    {"/batch/", NULL},
    {"/batches", NULL},
    {"/health/", NULL},
    {"/healthy", NULL},
    {"/healt", NULL},
    {"/health/x", NULL},
    {"/status/", NULL},
    {"/metrics/x", NULL},
    {"/control", NULL},
    {"/control/", NULL},
    {"/control/op/", NULL},
    {"/control/opx", NULL},
    {"/favicon.ico", NULL},
};

START_TEST(an_address)
{
    const struct route *r = route_find((struct str){addresses[_i].path, strlen(addresses[_i].path)});
    ck_assert_msg((r != NULL) == (addresses[_i].handler != NULL), "%s", addresses[_i].path);
    if (r != NULL)
        ck_assert_msg(r->handler == addresses[_i].handler, "%s", addresses[_i].path);
}
END_TEST

static const struct route *of(const char *path)
{
    return route_find((struct str){path, strlen(path)});
}

START_TEST(what_each_needs)
{
    ck_assert_int_eq(of("/docs/a")->need, NEED_RIGHTS);
    ck_assert_int_eq(of("/docs/")->need, NEED_RIGHTS);
    ck_assert_int_eq(of("/changes")->need, NEED_EACH_READ);
    ck_assert_int_eq(of("/snapshot")->need, NEED_EACH_READ);
    ck_assert_int_eq(of("/batch")->need, NEED_EACH_WRITE);
    ck_assert_int_eq(of("/health")->need, NEED_NOTHING);
    ck_assert_int_eq(of("/status")->need, NEED_READ);
    ck_assert_int_eq(of("/metrics")->need, NEED_READ);
    ck_assert_int_eq(of("/control/op")->need, NEED_OPERATOR);
}
END_TEST

START_TEST(which_methods_each_has)
{
    ck_assert_uint_eq(of("/docs/a")->methods, METHOD_GET | METHOD_HEAD | METHOD_PUT | METHOD_DELETE | METHOD_PATCH);
    ck_assert_uint_eq(of("/docs/a/")->methods, METHOD_GET | METHOD_HEAD | METHOD_POST);
    ck_assert_uint_eq(of("/changes")->methods, METHOD_GET | METHOD_HEAD);
    ck_assert_uint_eq(of("/snapshot")->methods, METHOD_POST);
    ck_assert_uint_eq(of("/batch")->methods, METHOD_POST);
    ck_assert_uint_eq(of("/health")->methods, METHOD_GET | METHOD_HEAD);
    ck_assert_uint_eq(of("/status")->methods, METHOD_GET | METHOD_HEAD);
    ck_assert_uint_eq(of("/metrics")->methods, METHOD_GET | METHOD_HEAD);
    ck_assert_uint_eq(of("/control/op")->methods, METHOD_POST);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("routes");
    TCase *t = run_case(s, "routes");
    tcase_add_loop_test(t, an_address, 0, COUNT(addresses));
    tcase_add_test(t, what_each_needs);
    tcase_add_test(t, which_methods_each_has);
    return run_suite(s);
}
