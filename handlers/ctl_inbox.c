/* hanji inbox add|set|list|show|close|open|remove */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fcgi/buf.h"
#include "handlers/app_files.h"
#include "handlers/ctl.h"
#include "handlers/inbox.h"
#include "handlers/store.h"
#include "seal/password.h"

enum { MARKS_SHOWN = 1000 };

static const struct ctl_words words = {
    .command = "inbox",
    .exists = "there is an inbox of that name; `hanji inbox set` changes it",
    .none = "there is no inbox of that name",
};

static int usage(const char *why)
{
    fprintf(stderr,
            "hanji inbox: %s\n"
            "usage: hanji [-c CONF] inbox add NAME [--from CARD]... [--secret whsec_...|new]\n"
            "                                [--app APP --event EVENT] [--start-any]\n"
            "       hanji [-c CONF] inbox set NAME [the same]\n"
            "       hanji [-c CONF] inbox list\n"
            "       hanji [-c CONF] inbox show|close|open|remove NAME\n"
            "A CARD is what `hanji key export` prints at the sender's: a file, - for standard "
            "input, or the text.\n",
            why);
    return CTL_USAGE;
}

static int failed(const char *why)
{
    fprintf(stderr, "hanji inbox: %s\n", why);
    return CTL_FAILED;
}

/* ---- add and set ----------------------------------------------------------------------------- */

struct wanted {
    const char *name, *app, *event;
    struct inbox_senders senders;
    bool from, start_any, secret, new_secret;
    char secret_text[SEAL_WHSEC_TEXT_MAX + 1];
    unsigned char secret_bytes[SEAL_WHSEC_MAX];
    size_t secret_n;
};

static int add_card(struct wanted *w, const char *from)
{
    struct seal_error error = {""};
    struct ctl_card *card = malloc(sizeof *card);
    int status = CTL_FAILED;
    if (card == NULL)
        return failed("memory is short");
    if (ctl_card("inbox", from, card)) {
        if (inbox_add_card(&w->senders, (struct seal_text){card->text, card->n}, &error)) {
            ctl_card_tell(&card->card, stdout);
            status = CTL_OK;
        } else {
            (void)failed(error.text);
        }
    }
    w->from = true;
    free(card);
    return status;
}

static bool take_secret(struct wanted *w, const char *text)
{
    w->secret = true;
    w->new_secret = strcmp(text, "new") == 0;
    if (w->new_secret)
        seal_whsec_new(w->secret_text);
    else
        snprintf(w->secret_text, sizeof w->secret_text, "%s", text);
    return (w->new_secret || strlen(text) <= SEAL_WHSEC_TEXT_MAX) &&
           seal_whsec_read((struct seal_text){w->secret_text, strlen(w->secret_text)},
                           w->secret_bytes, &w->secret_n);
}

/* One flag with its value. */
static int take_flag(struct wanted *w, const char *flag, const char *value)
{
    if (strcmp(flag, "--from") == 0)
        return add_card(w, value);
    if (strcmp(flag, "--secret") == 0)
        return take_secret(w, value)
                   ? CTL_OK
                   : usage("--secret takes new, or whsec_ and base64 of 24 to 64 bytes");
    bool app = strcmp(flag, "--app") == 0;
    if (!app && strcmp(flag, "--event") != 0)
        return usage("unknown flag");
    if (!app_event_ok((struct str){value, strlen(value)}))
        return usage(app ? "--app takes the name of an app" : "--event takes the name of an event");
    *(app ? &w->app : &w->event) = value;
    return CTL_OK;
}

static int take_flags(struct wanted *w, int argc, char **argv)
{
    int status = CTL_OK;
    for (int i = 0; status == CTL_OK && i < argc; i++) {
        if (strcmp(argv[i], "--start-any") == 0) {
            w->start_any = true;
            continue;
        }
        if (i + 1 == argc)
            return usage("a flag has no value");
        status = take_flag(w, argv[i], argv[i + 1]);
        i++;
    }
    if (status == CTL_OK && (w->app == NULL) != (w->event == NULL))
        return usage("--app and --event belong together");
    return status;
}

/* Hides the secret with the keys of this machine. */
static int hide(const struct conf *conf, const struct wanted *w, unsigned char *hidden, size_t *n)
{
    char about[INBOX_SECRET_ABOUT_MAX];
    struct seal_error error = {""};
    struct seal_keys *keys = NULL;
    if (!w->secret)
        return CTL_OK;
    if (!seal_keys_load(conf->keys, &keys, &error))
        return failed(error.text);
    *n = seal_hide(keys, inbox_about((struct str){w->name, strlen(w->name)}, about),
                   w->secret_bytes, w->secret_n, hidden);
    seal_keys_free(keys);
    return *n > 0 ? CTL_OK
                  : failed("there is no key to hide the secret with: run `hanji key new` first");
}

static int apply(const struct conf *conf, const struct wanted *w, const struct db_inbox_set *to)
{
    unsigned char hidden[SEAL_WHSEC_MAX + SEAL_HIDDEN_EXTRA];
    struct db_inbox_set set = *to;
    int status = hide(conf, w, hidden, &set.secret_bytes);
    if (status != CTL_OK)
        return status;
    set.secret = set.secret_bytes > 0 ? hidden : NULL;
    struct db_op *op = db_inbox_set_op(&set);
    if (op == NULL)
        return failed("memory is short");
    status = ctl_apply(conf, &words, op);
    if (status == CTL_OK && w->new_secret)
        printf("%s\n", w->secret_text);
    db_op_free(op);
    return status;
}

static int add(const struct conf *conf, struct wanted *w)
{
    struct db_inbox_set set = {
        .name = w->name,
        .app = w->app,
        .event = w->event,
        .keys = w->senders.key,
        .key_count = w->senders.count,
        .start_any = w->start_any,
        .only_new = true,
    };
    if (!w->from && !w->secret)
        return usage("--from or --secret is missing: nobody could post to it");
    return apply(conf, w, &set);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* NULL, after saying why. */
static struct db_reader *open_reader(const struct conf *conf)
{
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    struct db_reader *reader;
    enum db_result result = db_reader_open(&db, &reader, &error);
    if (result == DB_OK)
        result = db_reader_begin(reader);
    if (result == DB_OK)
        return reader;
    (void)failed(error.text[0] != 0 ? error.text : db_result_text(result));
    db_reader_close(reader);
    return NULL;
}

static bool find(struct db_reader *reader, const char *name, struct db_inbox *in)
{
    enum db_result result = db_inbox_find(reader, name, strlen(name), in);
    if (result != DB_OK)
        (void)failed(result == DB_NONE ? words.none : db_result_text(result));
    return result == DB_OK;
}

/* What is not named stays as it is. */
static int set_one(const struct conf *conf, struct wanted *w, struct db_reader *reader)
{
    struct db_inbox in;
    if (!find(reader, w->name, &in))
        return CTL_FAILED;
    struct db_inbox_set set = {
        .name = w->name,
        .app = w->app != NULL ? w->app : in.app,
        .event = w->event != NULL ? w->event : in.event,
        .keys = w->senders.key,
        .start_any = w->start_any || in.start_any,
        .keep_secret = !w->secret,
    };
    char app[DB_APP_NAME_MAX + 1], event[DB_INBOX_EVENT_MAX + 1];
    snprintf(app, sizeof app, "%s", set.app != NULL ? set.app : "");
    snprintf(event, sizeof event, "%s", set.event != NULL ? set.event : "");
    set.app = set.app != NULL ? app : NULL;
    set.event = set.event != NULL ? event : NULL;
    if (!w->from && db_inbox_keys(reader, in.id, w->senders.key, &w->senders.count) != DB_OK)
        return failed("the keys cannot be read");
    set.key_count = w->senders.count;
    db_reader_end(reader);
    return apply(conf, w, &set);
}

static int set(const struct conf *conf, struct wanted *w)
{
    struct db_reader *reader = open_reader(conf);
    int status = reader != NULL ? set_one(conf, w, reader) : CTL_FAILED;
    db_reader_close(reader);
    return status;
}

static int add_or_set(const struct conf *conf, int argc, char **argv)
{
    int (*const act)(const struct conf *, struct wanted *) = strcmp(argv[0], "add") == 0 ? add
                                                                                         : set;
    struct wanted w = {.name = argv[1]};
    if (!db_line_name_ok(argv[1], strlen(argv[1])))
        return usage("a name has 1 to 64 small letters, digits, '-', '_' and '.', a letter or "
                     "digit first");
    int status = take_flags(&w, argc - 2, argv + 2);
    if (status == CTL_OK)
        status = act(conf, &w);
    seal_wipe(w.secret_bytes, sizeof w.secret_bytes);
    return status;
}

static bool print_inbox(void *arg, const struct db_inbox *in)
{
    (void)arg;
    printf("%s\t%s\t%" PRIu32 "\t%s\t", in->name, in->closed ? "closed" : "open", in->keys,
           in->secret != NULL ? "yes" : "no");
    printf("%s%s%s\t", in->app != NULL ? in->app : "-", in->app != NULL ? "/" : "",
           in->app != NULL && in->event != NULL ? in->event : "");
    ctl_print_time(in->last_received, '\n');
    return true;
}

static int list(const struct conf *conf)
{
    struct db_reader *reader = open_reader(conf);
    if (reader == NULL)
        return CTL_FAILED;
    printf("name\tstate\tkeys\tsecret\tapp\tlast received\n");
    enum db_result result = db_inbox_list(reader, "", UINT32_MAX, print_inbox, NULL);
    db_reader_close(reader);
    return result == DB_OK ? CTL_OK : failed(db_result_text(result));
}

static void print_key(const struct db_inbox_key *k)
{
    char id[SEAL_KEY_ID_HEX + 1], fingerprint[SEAL_FINGERPRINT_LEN + 1];
    seal_key_hex(k->id, id);
    printf("%s\t%s\tuntil ", k->kind == DB_INBOX_IDENTITY ? "identity" : "transport", id);
    ctl_print_time(k->valid_until, k->kind == DB_INBOX_IDENTITY ? '\t' : '\n');
    if (k->kind != DB_INBOX_IDENTITY)
        return;
    seal_fingerprint(k->key, fingerprint);
    printf("%s\n", fingerprint);
}

static bool print_mark(void *arg, const struct db_inbox_mark *m)
{
    char sender[SEAL_KEY_ID_HEX + 1];
    (void)arg;
    seal_key_hex(m->sender, sender);
    printf("line\t%s\tfrom %s\tup to %" PRIu64, m->line, sender, m->seq);
    if (m->ahead > 0)
        printf(", and %" PRIu64 " beyond", m->ahead);
    printf("\n");
    return true;
}

static enum db_result show_all(struct db_reader *reader, const struct db_inbox *in)
{
    struct db_inbox_key keys[DB_INBOX_KEYS_MAX];
    unsigned count;
    int64_t id = in->id;
    printf("name\t%s\nstate\t%s\nsecret\t%s\nstart any\t%s\n", in->name,
           in->closed ? "closed" : "open", in->secret != NULL ? "yes" : "no",
           in->start_any ? "yes" : "no");
    if (in->app != NULL && in->event != NULL)
        printf("app\t%s/%s.inbox.sql\n", in->app, in->event);
    printf("created\t");
    ctl_print_time(in->created, '\n');
    printf("last received\t");
    ctl_print_time(in->last_received, '\n');
    enum db_result result = db_inbox_keys(reader, id, keys, &count);
    for (unsigned i = 0; result == DB_OK && i < count; i++)
        print_key(&keys[i]);
    return result == DB_OK ? db_inbox_marks(reader, id, MARKS_SHOWN, print_mark, NULL) : result;
}

static int show(const struct conf *conf, const char *name)
{
    struct db_inbox in;
    struct db_reader *reader = open_reader(conf);
    if (reader == NULL)
        return CTL_FAILED;
    bool there = find(reader, name, &in);
    enum db_result result = there ? show_all(reader, &in) : DB_OK;
    db_reader_close(reader);
    if (result != DB_OK)
        return failed(db_result_text(result));
    return there ? CTL_OK : CTL_FAILED;
}

/* Takes op. */
static int change(const struct conf *conf, struct db_op *op)
{
    int status = op != NULL ? ctl_apply(conf, &words, op) : failed("memory is short");
    db_op_free(op);
    return status;
}

int ctl_inbox(const struct conf *conf, int argc, char **argv)
{
    if (argc < 1)
        return usage("add, set, list, show, close, open or remove is missing");
    if (strcmp(argv[0], "list") == 0 && argc == 1)
        return list(conf);
    if (argc >= 2 && (strcmp(argv[0], "add") == 0 || strcmp(argv[0], "set") == 0))
        return add_or_set(conf, argc, argv);
    if (argc != 2)
        return usage("the arguments do not fit");
    if (strcmp(argv[0], "show") == 0)
        return show(conf, argv[1]);
    if (strcmp(argv[0], "remove") == 0)
        return change(conf, db_inbox_remove_op(argv[1]));
    if (strcmp(argv[0], "close") == 0 || strcmp(argv[0], "open") == 0)
        return change(conf, db_inbox_state_op(argv[1], argv[0][0] == 'c'));
    return usage("the arguments do not fit");
}
