/* seal/keys: what is made is found again, by the next process, too, and a file that is not as it must be is refused. */
#include "seal/keys.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/temp.h"

#define TEXT(s) ((struct seal_text){(s), strlen(s)})
#define NOW 1764556800

static struct seal_error error;
static struct seal_keys *keys;
static char folder[1024];

static void init(void)
{
    ck_assert(seal_init());
    unsetenv("CREDENTIALS_DIRECTORY");
    snprintf(folder, sizeof folder, "%s", temp_path("keys"));
    keys = NULL;
}

static void done(void)
{
    seal_keys_free(keys);
}

static bool load(void)
{
    seal_keys_free(keys);
    return seal_keys_load(folder, &keys, &error);
}

static struct seal_key make_at(enum seal_key_kind kind, int64_t now, int64_t until)
{
    struct seal_key made;
    ck_assert_msg(seal_key_new(folder, kind, now, until, &made, &error), "%s", error.text);
    return made;
}

static struct seal_key make(enum seal_key_kind kind)
{
    return make_at(kind, NOW, 0);
}

/* The name of a key's file. Valid until the eighth next call of temp_path. */
static const char *file_of(const struct seal_key *key)
{
    char hex[SEAL_KEY_ID_HEX + 1], name[100];
    seal_key_hex(key->id, hex);
    snprintf(name, sizeof name, "keys/%s-%s.key", seal_key_kind_name(key->kind), hex);
    return temp_path(name);
}

/* The file of a key with one text in it replaced; the name stays. */
static void edit(const struct seal_key *key, const char *what, const char *by)
{
    size_t n;
    const char *path = file_of(key);
    char out[4096], *text = temp_read(path, &n);
    text = realloc(text, n + 1);
    text[n] = 0;
    char *at = strstr(text, what);
    ck_assert_ptr_nonnull(at);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
    FILE *f = fopen(path, "w");
    fputs(out, f);
    fclose(f);
    free(text);
}

START_TEST(a_folder_that_is_not_there_is_an_empty_set)
{
    ck_assert(load());
    ck_assert_ptr_null(seal_keys_at(keys, 0));
    ck_assert_ptr_null(seal_keys_current(keys, SEAL_IDENTITY, NOW));
}
END_TEST

START_TEST(each_kind_is_found_again)
{
    struct seal_key made = make_at((enum seal_key_kind)_i, NOW, NOW + 10);
    ck_assert(load());
    const struct seal_key *key = seal_keys_at(keys, 0);
    ck_assert_mem_eq(key->id, made.id, sizeof made.id);
    ck_assert_mem_eq(key->key, made.key, sizeof made.key);
    ck_assert_int_eq(key->kind, _i);
    ck_assert_int_eq(key->created, NOW);
    ck_assert_int_eq(key->valid_from, NOW);
    ck_assert_int_eq(key->valid_until, NOW + 10);
    ck_assert_int_eq(key->retired, 0);
    ck_assert(!key->credential);
    ck_assert_ptr_eq(seal_keys_find(keys, (enum seal_key_kind)_i, made.id), key);
    ck_assert_ptr_null(seal_keys_at(keys, 1));
}
END_TEST

START_TEST(files_and_folder_are_the_owners_alone)
{
    struct stat st;
    struct seal_key made = make(SEAL_LOCAL);
    ck_assert_int_eq(stat(folder, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(file_of(&made), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(an_id_is_a_hash_of_kind_and_key)
{
    unsigned char key[SEAL_KEY_BYTES] = {0}, id[SEAL_KEY_ID_BYTES], back[SEAL_KEY_ID_BYTES];
    char hex[SEAL_KEY_ID_HEX + 1];
    seal_key_id(SEAL_IDENTITY, key, id);
    seal_key_hex(id, hex);
    ck_assert_str_eq(hex, "1f6b2c6d264390b378537773651ef11e");
    ck_assert(seal_key_unhex(TEXT(hex), back));
    ck_assert_mem_eq(back, id, sizeof id);
    seal_key_id(SEAL_TRANSPORT, key, back);
    ck_assert_mem_ne(back, id, sizeof id);
}
END_TEST

START_TEST(what_is_no_id)
{
    static const char *const wrong[] = {"", "00", "0000000000000000000000000000000",
                                        "000000000000000000000000000000000",
                                        "0000000000000000000000000000000g",
                                        "0000000000000000000000000000000A",
                                        " 0000000000000000000000000000000"};
    unsigned char id[SEAL_KEY_ID_BYTES];
    ck_assert(!seal_key_unhex(TEXT(wrong[_i]), id));
}
END_TEST

START_TEST(the_newest_valid_one_is_current)
{
    struct seal_key old = make_at(SEAL_SEALING, NOW - 100, NOW + 1000);
    struct seal_key next = make_at(SEAL_SEALING, NOW - 50, NOW + 10);
    struct seal_key future = make_at(SEAL_SEALING, NOW + 500, 0);
    ck_assert(load());
    ck_assert_mem_eq(seal_keys_current(keys, SEAL_SEALING, NOW)->id, next.id, sizeof next.id);
    ck_assert_mem_eq(seal_keys_current(keys, SEAL_SEALING, NOW + 10)->id, old.id, sizeof old.id);
    ck_assert_mem_eq(seal_keys_current(keys, SEAL_SEALING, NOW + 500)->id, future.id, sizeof old.id);
    ck_assert_ptr_null(seal_keys_current(keys, SEAL_SEALING, NOW - 101));
    ck_assert_ptr_null(seal_keys_current(keys, SEAL_TRANSPORT, NOW));
}
END_TEST

START_TEST(a_retired_one_is_not_current_and_still_there)
{
    struct seal_key made = make(SEAL_TRANSPORT);
    ck_assert(seal_key_retire(folder, &made, NOW + 5, NOW + 50, &error));
    ck_assert(load());
    ck_assert_ptr_null(seal_keys_current(keys, SEAL_TRANSPORT, NOW + 6));
    const struct seal_key *key = seal_keys_find(keys, SEAL_TRANSPORT, made.id);
    ck_assert_ptr_nonnull(key);
    ck_assert_int_eq(key->retired, NOW + 5);
    ck_assert(seal_key_valid(key, NOW + 49));
    ck_assert(!seal_key_valid(key, NOW + 50));
}
END_TEST

START_TEST(keys_of_one_second_are_told_apart_by_retirement)
{
    struct seal_key a = make(SEAL_SEALING), b = make(SEAL_SEALING);
    const struct seal_key *old = _i == 0 ? &a : &b, *new = _i == 0 ? &b : &a;
    ck_assert(seal_key_retire(folder, old, NOW, NOW + 100, &error));
    ck_assert(load());
    ck_assert_mem_eq(seal_keys_at(keys, 0)->id, old->id, sizeof a.id);
    ck_assert_mem_eq(seal_keys_current(keys, SEAL_SEALING, NOW)->id, new->id, sizeof a.id);
}
END_TEST

START_TEST(only_a_sealing_key_is_spent_and_only_behind_its_horizon)
{
    struct seal_key key = {.kind = SEAL_SEALING, .valid_until = NOW};
    ck_assert(!seal_key_spent(&key, NOW + SEAL_HORIZON_S - 1));
    ck_assert(seal_key_spent(&key, NOW + SEAL_HORIZON_S));
    key.valid_until = 0;
    ck_assert(!seal_key_spent(&key, NOW + SEAL_HORIZON_S));
    key = (struct seal_key){.kind = SEAL_IDENTITY, .valid_until = NOW};
    ck_assert(!seal_key_spent(&key, NOW + 10 * SEAL_HORIZON_S));
}
END_TEST

START_TEST(what_is_destroyed_is_gone)
{
    struct seal_key made = make(SEAL_SEALING), other = make(SEAL_SEALING);
    ck_assert(seal_key_destroy(folder, &made, &error));
    ck_assert(load());
    ck_assert_ptr_null(seal_keys_find(keys, SEAL_SEALING, made.id));
    ck_assert_ptr_nonnull(seal_keys_find(keys, SEAL_SEALING, other.id));
    ck_assert(!seal_key_destroy(folder, &made, &error));
    ck_assert(!seal_key_retire(folder, &made, NOW, NOW, &error));
}
END_TEST

START_TEST(it_is_overwritten_before_it_is_removed)
{
    struct seal_key made = make(SEAL_SEALING);
    size_t n;
    ck_assert_int_eq(link(file_of(&made), temp_path("kept")), 0);
    ck_assert(seal_key_destroy(folder, &made, &error));
    char *text = temp_read(temp_path("kept"), &n);
    ck_assert_uint_gt(n, 100);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(text[i], 0);
    free(text);
}
END_TEST

START_TEST(both_signing_kinds_sign)
{
    unsigned char sig[SEAL_SIGNATURE_BYTES];
    struct seal_key made = make(_i == 0 ? SEAL_IDENTITY : SEAL_TRANSPORT);
    ck_assert(load());
    ck_assert(seal_keys_sign(keys, &made, "abc", 3, sig));
    ck_assert_int_eq(crypto_sign_verify_detached(sig, (const unsigned char *)"abc", 3, made.key), 0);
}
END_TEST

START_TEST(what_does_not_sign)
{
    unsigned char sig[SEAL_SIGNATURE_BYTES];
    struct seal_key sealing = make(SEAL_SEALING), local = make(SEAL_LOCAL), gone = make(SEAL_IDENTITY);
    ck_assert(seal_key_destroy(folder, &gone, &error));
    ck_assert(load());
    ck_assert(!seal_keys_sign(keys, &sealing, "abc", 3, sig));
    ck_assert(!seal_keys_sign(keys, &local, "abc", 3, sig));
    ck_assert(!seal_keys_sign(keys, &gone, "abc", 3, sig));
}
END_TEST

START_TEST(a_sealed_box_opens_with_its_key_alone)
{
    unsigned char box[3 + crypto_box_SEALBYTES];
    char out[4] = "";
    struct seal_key made = make(SEAL_SEALING), other = make(SEAL_SEALING), signer = make(SEAL_IDENTITY);
    ck_assert(load());
    ck_assert_int_eq(crypto_box_seal(box, (const unsigned char *)"abc", 3, made.key), 0);
    ck_assert(seal_keys_open(keys, &made, box, sizeof box, out));
    ck_assert_str_eq(out, "abc");
    ck_assert(!seal_keys_open(keys, &other, box, sizeof box, out));
    ck_assert(!seal_keys_open(keys, &signer, box, sizeof box, out));
    for (size_t n = 0; n < sizeof box; n++)
        ck_assert(!seal_keys_open(keys, &made, box, n, out));
    for (size_t i = 0; i < sizeof box * 8; i++) {
        box[i / 8] ^= (unsigned char)(1 << i % 8);
        ck_assert(!seal_keys_open(keys, &made, box, sizeof box, out));
        box[i / 8] ^= (unsigned char)(1 << i % 8);
    }
}
END_TEST

START_TEST(what_was_hidden_is_shown_about_the_same)
{
    unsigned char hidden[6 + SEAL_HIDDEN_EXTRA], out[sizeof hidden];
    size_t n;
    make(SEAL_LOCAL);
    ck_assert(load());
    ck_assert_uint_eq(seal_hide(keys, TEXT("line:a"), "secret", 6, hidden), sizeof hidden);
    ck_assert(seal_show(keys, TEXT("line:a"), hidden, sizeof hidden, out, &n));
    ck_assert_uint_eq(n, 6);
    ck_assert_mem_eq(out, "secret", 6);
    ck_assert(!seal_show(keys, TEXT("line:b"), hidden, sizeof hidden, out, &n));
    for (size_t cut = 0; cut < sizeof hidden; cut++)
        ck_assert(!seal_show(keys, TEXT("line:a"), hidden, cut, out, &n));
    for (size_t i = 0; i < sizeof hidden; i++) {
        hidden[i] ^= 1;
        ck_assert(!seal_show(keys, TEXT("line:a"), hidden, sizeof hidden, out, &n));
        hidden[i] ^= 1;
    }
}
END_TEST

START_TEST(a_retired_local_key_shows_and_does_not_hide)
{
    unsigned char hidden[2 + SEAL_HIDDEN_EXTRA], out[2];
    size_t n;
    struct seal_key old = make(SEAL_LOCAL);
    ck_assert(load());
    ck_assert_uint_gt(seal_hide(keys, TEXT("a"), "hi", 2, hidden), 0);
    ck_assert(seal_key_retire(folder, &old, NOW + 1, NOW + 1, &error));
    ck_assert(load());
    ck_assert(seal_show(keys, TEXT("a"), hidden, sizeof hidden, out, &n));
    ck_assert_uint_eq(seal_hide(keys, TEXT("a"), "hi", 2, hidden), 0);
    ck_assert(seal_key_destroy(folder, &old, &error));
    make(SEAL_LOCAL);
    ck_assert(load());
    ck_assert(!seal_show(keys, TEXT("a"), hidden, sizeof hidden, out, &n));
}
END_TEST

/* Follows an identity n times. */
static struct seal_key follow(struct seal_key old, unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        struct seal_key made = {.created = NOW + (int)i, .valid_until = 0};
        ck_assert(load());
        ck_assert_msg(seal_key_follow(folder, keys, &old, &made, &error), "%s", error.text);
        old = made;
    }
    ck_assert(load());
    return old;
}

START_TEST(an_identity_that_follows_remembers_who_signed_it)
{
    unsigned char text[SEAL_SUCCESSION_BYTES];
    const struct seal_previous *list;
    struct seal_key old = make(SEAL_IDENTITY), new = follow(old, 1);
    ck_assert_mem_eq(seal_keys_current(keys, SEAL_IDENTITY, NOW + 1)->id, new.id, sizeof new.id);
    ck_assert_uint_eq(seal_keys_previous(keys, &new, &list), 1);
    ck_assert_mem_eq(list->key, old.key, sizeof old.key);
    seal_key_succession(old.key, new.key, text);
    ck_assert_int_eq(crypto_sign_verify_detached(list->signature, text, sizeof text, old.key), 0);
    ck_assert_uint_eq(seal_keys_previous(keys, &old, &list), 0);
}
END_TEST

START_TEST(it_remembers_seven_without_their_files)
{
    const struct seal_previous *list;
    struct seal_key first = make(SEAL_IDENTITY), last = follow(first, 9);
    ck_assert(seal_key_destroy(folder, &first, &error));
    ck_assert(load());
    ck_assert_uint_eq(seal_keys_previous(keys, &last, &list), SEAL_PREVIOUS_MAX);
}
END_TEST

START_TEST(an_identity_that_is_not_there_is_not_followed)
{
    struct seal_key old = make(SEAL_IDENTITY), made = {.created = NOW};
    ck_assert(seal_key_destroy(folder, &old, &error));
    ck_assert(load());
    ck_assert(!seal_key_follow(folder, keys, &old, &made, &error));
    ck_assert(load());
    ck_assert_ptr_null(seal_keys_at(keys, 0));
}
END_TEST

/* ---- files that are refused ----------------------------------------------------------------- */

static void refused(const char *why)
{
    ck_assert(!load());
    ck_assert_ptr_null(keys);
    ck_assert_msg(strstr(error.text, why) != NULL, "%s", error.text);
}

START_TEST(rights_of_others_are_refused)
{
    static const mode_t modes[] = {0640, 0604, 0660, 0602, 0610, 0601};
    struct seal_key made = make(SEAL_LOCAL);
    ck_assert_int_eq(chmod(file_of(&made), modes[_i]), 0);
    refused("chmod 600");
}
END_TEST

START_TEST(a_folder_others_write_in_is_refused)
{
    make(SEAL_LOCAL);
    ck_assert_int_eq(chmod(folder, _i == 0 ? 0720 : 0702), 0);
    refused("chmod 700");
}
END_TEST

START_TEST(a_symbolic_link_is_refused)
{
    struct seal_key made = make(SEAL_LOCAL);
    ck_assert_int_eq(rename(file_of(&made), temp_path("elsewhere")), 0);
    ck_assert_int_eq(symlink(temp_path("elsewhere"), file_of(&made)), 0);
    refused("symbolic link");
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    struct seal_key made = make(SEAL_LOCAL);
    ck_assert_int_eq(unlink(file_of(&made)), 0);
    ck_assert_int_eq(_i == 0 ? mkdir(file_of(&made), 0700) : mkfifo(file_of(&made), 0600), 0);
    refused("regular");
}
END_TEST

START_TEST(another_owner_is_refused)
{
    struct seal_key made = make(SEAL_LOCAL);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(file_of(&made), 12345, 12345), 0);
    refused("belongs to user 12345");
    ck_assert_int_eq(chown(folder, 12345, 12345), 0);
    ck_assert_msg(load(), "root reads what belongs to the folder's owner: %s", error.text);
    struct seal_key next = make(SEAL_LOCAL);
    struct stat st;
    ck_assert_int_eq(stat(file_of(&next), &st), 0);
    ck_assert_uint_eq(st.st_uid, 12345);
}
END_TEST

START_TEST(a_name_of_another_key_is_refused)
{
    struct seal_key a = make(SEAL_SEALING), b = make(SEAL_SEALING);
    ck_assert_int_eq(rename(file_of(&a), file_of(&b)), 0);
    refused("in it is the key of sealing-");
}
END_TEST

START_TEST(other_names_that_end_in_key_are_refused)
{
    static const char *const names[] = {"keys/a.key", "keys/sealing.key", "keys/a-very-long-name-that-is-longer-"
                                        "than-any-name-of-a-key-can-be-and-a-bit-more.key"};
    struct seal_key made = make(SEAL_SEALING);
    ck_assert_int_eq(rename(file_of(&made), temp_path(names[_i])), 0);
    ck_assert(!load());
}
END_TEST

START_TEST(other_files_are_passed_over)
{
    make(SEAL_LOCAL);
    temp_file("keys/README", "x", 1);
    temp_file("keys/.hidden.key", "x", 1);
    temp_file("keys/local-00.tmp", "x", 1);
    temp_file("keys/.key", "x", 1);
    ck_assert(load());
    ck_assert_ptr_null(seal_keys_at(keys, 1));
}
END_TEST

static const struct {
    const char *what, *by;
} damage[] = {
    {"hanji key 1", "hanji key 2"},
    {"hanji key 1", "hanji key 11"},
    {"hanji key 1", "hanji key "},
    {"hanji key 1\n", ""},
    {"hanji key 1\n", "hanji key 1\r\n"},
    {"kind identity", "kind sealing"},
    {"kind identity", "kind identities"},
    {"kind identity", "kind an-identity-with-a-long-name"},
    {"kind identity\n", ""},
    {"kind ", "kind  "},
    {"kind identity", "kind\tidentity"},
    {"created 1764556800", "created -1764556800"},
    {"created 1764556800", "created 01764556800"},
    {"created 1764556800", "created "},
    {"created 1764556800", "created 9007199254740992"},
    {"created 1764556800", "created 99999999999999999999"},
    {"created 1764556800", "created 1764556800.5"},
    {"created 1764556800", "created 0x10"},
    {"created 1764556800", "created 1764556800 "},
    {"from 1764556800\n", ""},
    {"until 0", "until never"},
    {"retired 0\n", "retired 0\nmore 1\n"},
    {"secret ", "secret A"},
    {"secret ", "secret AAAA"},
    {"secret ", "sekret "},
    {"=\n", "\n"},
    {"=\n", "= \n"},
    {"=\n", "="},
    {"=\n", "=\n\n"},
    {"=\n", "=\nprevious \n"},
    {"=\n", "=\nprevious a b c d\n"},
    {"=\n", "=\nx"},
};

START_TEST(a_damaged_file_is_refused)
{
    struct seal_key made = make(SEAL_IDENTITY);
    edit(&made, damage[_i].what, damage[_i].by);
    ck_assert(!load());
}
END_TEST

START_TEST(a_cut_file_is_refused)
{
    struct seal_key made = make(SEAL_TRANSPORT);
    struct stat st;
    ck_assert_int_eq(stat(file_of(&made), &st), 0);
    for (off_t n = st.st_size - 1; n >= 0; n--) {
        ck_assert_int_eq(truncate(file_of(&made), n), 0);
        ck_assert(!load());
    }
}
END_TEST

START_TEST(a_large_file_is_refused)
{
    struct seal_key made = make(SEAL_TRANSPORT);
    ck_assert_int_eq(truncate(file_of(&made), 1 << 20), 0);
    refused("too large");
}
END_TEST

START_TEST(a_chain_that_was_changed_is_refused)
{
    struct seal_key new = follow(make(SEAL_IDENTITY), 2);
    switch (_i) {
    case 0:
        edit(&new, "previous ", "previous  ");
        break;
    case 1: { /* its second link alone */
        size_t n;
        char *text = temp_read(file_of(&new), &n), line[400];
        text = realloc(text, n + 1);
        text[n] = 0;
        char *first = strstr(text, "previous "), *second = strstr(first + 1, "previous ");
        snprintf(line, sizeof line, "%.*s", (int)(second - first), first);
        free(text);
        edit(&new, line, "");
        break;
    }
    default:
        edit(&new, "kind identity", "kind transport");
    }
    ck_assert(!load());
}
END_TEST

START_TEST(more_keys_than_there_may_be_are_refused)
{
    for (int i = 0; i < SEAL_KEYS_MAX; i++)
        make(SEAL_LOCAL);
    ck_assert(load());
    make(SEAL_LOCAL);
    refused("more than 64 keys of kind local");
}
END_TEST

/* ---- credentials ---------------------------------------------------------------------------- */

START_TEST(credentials_count_and_cannot_be_changed)
{
    struct seal_key made = make(SEAL_IDENTITY);
    ck_assert_int_eq(chmod(file_of(&made), 0440), 0);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    char from[1024];
    snprintf(from, sizeof from, "%s", folder);
    snprintf(folder, sizeof folder, "%s", temp_path("own"));
    ck_assert_msg(load(), "%s", error.text);
    const struct seal_key *key = seal_keys_current(keys, SEAL_IDENTITY, NOW);
    ck_assert_ptr_nonnull(key);
    ck_assert(key->credential);
    ck_assert(!seal_key_retire(from, key, NOW, NOW, &error));
    ck_assert(!seal_key_destroy(from, key, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "systemd"));
}
END_TEST

START_TEST(a_key_in_both_folders_is_one_key)
{
    make(SEAL_IDENTITY);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    ck_assert(load());
    ck_assert(!seal_keys_at(keys, 0)->credential);
    ck_assert_ptr_null(seal_keys_at(keys, 1));
}
END_TEST

START_TEST(credentials_that_others_read_are_refused)
{
    struct seal_key made = make(SEAL_IDENTITY);
    ck_assert_int_eq(chmod(file_of(&made), 0444), 0);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    snprintf(folder, sizeof folder, "%s", temp_path("own"));
    ck_assert(!load());
}
END_TEST

/* ---- public keys ---------------------------------------------------------------------------- */

/* X25519 points of low order and spellings of them (RFC 7748, and libsodium's list), little-endian hex. */
static const char *const low_order[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    /* not of low order: 9, the base point, with the top bit; and p + 9 */
    "0900000000000000000000000000000000000000000000000000000000000080",
    "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
};

START_TEST(sealing_keys_that_are_not_sound)
{
    unsigned char key[SEAL_KEY_BYTES];
    sodium_hex2bin(key, sizeof key, low_order[_i], 64, NULL, NULL, NULL);
    ck_assert(!seal_key_sound(SEAL_SEALING, key));
}
END_TEST

/* Ed25519 points of low order, and what is no point. */
static const char *const weak[] = {
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0200000000000000000000000000000000000000000000000000000000000000",
};

START_TEST(signing_keys_that_are_not_sound)
{
    unsigned char key[SEAL_KEY_BYTES];
    sodium_hex2bin(key, sizeof key, weak[_i], 64, NULL, NULL, NULL);
    ck_assert(!seal_key_sound(SEAL_IDENTITY, key));
    ck_assert(!seal_key_sound(SEAL_TRANSPORT, key));
}
END_TEST

START_TEST(our_own_are_sound)
{
    for (int i = 0; i < 20; i++)
        for (enum seal_key_kind kind = SEAL_IDENTITY; kind <= SEAL_SEALING; kind++) {
            struct seal_key made = make(kind);
            ck_assert(seal_key_sound(kind, made.key));
        }
}
END_TEST

static void files_case(Suite *s)
{
    TCase *t = run_case(s, "refused");
    temp_use(t);
    tcase_add_checked_fixture(t, init, done);
    tcase_add_loop_test(t, rights_of_others_are_refused, 0, 6);
    tcase_add_loop_test(t, a_folder_others_write_in_is_refused, 0, 2);
    tcase_add_test(t, a_symbolic_link_is_refused);
    tcase_add_loop_test(t, what_is_no_file_is_refused, 0, 2);
    tcase_add_test(t, another_owner_is_refused);
    tcase_add_test(t, a_name_of_another_key_is_refused);
    tcase_add_loop_test(t, other_names_that_end_in_key_are_refused, 0, 3);
    tcase_add_test(t, other_files_are_passed_over);
    tcase_add_loop_test(t, a_damaged_file_is_refused, 0, COUNT(damage));
    tcase_add_test(t, a_cut_file_is_refused);
    tcase_add_test(t, a_large_file_is_refused);
    tcase_add_loop_test(t, a_chain_that_was_changed_is_refused, 0, 3);
    tcase_add_test(t, more_keys_than_there_may_be_are_refused);
    tcase_add_test(t, credentials_count_and_cannot_be_changed);
    tcase_add_test(t, a_key_in_both_folders_is_one_key);
    tcase_add_test(t, credentials_that_others_read_are_refused);
    tcase_add_loop_test(t, sealing_keys_that_are_not_sound, 0, COUNT(low_order));
    tcase_add_loop_test(t, signing_keys_that_are_not_sound, 0, COUNT(weak));
    tcase_add_test(t, our_own_are_sound);
}

int main(void)
{
    Suite *s = suite_create("keys");
    TCase *t = run_case(s, "set");
    temp_use(t);
    tcase_add_checked_fixture(t, init, done);
    tcase_add_test(t, a_folder_that_is_not_there_is_an_empty_set);
    tcase_add_loop_test(t, each_kind_is_found_again, 0, SEAL_KEY_KINDS);
    tcase_add_test(t, files_and_folder_are_the_owners_alone);
    tcase_add_test(t, an_id_is_a_hash_of_kind_and_key);
    tcase_add_loop_test(t, what_is_no_id, 0, 7);
    tcase_add_test(t, the_newest_valid_one_is_current);
    tcase_add_test(t, a_retired_one_is_not_current_and_still_there);
    tcase_add_loop_test(t, keys_of_one_second_are_told_apart_by_retirement, 0, 2);
    tcase_add_test(t, only_a_sealing_key_is_spent_and_only_behind_its_horizon);
    tcase_add_test(t, what_is_destroyed_is_gone);
    tcase_add_test(t, it_is_overwritten_before_it_is_removed);
    tcase_add_loop_test(t, both_signing_kinds_sign, 0, 2);
    tcase_add_test(t, what_does_not_sign);
    tcase_add_test(t, a_sealed_box_opens_with_its_key_alone);
    tcase_add_test(t, what_was_hidden_is_shown_about_the_same);
    tcase_add_test(t, a_retired_local_key_shows_and_does_not_hide);
    tcase_add_test(t, an_identity_that_follows_remembers_who_signed_it);
    tcase_add_test(t, it_remembers_seven_without_their_files);
    tcase_add_test(t, an_identity_that_is_not_there_is_not_followed);
    files_case(s);
    return run_suite(s);
}
