/* handlers/app_ini: every key, and what is said about each mistake. */
#include "handlers/app_ini.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static struct app_ini ini;
static char told[4096];

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    size_t at = strlen(told);
    (void)arg;
    snprintf(told + at, sizeof told - at, "%s:%u: %s\n", file, line, text);
}

static unsigned read_ini(const char *text, size_t n)
{
    struct db_faults faults = {.tell = tell};
    told[0] = 0;
    app_ini_defaults(&ini, "shop");
    app_ini_read(&ini, "shop/app.ini", (struct str){text, n}, &faults);
    return faults.count;
}

static void good(const char *text)
{
    ck_assert_msg(read_ini(text, strlen(text)) == 0, "%s", told);
}

static void bad(const char *text, const char *said)
{
    ck_assert_uint_ge(read_ini(text, strlen(text)), 1);
    ck_assert_str_eq(told, said);
}

START_TEST(nothing_is_said)
{
    good("");
    ck_assert_str_eq(ini.title, "shop");
    ck_assert_int_eq(ini.read, APP_RIGHTS);
    ck_assert_int_eq(ini.write, APP_RIGHTS);
    ck_assert(!ini.documents);
    ck_assert_str_eq(ini.documents_read, "");
    ck_assert_str_eq(ini.documents_write, "");
    ck_assert_uint_eq(ini.rows, 1000);
    ck_assert_uint_eq(ini.time_ms, 5000);
    ck_assert_uint_eq(ini.body, 1 << 20);
    ck_assert_msg(strstr(ini.csp, "default-src 'self';") == ini.csp, "%s", ini.csp);
}
END_TEST

START_TEST(everything_is_said)
{
    good("# a shop\ntitle = Shopping \xc3\xa4nd chores\nread = public\nwrite = users ; not more\n"
         "documents = read\ndocuments_read = a/, b\ndocuments_read = c/d/\ndocuments_write = w/\n"
         "rows = 10000\ntime = 60s\nbody = 64m\ncsp = default-src 'none'; img-src *\ncsp = style-src 'self'\n");
    ck_assert_str_eq(ini.title, "Shopping \xc3\xa4nd chores");
    ck_assert_int_eq(ini.read, APP_PUBLIC);
    ck_assert_int_eq(ini.write, APP_USERS);
    ck_assert(ini.documents);
    ck_assert_str_eq(ini.documents_read, "a/\nb\nc/d/");
    ck_assert_str_eq(ini.documents_write, "w/");
    ck_assert_uint_eq(ini.rows, 10000);
    ck_assert_uint_eq(ini.time_ms, 60000);
    ck_assert_uint_eq(ini.body, 64 << 20);
    ck_assert_str_eq(ini.csp, "default-src 'none'; img-src *; style-src 'self'");
}
END_TEST

START_TEST(every_mistake_is_told)
{
    bad("titel = x\nread = me\n\nrows = 0\n", "shop/app.ini:1: unknown key \"titel\"\n"
                                              "shop/app.ini:2: read: it is rights, users or public\n"
                                              "shop/app.ini:4: rows: it is 1 to 10000\n");
}
END_TEST

START_TEST(one_mistake)
{
    bad("documents = all", "shop/app.ini:1: documents: it is none or read\n");
    bad("rows = 10001", "shop/app.ini:1: rows: it is 1 to 10000\n");
    bad("rows = many", "shop/app.ini:1: rows: \"many\" is not a whole number\n");
    bad("time = 61s", "shop/app.ini:1: time: it is 1 to 60000 ms\n");
    bad("time = 5", "shop/app.ini:1: time: \"5\" is not a time such as 500ms, 30s, 5m or 14d\n");
    bad("body = 1g", "shop/app.ini:1: body: it is 1 to 268435456 bytes\n");
    bad("body = big", "shop/app.ini:1: body: \"big\" is not a size such as 512k, 16m or 1g\n");
    bad("title =", "shop/app.ini:1: title: 1 to 100 bytes of UTF-8\n");
    bad("title = \xff", "shop/app.ini:1: title: 1 to 100 bytes of UTF-8\n");
    bad("csp = \xc3\xa4", "shop/app.ini:1: csp: printable ASCII only\n");
    bad("read = public\nread = users", "shop/app.ini:2: read was set before\n");
    bad("[app]\ntitle = x\n", "shop/app.ini:2: sections such as [app] are not used here\n");
    bad("what is this", "shop/app.ini:1: this is not \"key = value\"\n");
}
END_TEST

START_TEST(prefixes_that_are_none)
{
    bad("documents_read = /a", "shop/app.ini:1: documents_read: \"/a\" is no beginning of a document's key\n");
    bad("documents_write = a/../b", "shop/app.ini:1: documents_write: \"a/../b\" is no beginning of a document's key\n");
    bad("documents_write = a//b, c", "shop/app.ini:1: documents_write: \"a//b\" is no beginning of a document's key\n");
    ck_assert_str_eq(ini.documents_write, "c");
}
END_TEST

START_TEST(what_is_too_long)
{
    char text[4000];
    memset(text, 'x', sizeof text);
    memcpy(text, "title = ", 8);
    ck_assert_uint_eq(read_ini(text, 150), 1);
    ck_assert_str_eq(told, "shop/app.ini:1: title: 1 to 100 bytes of UTF-8\n");
    ck_assert_uint_eq(read_ini(text, sizeof text), 1);
    ck_assert_ptr_nonnull(strstr(told, "shop/app.ini:1: the line is longer than"));
    size_t n = 0;
    for (int i = 0; i < 20; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "documents_read = %0150d\n", i);
    ck_assert_uint_ge(read_ini(text, n), 1);
    ck_assert_ptr_nonnull(strstr(told, "shop/app.ini:14: documents_read: all prefixes together have at most 2047 bytes"));
}
END_TEST

START_TEST(no_text)
{
    ck_assert_uint_eq(read_ini("title = a\0b\n", 12), 1);
    ck_assert_str_eq(told, "shop/app.ini:0: it has a NUL: this is no text\n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_ini");
    TCase *t = run_case(s, "read");
    tcase_add_test(t, nothing_is_said);
    tcase_add_test(t, everything_is_said);
    tcase_add_test(t, every_mistake_is_told);
    tcase_add_test(t, one_mistake);
    tcase_add_test(t, prefixes_that_are_none);
    tcase_add_test(t, what_is_too_long);
    tcase_add_test(t, no_text);
    return run_suite(s);
}
