/* fcgi/log: one line for one event, whatever is in it. */
#include "fcgi/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/run.h"
#include "tests/unit/temp.h"

static void quiet_time(void)
{
    setenv("JOURNAL_STREAM", "1:1", 1); /* under journald a line has no time of its own */
    log_set_level(LOG_INFO);
}

static void said(const char *expected)
{
    char *text = temp_captured();
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(a_line)
{
    temp_capture_stderr();
    log_line(LOG_WARN, "not accepting", "reason", "too many", "count", "7", NULL);
    said("level=warn msg=\"not accepting\" reason=\"too many\" count=\"7\"\n");
}
END_TEST

START_TEST(a_line_without_pairs)
{
    temp_capture_stderr();
    log_line(LOG_ERROR, "", NULL);
    said("level=error msg=\"\"\n");
}
END_TEST

START_TEST(a_missing_value_is_empty)
{
    temp_capture_stderr();
    log_line(LOG_INFO, "m", "a", (const char *)NULL, "b", "c", NULL);
    said("level=info msg=\"m\" a=\"\" b=\"c\"\n");
}
END_TEST

START_TEST(a_detail)
{
    temp_capture_stderr();
    log_detail(LOG_INFO, "ready", "%d of %s", 3, "many \"x\"");
    said("level=info msg=\"ready\" detail=\"3 of many \\\"x\\\"\"\n");
}
END_TEST

/* Outside journald: ts= and the time of day in UTC. */
START_TEST(a_line_has_its_time)
{
    unsetenv("JOURNAL_STREAM");
    temp_capture_stderr();
    log_line(LOG_INFO, "m", NULL);
    char *text = temp_captured();
    int y, mo, d, h, mi, s, used = 0;
    ck_assert_int_eq(sscanf(text, "ts=%4d-%2d-%2dT%2d:%2d:%2dZ level=info msg=\"m\"%n", &y, &mo, &d, &h, &mi, &s, &used), 6);
    ck_assert_str_eq(text + used, "\n");
    free(text);
}
END_TEST

START_TEST(control_characters_are_escaped)
{
    temp_capture_stderr();
    log_line(LOG_INFO, "a\nlevel=error msg=\"forged\"", "v", "\r\n\t\x01\x1b[31m\x7f\"\\", NULL);
    said("level=info msg=\"a\\x0alevel=error msg=\\\"forged\\\"\" "
         "v=\"\\x0d\\x0a\\x09\\x01\\x1b[31m\\x7f\\\"\\\\\"\n");
}
END_TEST

START_TEST(other_bytes_stay)
{
    temp_capture_stderr();
    log_line(LOG_INFO, "\xc3\xa9 = ' %s %n {}", NULL);
    said("level=info msg=\"\xc3\xa9 = ' %s %n {}\"\n");
}
END_TEST

static const char *const levels[] = {"error", "warn", "info", "debug"};

START_TEST(what_is_above_the_level_is_not_written)
{
    char expected[400] = "";
    temp_capture_stderr();
    log_set_level((enum log_level)_i);
    for (int l = LOG_ERROR; l <= LOG_DEBUG; l++) {
        log_line((enum log_level)l, "m", NULL);
        log_detail((enum log_level)l, "d", "%d", 1);
        if (l <= _i) {
            size_t at = strlen(expected);
            snprintf(expected + at, sizeof expected - at, "level=%s msg=\"m\"\nlevel=%s msg=\"d\" detail=\"1\"\n", levels[l],
                     levels[l]);
        }
    }
    said(expected);
}
END_TEST

START_TEST(names_of_levels)
{
    enum log_level level;
    for (int l = LOG_ERROR; l <= LOG_DEBUG; l++) {
        ck_assert(log_level_parse(levels[l], &level));
        ck_assert_int_eq((int)level, l);
    }
    static const char *const wrong[] = {"", "Error", "INFO", "warning", "err", "info ", " info", "2", "trace"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        ck_assert(!log_level_parse(wrong[i], &level));
}
END_TEST

/* One line: no break within, one at its end, no byte that was to be escaped. */
static void one_line(const char *text)
{
    size_t n = strlen(text);
    ck_assert_uint_le(n, 2048);
    ck_assert_uint_gt(n, 1500);
    ck_assert_int_eq(text[n - 1], '\n');
    for (size_t i = 0; i + 1 < n; i++)
        ck_assert((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

/* In every position of an escape, and in names and values. */
START_TEST(a_long_line_is_cut)
{
    static char value[5000];
    for (size_t shift = 0; shift < 8; shift++) {
        memset(value, 'v', sizeof value - 1);
        for (size_t i = 1500 + shift; i < 2500; i++)
            value[i] = shift % 2 ? '\n' : '"';
        temp_capture_stderr();
        log_line(LOG_INFO, "m", "a", value, "b", value, NULL);
        char *text = temp_captured();
        one_line(text);
        free(text);
    }
}
END_TEST

/* A reader of logfmt takes what is behind an open quote for part of the value: the next line, too. */
START_TEST(a_line_that_is_cut_closes_its_quotes)
{
    static char value[5000];
    for (size_t shift = 0; shift < 8; shift++) {
        memset(value, 'v', sizeof value - 1);
        memset(value + 1900 + shift, '\\', 200);
        temp_capture_stderr();
        log_line(LOG_INFO, "m", "a", value, NULL);
        char *text = temp_captured();
        bool open = false;
        for (const char *p = text; *p != 0; p++) {
            if (*p == '\\' && p[1] != 0)
                p++;
            else if (*p == '"')
                open = !open;
        }
        ck_assert_msg(!open && text[strlen(text) - 1] == '\n', "shift %zu: …%s", shift, text + strlen(text) - 20);
        free(text);
    }
}
END_TEST

START_TEST(a_long_message_or_name_is_cut)
{
    static char value[5000];
    memset(value, 'v', sizeof value - 1);
    temp_capture_stderr();
    log_line(LOG_INFO, value, "a", "b", NULL);
    char *text = temp_captured();
    one_line(text);
    free(text);
    temp_capture_stderr();
    log_line(LOG_INFO, "m", value, "b", NULL);
    text = temp_captured();
    ck_assert_ptr_nonnull(strstr(text, "vvvv=\"b\"\n"));
    free(text);
    temp_capture_stderr();
    log_detail(LOG_INFO, "m", "%s", value);
    text = temp_captured();
    ck_assert_uint_le(strlen(text), 2048);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
}
END_TEST

static void *talk(void *arg)
{
    char value[200];
    memset(value, *(const char *)arg, sizeof value - 1);
    value[sizeof value - 1] = 0;
    for (int i = 0; i < 500; i++)
        log_line(LOG_INFO, value, "v", value, NULL);
    return NULL;
}

START_TEST(lines_of_threads_do_not_mix)
{
    pthread_t threads[4];
    static const char letters[] = "abcd";
    int lines = 0;
    temp_capture_stderr();
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, talk, (void *)(letters + i)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    char *text = temp_captured(), *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != 0; lines++) {
        char letter = line[16];
        ck_assert_uint_eq(strlen(line), 16 + 199 + 5 + 199 + 1);
        for (int i = 0; i < 199; i++)
            ck_assert(line[16 + i] == letter && line[16 + 199 + 5 + i] == letter);
    }
    ck_assert_int_eq(lines, 2000);
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("log");
    TCase *t = run_case(s, "log");
    temp_use(t);
    tcase_add_checked_fixture(t, quiet_time, NULL);
    tcase_add_test(t, a_line);
    tcase_add_test(t, a_line_without_pairs);
    tcase_add_test(t, a_missing_value_is_empty);
    tcase_add_test(t, a_detail);
    tcase_add_test(t, a_line_has_its_time);
    tcase_add_test(t, control_characters_are_escaped);
    tcase_add_test(t, other_bytes_stay);
    tcase_add_loop_test(t, what_is_above_the_level_is_not_written, LOG_ERROR, LOG_DEBUG + 1);
    tcase_add_test(t, names_of_levels);
    tcase_add_test(t, a_long_line_is_cut);
    tcase_add_test(t, a_line_that_is_cut_closes_its_quotes);
    tcase_add_test(t, a_long_message_or_name_is_cut);
    tcase_add_test(t, lines_of_threads_do_not_mix);
    return run_suite(s);
}
