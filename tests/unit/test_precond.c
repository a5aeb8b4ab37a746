/* handlers/precond and db_precond_holds: the conditional headers of RFC 9110 13. */
#include "handlers/precond.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

/* ---- lists of entity tags -------------------------------------------------------------------- */

static const struct {
    const char *header;
    const char *tags; /* "*", or the own ones with blanks between; NULL: malformed */
} lists[] = {
    {"*", "*"},
    {" * ", "*"},
    {"\t*\t", "*"},
    {"\"7\"", "7"},
    {"W/\"7\"", "7"},
    {"\"1\",\"2\"", "1 2"},
    {"\"1\" , W/\"2\"\t,\t\"3\"", "1 2 3"},
    {"  \"7\"  ", "7"},
    {"\"999999999999999999\"", "999999999999999999"},
    /* empty elements are allowed (5.6.1) */
    {",\"7\"", "7"},
    {"\"7\",", "7"},
    {", ,,\"7\" ,, ,", "7"},
    /* well-formed, but not ours: they match nothing */
    {"\"\"", ""},
    {"\"abc\"", ""},
    {"\"0\"", ""},
    {"\"07\"", ""},
    {"\"+7\"", ""},
    {"\"-7\"", ""},
    {"\"7a\"", ""},
    {"\"0x7\"", ""},
    {"\"7.0\"", ""},
    {"\"7,8\"", ""},
    {"\"a,b\", \"7\"", "7"},
    {"\"W/7\"", ""},
    {"\"'!#$%&*/:;<=>?@[]^`{|}~\\\"", ""},
    {"\"\xc3\xa9\xff\"", ""},
    {"\"1000000000000000000000\"", ""},
    {"\"18446744073709551623\"", ""},
    {"\"9223372036854775808\"", ""},
    /* malformed */
    {"", NULL},
    {" ", NULL},
    {",", NULL},
    {", ,", NULL},
    {"7", NULL},
    {"\"", NULL},
    {"\"7", NULL},
    {"7\"", NULL},
    {"'7'", NULL},
    {"w/\"7\"", NULL},
    {"W\"7\"", NULL},
    {"W/ \"7\"", NULL},
    {"W /\"7\"", NULL},
    {"W/W/\"7\"", NULL},
    {"W/7", NULL},
    {"W/", NULL},
    {"W", NULL},
    {"/\"7\"", NULL},
    {"\"7\" \"8\"", NULL},
    {"\"7\"\"8\"", NULL},
    {"\"7\";\"8\"", NULL},
    {"\"7\"x", NULL},
    {"x\"7\"", NULL},
    {"\"7\", 8", NULL},
    {"\"a b\"", NULL},
    {"\"a\tb\"", NULL},
    {"\"a\x7f\"", NULL},
    {"\"a\x01\"", NULL},
    {"**", NULL},
    {"* *", NULL},
    {"*,\"7\"", NULL},
    {"\"7\",*", NULL},
    {"*,", NULL},
    {",*", NULL},
    {"W/*", NULL},
};

START_TEST(a_list_of_tags)
{
    struct db_tags tags;
    char text[512] = "";
    size_t at = 0;
    bool ok = precond_tags((struct str){lists[_i].header, strlen(lists[_i].header)}, &tags);
    ck_assert_msg(ok == (lists[_i].tags != NULL), "%s", lists[_i].header);
    if (!ok)
        return;
    ck_assert(tags.given);
    for (unsigned i = 0; i < tags.count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%llu", i > 0 ? " " : "", (unsigned long long)tags.seq[i]);
    ck_assert_str_eq(tags.any ? "*" : text, lists[_i].tags);
}
END_TEST

START_TEST(a_nul_in_a_list_is_malformed)
{
    struct db_tags tags;
    ck_assert(!precond_tags(STR_LIT("\"7\0\""), &tags));
    ck_assert(!precond_tags(STR_LIT("\"7\"\0"), &tags));
    ck_assert(!precond_tags(STR_LIT("\0"), &tags));
    ck_assert(!precond_tags((struct str){NULL, 0}, &tags));
}
END_TEST

static bool list_of(unsigned n, const char *format, struct db_tags *tags)
{
    static char text[65536];
    size_t at = 0;
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", format);
    return precond_tags((struct str){text, at}, tags);
}

START_TEST(a_list_has_a_cap_of_tags_that_could_match)
{
    struct db_tags tags;
    ck_assert(list_of(DB_TAGS_MAX, "\"7\",", &tags));
    ck_assert_uint_eq(tags.count, DB_TAGS_MAX);
    ck_assert(!list_of(DB_TAGS_MAX + 1, "\"7\",", &tags));
    ck_assert(list_of(1000, "\"x\",", &tags));
    ck_assert_uint_eq(tags.count, 0);
}
END_TEST

/* ---- what holds: every combination ----------------------------------------------------------- */

static struct db_tags given(uint64_t seq)
{
    return (struct db_tags){.given = 1, .any = seq == 0, .count = seq != 0, .seq = {seq}};
}

/* The document has seq 7 and was modified at 1000. */
static bool holds(struct db_precond p, bool exists)
{
    return db_precond_holds(&p, exists, exists ? 7 : 0, exists ? 1000 : 0);
}

START_TEST(without_a_condition_everything_holds)
{
    ck_assert(holds((struct db_precond){0}, true));
    ck_assert(holds((struct db_precond){0}, false));
}
END_TEST

START_TEST(if_match)
{
    ck_assert(holds((struct db_precond){.match = given(7)}, true));
    ck_assert(holds((struct db_precond){.match = given(0)}, true));
    ck_assert(!holds((struct db_precond){.match = given(8)}, true));
    ck_assert(!holds((struct db_precond){.match = given(7)}, false));
    ck_assert(!holds((struct db_precond){.match = given(0)}, false));
    ck_assert(!holds((struct db_precond){.match = {.given = 1}}, true));
    ck_assert(!holds((struct db_precond){.match = {.given = 1}}, false));
}
END_TEST

START_TEST(if_match_of_many)
{
    struct db_tags many = {.given = 1, .count = DB_TAGS_MAX};
    for (unsigned i = 0; i < DB_TAGS_MAX; i++)
        many.seq[i] = 100 + i;
    ck_assert(!holds((struct db_precond){.match = many}, true));
    many.seq[DB_TAGS_MAX - 1] = 7;
    ck_assert(holds((struct db_precond){.match = many}, true));
    many.count = DB_TAGS_MAX - 1;
    ck_assert(!holds((struct db_precond){.match = many}, true));
}
END_TEST

START_TEST(if_none_match)
{
    ck_assert(holds((struct db_precond){.none_match = given(8)}, true));
    ck_assert(holds((struct db_precond){.none_match = given(7)}, false));
    ck_assert(holds((struct db_precond){.none_match = given(0)}, false));
    ck_assert(holds((struct db_precond){.none_match = {.given = 1}}, true));
    ck_assert(!holds((struct db_precond){.none_match = given(7)}, true));
    ck_assert(!holds((struct db_precond){.none_match = given(0)}, true));
}
END_TEST

START_TEST(if_unmodified_since)
{
    ck_assert(holds((struct db_precond){.unmodified_given = 1, .unmodified_since = 1000}, true));
    ck_assert(holds((struct db_precond){.unmodified_given = 1, .unmodified_since = 1001}, true));
    ck_assert(!holds((struct db_precond){.unmodified_given = 1, .unmodified_since = 999}, true));
    ck_assert(!holds((struct db_precond){.unmodified_given = 1, .unmodified_since = -1}, true));
}
END_TEST

START_TEST(if_match_stands_in_for_if_unmodified_since)
{
    ck_assert(holds((struct db_precond){.match = given(7), .unmodified_given = 1, .unmodified_since = 1}, true));
    ck_assert(!holds((struct db_precond){.match = given(8), .unmodified_given = 1, .unmodified_since = 2000}, true));
}
END_TEST

START_TEST(all_that_are_given_must_hold)
{
    ck_assert(holds((struct db_precond){.match = given(7), .none_match = given(8)}, true));
    ck_assert(!holds((struct db_precond){.match = given(7), .none_match = given(7)}, true));
    ck_assert(!holds((struct db_precond){.match = given(0), .none_match = given(0)}, true));
    ck_assert(!holds((struct db_precond){.match = given(0), .none_match = given(0)}, false));
    ck_assert(!holds((struct db_precond){.none_match = given(7), .unmodified_given = 1, .unmodified_since = 2000}, true));
    ck_assert(!holds((struct db_precond){.none_match = given(8), .unmodified_given = 1, .unmodified_since = 1}, true));
}
END_TEST

/* ---- the headers of a request ---------------------------------------------------------------- */

#define BEFORE "Thu, 01 Jan 1970 00:16:39 GMT"
#define AT "Thu, 01 Jan 1970 00:16:40 GMT"
#define AFTER "Thu, 01 Jan 1970 00:16:41 GMT"

static struct str text(const char *s)
{
    return (struct str){s, s ? strlen(s) : 0};
}

START_TEST(malformed_headers_are_named)
{
    struct precond p;
    struct req r = {.if_match = text("7")};
    ck_assert_str_eq(precond_parse(&r, &p), "If-Match");
    r = (struct req){.if_none_match = text("\"7")};
    ck_assert_str_eq(precond_parse(&r, &p), "If-None-Match");
    r = (struct req){.if_match = text("*"), .if_none_match = text("*, \"7\"")};
    ck_assert_str_eq(precond_parse(&r, &p), "If-None-Match");
}
END_TEST

START_TEST(absent_headers_are_not_given)
{
    struct precond p;
    struct req r = {0};
    memset(&p, 0xff, sizeof p);
    ck_assert_ptr_null(precond_parse(&r, &p));
    ck_assert(!p.db.match.given && !p.db.none_match.given && !p.db.unmodified_given);
}
END_TEST

/* "MUST ignore … if the received field value is not a valid HTTP-date" (13.1.4). */
START_TEST(an_if_unmodified_since_that_is_no_date_is_ignored)
{
    struct precond p;
    struct req r = {.if_unmodified_since = text("yesterday")};
    ck_assert_ptr_null(precond_parse(&r, &p));
    ck_assert(!p.db.unmodified_given);
    r.if_unmodified_since = text(AT ", " AT);
    ck_assert_ptr_null(precond_parse(&r, &p));
    ck_assert(!p.db.unmodified_given);
    r.if_unmodified_since = text(AT);
    ck_assert_ptr_null(precond_parse(&r, &p));
    ck_assert(p.db.unmodified_given);
    ck_assert_int_eq(p.db.unmodified_since, 1000);
}
END_TEST

/* GET of a document with seq 7, modified at 1000; the order is that of RFC 9110 13.2.2. */
static const struct {
    const char *match, *unmodified, *none_match, *modified;
    enum precond_result result;
} gets[] = {
    {NULL, NULL, NULL, NULL, PRECOND_GO},
    /* 1: If-Match */
    {"\"7\"", NULL, NULL, NULL, PRECOND_GO},
    {"*", NULL, NULL, NULL, PRECOND_GO},
    {"\"8\"", NULL, NULL, NULL, PRECOND_FAILED},
    {"\"x\"", NULL, NULL, NULL, PRECOND_FAILED},
    {"\"8\"", NULL, "\"7\"", NULL, PRECOND_FAILED},
    {"\"8\"", NULL, NULL, AFTER, PRECOND_FAILED},
    {"\"8\"", AFTER, NULL, NULL, PRECOND_FAILED},
    {"\"7\"", BEFORE, NULL, NULL, PRECOND_GO},
    /* 2: If-Unmodified-Since */
    {NULL, AT, NULL, NULL, PRECOND_GO},
    {NULL, AFTER, NULL, NULL, PRECOND_GO},
    {NULL, BEFORE, NULL, NULL, PRECOND_FAILED},
    {NULL, BEFORE, "\"7\"", AFTER, PRECOND_FAILED},
    {NULL, "no date", NULL, NULL, PRECOND_GO},
    {NULL, "no date", "\"7\"", NULL, PRECOND_NOT_MODIFIED},
    /* 3: If-None-Match */
    {NULL, NULL, "\"7\"", NULL, PRECOND_NOT_MODIFIED},
    {NULL, NULL, "W/\"7\"", NULL, PRECOND_NOT_MODIFIED},
    {NULL, NULL, "\"1\", \"7\"", NULL, PRECOND_NOT_MODIFIED},
    {NULL, NULL, "*", NULL, PRECOND_NOT_MODIFIED},
    {NULL, NULL, "\"8\"", NULL, PRECOND_GO},
    {NULL, NULL, "\"x\"", NULL, PRECOND_GO},
    {"\"7\"", NULL, "\"7\"", NULL, PRECOND_NOT_MODIFIED},
    {NULL, AT, "\"7\"", NULL, PRECOND_NOT_MODIFIED},
    /* 4: If-Modified-Since, only without If-None-Match */
    {NULL, NULL, NULL, AT, PRECOND_NOT_MODIFIED},
    {NULL, NULL, NULL, AFTER, PRECOND_NOT_MODIFIED},
    {NULL, NULL, NULL, BEFORE, PRECOND_GO},
    {NULL, NULL, NULL, "no date", PRECOND_GO},
    {NULL, NULL, NULL, "", PRECOND_GO},
    {NULL, NULL, "\"8\"", AFTER, PRECOND_GO},
    {NULL, NULL, "\"7\"", BEFORE, PRECOND_NOT_MODIFIED},
    {"\"7\"", NULL, NULL, AT, PRECOND_NOT_MODIFIED},
    {NULL, AT, NULL, AT, PRECOND_NOT_MODIFIED},
};

START_TEST(a_get_is_judged_in_order)
{
    struct precond p;
    struct req r = {.if_match = text(gets[_i].match), .if_unmodified_since = text(gets[_i].unmodified),
                    .if_none_match = text(gets[_i].none_match), .if_modified_since = text(gets[_i].modified)};
    ck_assert_ptr_null(precond_parse(&r, &p));
    ck_assert_int_eq(precond_get(&p, 7, 1000), gets[_i].result);
}
END_TEST

/* ---- If-Range -------------------------------------------------------------------------------- */

static const struct {
    const char *header;
    int64_t now;
    bool honoured;
} if_ranges[] = {
    {NULL, 2000, true},
    {"", 2000, true},
    {"\"7\"", 2000, true},
    {"\"8\"", 2000, false},
    {"W/\"7\"", 2000, false}, /* compressed bytes are other bytes */
    {"w/\"7\"", 2000, false},
    {"\"7\", \"7\"", 2000, false},
    {"\"7", 2000, false},
    {"7", 2000, false},
    {"*", 2000, false},
    {"\"\"", 2000, false},
    {AT, 2000, true},
    {BEFORE, 2000, false},
    {AFTER, 2000, false}, /* exactly the same date, says 13.1.5 */
    {AT, 1001, false},    /* it may change again within that second */
    {AT, 1000, false},
    {AT, 1002, true},
    {"yesterday", 2000, false},
};

START_TEST(a_range_needs_this_very_state)
{
    struct precond p;
    struct req r = {.if_range = text(if_ranges[_i].header), .range = text("bytes=0-1")};
    ck_assert_ptr_null(precond_parse(&r, &p));
    ck_assert_msg(precond_range(&p, 7, 1000, if_ranges[_i].now) == if_ranges[_i].honoured, "%s", if_ranges[_i].header);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("precond");
    TCase *t = run_case(s, "tags");
    tcase_add_loop_test(t, a_list_of_tags, 0, COUNT(lists));
    tcase_add_test(t, a_nul_in_a_list_is_malformed);
    tcase_add_test(t, a_list_has_a_cap_of_tags_that_could_match);
    t = run_case(s, "holds");
    tcase_add_test(t, without_a_condition_everything_holds);
    tcase_add_test(t, if_match);
    tcase_add_test(t, if_match_of_many);
    tcase_add_test(t, if_none_match);
    tcase_add_test(t, if_unmodified_since);
    tcase_add_test(t, if_match_stands_in_for_if_unmodified_since);
    tcase_add_test(t, all_that_are_given_must_hold);
    t = run_case(s, "request");
    tcase_add_test(t, malformed_headers_are_named);
    tcase_add_test(t, absent_headers_are_not_given);
    tcase_add_test(t, an_if_unmodified_since_that_is_no_date_is_ignored);
    tcase_add_loop_test(t, a_get_is_judged_in_order, 0, COUNT(gets));
    tcase_add_loop_test(t, a_range_needs_this_very_state, 0, COUNT(if_ranges));
    return run_suite(s);
}
