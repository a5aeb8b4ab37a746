/* fcgi/conf: files, environment and flags; units; what is refused, and where it says that it stands. */
#include "fcgi/conf.h"

#include <stddef.h>
#include <string.h>

#include "tests/unit/run.h"
#include "tests/unit/temp.h"

#define K UINT64_C(1024)
#define M (K * K)
#define G (K * K * K)

static struct conf conf;
static struct conf_error error;

static const char *write_file(const char *text)
{
    return temp_file("hanji.conf", text, strlen(text));
}

static void load(const char *text)
{
    ck_assert_msg(conf_load(&conf, write_file(text), &error), "%s", error.text);
}

/* Refused, with a message that names the place and the reason. */
static void refused(const char *text, const char *place, const char *reason)
{
    char where[700];
    const char *file = write_file(text);
    snprintf(where, sizeof where, "%s%s", file, place);
    error.text[0] = 0;
    bool ok = conf_load(&conf, file, &error) && conf_finish(&conf, &error);
    ck_assert_msg(!ok, "accepted: %s", text);
    ck_assert_msg(strncmp(error.text, where, strlen(where)) == 0, "\"%s\" does not begin with \"%s\"", error.text, where);
    ck_assert_msg(strstr(error.text, reason) != NULL, "\"%s\" does not say \"%s\"", error.text, reason);
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define NUMBER(member) offsetof(struct conf, member)

/* Every key that is a number: what it is without a word, something to set it to, and what is outside. */
static const struct {
    const char *name;
    size_t offset;
    uint64_t initial;
    const char *set;
    uint64_t value;
    const char *least, *less, *most, *more;
} numbers[] = {
    {"socket_mode", NUMBER(socket_mode), 0660, "0600", 0600, "0", "-1", "0777", "01000"},
    {"threads", NUMBER(threads), 1, "4", 4, "1", "0", "64", "65"},
    {"pool_threads", NUMBER(pool_threads), 2, "4", 4, "1", "0", "64", "65"},
    {"pool_queue", NUMBER(pool_queue), 64, "10", 10, "1", "0", "65536", "65537"},
    {"backlog", NUMBER(backlog), 4096, "128", 128, "1", "0", "65535", "65536"},
    {"max_connections", NUMBER(max_connections), 16384, "100", 100, "1", "0", "1000000", "1000001"},
    {"max_watchers", NUMBER(max_watchers), 10000, "0", 0, "0", "-1", "1000000", "1000001"},
    {"heartbeat", NUMBER(heartbeat_ms), 20000, "500ms", 500, "100ms", "99ms", "60s", "61s"},
    {"max_body", NUMBER(max_body_bytes), 64 * M, "2m", 2 * M, "1024", "1023", "256m", "257m"},
    {"body_in_memory", NUMBER(body_in_memory_bytes), 256 * K, "1m", M, "4k", "4095", "16m", "17m"},
    {"accel_min", NUMBER(accel_min_bytes), 32 * K, "64k", 64 * K, "1", "0", "1g", "1025m"},
    {"blobs_max", NUMBER(blobs_max_bytes), G, "2g", 2 * G, "1m", "1023k", "1024g", "1025g"},
    {"body_memory", NUMBER(body_memory_bytes), 64 * M, "128m", 128 * M, "64k", "65535", "16g", "17g"},
    {"request_timeout", NUMBER(request_timeout_ms), 60000, "5s", 5000, "10ms", "9ms", "24h", "25h"},
    {"write_timeout", NUMBER(write_timeout_ms), 60000, "2m", 120000, "10ms", "9ms", "24h", "86401s"},
    {"drain_timeout", NUMBER(drain_timeout_ms), 30000, "1h", 3600000, "10ms", "9ms", "24h", "1441m"},
    {"session_idle", NUMBER(session_idle_ms), 1209600000, "1h", 3600000, "1m", "59s", "400d", "401d"},
    {"sends_keep", NUMBER(sends_keep_ms), 2592000000, "7d", 604800000, "1m", "59s", "4000d", "96001h"},
    {"courier_idle", NUMBER(courier_idle_ms), 30000, "5s", 5000, "1ms", "0", "1d", "25h"},
    {"send_timeout", NUMBER(send_timeout_ms), 30000, "5s", 5000, "100ms", "99ms", "10m", "11m"},
    {"retry_first", NUMBER(retry_first_ms), 5000, "1s", 1000, "1ms", "0", "1d", "25h"},
    {"retry_most", NUMBER(retry_most_ms), 86400000, "1h", 3600000, "1ms", "0", "1d", "25h"},
    {"retry_for", NUMBER(retry_for_ms), 345600000, "1d", 86400000, "1ms", "0", "400d", "9601h"},
    {"line_fails_for", NUMBER(line_fails_for_ms), 432000000, "1d", 86400000, "1ms", "0", "400d", "9601h"},
    {"session_max", NUMBER(session_max_ms), 7776000000, "30d", 2592000000, "1m", "59s", "400d", "9601h"},
    {"queue_operations", NUMBER(queue_operations), 4096, "10", 10, "1", "0", "1000000", "1000001"},
    {"queue_bytes", NUMBER(queue_bytes), 64 * M, "32m", 32 * M, "64k", "63k", "16g", "17g"},
    {"burst_operations", NUMBER(burst_operations), 1024, "1", 1, "1", "0", "65536", "65537"},
    {"checkpoint_size", NUMBER(checkpoint_bytes), 16 * M, "1m", M, "64k", "63k", "16g", "17g"},
    {"wal_limit", NUMBER(wal_limit_bytes), 256 * M, "1g", G, "1m", "1023k", "64g", "65g"},
    {"read_cache", NUMBER(read_cache_bytes), M, "128k", 128 * K, "64k", "63k", "16g", "17g"},
    {"write_cache", NUMBER(write_cache_bytes), 2 * M, "8m", 8 * M, "64k", "63k", "16g", "17g"},
};

static uint64_t number(size_t i)
{
    return *(const uint64_t *)(const void *)((const char *)&conf + numbers[i].offset);
}

static bool flag(const char *name, const char *value)
{
    return conf_flag(&conf, name, value, &error);
}

START_TEST(a_number_is_set)
{
    ck_assert(conf_load(&conf, NULL, &error));
    ck_assert_uint_eq(number((size_t)_i), numbers[_i].initial);
    ck_assert(flag(numbers[_i].name, numbers[_i].set));
    ck_assert_uint_eq(number((size_t)_i), numbers[_i].value);
}
END_TEST

START_TEST(a_number_has_bounds)
{
    ck_assert(conf_load(&conf, NULL, &error));
    ck_assert(flag(numbers[_i].name, numbers[_i].least));
    ck_assert(flag(numbers[_i].name, numbers[_i].most));
    uint64_t before = number((size_t)_i);
    ck_assert(!flag(numbers[_i].name, numbers[_i].less));
    ck_assert_ptr_nonnull(strstr(error.text, numbers[_i].name));
    ck_assert(!flag(numbers[_i].name, numbers[_i].more));
    ck_assert_ptr_nonnull(strstr(error.text, numbers[_i].name));
    ck_assert_uint_eq(number((size_t)_i), before);
}
END_TEST

START_TEST(texts_without_a_word)
{
    ck_assert(conf_load(&conf, NULL, &error) && conf_finish(&conf, &error));
    ck_assert_str_eq(conf.database, "/var/lib/hanji/hanji.db");
    ck_assert_str_eq(conf.socket, "/run/hanji/hanji.sock");
    ck_assert_str_eq(conf.socket_group, "");
    ck_assert_str_eq(conf.control, "/var/lib/hanji/hanji.db.control");
    ck_assert_str_eq(conf.public_, "");
    ck_assert_str_eq(conf.sites, "");
    ck_assert_str_eq(conf.blobs, "/var/lib/hanji/hanji.db.blobs");
    ck_assert_str_eq(conf.spool, "/var/lib/hanji");
    ck_assert_str_eq(conf.keys, "/var/lib/hanji/keys");
    ck_assert_int_eq(conf.sendfile_header, SENDFILE_X_ACCEL_REDIRECT);
    ck_assert_str_eq(conf.log_level_name, "info");
    ck_assert_int_eq(conf.log_level, LOG_INFO);
}
END_TEST

START_TEST(texts_are_set)
{
    load("database = /a b/c.db\nsocket=/s\nsocket_group = www-data\ncontrol = /c\npublic = a/, b\nlog_level = debug\n"
         "sites = c/\nblobs = /d\nkeys = /k\nsendfile_header = X-Sendfile\n");
    ck_assert(conf_finish(&conf, &error));
    ck_assert_str_eq(conf.database, "/a b/c.db");
    ck_assert_str_eq(conf.socket, "/s");
    ck_assert_str_eq(conf.socket_group, "www-data");
    ck_assert_str_eq(conf.control, "/c");
    ck_assert_str_eq(conf.public_, "a/, b");
    ck_assert_str_eq(conf.sites, "c/");
    ck_assert_str_eq(conf.blobs, "/d");
    ck_assert_str_eq(conf.spool, "/a b");
    ck_assert_str_eq(conf.keys, "/k");
    ck_assert_int_eq(conf.sendfile_header, SENDFILE_X_SENDFILE);
    ck_assert_int_eq(conf.log_level, LOG_DEBUG);
}
END_TEST

START_TEST(the_control_socket_follows_the_database)
{
    load("database = /x/y.db\n");
    ck_assert(conf_flag(&conf, "database", "/z.db", &error) && conf_finish(&conf, &error));
    ck_assert_str_eq(conf.control, "/z.db.control");
}
END_TEST

/* ---- units ----------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    const char *value;
    uint64_t expected; /* 0: refused */
} units[] = {
    {"max_body", "2048", 2048},
    {"max_body", "2k", 2 * K},
    {"max_body", "2K", 2 * K},
    {"max_body", "3m", 3 * M},
    {"max_body", "3M", 3 * M},
    {"body_memory", "1g", G},
    {"body_memory", "1G", G},
    {"max_body", "002k", 2 * K},
    {"request_timeout", "500ms", 500},
    {"request_timeout", "30s", 30000},
    {"request_timeout", "5m", 300000},
    {"request_timeout", "2h", 7200000},
    {"request_timeout", "2H", 7200000},
    {"socket_mode", "660", 0660},
    {"socket_mode", "0640", 0640},
    {"threads", "08", 8},
    {"max_body", "", 0},
    {"max_body", " ", 0},
    {"max_body", "k", 0},
    {"max_body", "m2", 0},
    {"max_body", "2kb", 0},
    {"max_body", "2kib", 0},
    {"max_body", "2 k", 0},
    {"max_body", " 2k", 0},
    {"max_body", "2k ", 0},
    {"max_body", "2t", 0},
    {"max_body", "2.5m", 0},
    {"max_body", "2,5m", 0},
    {"max_body", "-2m", 0},
    {"max_body", "+2m", 0},
    {"max_body", "0x800", 0},
    {"max_body", "2e3", 0},
    {"max_body", "2s", 0},
    {"max_body", "99999999999999999999", 0},
    {"body_memory", "18446744073709551616", 0},
    {"body_memory", "18014398509481985k", 0}, /* 2^64 + 1024 */
    {"body_memory", "17179869185g", 0},       /* 2^64 + 1 GiB */
    {"request_timeout", "60", 0},
    {"request_timeout", "60k", 0},
    {"request_timeout", "1d", 86400000},
    {"request_timeout", "1w", 0},
    {"request_timeout", "1min", 0},
    {"request_timeout", "-1s", 0},
    {"request_timeout", "0s", 0},
    {"request_timeout", "18446744073709551616ms", 0},
    {"threads", "1k", 0},
    {"threads", "two", 0},
    {"threads", "1;2", 0},
    {"threads", "-1", 0},
    {"threads", "4294967297", 0},
    {"socket_mode", "0668", 0},
    {"socket_mode", "999", 0},
    {"socket_mode", "rw", 0},
    {"socket_mode", "0x1b0", 0},
};

START_TEST(a_value_with_its_unit)
{
    ck_assert(conf_load(&conf, NULL, &error));
    bool ok = flag(units[_i].key, units[_i].value);
    ck_assert_msg(ok == (units[_i].expected != 0), "%s = \"%s\"", units[_i].key, units[_i].value);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strcmp(numbers[i].name, units[_i].key) == 0)
            ck_assert_uint_eq(number(i), ok ? units[_i].expected : numbers[i].initial);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

START_TEST(comments_and_empty_lines)
{
    load("# threads = 2\n; threads = 3\n\n  \t\n#\n;\nthreads = 4\n# last");
    ck_assert_uint_eq(conf.threads, 4);
}
END_TEST

START_TEST(blanks_around_do_not_matter)
{
    load("threads=2\n  backlog   =   7  \n\tsocket\t=\t/a  b \nmax_body = 2k\r\n");
    ck_assert_uint_eq(conf.threads, 2);
    ck_assert_uint_eq(conf.backlog, 7);
    ck_assert_str_eq(conf.socket, "/a  b");
    ck_assert_uint_eq(conf.max_body_bytes, 2 * K);
}
END_TEST

/* A line is a line, however far it is set in. */
START_TEST(an_indented_line_does_not_continue_the_one_before)
{
    load("database = /a.db\n  socket = /s\n\tthreads = 3\n");
    ck_assert_str_eq(conf.database, "/a.db");
    ck_assert_str_eq(conf.socket, "/s");
    ck_assert_uint_eq(conf.threads, 3);
}
END_TEST

START_TEST(a_comment_behind_a_value)
{
    load("threads = 2 # two\nbacklog = 7 ; seven\npublic = site/ # everybody\nsocket = /run/a#b;c\n");
    ck_assert_uint_eq(conf.threads, 2);
    ck_assert_uint_eq(conf.backlog, 7);
    ck_assert_str_eq(conf.public_, "site/");
    ck_assert_str_eq(conf.socket, "/run/a#b;c");
}
END_TEST

START_TEST(an_equals_sign_in_a_value)
{
    load("socket = /run/a=b:c\n");
    ck_assert_str_eq(conf.socket, "/run/a=b:c");
}
END_TEST

START_TEST(an_empty_file)
{
    load("");
    ck_assert_uint_eq(conf.threads, 1);
}
END_TEST

START_TEST(the_last_line_needs_no_end)
{
    load("threads = 2\nbacklog = 5");
    ck_assert_uint_eq(conf.backlog, 5);
}
END_TEST

START_TEST(public_may_stand_on_several_lines)
{
    load("public = a/\nthreads = 2\npublic = b/, c\n");
    ck_assert_str_eq(conf.public_, "a/,b/, c");
}
END_TEST

static const struct {
    const char *text, *place, *reason;
} wrong_files[] = {
    {"thread = 2\n", ":1: ", "thread"},
    {"threads = 2\nbacklogs = 1\n", ":2: ", "backlogs"},
    {"\n\n\nmax_body = lots\n", ":4: ", "max_body"},
    {"# a comment\nthreads = 0\n", ":2: ", "threads"},
    {"threads = 2\nthis is nothing\n", ":2: ", ""},
    {"threads\n", ":1: ", ""},
    {"threads 2\n", ":1: ", ""},
    {"= 2\n", ":1: ", ""},
    {"[server]\nthreads = 2\n", ":2: ", "server"},
    {"threads = \n", ":1: ", "threads"},
    {"threads = 2 3\n", ":1: ", "threads"},
    {"request_timeout = 60\n", ":1: ", "request_timeout"},
    {"database = /a.db\n  threads = x\n", ":2: ", "threads"},
    {"log_level = loud\n", ":1: ", "log_level"},
    {"\nlog_level = Info\n", ":2: ", "log_level"},
    {"\nqueue_bytes = 64k\n", ":2: ", "queue_bytes"},
    {"wal_limit = 16m\n", ":1: ", "wal_limit"},
    {"wal_limit = 8m\n", ":1: ", "wal_limit"},
    /* the first thing that is wrong is told, with its own line */
    {"threads = x\nbacklog = y\n", ":1: ", "threads"},
    {"threads 5\nbacklog = y\n", ":", ""},
};

START_TEST(a_wrong_file_is_refused_by_line)
{
    refused(wrong_files[_i].text, wrong_files[_i].place, wrong_files[_i].reason);
}
END_TEST

/* Line and reason must belong together. */
START_TEST(the_reason_is_that_of_the_line)
{
    refused("threads 5\nbacklog = y\n", "", "");
    bool first = strstr(error.text, ":1: ") != NULL && strstr(error.text, "backlog") == NULL;
    bool second = strstr(error.text, ":2: ") != NULL && strstr(error.text, "backlog") != NULL;
    ck_assert_msg(first || second, "%s", error.text);
}
END_TEST

START_TEST(a_file_that_is_not_there)
{
    ck_assert(!conf_load(&conf, temp_path("absent.conf"), &error));
    ck_assert_ptr_nonnull(strstr(error.text, "absent.conf"));
    ck_assert_ptr_nonnull(strstr(error.text, "No such file"));
}
END_TEST

START_TEST(a_folder_is_no_file)
{
    ck_assert(!conf_load(&conf, temp_path(""), &error));
    ck_assert_ptr_nonnull(strstr(error.text, temp_path("")));
}
END_TEST

/* Longer than inih's own buffer of 200 bytes: taken whole, or refused, never cut into two lines. */
START_TEST(a_long_line_is_not_cut)
{
    static const size_t lengths[] = {150, 180, 190, 197, 198, 199, 200, 201, 250, 397, 398, 399, 400, 1000};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        char text[1200];
        size_t n = (size_t)snprintf(text, sizeof text, "socket = /");
        for (; n < lengths[i]; n++)
            text[n] = n % 10 == 9 ? '=' : 'x';
        snprintf(text + n, sizeof text - n, "\nthreads = 2\n");
        if (conf_load(&conf, write_file(text), &error)) {
            ck_assert_uint_eq(strlen(conf.socket), lengths[i] - 9);
            ck_assert_uint_eq(conf.threads, 2);
        } else {
            ck_assert_uint_ge(lengths[i], 190);
            ck_assert_msg(strstr(error.text, ":1: ") != NULL && strstr(error.text, "long") != NULL, "%s", error.text);
        }
    }
}
END_TEST

/* ---- precedence ------------------------------------------------------------------------------ */

START_TEST(the_environment_goes_before_the_file)
{
    setenv("HANJI_THREADS", "5", 1);
    setenv("HANJI_MAX_BODY", "3m", 1);
    setenv("HANJI_PUBLIC", "env/", 1);
    load("threads = 2\nbacklog = 9\npublic = file/\n");
    ck_assert_uint_eq(conf.threads, 5);
    ck_assert_uint_eq(conf.max_body_bytes, 3 * M);
    ck_assert_uint_eq(conf.backlog, 9);
    ck_assert_str_eq(conf.public_, "env/");
}
END_TEST

START_TEST(a_flag_goes_before_all)
{
    setenv("HANJI_THREADS", "5", 1);
    setenv("HANJI_PUBLIC", "env/", 1);
    load("threads = 2\npublic = file/\n");
    ck_assert(flag("threads", "7"));
    ck_assert(flag("public", "flag/"));
    ck_assert(conf_finish(&conf, &error));
    ck_assert_uint_eq(conf.threads, 7);
    ck_assert_str_eq(conf.public_, "flag/");
}
END_TEST

START_TEST(an_empty_variable_is_a_value)
{
    setenv("HANJI_PUBLIC", "", 1);
    load("public = file/\n");
    ck_assert_str_eq(conf.public_, "");
    setenv("HANJI_THREADS", "", 1);
    ck_assert(!conf_load(&conf, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "HANJI_THREADS"));
}
END_TEST

START_TEST(a_wrong_variable_is_named)
{
    setenv("HANJI_MAX_BODY", "lots", 1);
    ck_assert(!conf_load(&conf, write_file("threads = 2\n"), &error));
    ck_assert_ptr_eq(strstr(error.text, "HANJI_MAX_BODY"), error.text);
}
END_TEST

/* What a later place says wins, and where it stood is what an error names. */
START_TEST(a_wrong_value_of_the_environment_is_not_blamed_on_the_file)
{
    setenv("HANJI_LOG_LEVEL", "loud", 1);
    load("log_level = debug\n");
    ck_assert(!conf_finish(&conf, &error));
    ck_assert_ptr_eq(strstr(error.text, "HANJI_LOG_LEVEL"), error.text);
    ck_assert(flag("log_level", "louder"));
    ck_assert(!conf_finish(&conf, &error));
    ck_assert_ptr_eq(strstr(error.text, "--log_level"), error.text);
}
END_TEST

START_TEST(other_variables_are_not_read)
{
    setenv("HANJI_threads", "5", 1);
    setenv("THREADS", "5", 1);
    setenv("HANJI_UNKNOWN", "5", 1);
    load("");
    ck_assert_uint_eq(conf.threads, 1);
}
END_TEST

START_TEST(flags_take_both_spellings)
{
    load("");
    ck_assert(flag("max-body", "2k"));
    ck_assert_uint_eq(conf.max_body_bytes, 2 * K);
    ck_assert(flag("max_body", "3k"));
    ck_assert_uint_eq(conf.max_body_bytes, 3 * K);
}
END_TEST

START_TEST(wrong_flags_are_named)
{
    static const char *const names[] = {"", "thread", "threadsx", "max--body", "max body", "-threads", "--threads"};
    load("");
    for (size_t i = 0; i < COUNT(names); i++) {
        ck_assert_msg(!flag(names[i], "2"), "%s", names[i]);
        ck_assert_ptr_nonnull(strstr(error.text, names[i]));
    }
    ck_assert(!flag("threads", "x"));
    ck_assert_ptr_eq(strstr(error.text, "--threads"), error.text);
}
END_TEST

START_TEST(a_text_has_a_cap)
{
    static char text[CONF_VALUE_MAX + 2];
    load("");
    memset(text, 'x', CONF_VALUE_MAX);
    ck_assert(flag("socket", text));
    ck_assert_str_eq(conf.socket, text);
    text[CONF_VALUE_MAX] = 'x';
    ck_assert(!flag("socket", text));
    ck_assert_ptr_eq(strstr(error.text, "--socket"), error.text);
}
END_TEST

/* ---- what is printed ------------------------------------------------------------------------- */

static void print_to(const char *path)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    conf_print(&conf, f);
    fclose(f);
}

static void reads_back(void)
{
    struct conf first = conf;
    const char *path = temp_path("printed.conf");
    print_to(path);
    clearenv();
    ck_assert_msg(conf_load(&conf, path, &error) && conf_finish(&conf, &error), "%s", error.text);
    for (size_t i = 0; i < COUNT(numbers); i++)
        ck_assert_mem_eq((char *)&conf + numbers[i].offset, (char *)&first + numbers[i].offset, sizeof(uint64_t));
    ck_assert_str_eq(conf.database, first.database);
    ck_assert_str_eq(conf.socket, first.socket);
    ck_assert_str_eq(conf.socket_group, first.socket_group);
    ck_assert_str_eq(conf.control, first.control);
    ck_assert_str_eq(conf.public_, first.public_);
    ck_assert_int_eq(conf.log_level, first.log_level);
}

START_TEST(what_is_printed_is_read_back)
{
    load("database = /a b/c.db\npublic = a/, b/\nlog_level = warn\n");
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strcmp(numbers[i].name, "queue_bytes") != 0)
            ck_assert(flag(numbers[i].name, numbers[i].set));
    ck_assert(conf_finish(&conf, &error));
    reads_back();
}
END_TEST

START_TEST(the_defaults_are_read_back)
{
    ck_assert(conf_load(&conf, NULL, &error) && conf_finish(&conf, &error));
    reads_back();
}
END_TEST

START_TEST(a_long_text_is_read_back)
{
    char text[CONF_VALUE_MAX + 1 - sizeof ".control"]; /* the control socket's name is longer */
    memset(text, 'x', sizeof text);
    text[0] = '/';
    text[sizeof text - 1] = 0;
    setenv("HANJI_DATABASE", text, 1);
    ck_assert(conf_load(&conf, NULL, &error) && conf_finish(&conf, &error));
    reads_back();
}
END_TEST

START_TEST(a_long_list_is_read_back)
{
    char text[1100] = "";
    for (int i = 0; i < 40; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "public = part/number %d/\n", i);
    }
    load(text);
    ck_assert(conf_finish(&conf, &error));
    ck_assert_uint_gt(strlen(conf.public_), 600);
    reads_back();
}
END_TEST

/* What a file could not say is refused from the environment and from flags too. */
START_TEST(a_text_that_no_file_can_hold_is_refused)
{
    static const char *const wrong[] = {"/a ;b", "/a #c.db", " /a", "/a ", "/a\nb", "/a\tb", "/a\177"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        setenv("HANJI_DATABASE", wrong[i], 1);
        ck_assert(!conf_load(&conf, NULL, &error));
        ck_assert_ptr_eq(strstr(error.text, "HANJI_DATABASE"), error.text);
    }
}
END_TEST

START_TEST(help_and_print_name_every_key)
{
    static const char *const texts[] = {"database", "socket", "socket_group", "control", "public", "sites", "cors", "basic",
                                        "apps", "keys", "blobs", "sendfile_header", "courier", "courier_socket",
                                        "log_level"};
    size_t n;
    char name[64];
    FILE *f = fopen(temp_path("help"), "w");
    conf_help(f);
    fclose(f);
    load("");
    print_to(temp_path("print"));
    char *help = temp_read(temp_path("help"), &n), *print = temp_read(temp_path("print"), &n);
    for (size_t i = 0; i < COUNT(numbers) + COUNT(texts); i++) {
        const char *key = i < COUNT(numbers) ? numbers[i].name : texts[i - COUNT(numbers)];
        snprintf(name, sizeof name, "--%s ", key);
        ck_assert_msg(strstr(help, name) != NULL, "%s", name);
        snprintf(name, sizeof name, "%s = ", key);
        ck_assert_msg(strstr(print, name) != NULL, "%s", name);
    }
    size_t lines = 0;
    for (const char *p = print; *p != 0; p++)
        lines += *p == '\n';
    ck_assert_uint_eq(lines, COUNT(numbers) + COUNT(texts)); /* a new key must be added here */
    free(help);
    free(print);
}
END_TEST

static TCase *conf_case(Suite *s, const char *name)
{
    TCase *t = run_case(s, name);
    temp_use(t);
    return t;
}

int main(void)
{
    Suite *s = suite_create("conf");
    TCase *t = conf_case(s, "keys");
    tcase_add_loop_test(t, a_number_is_set, 0, COUNT(numbers));
    tcase_add_loop_test(t, a_number_has_bounds, 0, COUNT(numbers));
    tcase_add_test(t, texts_without_a_word);
    tcase_add_test(t, texts_are_set);
    tcase_add_test(t, the_control_socket_follows_the_database);
    tcase_add_loop_test(t, a_value_with_its_unit, 0, COUNT(units));
    t = conf_case(s, "file");
    tcase_add_test(t, comments_and_empty_lines);
    tcase_add_test(t, blanks_around_do_not_matter);
    tcase_add_test(t, an_indented_line_does_not_continue_the_one_before);
    tcase_add_test(t, a_comment_behind_a_value);
    tcase_add_test(t, an_equals_sign_in_a_value);
    tcase_add_test(t, an_empty_file);
    tcase_add_test(t, the_last_line_needs_no_end);
    tcase_add_test(t, public_may_stand_on_several_lines);
    tcase_add_loop_test(t, a_wrong_file_is_refused_by_line, 0, COUNT(wrong_files));
    tcase_add_test(t, the_reason_is_that_of_the_line);
    tcase_add_test(t, a_file_that_is_not_there);
    tcase_add_test(t, a_folder_is_no_file);
    tcase_add_test(t, a_long_line_is_not_cut);
    t = conf_case(s, "precedence");
    tcase_add_test(t, the_environment_goes_before_the_file);
    tcase_add_test(t, a_flag_goes_before_all);
    tcase_add_test(t, an_empty_variable_is_a_value);
    tcase_add_test(t, a_wrong_variable_is_named);
    tcase_add_test(t, a_wrong_value_of_the_environment_is_not_blamed_on_the_file);
    tcase_add_test(t, other_variables_are_not_read);
    tcase_add_test(t, flags_take_both_spellings);
    tcase_add_test(t, wrong_flags_are_named);
    tcase_add_test(t, a_text_has_a_cap);
    t = conf_case(s, "print");
    tcase_add_test(t, what_is_printed_is_read_back);
    tcase_add_test(t, the_defaults_are_read_back);
    tcase_add_test(t, a_long_text_is_read_back);
    tcase_add_test(t, a_long_list_is_read_back);
    tcase_add_test(t, a_text_that_no_file_can_hold_is_refused);
    tcase_add_test(t, help_and_print_name_every_key);
    return run_suite(s);
}
