/* handlers/app_news: faults are remembered once, counted, and those of a load go with the next one. */
#include "handlers/app_news.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/temp.h"

static atomic_uint_fast64_t faults;
static struct app_news *news;
static struct buf out;

static void setup(void)
{
    atomic_store(&faults, 0);
    news = app_news_new("shop", &faults);
    ck_assert_ptr_nonnull(news);
    temp_capture_stderr();
}

static void teardown(void)
{
    app_news_release(news);
    buf_free(&out);
}

/* What is remembered, as JSON. */
static const char *told(void)
{
    struct json j = json_start(&out);
    app_news_json(news, &j);
    ck_assert(buf_add(&out, "", 1, 65536));
    return (const char *)out.data;
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

START_TEST(nothing_yet)
{
    free(temp_captured());
    ck_assert_str_eq(told(), "[]");
}
END_TEST

START_TEST(the_same_again_is_counted_and_logged_once)
{
    for (int i = 0; i < 3; i++)
        app_news_add(news, "shop/a.get.sql", 7, "no \"such\" row");
    char *log = temp_captured();
    ck_assert_uint_eq(count(log, "an app failed"), 1);
    ck_assert_ptr_nonnull(strstr(log, "at=\"shop/a.get.sql:7\""));
    free(log);
    ck_assert_uint_eq(atomic_load(&faults), 3);
    const char *j = told();
    ck_assert_uint_eq(count(j, "\"file\""), 1);
    ck_assert_ptr_nonnull(strstr(j, "\"load\":false,\"file\":\"shop/a.get.sql\",\"line\":7,"
                                    "\"text\":\"no \\\"such\\\" row\",\"times\":3}"));
}
END_TEST

START_TEST(others_are_others)
{
    app_news_add(news, "shop/a.get.sql", 7, "x");
    app_news_add(news, "shop/a.get.sql", 8, "x");
    app_news_add(news, "shop/b.get.sql", 7, "x");
    app_news_add(news, "shop/a.get.sql", 7, "y");
    app_news_load(news, "shop/a.get.sql", 7, "x");
    free(temp_captured());
    ck_assert_uint_eq(count(told(), "\"times\":1"), 5);
}
END_TEST

START_TEST(the_newest_is_last_and_twenty_are_kept)
{
    char text[24];
    for (int i = 0; i < APP_NEWS_MAX + 5; i++) {
        snprintf(text, sizeof text, "fault %d.", i);
        app_news_add(news, "shop/a.get.sql", 1, text);
    }
    app_news_add(news, "shop/a.get.sql", 1, "fault 10.");
    free(temp_captured());
    const char *j = told();
    ck_assert_uint_eq(count(j, "\"text\""), APP_NEWS_MAX);
    ck_assert_ptr_null(strstr(j, "fault 4."));
    ck_assert_ptr_nonnull(strstr(j, "fault 5."));
    ck_assert_ptr_nonnull(strstr(strstr(j, "fault 24."), "fault 10."));
}
END_TEST

START_TEST(a_load_forgets_those_of_the_last)
{
    app_news_load(news, "shop/a.get.sql", 1, "load");
    app_news_add(news, "shop/b.get.sql", 1, "run");
    app_news_loaded(news);
    free(temp_captured());
    const char *j = told();
    ck_assert_ptr_null(strstr(j, "\"load\":true"));
    ck_assert_ptr_nonnull(strstr(j, "shop/b.get.sql"));
}
END_TEST

START_TEST(what_is_long_is_cut)
{
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    app_news_add(app_news_hold(news), text, 0, text);
    app_news_release(news);
    free(temp_captured());
    ck_assert_uint_lt(strlen(told()), 500);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_news");
    TCase *t = run_case(s, "news");
    temp_use(t);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nothing_yet);
    tcase_add_test(t, the_same_again_is_counted_and_logged_once);
    tcase_add_test(t, others_are_others);
    tcase_add_test(t, the_newest_is_last_and_twenty_are_kept);
    tcase_add_test(t, a_load_forgets_those_of_the_last);
    tcase_add_test(t, what_is_long_is_cut);
    return run_suite(s);
}
