#include "seal/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seal/key_file.h"

_Static_assert((int)SEAL_SIGNATURE_BYTES == (int)crypto_sign_BYTES, "Ed25519");
_Static_assert((int)SEAL_KEY_BYTES == (int)crypto_kdf_KEYBYTES, "a local key makes keys");

/* Entries are in order; the secret of entry[i] is secret[place[i]], readable only. */
struct seal_keys {
    unsigned count;
    unsigned of_kind[SEAL_KEY_KINDS];
    struct seal_key_file *entry;
    unsigned *place;
    unsigned char (*secret)[SEAL_SECRET_BYTES];
};

/* ---- kinds and ids -------------------------------------------------------------------------- */

static const char *const kinds[SEAL_KEY_KINDS] = {"identity", "transport", "sealing", "local"};

const char *seal_key_kind_name(enum seal_key_kind kind)
{
    return kinds[kind];
}

enum seal_key_kind seal_key_kind_named(const char *name)
{
    unsigned kind = 0;
    while (kind < SEAL_KEY_KINDS && strcmp(kinds[kind], name) != 0)
        kind++;
    return (enum seal_key_kind)kind;
}

void seal_key_id(enum seal_key_kind kind, const unsigned char public_key[SEAL_KEY_BYTES],
                 unsigned char id[SEAL_KEY_ID_BYTES])
{
    unsigned char text[64], digest[crypto_generichash_BYTES];
    int n = snprintf((char *)text, sizeof text - SEAL_KEY_BYTES, "hanji/key/1/%s", kinds[kind]);
    size_t at = (size_t)n + 1;
    memcpy(text + at, public_key, SEAL_KEY_BYTES);
    crypto_generichash(digest, sizeof digest, text, at + SEAL_KEY_BYTES, NULL, 0);
    memcpy(id, digest, SEAL_KEY_ID_BYTES);
}

void seal_key_hex(const unsigned char id[SEAL_KEY_ID_BYTES], char hex[SEAL_KEY_ID_HEX + 1])
{
    sodium_bin2hex(hex, SEAL_KEY_ID_HEX + 1, id, SEAL_KEY_ID_BYTES);
}

bool seal_key_unhex(struct seal_text hex, unsigned char id[SEAL_KEY_ID_BYTES])
{
    if (hex.n != SEAL_KEY_ID_HEX)
        return false;
    for (size_t i = 0; i < hex.n; i++)
        if (hex.p[i] >= 'A' && hex.p[i] <= 'F')
            return false; /* one spelling */
    return sodium_hex2bin(id, SEAL_KEY_ID_BYTES, hex.p, hex.n, NULL, NULL, NULL) == 0;
}

/* Below 2^255 - 19, without the top bit. */
static bool below_prime(const unsigned char key[SEAL_KEY_BYTES])
{
    if ((key[31] & 0x7f) != 0x7f || key[0] < 0xed)
        return true;
    for (int i = 1; i < 31; i++)
        if (key[i] != 0xff)
            return true;
    return false;
}

bool seal_key_sound(enum seal_key_kind kind, const unsigned char public_key[SEAL_KEY_BYTES])
{
    unsigned char other[SEAL_KEY_BYTES], scalar[SEAL_KEY_BYTES] = {8};
    if (!below_prime(public_key))
        return false;
    if (kind == SEAL_SEALING)
        return (public_key[31] & 0x80) == 0 && crypto_scalarmult(other, scalar, public_key) == 0;
    /* says no to what is of low order, not in the main subgroup, or no point at all */
    return crypto_sign_ed25519_pk_to_curve25519(other, public_key) == 0;
}

bool seal_key_valid(const struct seal_key *key, int64_t now_s)
{
    return key->valid_from <= now_s && (key->valid_until == 0 || now_s < key->valid_until);
}

bool seal_key_spent(const struct seal_key *key, int64_t now_s)
{
    return key->kind == SEAL_SEALING && key->valid_until != 0 &&
           now_s >= key->valid_until + SEAL_HORIZON_S;
}

void seal_key_succession(const unsigned char before[SEAL_KEY_BYTES],
                         const unsigned char after[SEAL_KEY_BYTES],
                         unsigned char text[SEAL_SUCCESSION_BYTES])
{
    static const char domain[] = "hanji/identity/next/1";
    _Static_assert(sizeof domain + 2 * SEAL_KEY_BYTES == SEAL_SUCCESSION_BYTES, "its length");
    memcpy(text, domain, sizeof domain);
    memcpy(text + sizeof domain, before, SEAL_KEY_BYTES);
    memcpy(text + sizeof domain + SEAL_KEY_BYTES, after, SEAL_KEY_BYTES);
}

/* ---- loading -------------------------------------------------------------------------------- */

enum { FILES_MAX = SEAL_KEYS_MAX * SEAL_KEY_KINDS };

/* Names of files that are to be read. */
struct listing {
    unsigned count;
    struct listed {
        char name[SEAL_KEY_NAME_MAX + 1]; /* one more: a longer name stays one that is wrong */
        bool credential;
    } file[FILES_MAX];
};

static bool is_key_file(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".key") == 0;
}

/* Adds a folder's files; takes dir. */
static bool list_files(int dir, bool credentials, struct listing *l, struct seal_error *error)
{
    DIR *d = fdopendir(dir);
    if (d == NULL) {
        close(dir);
        return SEAL_FAIL(error, "memory is short");
    }
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d)) != NULL;) {
        if (!is_key_file(e->d_name))
            continue;
        ok = l->count < FILES_MAX || SEAL_FAIL(error, "there are more than %d keys", FILES_MAX);
        if (!ok)
            break;
        struct listed *f = &l->file[l->count++];
        f->credential = credentials;
        snprintf(f->name, sizeof f->name, "%.*s", (int)sizeof f->name - 1, e->d_name);
    }
    closedir(d);
    return ok;
}

static bool make_room(struct seal_keys *k, unsigned n, struct seal_error *error)
{
    k->entry = calloc(n > 0 ? n : 1, sizeof *k->entry);
    k->place = calloc(n > 0 ? n : 1, sizeof *k->place);
    k->secret = sodium_allocarray(n > 0 ? n : 1, sizeof *k->secret);
    return (k->entry != NULL && k->place != NULL && k->secret != NULL) ||
           SEAL_FAIL(error, "memory is short");
}

/* < 0 when a stands before b: by kind, creation, those retired first, id. */
static int compare(const struct seal_key *a, const struct seal_key *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->created != b->created)
        return a->created < b->created ? -1 : 1;
    if ((a->retired != 0) != (b->retired != 0))
        return a->retired != 0 ? -1 : 1;
    return memcmp(a->id, b->id, sizeof a->id);
}

/* Puts an entry whose secret is in the place next to be used where it belongs; one that is there
 * already is passed over. */
static bool insert(struct seal_keys *k, const struct seal_key_file *f, struct seal_error *error)
{
    unsigned at = k->count;
    if (seal_keys_find(k, f->key.kind, f->key.id) != NULL)
        return true;
    if (k->of_kind[f->key.kind] == SEAL_KEYS_MAX)
        return SEAL_FAIL(error, "there are more than %d keys of kind %s", SEAL_KEYS_MAX,
                             kinds[f->key.kind]);
    while (at > 0 && compare(&f->key, &k->entry[at - 1].key) < 0)
        at--;
    memmove(&k->entry[at + 1], &k->entry[at], (k->count - at) * sizeof *k->entry);
    memmove(&k->place[at + 1], &k->place[at], (k->count - at) * sizeof *k->place);
    k->entry[at] = *f;
    k->place[at] = k->count++;
    k->of_kind[f->key.kind]++;
    return true;
}

static bool read_files(struct seal_keys *k, const int dirs[2], const struct listing *l,
                       struct seal_error *error)
{
    struct seal_key_file f;
    for (unsigned i = 0; i < l->count; i++) {
        const struct listed *one = &l->file[i];
        if (!seal_key_file_read(dirs[one->credential], one->name, one->credential, &f,
                                k->secret[k->count], error) ||
            !insert(k, &f, error))
            return false;
    }
    return true;
}

/* Opens both folders, one that is not there is -1. */
static bool open_folders(const char *folder, int dirs[2], struct seal_error *error)
{
    const char *names[2] = {folder, getenv("CREDENTIALS_DIRECTORY")};
    for (int i = 0; i < 2; i++) {
        if (names[i] == NULL || names[i][0] == 0)
            continue;
        dirs[i] = seal_key_folder(names[i], i == 1, error);
        if (dirs[i] < 0 && errno != ENOENT)
            return false;
    }
    return true;
}

/* In a copy of the descriptor, since reading a folder's list takes it. */
static bool list_folders(const int dirs[2], struct listing *l, struct seal_error *error)
{
    for (int i = 0; i < 2; i++) {
        int dir = dirs[i] >= 0 ? openat(dirs[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (dirs[i] >= 0 && dir < 0)
            return SEAL_FAIL(error, "the folder cannot be read: %s", strerror(errno));
        if (dir >= 0 && !list_files(dir, i == 1, l, error))
            return false;
    }
    return true;
}

bool seal_keys_load(const char *folder, struct seal_keys **keys, struct seal_error *error)
{
    int dirs[2] = {-1, -1};
    struct seal_keys *k = calloc(1, sizeof *k);
    struct listing *l = calloc(1, sizeof *l);
    bool ok = (k != NULL && l != NULL) || SEAL_FAIL(error, "memory is short");
    ok = ok && open_folders(folder, dirs, error) && list_folders(dirs, l, error) &&
         make_room(k, l->count, error) && read_files(k, dirs, l, error);
    if (ok)
        sodium_mprotect_readonly(k->secret);
    for (int i = 0; i < 2; i++)
        if (dirs[i] >= 0)
            close(dirs[i]);
    free(l);
    if (!ok) {
        seal_keys_free(k);
        k = NULL;
    }
    *keys = k;
    return ok;
}

struct seal_keys *seal_keys_none(void)
{
    return calloc(1, sizeof(struct seal_keys));
}

void seal_keys_free(struct seal_keys *keys)
{
    if (keys == NULL)
        return;
    sodium_free(keys->secret); /* overwrites */
    free(keys->place);
    free(keys->entry);
    free(keys);
}

/* ---- finding -------------------------------------------------------------------------------- */

const struct seal_key *seal_keys_at(const struct seal_keys *keys, unsigned i)
{
    return i < keys->count ? &keys->entry[i].key : NULL;
}

const struct seal_key *seal_keys_current(const struct seal_keys *keys, enum seal_key_kind kind,
                                         int64_t now_s)
{
    for (unsigned i = keys->count; i > 0; i--) {
        const struct seal_key *key = &keys->entry[i - 1].key;
        if (key->kind == kind && key->retired == 0 && seal_key_valid(key, now_s))
            return key;
    }
    return NULL;
}

/* Its place in the order, keys->count: it is not there. */
static unsigned index_of(const struct seal_keys *keys, enum seal_key_kind kind,
                         const unsigned char id[SEAL_KEY_ID_BYTES])
{
    unsigned i = 0;
    while (i < keys->count && (keys->entry[i].key.kind != kind ||
                               memcmp(keys->entry[i].key.id, id, SEAL_KEY_ID_BYTES) != 0))
        i++;
    return i;
}

const struct seal_key *seal_keys_find(const struct seal_keys *keys, enum seal_key_kind kind,
                                      const unsigned char id[SEAL_KEY_ID_BYTES])
{
    return seal_keys_at(keys, index_of(keys, kind, id));
}

/* NULL: it is not in the set. */
static const unsigned char *secret_of(const struct seal_keys *keys, const struct seal_key *key)
{
    unsigned i = index_of(keys, key->kind, key->id);
    return i < keys->count ? keys->secret[keys->place[i]] : NULL;
}

unsigned seal_keys_previous(const struct seal_keys *keys, const struct seal_key *identity,
                            const struct seal_previous **list)
{
    unsigned i = index_of(keys, identity->kind, identity->id);
    *list = i < keys->count ? keys->entry[i].previous : NULL;
    return i < keys->count ? keys->entry[i].previous_count : 0;
}

/* ---- using ---------------------------------------------------------------------------------- */

bool seal_keys_sign(const struct seal_keys *keys, const struct seal_key *key, const void *p,
                    size_t n, unsigned char signature[SEAL_SIGNATURE_BYTES])
{
    const unsigned char *secret = secret_of(keys, key);
    bool signs = key->kind == SEAL_IDENTITY || key->kind == SEAL_TRANSPORT;
    return signs && secret != NULL && crypto_sign_detached(signature, NULL, p, n, secret) == 0;
}

bool seal_keys_open(const struct seal_keys *keys, const struct seal_key *key, const void *p,
                    size_t n, void *out)
{
    const unsigned char *secret = secret_of(keys, key);
    return key->kind == SEAL_SEALING && secret != NULL && n >= crypto_box_SEALBYTES &&
           crypto_box_seal_open(out, p, n, key->key, secret) == 0;
}

enum {
    HIDDEN_VERSION = 1,
    NONCE_BYTES = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    HIDDEN_HEAD = 1 + SEAL_KEY_ID_BYTES + NONCE_BYTES,
};

_Static_assert((int)HIDDEN_HEAD + (int)crypto_aead_xchacha20poly1305_ietf_ABYTES ==
                   (int)SEAL_HIDDEN_EXTRA,
               "version, id, nonce, tag");

/* What hides, of a local key's secret. */
static void hiding_key(const unsigned char *secret, unsigned char key[SEAL_KEY_BYTES])
{
    crypto_kdf_derive_from_key(key, SEAL_KEY_BYTES, 1, "hanjihid", secret);
}

/* What the text is bound to: a hash, so that there is no bound to the length of about. */
static void hidden_about(const unsigned char head[HIDDEN_HEAD], struct seal_text about,
                         unsigned char digest[crypto_generichash_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, crypto_generichash_BYTES);
    crypto_generichash_update(&state, head, HIDDEN_HEAD);
    crypto_generichash_update(&state, (const unsigned char *)about.p, about.n);
    crypto_generichash_final(&state, digest, crypto_generichash_BYTES);
}

/* The newest one that is not retired. */
static const struct seal_key *local_key(const struct seal_keys *keys)
{
    for (unsigned i = keys->count; i > 0; i--)
        if (keys->entry[i - 1].key.kind == SEAL_LOCAL && keys->entry[i - 1].key.retired == 0)
            return &keys->entry[i - 1].key;
    return NULL;
}

size_t seal_hide(const struct seal_keys *keys, struct seal_text about, const void *p, size_t n,
                 unsigned char *out)
{
    const struct seal_key *key = local_key(keys);
    unsigned char with[SEAL_KEY_BYTES], digest[crypto_generichash_BYTES];
    if (key == NULL)
        return 0;
    out[0] = HIDDEN_VERSION;
    memcpy(out + 1, key->id, SEAL_KEY_ID_BYTES);
    randombytes_buf(out + 1 + SEAL_KEY_ID_BYTES, NONCE_BYTES);
    hiding_key(secret_of(keys, key), with);
    hidden_about(out, about, digest);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out + HIDDEN_HEAD, NULL, p, n, digest,
                                               sizeof digest, NULL, out + 1 + SEAL_KEY_ID_BYTES,
                                               with);
    sodium_memzero(with, sizeof with);
    return n + SEAL_HIDDEN_EXTRA;
}

bool seal_show(const struct seal_keys *keys, struct seal_text about, const void *p, size_t n,
               unsigned char *out, size_t *shown)
{
    const unsigned char *in = p;
    unsigned char with[SEAL_KEY_BYTES], digest[crypto_generichash_BYTES];
    struct seal_key key = {.kind = SEAL_LOCAL};
    *shown = 0;
    if (n < SEAL_HIDDEN_EXTRA || in[0] != HIDDEN_VERSION)
        return false;
    memcpy(key.id, in + 1, SEAL_KEY_ID_BYTES);
    const unsigned char *secret = secret_of(keys, &key);
    if (secret == NULL)
        return false;
    hiding_key(secret, with);
    hidden_about(in, about, digest);
    bool ok = crypto_aead_xchacha20poly1305_ietf_decrypt(
                  out, NULL, NULL, in + HIDDEN_HEAD, n - HIDDEN_HEAD, digest, sizeof digest,
                  in + 1 + SEAL_KEY_ID_BYTES, with) == 0;
    sodium_memzero(with, sizeof with);
    *shown = ok ? n - SEAL_HIDDEN_EXTRA : 0;
    return ok;
}
