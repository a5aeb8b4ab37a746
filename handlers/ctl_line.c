/* hanji line add|set|list|show|pause|resume|retry|skip|replay|remove
 *
 * A secret is given, or made and printed once; it is hidden here, so that only what is hidden
 * travels to the server. Cards are verified here, and whose they are is told. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handlers/ctl.h"
#include "handlers/ctl_line.h"
#include "handlers/param.h"
#include "handlers/sends_form.h"
#include "handlers/store.h"

static const struct ctl_words words = {
    .command = "line",
    .exists = "there is a line of that name; `hanji line set` changes it",
    .none = "there is no such line, or no such message on it",
    .conflict = "the message is delivered or skipped, or not there any more: nothing is left to do",
};

static int usage(const char *why)
{
    fprintf(stderr,
            "hanji line: %s\n"
            "usage: hanji [-c CONF] line add NAME URL [FLAG]...\n"
            "       hanji [-c CONF] line set NAME [URL] [FLAG]...\n"
            "       hanji [-c CONF] line list\n"
            "       hanji [-c CONF] line show NAME [ID]\n"
            "       hanji [-c CONF] line pause|resume|remove NAME\n"
            "       hanji [-c CONF] line retry NAME [ID]\n"
            "       hanji [-c CONF] line skip NAME ID\n"
            "       hanji [-c CONF] line replay NAME FROM [TO]\n"
            "Flags: --seal-to CARD|none (again for each who may read), --order fifo|any,\n"
            "--rate N/s, --secret whsec_...|new|none, --allow-private, --no-private,\n"
            "--ca FILE|none. A CARD is a file, - or the text of `hanji key export`.\n",
            why);
    return CTL_USAGE;
}

static int fail(const char *why)
{
    fprintf(stderr, "hanji line: %s\n", why);
    return CTL_FAILED;
}

static int apply(const struct conf *conf, struct db_op *op)
{
    if (op == NULL)
        return fail(db_result_text(DB_NO_MEMORY));
    int status = ctl_apply(conf, &words, op);
    db_op_free(op);
    return status;
}

/* ---- add and set ----------------------------------------------------------------------------- */

/* CTL_OK, or told what is wrong. */
static int take_card(struct sends_form *f, const char *from)
{
    if (strcmp(from, "none") == 0) {
        sends_form_no_keys(f);
        return CTL_OK;
    }
    struct ctl_card *card = malloc(sizeof *card);
    if (card == NULL)
        return fail(db_result_text(DB_NO_MEMORY));
    int status = CTL_FAILED;
    if (ctl_card("line", from, card)) {
        if (sends_form_card(f, &card->card, time(NULL)))
            status = CTL_OK;
        else
            (void)fail(f->wrong);
        if (status == CTL_OK)
            ctl_card_tell(&card->card, stderr);
    }
    free(card);
    return status;
}

/* A file of certificates. */
static int take_ca(struct sends_form *f, const char *path)
{
    char *text = malloc(DB_LINE_CA_MAX + 1);
    size_t n = 0;
    FILE *file = NULL;
    int status = CTL_FAILED;
    if (text == NULL)
        return fail(db_result_text(DB_NO_MEMORY));
    if (strcmp(path, "none") != 0) {
        file = fopen(path, "re");
        if (file == NULL) {
            fprintf(stderr, "hanji line: %s: %s\n", path, strerror(errno));
            goto out;
        }
        n = fread(text, 1, DB_LINE_CA_MAX + 1, file);
        if (ferror(file) != 0 || n == 0) {
            fprintf(stderr, "hanji line: %s: nothing can be read\n", path);
            goto out;
        }
    }
    status = sends_form_ca(f, (struct str){text, n}) ? CTL_OK : fail(f->wrong);
out:
    if (file != NULL)
        (void)fclose(file);
    free(text);
    return status;
}

static struct str str_of(const char *s)
{
    return (struct str){s, strlen(s)};
}

static int take_value(struct sends_form *f, const char *flag, const char *value)
{
    bool ok;
    if (strcmp(flag, "--seal-to") == 0)
        return take_card(f, value);
    if (strcmp(flag, "--ca") == 0)
        return take_ca(f, value);
    if (strcmp(flag, "--order") == 0)
        ok = sends_form_order(f, str_of(value));
    else if (strcmp(flag, "--rate") == 0)
        ok = sends_form_rate(f, str_of(value));
    else if (strcmp(flag, "--secret") == 0)
        ok = sends_form_secret(f, str_of(value));
    else
        return usage("unknown flag");
    return ok ? CTL_OK : usage(f->wrong);
}

static int take_flags(struct sends_form *f, int argc, char **argv)
{
    int status = CTL_OK;
    for (int i = 0; i < argc && status == CTL_OK; i++) {
        bool yes = strcmp(argv[i], "--allow-private") == 0;
        if (yes || strcmp(argv[i], "--no-private") == 0) {
            sends_form_private(f, yes);
        } else if (i + 1 == argc) {
            status = usage(strncmp(argv[i], "--", 2) == 0 ? "a flag has no value"
                                                          : "the arguments do not fit");
        } else {
            status = take_value(f, argv[i], argv[i + 1]);
            i++;
        }
    }
    return status;
}

/* Fills in what was not given; DB_NONE where there is no line. */
static enum db_result complete(const struct conf *conf, struct sends_form *f,
                               struct db_error *error)
{
    struct db_config db = store_db_config(conf);
    struct db_reader *r;
    enum db_result result = db_reader_open(&db, &r, error);
    if (result != DB_OK)
        return result;
    result = db_reader_begin(r);
    if (result == DB_OK)
        result = sends_form_complete(f, r);
    db_reader_close(r);
    return result;
}

/* The keys of this hanji, when something is to be hidden with them. */
static bool load_keys(const struct conf *conf, const struct sends_form *f, struct seal_keys **own)
{
    struct seal_error error = {""};
    *own = NULL;
    if (f->secret_bytes == 0 || seal_keys_load(conf->keys, own, &error))
        return true;
    (void)fail(error.text);
    return false;
}

static int write_line(const struct conf *conf, struct sends_form *f, bool add)
{
    struct seal_keys *own;
    if (!load_keys(conf, f, &own))
        return CTL_FAILED;
    struct db_op *op = sends_form_op(f, own, add);
    seal_keys_free(own);
    if (op == NULL && f->wrong[0] != 0)
        return fail(f->wrong);
    int status = apply(conf, op);
    if (status == CTL_OK && f->new_secret[0] != 0)
        printf("%s\n", f->new_secret);
    return status;
}

static int set_line(const struct conf *conf, struct sends_form *f)
{
    struct db_error error = {""};
    enum db_result result = complete(conf, f, &error);
    if (result == DB_NONE)
        return fail(words.none);
    if (result != DB_OK)
        return fail(error.text[0] != 0 ? error.text : db_result_text(result));
    return write_line(conf, f, false);
}

/* `add NAME URL …`, `set NAME [URL] …` */
static int change(const struct conf *conf, int argc, char **argv, bool add)
{
    struct str name = str_of(argv[0]);
    bool has_url = argc > 1 && strncmp(argv[1], "--", 2) != 0;
    if (!db_line_name_ok(name.p, name.n))
        return usage("the name of a line has 1 to 64 small letters, digits, '.', '_' or '-', and "
                     "begins with one of the first two");
    if (add && !has_url)
        return usage("the URL is missing");
    struct sends_form *f = malloc(sizeof *f);
    if (f == NULL)
        return fail(db_result_text(DB_NO_MEMORY));
    sends_form_start(f, name);
    int status = !has_url || sends_form_url(f, str_of(argv[1])) ? CTL_OK : usage(f->wrong);
    if (status == CTL_OK)
        status = take_flags(f, argc - 1 - has_url, argv + 1 + has_url);
    if (status == CTL_OK)
        status = add ? write_line(conf, f, true) : set_line(conf, f);
    sends_form_free(f);
    free(f);
    return status;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int state(const struct conf *conf, const char *name, enum db_line_state state)
{
    return apply(conf, db_line_state_op(name, state, state == DB_LINE_PAUSED ? CTL_LINE_PAUSED
                                                                             : NULL));
}

/* An operation that says how many messages it was about. */
static int counted(const struct conf *conf, struct db_op *op)
{
    if (op == NULL)
        return fail(db_result_text(DB_NO_MEMORY));
    int status = ctl_apply(conf, &words, op);
    if (status == CTL_OK)
        printf("%llu\n", (unsigned long long)op->seq);
    db_op_free(op);
    return status;
}

static int replay(const struct conf *conf, const char *name, int argc, char **argv)
{
    uint64_t from = 0, to = 0;
    if (!param_digits(str_of(argv[0]), INT64_MAX, &from) || from == 0 ||
        (argc > 1 && (!param_digits(str_of(argv[1]), INT64_MAX, &to) || to < from)))
        return usage("FROM and TO are numbers of messages");
    return counted(conf, db_send_replay_op(name, from, to));
}

/* Those about a message: ID, or none for all. */
static int message(const struct conf *conf, const char *name, const char *id, bool retry)
{
    if (id != NULL && strlen(id) != DB_MESSAGE_ID_LEN)
        return usage("the ID of a message is msg_ and 26 characters");
    return retry ? counted(conf, db_send_retry_op(name, id))
                 : apply(conf, db_send_skip_op(name, id));
}

int ctl_line(const struct conf *conf, int argc, char **argv)
{
    if (argc < 1)
        return usage("a word such as add or list is missing");
    const char *what = argv[0], *name = argc > 1 ? argv[1] : "";
    int more = argc - 2;
    if (strcmp(what, "list") == 0 && argc == 1)
        return ctl_line_list(conf);
    if (argc < 2)
        return usage("the arguments do not fit");
    if (strcmp(what, "add") == 0 || strcmp(what, "set") == 0)
        return change(conf, argc - 1, argv + 1, what[0] == 'a');
    if (!db_line_name_ok(name, strlen(name)))
        return usage("this is not the name of a line");
    if (strcmp(what, "show") == 0 && more <= 1)
        return ctl_line_show(conf, name, more == 1 ? argv[2] : NULL);
    if (strcmp(what, "pause") == 0 && more == 0)
        return state(conf, name, DB_LINE_PAUSED);
    if (strcmp(what, "resume") == 0 && more == 0)
        return state(conf, name, DB_LINE_OPEN);
    if (strcmp(what, "remove") == 0 && more == 0)
        return apply(conf, db_line_remove_op(name));
    if (strcmp(what, "retry") == 0 && more <= 1)
        return message(conf, name, more == 1 ? argv[2] : NULL, true);
    if (strcmp(what, "skip") == 0 && more == 1)
        return message(conf, name, argv[2], false);
    if (strcmp(what, "replay") == 0 && (more == 1 || more == 2))
        return replay(conf, name, more, argv + 2);
    return usage("the arguments do not fit");
}
