/* handlers/inbox_limit: who fails often waits, nobody is shut out, and the table has its size. */
#include "handlers/inbox_limit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static struct inbox_limit limit;

static void fresh(void)
{
    limit = (struct inbox_limit){.lock = PTHREAD_MUTEX_INITIALIZER, .seed = 7};
}

static struct str at(const char *address)
{
    return (struct str){address, strlen(address)};
}

static void failing(const char *address, unsigned times, uint64_t now_ms)
{
    for (unsigned i = 0; i < times; i++)
        inbox_limit_failed(&limit, at(address), now_ms);
}

START_TEST(thirty_failures_are_let_through)
{
    failing("192.0.2.1", INBOX_LIMIT_FAILURES - 1, 1000);
    ck_assert(inbox_limit_allows(&limit, at("192.0.2.1"), 1000));
    failing("192.0.2.1", 1, 1000);
    ck_assert(!inbox_limit_allows(&limit, at("192.0.2.1"), 1000));
    ck_assert(!inbox_limit_allows(&limit, at("192.0.2.1"), 1999));
}
END_TEST

START_TEST(one_a_second_comes_back)
{
    failing("192.0.2.1", 100, 1000);
    ck_assert(inbox_limit_allows(&limit, at("192.0.2.1"), 2000));
    failing("192.0.2.1", 1, 2000);
    ck_assert(!inbox_limit_allows(&limit, at("192.0.2.1"), 2500));
    ck_assert(inbox_limit_allows(&limit, at("192.0.2.1"), 3000));
}
END_TEST

START_TEST(no_more_than_all_come_back)
{
    failing("192.0.2.1", 1, 1000);
    ck_assert(inbox_limit_allows(&limit, at("192.0.2.1"), UINT64_MAX - 1));
    failing("192.0.2.1", INBOX_LIMIT_FAILURES, UINT64_MAX - 1);
    ck_assert(!inbox_limit_allows(&limit, at("192.0.2.1"), UINT64_MAX - 1));
}
END_TEST

START_TEST(a_message_that_is_verified_gives_all_back)
{
    failing("192.0.2.1", 100, 1000);
    inbox_limit_passed(&limit, at("192.0.2.1"));
    failing("192.0.2.1", INBOX_LIMIT_FAILURES - 1, 1000);
    ck_assert(inbox_limit_allows(&limit, at("192.0.2.1"), 1000));
}
END_TEST

START_TEST(addresses_count_by_themselves)
{
    failing("192.0.2.1", 100, 1000);
    ck_assert(inbox_limit_allows(&limit, at("192.0.2.2"), 1000));
    ck_assert(inbox_limit_allows(&limit, at("2001:db8::1"), 1000));
}
END_TEST

START_TEST(an_ipv6_network_is_one_address)
{
    failing("2001:db8:0:1::1", 100, 1000);
    ck_assert(!inbox_limit_allows(&limit, at("2001:db8:0:1:ffff::7"), 1000));
    ck_assert(inbox_limit_allows(&limit, at("2001:db8:0:2::1"), 1000));
}
END_TEST

START_TEST(who_has_no_address_is_not_limited)
{
    failing("", 100, 1000);
    ck_assert(inbox_limit_allows(&limit, at(""), 1000));
}
END_TEST

START_TEST(what_is_no_address_counts_as_it_stands)
{
    char longer[300];
    memset(longer, ':', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    failing(longer, 100, 1000);
    failing("1::2::3", 100, 1000);
    ck_assert(!inbox_limit_allows(&limit, at(longer), 1000));
    ck_assert(!inbox_limit_allows(&limit, at("1::2::3"), 1000));
}
END_TEST

START_TEST(more_addresses_than_places_are_no_fault)
{
    char address[32];
    for (unsigned i = 0; i < 4 * INBOX_LIMIT_PLACES; i++) {
        snprintf(address, sizeof address, "10.0.%u.%u", i / 256, i % 256);
        failing(address, 1, 1000);
    }
    ck_assert(inbox_limit_allows(&limit, at(address), 1000));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("inbox_limit");
    TCase *t = run_case(s, "limit");
    tcase_add_checked_fixture(t, fresh, NULL);
    tcase_add_test(t, thirty_failures_are_let_through);
    tcase_add_test(t, one_a_second_comes_back);
    tcase_add_test(t, no_more_than_all_come_back);
    tcase_add_test(t, a_message_that_is_verified_gives_all_back);
    tcase_add_test(t, addresses_count_by_themselves);
    tcase_add_test(t, an_ipv6_network_is_one_address);
    tcase_add_test(t, who_has_no_address_is_not_limited);
    tcase_add_test(t, what_is_no_address_counts_as_it_stands);
    tcase_add_test(t, more_addresses_than_places_are_no_fault);
    return run_suite(s);
}
