#include "handlers/courier_guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

/* IANA's special-purpose IPv4 addresses (RFC 6890 and later). The first that holds decides. */
static const struct {
    uint32_t network;
    uint8_t bits;
    uint8_t place;
} four[] = {
    {0x00000000, 8, COURIER_NEVER},    /* this network */
    {0xa9fe0000, 16, COURIER_NEVER},   /* 169.254/16: link-local */
    {0xe0000000, 3, COURIER_NEVER},    /* 224/4 multicast, 240/4 reserved, broadcast */
    {0x0a000000, 8, COURIER_PRIVATE},  /* 10/8 */
    {0x64400000, 10, COURIER_PRIVATE}, /* 100.64/10: carriers' NAT */
    {0x7f000000, 8, COURIER_PRIVATE},  /* loopback */
    {0xac100000, 12, COURIER_PRIVATE}, /* 172.16/12 */
    {0xc0a80000, 16, COURIER_PRIVATE}, /* 192.168/16 */
    {0xc0000000, 24, COURIER_PRIVATE}, /* 192.0.0/24: protocol assignments */
    {0xc0000200, 24, COURIER_PRIVATE}, /* 192.0.2/24: documentation */
    {0xc0586300, 24, COURIER_PRIVATE}, /* 192.88.99/24: 6to4 relays */
    {0xc6120000, 15, COURIER_PRIVATE}, /* 198.18/15: benchmarks */
    {0xc6336400, 24, COURIER_PRIVATE}, /* 198.51.100/24: documentation */
    {0xcb007100, 24, COURIER_PRIVATE}, /* 203.0.113/24: documentation */
};

/* The same for IPv6, by the first 64 bits. Public is what is in 2000::/3 and in no row. */
static const struct {
    uint64_t network;
    uint8_t bits;
    uint8_t place;
} six[] = {
    {UINT64_C(0xfe80000000000000), 10, COURIER_NEVER},   /* link-local */
    {UINT64_C(0xff00000000000000), 8, COURIER_NEVER},    /* multicast */
    {UINT64_C(0xfd000ec200000000), 32, COURIER_NEVER},   /* fd00:ec2::/32: a cloud's secrets */
    {UINT64_C(0x2001000000000000), 23, COURIER_PRIVATE}, /* protocol assignments, Teredo */
    {UINT64_C(0x20010db800000000), 32, COURIER_PRIVATE}, /* documentation */
    {UINT64_C(0x3fff000000000000), 20, COURIER_PRIVATE}, /* documentation */
};

static enum courier_place place_of_four(uint32_t a)
{
    for (size_t i = 0; i < sizeof four / sizeof *four; i++)
        if (((a ^ four[i].network) >> (32 - four[i].bits)) == 0)
            return (enum courier_place)four[i].place;
    return COURIER_PUBLIC;
}

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* The IPv4 address that is in it: ::ffff:a.b.c.d, ::ffff:0:a.b.c.d, 64:ff9b::a.b.c.d, ::a.b.c.d,
 * 2002:AABB:CCDD::. */
static int four_inside(const unsigned char a[16], uint32_t *inside)
{
    uint64_t high = number(a, 8), low = number(a + 8, 8);
    if (high >> 48 == 0x2002) {
        *inside = (uint32_t)(high >> 16);
        return 1;
    }
    *inside = (uint32_t)low;
    if (high == UINT64_C(0x0064ff9b00000000))
        return low >> 32 == 0;
    if (high != 0)
        return 0;
    return low >> 32 == 0xffff || low >> 32 == 0xffff0000 || (low >> 32 == 0 && low > 1);
}

static enum courier_place place_of_six(const unsigned char a[16])
{
    uint32_t inside;
    if (four_inside(a, &inside))
        return place_of_four(inside);
    uint64_t high = number(a, 8), low = number(a + 8, 8);
    for (size_t i = 0; i < sizeof six / sizeof *six; i++)
        if (((high ^ six[i].network) >> (64 - six[i].bits)) == 0)
            return (enum courier_place)six[i].place;
    if (high == 0 && low == 0)
        return COURIER_NEVER; /* the unspecified address */
    return high >> 61 == 1 ? COURIER_PUBLIC : COURIER_PRIVATE;
}

enum courier_place courier_guard_place(const struct sockaddr *address, socklen_t n)
{
    struct sockaddr_in a4;
    struct sockaddr_in6 a6;
    if (address->sa_family == AF_INET && n >= sizeof a4) {
        memcpy(&a4, address, sizeof a4);
        return place_of_four(ntohl(a4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6 && n >= sizeof a6) {
        memcpy(&a6, address, sizeof a6);
        return place_of_six(a6.sin6_addr.s6_addr);
    }
    return COURIER_NEVER;
}

enum courier_place courier_guard_text(const char *address)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    size_t n = strcspn(address, "%");
    if (n >= sizeof text)
        return COURIER_NEVER;
    memcpy(text, address, n);
    text[n] = 0;
    if (inet_pton(AF_INET, text, bytes) == 1)
        return place_of_four((uint32_t)number(bytes, 4));
    return inet_pton(AF_INET6, text, bytes) == 1 ? place_of_six(bytes) : COURIER_NEVER;
}
