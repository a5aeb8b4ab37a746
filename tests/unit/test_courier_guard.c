/* handlers/courier_guard: every range, both ends of it and what is beside it, and every disguise. */
#include "handlers/courier_guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "tests/unit/run.h"

static const struct {
    const char *address;
    enum courier_place place;
} addresses[] = {
    /* 0/8 */
    {"0.0.0.0", COURIER_NEVER},
    {"0.1.2.3", COURIER_NEVER},
    {"0.255.255.255", COURIER_NEVER},
    {"1.0.0.0", COURIER_PUBLIC},
    {"1.1.1.1", COURIER_PUBLIC},
    {"8.8.8.8", COURIER_PUBLIC},
    {"9.255.255.255", COURIER_PUBLIC},
    {"10.0.0.0", COURIER_PRIVATE},
    {"10.255.255.255", COURIER_PRIVATE},
    {"11.0.0.0", COURIER_PUBLIC},
    {"100.63.255.255", COURIER_PUBLIC},
    {"100.64.0.0", COURIER_PRIVATE},
    {"100.127.255.255", COURIER_PRIVATE},
    {"100.128.0.0", COURIER_PUBLIC},
    {"126.255.255.255", COURIER_PUBLIC},
    {"127.0.0.0", COURIER_PRIVATE},
    {"127.0.0.1", COURIER_PRIVATE},
    {"127.255.255.255", COURIER_PRIVATE},
    {"128.0.0.0", COURIER_PUBLIC},
    {"169.253.255.255", COURIER_PUBLIC},
    {"169.254.0.0", COURIER_NEVER},
    {"169.254.169.254", COURIER_NEVER},
    {"169.254.255.255", COURIER_NEVER},
    {"169.255.0.0", COURIER_PUBLIC},
    {"172.15.255.255", COURIER_PUBLIC},
    {"172.16.0.0", COURIER_PRIVATE},
    {"172.31.255.255", COURIER_PRIVATE},
    {"172.32.0.0", COURIER_PUBLIC},
    {"191.255.255.255", COURIER_PUBLIC},
    {"192.0.0.0", COURIER_PRIVATE},
    {"192.0.0.255", COURIER_PRIVATE},
    {"192.0.1.0", COURIER_PUBLIC},
    {"192.0.2.0", COURIER_PRIVATE},
    {"192.0.2.255", COURIER_PRIVATE},
    {"192.0.3.0", COURIER_PUBLIC},
    {"192.88.98.255", COURIER_PUBLIC},
    {"192.88.99.0", COURIER_PRIVATE},
    {"192.88.99.255", COURIER_PRIVATE},
    {"192.88.100.0", COURIER_PUBLIC},
    {"192.167.255.255", COURIER_PUBLIC},
    {"192.168.0.0", COURIER_PRIVATE},
    {"192.168.255.255", COURIER_PRIVATE},
    {"192.169.0.0", COURIER_PUBLIC},
    {"198.17.255.255", COURIER_PUBLIC},
    {"198.18.0.0", COURIER_PRIVATE},
    {"198.19.255.255", COURIER_PRIVATE},
    {"198.20.0.0", COURIER_PUBLIC},
    {"198.51.99.255", COURIER_PUBLIC},
    {"198.51.100.0", COURIER_PRIVATE},
    {"198.51.100.255", COURIER_PRIVATE},
    {"198.51.101.0", COURIER_PUBLIC},
    {"203.0.112.255", COURIER_PUBLIC},
    {"203.0.113.0", COURIER_PRIVATE},
    {"203.0.113.255", COURIER_PRIVATE},
    {"203.0.114.0", COURIER_PUBLIC},
    {"223.255.255.255", COURIER_PUBLIC},
    {"224.0.0.0", COURIER_NEVER},
    {"239.255.255.255", COURIER_NEVER},
    {"240.0.0.0", COURIER_NEVER},
    {"255.255.255.255", COURIER_NEVER},
    /* IPv6 */
    {"::", COURIER_NEVER},
    {"::1", COURIER_PRIVATE},
    {"1fff:ffff::1", COURIER_PRIVATE},
    {"2000::", COURIER_PUBLIC},
    {"2001::1", COURIER_PRIVATE},
    {"2001:0:4136:e378:8000:63bf:3fff:fdd2", COURIER_PRIVATE}, /* Teredo */
    {"2001:1ff:ffff::", COURIER_PRIVATE},
    {"2001:200::", COURIER_PUBLIC},
    {"2001:db7:ffff::1", COURIER_PUBLIC},
    {"2001:db8::1", COURIER_PRIVATE},
    {"2001:db8:ffff::1", COURIER_PRIVATE},
    {"2001:db9::1", COURIER_PUBLIC},
    {"2606:4700:4700::1111", COURIER_PUBLIC},
    {"2a00:1450:4001:82f::200e", COURIER_PUBLIC},
    {"3ffe:ffff::1", COURIER_PUBLIC},
    {"3fff::1", COURIER_PRIVATE},
    {"3fff:fff:ffff::1", COURIER_PRIVATE},
    {"3fff:1000::1", COURIER_PUBLIC},
    {"4000::1", COURIER_PRIVATE},
    {"5f00::1", COURIER_PRIVATE},
    {"100::1", COURIER_PRIVATE},
    {"64:ff9b:1::1", COURIER_PRIVATE},
    {"fc00::1", COURIER_PRIVATE},
    {"fdff:ffff::1", COURIER_PRIVATE},
    {"fd00:ec2::254", COURIER_NEVER},
    {"fe00::1", COURIER_PRIVATE},
    {"fe80::1", COURIER_NEVER},
    {"fe80::1%lo", COURIER_NEVER},
    {"febf:ffff::1", COURIER_NEVER},
    {"fec0::1", COURIER_PRIVATE},
    {"ff00::1", COURIER_NEVER},
    {"ff02::1", COURIER_NEVER},
    {"ffff::1", COURIER_NEVER},
    /* disguised */
    {"::ffff:127.0.0.1", COURIER_PRIVATE},
    {"::ffff:10.1.2.3", COURIER_PRIVATE},
    {"::ffff:169.254.169.254", COURIER_NEVER},
    {"::ffff:0.0.0.0", COURIER_NEVER},
    {"::ffff:8.8.8.8", COURIER_PUBLIC},
    {"::ffff:0:127.0.0.1", COURIER_PRIVATE},
    {"::ffff:0:169.254.169.254", COURIER_NEVER},
    {"::127.0.0.1", COURIER_PRIVATE},
    {"::169.254.169.254", COURIER_NEVER},
    {"::2", COURIER_NEVER}, /* 0.0.0.2 */
    {"64:ff9b::127.0.0.1", COURIER_PRIVATE},
    {"64:ff9b::192.168.1.1", COURIER_PRIVATE},
    {"64:ff9b::169.254.169.254", COURIER_NEVER},
    {"64:ff9b::8.8.8.8", COURIER_PUBLIC},
    {"64:ff9b::1:127.0.0.1", COURIER_PRIVATE}, /* outside of the /96 */
    {"2002:7f00:1::", COURIER_PRIVATE},
    {"2002:a9fe:a9fe::1", COURIER_NEVER},
    {"2002:c0a8:101::1", COURIER_PRIVATE},
    {"2002:808:808::1", COURIER_PUBLIC},
    /* no addresses */
    {"", COURIER_NEVER},
    {"127.1", COURIER_NEVER},
    {"0x7f.0.0.1", COURIER_NEVER},
    {"2130706433", COURIER_NEVER},
    {"localhost", COURIER_NEVER},
    {"[::1]", COURIER_NEVER},
    {"/run/some.sock", COURIER_NEVER},
    {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", COURIER_NEVER},
};

START_TEST(text)
{
    for (size_t i = 0; i < COUNT(addresses); i++)
        ck_assert_msg(courier_guard_text(addresses[i].address) == addresses[i].place, "%s", addresses[i].address);
}
END_TEST

/* What a socket is about to be connected to is judged like its text. */
START_TEST(socket_address)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6};
    for (size_t i = 0; i < COUNT(addresses); i++) {
        enum courier_place place = addresses[i].place;
        if (inet_pton(AF_INET, addresses[i].address, &a4.sin_addr) == 1)
            ck_assert_int_eq(courier_guard_place((struct sockaddr *)&a4, sizeof a4), place);
        else if (inet_pton(AF_INET6, addresses[i].address, &a6.sin6_addr) == 1)
            ck_assert_int_eq(courier_guard_place((struct sockaddr *)&a6, sizeof a6), place);
    }
}
END_TEST

START_TEST(other_families)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {0x20, 1, 2}};
    ck_assert_int_eq(courier_guard_place((struct sockaddr *)&un, sizeof un), COURIER_NEVER);
    ck_assert_int_eq(courier_guard_place((struct sockaddr *)&a4, sizeof a4), COURIER_PUBLIC);
    ck_assert_int_eq(courier_guard_place((struct sockaddr *)&a4, sizeof a4 - 1), COURIER_NEVER);
    ck_assert_int_eq(courier_guard_place((struct sockaddr *)&a6, sizeof a6), COURIER_PUBLIC);
    ck_assert_int_eq(courier_guard_place((struct sockaddr *)&a6, sizeof a6 - 1), COURIER_NEVER);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("courier_guard");
    TCase *c = run_case(s, "places");
    tcase_add_test(c, text);
    tcase_add_test(c, socket_address);
    tcase_add_test(c, other_families);
    return run_suite(s);
}
