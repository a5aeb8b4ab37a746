#include "handlers/keys.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fcgi/log.h"
#include "fcgi/rights.h"
#include "handlers/problem.h"
#include "handlers/store.h"
#include "seal/card.h"

/* A set that is used, or was when it was replaced. */
struct held {
    struct held *next;
    struct seal_keys *keys;
    unsigned users;
};

/* The folder as it was when it was last read. */
struct state {
    dev_t device;
    ino_t inode;
    struct timespec changed;
};

struct keyring {
    pthread_mutex_t lock;
    struct held *sets; /* the first is the one that is used now */
    struct state read;
    int64_t looked_s; /* monotonic */
    bool again;       /* read once more, whatever the folder's time says */
    char why[sizeof((struct seal_error *)0)->text]; /* it could not be read, as logged last */
    char folder[];
};

static int64_t seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec;
}

static struct state look_at(const char *folder)
{
    struct stat st;
    if (stat(folder, &st) != 0)
        return (struct state){0};
    return (struct state){st.st_dev, st.st_ino, st.st_ctim};
}

static bool same(const struct state *a, const struct state *b)
{
    return a->device == b->device && a->inode == b->inode &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Removes sets that nobody uses, but for the first. */
static void sweep(struct keyring *ring)
{
    struct held *before = ring->sets;
    while (before->next != NULL) {
        struct held *h = before->next;
        if (h->users > 0) {
            before = h;
            continue;
        }
        before->next = h->next;
        seal_keys_free(h->keys);
        free(h);
    }
}

static bool put_first(struct keyring *ring, struct seal_keys *keys)
{
    struct held *h = keys != NULL ? malloc(sizeof *h) : NULL;
    if (h == NULL) {
        seal_keys_free(keys);
        return false;
    }
    *h = (struct held){ring->sets, keys, 0};
    ring->sets = h;
    if (seal_keys_at(keys, 0) != NULL)
        rights_secrets();
    sweep(ring);
    return true;
}

/* Reads the folder. What its clock cannot tell apart, a change right behind another one, is seen by
 * reading once more when the change is recent; and a folder that was refused is tried until it is
 * mended, since rights of a file leave no trace in the folder's time. */
static void read_folder(struct keyring *ring)
{
    struct seal_keys *keys;
    struct seal_error error;
    ring->read = look_at(ring->folder);
    ring->again = seconds_of(CLOCK_REALTIME) - ring->read.changed.tv_sec < 2;
    if (seal_keys_load(ring->folder, &keys, &error)) {
        ring->again |= !put_first(ring, keys);
        ring->why[0] = 0;
        return;
    }
    ring->again = true;
    if (strcmp(ring->why, error.text) != 0)
        log_line(LOG_ERROR, "the keys cannot be read", "folder", ring->folder, "reason",
                 error.text, NULL);
    memcpy(ring->why, error.text, sizeof ring->why);
}

struct keyring *keyring_open(const char *folder)
{
    size_t n = strlen(folder);
    struct keyring *ring = calloc(1, sizeof *ring + n + 1);
    if (ring == NULL)
        return NULL;
    memcpy(ring->folder, folder, n + 1);
    if (!put_first(ring, seal_keys_none())) {
        free(ring);
        return NULL;
    }
    pthread_mutex_init(&ring->lock, NULL);
    read_folder(ring);
    ring->looked_s = seconds_of(CLOCK_MONOTONIC);
    return ring;
}

void keyring_look(struct keyring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->looked_s = 0;
    pthread_mutex_unlock(&ring->lock);
}

void keyring_close(struct keyring *ring)
{
    if (ring == NULL)
        return;
    while (ring->sets != NULL) {
        struct held *h = ring->sets;
        ring->sets = h->next;
        seal_keys_free(h->keys);
        free(h);
    }
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

const struct seal_keys *keyring_hold(struct keyring *ring)
{
    pthread_mutex_lock(&ring->lock);
    int64_t now_s = seconds_of(CLOCK_MONOTONIC);
    if (now_s != ring->looked_s) {
        struct state now = look_at(ring->folder);
        ring->looked_s = now_s;
        if (ring->again || !same(&now, &ring->read))
            read_folder(ring);
    }
    struct held *h = ring->sets;
    h->users++;
    pthread_mutex_unlock(&ring->lock);
    return h->keys;
}

void keyring_release(struct keyring *ring, const struct seal_keys *keys)
{
    pthread_mutex_lock(&ring->lock);
    struct held *h = ring->sets;
    while (h->keys != keys)
        h = h->next; /* it is there: it was given out */
    h->users--;
    sweep(ring);
    pthread_mutex_unlock(&ring->lock);
}

uint64_t keyring_sealing_end(struct keyring *ring)
{
    const int64_t year_9999 = INT64_C(253402300799);
    const struct seal_keys *keys = keyring_hold(ring);
    const struct seal_key *key =
        seal_keys_current(keys, SEAL_SEALING, seconds_of(CLOCK_REALTIME));
    int64_t end = key == NULL ? 0 : key->valid_until != 0 ? key->valid_until : year_9999;
    keyring_release(ring, keys);
    return (uint64_t)end;
}

enum verdict keys_card(struct call *c)
{
    char text[SEAL_CARD_MAX];
    struct keyring *ring = session_of(c)->store->keys;
    const struct seal_keys *keys = keyring_hold(ring);
    size_t n = seal_card_make(keys, seconds_of(CLOCK_REALTIME), text);
    keyring_release(ring, keys);
    if (n == 0) {
        problem_with(c, 503,
                     "This hanji has no keys that are valid now; `hanji key new` makes what is "
                     "missing.",
                     (struct problem_header){"Retry-After", "60"});
        return REPLY;
    }
    text[n++] = '\n';
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, text, n);
    return REPLY;
}
