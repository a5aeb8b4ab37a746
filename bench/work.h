/*
 * What a measuring program sends and what it expects back.
 *
 * A workload is a list of request kinds over numbered keys. `{}` in a kind's path stands for a key
 * number of exactly KEY_DIGITS digits, so a request is rendered once and afterwards only its digits
 * are written anew. The body of a document is a function of its key number, its size and the
 * run's nonce: digits of the key, the nonce, then filler. So every byte of every answer can be checked
 * without remembering anything. Where that does not do (JSON that is posted, a list), files say what is
 * sent and what must come back.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_DIGITS = 8,
    NONCE_DIGITS = 8,
    BODY_SMALLEST = KEY_DIGITS + NONCE_DIGITS,
    KINDS_MOST = 8,
    STATUSES_MOST = 4,
    HEADERS_MOST = 16,
    MARKS_MOST = 3,
};

/* A kind whose answer's length and bytes are not compared. */
#define SIZE_ANY SIZE_MAX

struct kind {
    char method[12];
    char path[512];
    unsigned statuses[STATUSES_MOST]; /* expected, at least one */
    size_t statuses_len;
    size_t size;     /* bytes of the request's body (PUT, POST) or of the answer's (others) */
    unsigned weight; /* share of this kind among all */
    bool sends;      /* `size` is the request's body */
    const char *sent;   /* these `size` bytes of JSON are the body, whatever the key; or NULL */
    const char *wanted; /* these bytes are the answer, whatever the key; or NULL */
    size_t wanted_len;

    /* Filled in by a protocol's renderer. */
    char *bytes; /* the request; lives as long as the program */
    size_t bytes_len;
    size_t marks[MARKS_MOST]; /* offsets of the key's digits in `bytes` */
    size_t marks_len;
};

struct workload {
    struct kind kinds[KINDS_MOST];
    size_t kinds_len;
    const char *headers[HEADERS_MOST]; /* "Name: value", sent with every request */
    size_t headers_len;
    uint32_t keys; /* key numbers are 0 .. keys-1 */
    bool deck;     /* every key once per cycle, in one shuffled order, instead of at random */
    uint64_t seed; /* same seed, same order */
    char nonce[NONCE_DIGITS + 1];

    /* Private. */
    char *filler;   /* what any body holds from byte KEY_DIGITS on */
    uint32_t *order; /* the deck */
    uint64_t dealt;
    uint64_t random;
    unsigned weights;
};

/* Adds the kind described by "METHOD PATH STATUS[,STATUS…] SIZE [WEIGHT]"; SIZE is `-` for "any", `@FILE` to
 * send what the file holds, `=FILE` when the answer must be what it holds, `@FILE=FILE` for both. Dies with
 * an explanation on a malformed one. */
void work_add(struct workload *load, const char *description);

/* Call once, when everything public is set and before anything below. */
void work_ready(struct workload *load);

/* The next request's kind, and the key it is for. */
const struct kind *work_next(struct workload *load, uint32_t *key);

/* Writes the KEY_DIGITS digits of `key`. */
void work_digits(char *at, uint32_t key);

/* Writes the whole body of `key` (size bytes, size >= BODY_SMALLEST or 0). */
void work_body(const struct workload *load, char *at, size_t size, uint32_t key);

/* Whether `bytes` are what the body of `key` holds from `offset` on. */
bool work_match(const struct workload *load, uint32_t key, size_t offset, const char *bytes,
                size_t len);

/* The length that an answer of this kind must have; SIZE_ANY: any. */
size_t work_answer_size(const struct kind *kind);

/* Whether `status` is one of the kind's expected ones. */
bool work_expects(const struct kind *kind, unsigned status);

/* A piece of text being rendered; grows, dies when memory is out. */
struct text {
    char *bytes;
    size_t len;
    size_t size;
};

void text_add(struct text *text, const void *bytes, size_t len);
void text_print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds the kind's path with zeros for `{}`, noting the place of the digits. */
void text_add_path(struct text *text, struct kind *kind);

/* Adds the body of a kind that sends one, noting the place of the digits. */
void text_add_body(struct text *text, struct kind *kind, const struct workload *load);

#endif
