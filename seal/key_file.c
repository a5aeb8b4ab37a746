/* A key's file is text, so that a person who looks sees what it is:
 *
 *     hanji key 1
 *     kind sealing
 *     created 1764556800
 *     from 1764556800
 *     until 1767148800
 *     retired 0
 *     secret BASE64
 *     previous KEY FROM UNTIL SIGNATURE        (of an identity: those before it, newest first)
 *
 * in this order and no other, each line ended, nothing behind them; what is public follows from the
 * secret. A file is written whole under another name and renamed, so there is never half of one.
 * Text with a secret is only in guarded memory. */
#include "seal/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 4096, SECRET_TEXT = 44 + 1 };

_Static_assert((int)SEAL_SECRET_BYTES == (int)crypto_sign_SECRETKEYBYTES, "seed and public key");

void seal_key_say(struct seal_error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
}

void seal_key_name(const struct seal_key *key, char name[SEAL_KEY_NAME_MAX])
{
    char hex[SEAL_KEY_ID_HEX + 1];
    seal_key_hex(key->id, hex);
    snprintf(name, SEAL_KEY_NAME_MAX, "%s-%s.key", seal_key_kind_name(key->kind), hex);
}

void seal_key_derive(struct seal_key *key, unsigned char secret[SEAL_SECRET_BYTES])
{
    unsigned char told[SEAL_KEY_BYTES], seed[SEAL_KEY_BYTES];
    if (key->kind == SEAL_SEALING) {
        crypto_scalarmult_base(key->key, secret);
    } else if (key->kind == SEAL_LOCAL) {
        memset(key->key, 0, sizeof key->key);
        crypto_kdf_derive_from_key(told, sizeof told, 2, "hanjihid", secret);
        seal_key_id(key->kind, told, key->id);
        return;
    } else {
        memcpy(seed, secret, sizeof seed);
        crypto_sign_seed_keypair(key->key, secret, seed);
        sodium_memzero(seed, sizeof seed);
    }
    seal_key_id(key->kind, key->key, key->id);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* What is left of a file's text. */
struct lines {
    const char *p, *end;
};

/* The next line when it begins with the word and a blank; what is behind them. */
static bool take_line(struct lines *l, const char *word, struct seal_text *rest)
{
    size_t n = strlen(word), left = (size_t)(l->end - l->p);
    const char *newline = memchr(l->p, '\n', left);
    if (newline == NULL || (size_t)(newline - l->p) < n + 1 || memcmp(l->p, word, n) != 0 ||
        l->p[n] != ' ')
        return false;
    *rest = (struct seal_text){l->p + n + 1, (size_t)(newline - l->p) - n - 1};
    l->p = newline + 1;
    return true;
}

/* Decimal, without needless zeros, below 2^53. */
static bool read_number(struct seal_text t, int64_t *v)
{
    *v = 0;
    if (t.n == 0 || t.n > 16 || (t.n > 1 && t.p[0] == '0'))
        return false;
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
        *v = *v * 10 + (t.p[i] - '0');
    }
    return *v < INT64_C(1) << 53;
}

static bool take_number(struct lines *l, const char *word, int64_t *v)
{
    struct seal_text rest;
    return take_line(l, word, &rest) && read_number(rest, v);
}

static bool read_bytes(struct seal_text t, unsigned char *out, size_t n)
{
    size_t got;
    return sodium_base642bin(out, n, t.p, t.n, NULL, &got, NULL, sodium_base64_VARIANT_ORIGINAL) ==
               0 &&
           got == n;
}

/* Up to the next blank, or the end. */
static struct seal_text next_word(struct seal_text *rest)
{
    const char *blank = memchr(rest->p, ' ', rest->n);
    struct seal_text word = {rest->p, blank != NULL ? (size_t)(blank - rest->p) : rest->n};
    size_t used = word.n + (blank != NULL);
    *rest = (struct seal_text){rest->p + used, rest->n - used};
    return word;
}

static bool read_previous(struct seal_text rest, struct seal_previous *p)
{
    return read_bytes(next_word(&rest), p->key, sizeof p->key) &&
           read_number(next_word(&rest), &p->valid_from) &&
           read_number(next_word(&rest), &p->valid_until) &&
           read_bytes(next_word(&rest), p->signature, sizeof p->signature) && rest.n == 0;
}

static bool succeeds(const struct seal_previous *p, const unsigned char after[SEAL_KEY_BYTES])
{
    unsigned char text[SEAL_SUCCESSION_BYTES];
    seal_key_succession(p->key, after, text);
    return crypto_sign_verify_detached(p->signature, text, sizeof text, p->key) == 0;
}

static bool take_previous(struct lines *l, struct seal_key_file *f)
{
    struct seal_text rest;
    const unsigned char *after = f->key.key;
    while (f->key.kind == SEAL_IDENTITY && take_line(l, "previous", &rest)) {
        struct seal_previous *p = &f->previous[f->previous_count];
        if (f->previous_count == SEAL_PREVIOUS_MAX || !read_previous(rest, p) ||
            !succeeds(p, after))
            return false;
        after = p->key;
        f->previous_count++;
    }
    return true;
}

static bool parse(struct lines l, struct seal_key_file *f, unsigned char secret[SEAL_SECRET_BYTES])
{
    struct seal_text rest;
    char kind[16] = "";
    memset(f, 0, sizeof *f);
    if (!take_line(&l, "hanji key", &rest) || rest.n != 1 || rest.p[0] != '1' ||
        !take_line(&l, "kind", &rest) || rest.n >= sizeof kind)
        return false;
    memcpy(kind, rest.p, rest.n);
    f->key.kind = seal_key_kind_named(kind);
    if (f->key.kind == SEAL_KEY_KINDS || !take_number(&l, "created", &f->key.created) ||
        !take_number(&l, "from", &f->key.valid_from) ||
        !take_number(&l, "until", &f->key.valid_until) ||
        !take_number(&l, "retired", &f->key.retired) || !take_line(&l, "secret", &rest) ||
        !read_bytes(rest, secret, SEAL_KEY_BYTES))
        return false;
    seal_key_derive(&f->key, secret);
    return take_previous(&l, f) && l.p == l.end;
}

/* Who may own a file that is believed: whoever we are, root, and, when we are root, whoever owns
 * the folder. */
static bool owner_ok(int folder, const struct stat *file)
{
    struct stat around;
    if (file->st_uid == geteuid() || file->st_uid == 0)
        return true;
    return geteuid() == 0 && fstat(folder, &around) == 0 && file->st_uid == around.st_uid;
}

/* systemd gives a service its credentials as files of root that an access list, which looks like
 * rights of the group, lets it read. */
static bool judge(int folder, int fd, bool credential, const char *name, struct seal_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return SEAL_FAIL(error, "%s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return SEAL_FAIL(error, "%s is not a regular file", name);
    if ((st.st_mode & (credential ? 0037 : 0077)) != 0)
        return SEAL_FAIL(error, "%s: its mode is %04o, others than its owner have access; "
                                    "chmod 600", name, st.st_mode & 07777u);
    if (!owner_ok(folder, &st))
        return SEAL_FAIL(error, "%s belongs to user %u, who is not this one", name,
                             (unsigned)st.st_uid);
    if (st.st_size > TEXT_MAX)
        return SEAL_FAIL(error, "%s is too large for a key", name);
    return true;
}

/* Reads to the end of the file; -1 with errno. */
static ssize_t read_all(int fd, char *text, size_t room)
{
    size_t n = 0;
    while (n < room) {
        ssize_t got = read(fd, text + n, room - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static bool read_text(int fd, const char *name, char *text, struct seal_key_file *f,
                      unsigned char *secret, struct seal_error *error)
{
    char expected[SEAL_KEY_NAME_MAX];
    ssize_t n = read_all(fd, text, TEXT_MAX);
    if (n < 0)
        return SEAL_FAIL(error, "%s: %s", name, strerror(errno));
    if (!parse((struct lines){text, text + n}, f, secret))
        return SEAL_FAIL(error, "%s is not a key, or a damaged one", name);
    seal_key_name(&f->key, expected);
    if (strcmp(name, expected) != 0)
        return SEAL_FAIL(error, "%s: in it is the key of %s", name, expected);
    return true;
}

bool seal_key_file_read(int folder, const char *name, bool credential, struct seal_key_file *f,
                        unsigned char secret[SEAL_SECRET_BYTES], struct seal_error *error)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP ? SEAL_FAIL(error, "%s is a symbolic link", name)
                              : SEAL_FAIL(error, "%s: %s", name, strerror(errno));
    bool ok = judge(folder, fd, credential, name, error);
    char *text = ok ? sodium_malloc(TEXT_MAX) : NULL;
    if (ok && text == NULL)
        ok = SEAL_FAIL(error, "memory is short");
    if (ok)
        ok = read_text(fd, name, text, f, secret, error);
    f->key.credential = credential;
    sodium_free(text);
    close(fd);
    return ok;
}

int seal_key_folder(const char *folder, bool credentials, struct seal_error *error)
{
    struct stat st;
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), why = errno;
    if (dir < 0) {
        seal_key_say(error, "%.180s: %s", folder, strerror(why));
        errno = why;
        return -1;
    }
    if (fstat(dir, &st) == 0 && (credentials || (st.st_mode & 0022) == 0))
        return dir;
    seal_key_say(error, "%.180s: others than its owner may write in it; chmod 700", folder);
    close(dir);
    errno = 0;
    return -1;
}

/* ---- writing -------------------------------------------------------------------------------- */

static char *add_base64(char *to, const char *end, const unsigned char *p, size_t n)
{
    sodium_bin2base64(to, (size_t)(end - to), p, n, sodium_base64_VARIANT_ORIGINAL);
    return to + strlen(to);
}

/* Into TEXT_MAX bytes, which are more than any file has; its length. */
static size_t put_text(const struct seal_key_file *f, const unsigned char *secret, char *text)
{
    const struct seal_key *k = &f->key;
    char *end = text + TEXT_MAX;
    int n = snprintf(text, TEXT_MAX,
                     "hanji key 1\nkind %s\ncreated %lld\nfrom %lld\nuntil %lld\nretired %lld\n"
                     "secret ",
                     seal_key_kind_name(k->kind), (long long)k->created, (long long)k->valid_from,
                     (long long)k->valid_until, (long long)k->retired);
    char *to = add_base64(text + n, end, secret, SEAL_KEY_BYTES);
    *to++ = '\n';
    for (unsigned i = 0; i < f->previous_count; i++) {
        const struct seal_previous *p = &f->previous[i];
        to = stpcpy(to, "previous ");
        to = add_base64(to, end, p->key, sizeof p->key);
        to += snprintf(to, (size_t)(end - to), " %lld %lld ", (long long)p->valid_from,
                       (long long)p->valid_until);
        to = add_base64(to, end, p->signature, sizeof p->signature);
        *to++ = '\n';
    }
    return (size_t)(to - text);
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* Run by root: what is made here belongs to whom the place it is made in belongs. */
static bool give(int fd, const struct stat *around)
{
    return geteuid() != 0 || around->st_uid == 0 || fchown(fd, around->st_uid, around->st_gid) == 0;
}

static bool put_file(int dir, const char *temporary, const char *text, size_t n)
{
    struct stat around;
    unlinkat(dir, temporary, 0);
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = fstat(dir, &around) == 0 && fchmod(fd, 0600) == 0 && give(fd, &around) &&
              write_all(fd, text, n) && fsync(fd) == 0;
    return close(fd) == 0 && ok;
}

static bool write_file(int dir, const struct seal_key_file *f, const unsigned char *secret,
                       struct seal_error *error)
{
    char name[SEAL_KEY_NAME_MAX], temporary[SEAL_KEY_NAME_MAX];
    char *text = sodium_malloc(TEXT_MAX);
    seal_key_name(&f->key, name);
    snprintf(temporary, sizeof temporary, "%.*s.tmp", (int)strlen(name) - 4, name);
    bool ok = text != NULL && put_file(dir, temporary, text, put_text(f, secret, text)) &&
              renameat(dir, temporary, dir, name) == 0 && fsync(dir) == 0;
    if (!ok) {
        seal_key_say(error, "%s cannot be written: %s", name, strerror(errno));
        unlinkat(dir, temporary, 0);
    }
    sodium_free(text);
    return ok;
}

/* Makes the folder, in a folder that is there. */
static bool make_folder(const char *folder, struct seal_error *error)
{
    struct stat around;
    char parent[1024];
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    while (n > 0 && folder[n - 1] != '/')
        n--;
    snprintf(parent, sizeof parent, "%.*s", n > 0 ? (int)n : 1, n > 0 ? folder : ".");
    if (mkdir(folder, 0700) != 0)
        return errno == EEXIST ||
               SEAL_FAIL(error, "%.180s cannot be made: %s", folder, strerror(errno));
    int up = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int made = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool ok = up >= 0 && made >= 0 && fstat(up, &around) == 0 && give(made, &around) &&
              fsync(up) == 0;
    if (!ok)
        seal_key_say(error, "%.180s: %s", folder, strerror(errno));
    if (up >= 0)
        close(up);
    if (made >= 0)
        close(made);
    return ok;
}

/* Writes a new key with a random secret; f says what it is. */
static bool write_new(const char *folder, struct seal_key_file *f, unsigned char *secret,
                      struct seal_error *error)
{
    if (!make_folder(folder, error))
        return false;
    int dir = seal_key_folder(folder, false, error);
    if (dir < 0)
        return false;
    bool ok = write_file(dir, f, secret, error);
    close(dir);
    return ok;
}

/* Guarded memory for a new secret, derived. */
static unsigned char *make_secret(struct seal_key *key, struct seal_error *error)
{
    unsigned char *secret = sodium_malloc(SEAL_SECRET_BYTES);
    if (secret == NULL) {
        seal_key_say(error, "memory is short");
        return NULL;
    }
    randombytes_buf(secret, SEAL_KEY_BYTES);
    seal_key_derive(key, secret);
    return secret;
}

bool seal_key_new(const char *folder, enum seal_key_kind kind, int64_t now_s, int64_t valid_until,
                  struct seal_key *made, struct seal_error *error)
{
    struct seal_key_file f = {.key = {.kind = kind,
                                      .created = now_s,
                                      .valid_from = now_s,
                                      .valid_until = valid_until}};
    unsigned char *secret = make_secret(&f.key, error);
    bool ok = secret != NULL && write_new(folder, &f, secret, error);
    sodium_free(secret);
    *made = f.key;
    return ok;
}

bool seal_key_follow(const char *folder, const struct seal_keys *keys, const struct seal_key *old,
                     struct seal_key *made, struct seal_error *error)
{
    struct seal_key_file f = {.key = {.kind = SEAL_IDENTITY,
                                      .created = made->created,
                                      .valid_from = made->created,
                                      .valid_until = made->valid_until},
                              .previous_count = 1};
    const struct seal_previous *list;
    struct seal_previous *last = &f.previous[0];
    unsigned char text[SEAL_SUCCESSION_BYTES];
    unsigned before = seal_keys_previous(keys, old, &list);
    if (before > SEAL_PREVIOUS_MAX - 1)
        before = SEAL_PREVIOUS_MAX - 1;
    for (unsigned i = 0; i < before; i++)
        f.previous[f.previous_count++] = list[i];
    unsigned char *secret = make_secret(&f.key, error);
    if (secret == NULL)
        return false;
    memcpy(last->key, old->key, sizeof last->key);
    last->valid_from = old->valid_from;
    last->valid_until = old->valid_until;
    seal_key_succession(old->key, f.key.key, text);
    bool ok = seal_keys_sign(keys, old, text, sizeof text, last->signature)
                  ? write_new(folder, &f, secret, error)
                  : SEAL_FAIL(error, "the old identity is not there");
    sodium_free(secret);
    *made = f.key;
    return ok;
}

/* ---- changing ------------------------------------------------------------------------------- */

static bool can_change(const struct seal_key *key, struct seal_error *error)
{
    return !key->credential ||
           SEAL_FAIL(error, "the key is a credential of systemd: change it where it is kept");
}

bool seal_key_retire(const char *folder, const struct seal_key *key, int64_t now_s,
                     int64_t valid_until, struct seal_error *error)
{
    struct seal_key_file f;
    char name[SEAL_KEY_NAME_MAX];
    int dir = can_change(key, error) ? seal_key_folder(folder, false, error) : -1;
    if (dir < 0)
        return false;
    unsigned char *secret = sodium_malloc(SEAL_SECRET_BYTES);
    bool ok = secret != NULL || SEAL_FAIL(error, "memory is short");
    seal_key_name(key, name);
    if (ok && seal_key_file_read(dir, name, false, &f, secret, error)) {
        f.key.retired = now_s;
        f.key.valid_until = valid_until;
        ok = write_file(dir, &f, secret, error);
    } else {
        ok = false;
    }
    sodium_free(secret);
    close(dir);
    return ok;
}

static bool overwrite(int fd, off_t size)
{
    char zeros[TEXT_MAX] = {0};
    for (off_t at = 0; at < size; at += TEXT_MAX) {
        size_t n = size - at < TEXT_MAX ? (size_t)(size - at) : (size_t)TEXT_MAX;
        if (pwrite(fd, zeros, n, at) != (ssize_t)n)
            return false;
    }
    return fsync(fd) == 0;
}

bool seal_key_destroy(const char *folder, const struct seal_key *key, struct seal_error *error)
{
    struct stat st;
    char name[SEAL_KEY_NAME_MAX];
    int dir = can_change(key, error) ? seal_key_folder(folder, false, error) : -1;
    if (dir < 0)
        return false;
    seal_key_name(key, name);
    int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && overwrite(fd, st.st_size) &&
              unlinkat(dir, name, 0) == 0 && fsync(dir) == 0;
    if (!ok)
        seal_key_say(error, "%s cannot be destroyed: %s", name, strerror(errno));
    if (fd >= 0)
        close(fd);
    close(dir);
    return ok;
}
