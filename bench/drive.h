/*
 * The load engine: one thread, one epoll set, a fixed number of connections with one request in
 * flight on each.
 *
 * Closed loop (rate = 0): a connection sends its next request as soon as the last was answered, and
 * a latency counts from the sending. Open loop (rate > 0): request k is due at start + k / rate
 * whatever the answers do; a latency counts from that due time, so waiting for a free connection is
 * part of it, and what was due but never sent is reported (no coordinated omission).
 *
 * Every answer is checked (answer.h). A run ends when every request sent was answered or timed out.
 */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include "answer.h"

#include <sys/socket.h>

struct conn;

struct protocol {
    /* Fills in the kind's `bytes` and `marks`. */
    void (*render)(struct kind *kind, const struct workload *load);
    /* Forgets a half-received response. */
    void (*begin)(struct conn *conn);
    /* Takes received bytes: MORE, or a judgement. */
    enum outcome (*take)(struct conn *conn, const char *bytes, size_t len);
};

struct options {
    const struct protocol *protocol;
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned connections;
    double seconds; /* 0: until `count` */
    double warm;    /* seconds before counting starts */
    uint64_t count; /* requests in all, warming included; 0: until `seconds` */
    double rate;    /* per second; 0: closed loop */
    double timeout; /* seconds for one answer */
    bool until_end; /* sends nothing more after the end of stdin */
    unsigned every; /* compare the body of every n-th answer */
    const char *label;
    struct workload load;
};

/* Framing of FastCGI records; unused by HTTP. */
struct record {
    unsigned char head[8];
    size_t head_len;
    size_t content_left;
    size_t padding_left;
    bool ended;
};

struct conn {
    int fd; /* -1 when not connected */
    bool busy;
    bool wants_write;
    const struct kind *kind;
    uint32_t key;
    int64_t start_ns;
    size_t sent;
    char *out; /* room for the largest request */
    struct record record;
    struct answer answer;
};

/* The common options, as getopt_long letters and as help text; options_set is given each one found
 * and answers false for one it does not know. */
#define OPTIONS_LETTERS "c:d:n:w:R:r:H:k:DES:N:e:t:l:"
extern const char options_help[];
void options_init(struct options *options);
bool options_set(struct options *options, int letter, char *value);
/* Checks the whole; call after the last option. */
void options_check(struct options *options);

/* Connects, or returns -1. The descriptor blocks until drive() takes it. */
int drive_dial(const struct options *options);

/* Runs the load and prints one line of JSON on stdout. 0 when every answer was right, else 1. */
int drive(struct options *options);

#endif
