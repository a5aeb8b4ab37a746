/* hanji key new|list|export|show|rotate|retire|prune
 *
 * Works on the folder; a server that runs notices within a second. Each kind has one key that is
 * used now; new makes it where it is missing, rotate puts another in its place while the old one
 * stays valid for the overlap, and prune destroys what nobody may need any more. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fcgi/rights.h"
#include "handlers/ctl.h"
#include "seal/keys.h"

enum { DAY_S = 24 * 3600, DAYS_MAX = 36500, VALID_DAYS = 30, OVERLAP_DAYS = 7, ID_PREFIX_MIN = 8 };

/* What a command works with. */
struct work {
    const char *folder;
    struct seal_keys *keys;
    int64_t now_s;
    enum seal_key_kind kind;     /* SEAL_KEY_KINDS: none was given */
    long valid_days, overlap_days; /* -1: not given */
};

static int usage(const char *why)
{
    fprintf(stderr,
            "hanji key: %s\n"
            "usage: hanji [-c CONF] key new [KIND [--valid DAYS]]\n"
            "       hanji [-c CONF] key list\n"
            "       hanji [-c CONF] key export\n"
            "       hanji [-c CONF] key show FILE|-|CARD\n"
            "       hanji [-c CONF] key rotate KIND [--overlap DAYS] [--valid DAYS]\n"
            "       hanji [-c CONF] key retire ID\n"
            "       hanji [-c CONF] key prune\n"
            "A KIND is identity, transport, sealing or local.\n",
            why);
    return CTL_USAGE;
}

static int failed(const char *why)
{
    fprintf(stderr, "hanji key: %s\n", why);
    return CTL_FAILED;
}

static void print_key(const struct seal_key *key)
{
    char hex[SEAL_KEY_ID_HEX + 1];
    seal_key_hex(key->id, hex);
    printf("%s\t%s\t", seal_key_kind_name(key->kind), hex);
}

/* A flag's value; false: it is no number of days. */
static bool take_days(const char *text, long *days)
{
    char *end;
    *days = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    return *days >= 0 && *end == 0 && *days <= DAYS_MAX;
}

/* [KIND] [--valid DAYS] [--overlap DAYS]. NULL, or what is wrong. */
static const char *take_words(struct work *w, int argc, char **argv, bool overlaps)
{
    w->kind = SEAL_KEY_KINDS;
    w->valid_days = w->overlap_days = -1;
    for (int i = 0; i < argc; i++) {
        bool valid = strcmp(argv[i], "--valid") == 0;
        if (valid || (overlaps && strcmp(argv[i], "--overlap") == 0)) {
            long *days = valid ? &w->valid_days : &w->overlap_days;
            if (++i == argc || !take_days(argv[i], days) || (valid && *days == 0))
                return valid ? "--valid is a number of days, from 1"
                             : "--overlap is a number of days, from 0";
        } else if (w->kind != SEAL_KEY_KINDS) {
            return "one KIND at a time";
        } else if ((w->kind = seal_key_kind_named(argv[i])) == SEAL_KEY_KINDS) {
            return "that is no KIND";
        }
    }
    return NULL;
}

static const struct seal_key *current(const struct work *w, enum seal_key_kind kind)
{
    return seal_keys_current(w->keys, kind, w->now_s);
}

static int64_t end_of(const struct work *w, enum seal_key_kind kind)
{
    if (w->valid_days >= 0)
        return w->now_s + w->valid_days * DAY_S;
    return kind == SEAL_SEALING ? w->now_s + VALID_DAYS * DAY_S : 0;
}

/* One more of a kind than a set may have would make all of them unreadable. */
static bool has_room(const struct work *w, enum seal_key_kind kind)
{
    const struct seal_key *key;
    unsigned n = 0;
    for (unsigned i = 0; (key = seal_keys_at(w->keys, i)) != NULL; i++)
        n += key->kind == kind;
    return n < SEAL_KEYS_MAX;
}

/* Makes a key, an identity as one that follows old (NULL: none), and prints it. */
static int make(const struct work *w, enum seal_key_kind kind, const struct seal_key *old)
{
    struct seal_error error;
    struct seal_key made = {.created = w->now_s, .valid_until = end_of(w, kind)};
    if (!has_room(w, kind))
        return failed("there are as many keys of this kind as there may be; `hanji key prune`");
    bool ok = kind == SEAL_IDENTITY && old != NULL
                  ? seal_key_follow(w->folder, w->keys, old, &made, &error)
                  : seal_key_new(w->folder, kind, w->now_s, made.valid_until, &made, &error);
    if (!ok)
        return failed(error.text);
    print_key(&made);
    ctl_print_time(made.valid_until, '\n');
    return CTL_OK;
}

static int new_keys(struct work *w, int argc, char **argv)
{
    unsigned made = 0;
    const char *wrong = take_words(w, argc, argv, false);
    if (wrong == NULL && w->kind == SEAL_KEY_KINDS && w->valid_days >= 0)
        wrong = "--valid is for one KIND";
    if (wrong != NULL)
        return usage(wrong);
    if (w->kind != SEAL_KEY_KINDS && current(w, w->kind) != NULL)
        return failed("there is one that is used now; `hanji key rotate` puts another in its "
                      "place");
    for (enum seal_key_kind kind = SEAL_IDENTITY; kind < SEAL_KEY_KINDS; kind++) {
        if ((w->kind != SEAL_KEY_KINDS && w->kind != kind) || current(w, kind) != NULL)
            continue;
        int status = make(w, kind, NULL);
        if (status != CTL_OK)
            return status;
        made++;
    }
    if (made == 0)
        fprintf(stderr, "hanji key: there is a key of each kind; none is missing\n");
    return CTL_OK;
}

/* When an old key's validity ends: its overlap from now on. What senders were told of a sealing key
 * holds, unless an overlap was asked for: they may seal to it until then. */
static int64_t overlap_end(const struct work *w, const struct seal_key *old)
{
    long days = w->overlap_days >= 0 ? w->overlap_days : OVERLAP_DAYS;
    int64_t end = w->now_s + days * DAY_S;
    bool told = old->kind == SEAL_SEALING && w->overlap_days < 0;
    return told && old->valid_until > end ? old->valid_until : end;
}

static int rotate(struct work *w, int argc, char **argv)
{
    struct seal_error error;
    const char *wrong = take_words(w, argc, argv, true);
    if (wrong != NULL || w->kind == SEAL_KEY_KINDS)
        return usage(wrong != NULL ? wrong : "rotate needs a KIND");
    const struct seal_key *old = current(w, w->kind);
    if (old == NULL)
        return failed("there is none that is used now; `hanji key new` makes it");
    if (old->credential)
        return failed("it is a credential of systemd: change it where it is kept");
    int status = make(w, w->kind, old);
    if (status != CTL_OK)
        return status;
    if (!seal_key_retire(w->folder, old, w->now_s, overlap_end(w, old), &error))
        return failed(error.text);
    return CTL_OK;
}

/* The one key whose id begins so; NULL when it said why there is none. */
static const struct seal_key *find(const struct work *w, const char *prefix)
{
    char hex[SEAL_KEY_ID_HEX + 1];
    size_t n = strlen(prefix);
    const struct seal_key *key, *found = NULL;
    if (n < ID_PREFIX_MIN || n > SEAL_KEY_ID_HEX) {
        failed("an ID has 32 hex digits; the first 8 or more will do");
        return NULL;
    }
    for (unsigned i = 0; (key = seal_keys_at(w->keys, i)) != NULL; i++) {
        seal_key_hex(key->id, hex);
        if (strncmp(hex, prefix, n) != 0)
            continue;
        if (found != NULL) {
            failed("several keys begin so");
            return NULL;
        }
        found = key;
    }
    if (found == NULL)
        failed("there is no key of that ID");
    return found;
}

static int retire(const struct work *w, const char *id)
{
    struct seal_error error;
    const struct seal_key *key = find(w, id);
    if (key == NULL)
        return CTL_FAILED;
    const struct seal_key *used = current(w, key->kind);
    int64_t since = key->retired != 0 ? key->retired : w->now_s;
    bool over = key->valid_until != 0 && key->valid_until < w->now_s;
    if (!seal_key_retire(w->folder, key, since, over ? key->valid_until : w->now_s, &error))
        return failed(error.text);
    if (used == key)
        fprintf(stderr, "hanji key: it was in use; `hanji key new` makes what is missing\n");
    return CTL_OK;
}

/* Nobody may need it any more: a sealing key behind its horizon, and another one that was replaced
 * so long ago. What a local key hid may be there for ever. */
static bool is_over(const struct work *w, const struct seal_key *key)
{
    bool replaced = key->retired != 0 && key->kind != SEAL_LOCAL && key->valid_until != 0;
    return !key->credential && (seal_key_spent(key, w->now_s) ||
                                (replaced && w->now_s >= key->valid_until + SEAL_HORIZON_S));
}

static int prune(const struct work *w)
{
    struct seal_error error;
    const struct seal_key *key;
    for (unsigned i = 0; (key = seal_keys_at(w->keys, i)) != NULL; i++) {
        if (!is_over(w, key))
            continue;
        if (!seal_key_destroy(w->folder, key, &error))
            return failed(error.text);
        print_key(key);
        printf("destroyed\n");
    }
    return CTL_OK;
}

static const char *state_of(const struct work *w, const struct seal_key *key)
{
    if (is_over(w, key))
        return "over";
    if (key == current(w, key->kind))
        return "in use";
    if (key->valid_from > w->now_s)
        return "later";
    if (!seal_key_valid(key, w->now_s))
        return key->kind == SEAL_SEALING ? "opens" : "ended";
    return key->retired != 0 ? "retired" : "valid";
}

/* What is to be done, on standard error. */
static void advise(const struct work *w, unsigned over)
{
    if (over > 0)
        fprintf(stderr, "hanji key: %u %s over; `hanji key prune` destroys %s\n", over,
                over == 1 ? "key is" : "keys are", over == 1 ? "it" : "them");
    for (enum seal_key_kind kind = SEAL_IDENTITY; kind < SEAL_KEY_KINDS; kind++) {
        const struct seal_key *key = current(w, kind);
        if (key == NULL)
            fprintf(stderr, "hanji key: there is no %s key in use; `hanji key new` makes it\n",
                    seal_key_kind_name(kind));
        else if (key->valid_until != 0 && key->valid_until - w->now_s < OVERLAP_DAYS * DAY_S)
            fprintf(stderr, "hanji key: the %s key ends soon; `hanji key rotate %s`\n",
                    seal_key_kind_name(kind), seal_key_kind_name(kind));
    }
}

static int list(const struct work *w)
{
    const struct seal_key *key;
    unsigned over = 0;
    printf("kind\tid\tcreated\tuntil\tstate\n");
    for (unsigned i = 0; (key = seal_keys_at(w->keys, i)) != NULL; i++) {
        print_key(key);
        ctl_print_time(key->created, '\t');
        ctl_print_time(key->valid_until, '\t');
        printf("%s%s\n", state_of(w, key), key->credential ? ", credential" : "");
        over += is_over(w, key);
    }
    advise(w, over);
    return CTL_OK;
}

static int export(const struct work *w)
{
    struct ctl_card c;
    struct seal_error error;
    c.n = seal_card_make(w->keys, w->now_s, c.text);
    if (c.n == 0)
        return failed("a card needs an identity, a transport and a sealing key; `hanji key new` "
                      "makes what is missing");
    if (!seal_card_read((struct seal_text){c.text, c.n}, &c.card, &error))
        return failed(error.text);
    printf("%s\n", c.text);
    ctl_card_tell(&c.card, stderr);
    return CTL_OK;
}

static void show_keys(const struct work *w, enum seal_key_kind kind, const struct seal_card_key *k,
                      unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char hex[SEAL_KEY_ID_HEX + 1];
        seal_key_hex(k[i].id, hex);
        printf("%s\t%s\t", seal_key_kind_name(kind), hex);
        ctl_print_time(k[i].valid_from, '\t');
        ctl_print_time(k[i].valid_until, '\t');
        bool before = kind == SEAL_IDENTITY && i > 0;
        bool over = k[i].valid_until != 0 && k[i].valid_until <= w->now_s;
        printf("%s\n", over ? "ended" : before ? "previous" : "valid");
    }
}

/* Does not need any keys of ours. */
static int show(const struct work *w, const char *from)
{
    struct ctl_card c;
    if (!ctl_card("key", from, &c))
        return CTL_FAILED;
    ctl_card_tell(&c.card, stdout);
    printf("made        ");
    ctl_print_time(c.card.made, '\n');
    printf("horizon     %lld days\n\nkind\tid\tfrom\tuntil\tstate\n",
           (long long)(c.card.horizon_s / DAY_S));
    show_keys(w, SEAL_IDENTITY, c.card.identity, c.card.identities);
    show_keys(w, SEAL_TRANSPORT, c.card.transport, c.card.transports);
    show_keys(w, SEAL_SEALING, c.card.sealing, c.card.sealings);
    return CTL_OK;
}

static int with_keys(struct work *w, int argc, char **argv)
{
    if (strcmp(argv[0], "new") == 0)
        return new_keys(w, argc - 1, argv + 1);
    if (strcmp(argv[0], "rotate") == 0)
        return rotate(w, argc - 1, argv + 1);
    if (strcmp(argv[0], "list") == 0 && argc == 1)
        return list(w);
    if (strcmp(argv[0], "export") == 0 && argc == 1)
        return export(w);
    if (strcmp(argv[0], "prune") == 0 && argc == 1)
        return prune(w);
    if (strcmp(argv[0], "retire") == 0 && argc == 2)
        return retire(w, argv[1]);
    return usage("the arguments do not fit");
}

int ctl_key(const struct conf *conf, int argc, char **argv)
{
    struct seal_error error;
    struct work w = {.folder = conf->keys, .now_s = time(NULL)};
    if (argc < 1)
        return usage("new, list, export, show, rotate, retire or prune is missing");
    if (strcmp(argv[0], "show") == 0)
        return argc == 2 ? show(&w, argv[1]) : usage("show needs a card");
    rights_secrets();
    if (!seal_keys_load(w.folder, &w.keys, &error)) {
        fprintf(stderr, "hanji key: %s: %s\n", w.folder, error.text);
        return CTL_FAILED;
    }
    int status = with_keys(&w, argc, argv);
    seal_keys_free(w.keys);
    return status;
}
