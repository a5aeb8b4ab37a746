/* hanji token new|list|revoke */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/token.h"
#include "handlers/access.h"
#include "handlers/ctl.h"
#include "handlers/store.h"
#include "seal/token.h"

struct wanted {
    const char *name;
    struct buf read, write;
    int64_t expires; /* Unix seconds, 0: never */
};

static const struct ctl_words words = {
    .command = "token",
    .exists = "there is a token of that name; revoke it first",
    .none = "there is no token of that name",
};

static int usage(const char *why)
{
    fprintf(stderr,
            "hanji token: %s\n"
            "usage: hanji [-c CONF] token new --name N [--read PREFIX]... [--write PREFIX]... "
            "[--expires WHEN]\n"
            "       hanji [-c CONF] token list\n"
            "       hanji [-c CONF] token revoke NAME\n"
            "A PREFIX that starts with '/' is a URL path (\"/\": everything), another is a "
            "document key.\nWHEN is 30d, 12h, 90m or a date such as 2027-01-31.\n",
            why);
    return CTL_USAGE;
}

static bool parse_expires(const char *text, int64_t *expires)
{
    struct tm date = {0};
    char *end = NULL;
    int used = 0;
    if (sscanf(text, "%4d-%2d-%2d%n", &date.tm_year, &date.tm_mon, &date.tm_mday, &used) == 3 &&
        text[used] == 0) {
        int month = date.tm_mon, day = date.tm_mday;
        date.tm_year -= 1900;
        date.tm_mon--;
        *expires = timegm(&date);
        return date.tm_mon == month - 1 && date.tm_mday == day;
    }
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno != 0 || end == text || n < 1 || n > 1000000 || strlen(end) != 1)
        return false;
    int64_t unit = *end == 'd' ? 86400 : *end == 'h' ? 3600 : *end == 'm' ? 60 : 0;
    *expires = time(NULL) + n * unit;
    return unit > 0;
}

/* One flag with its value; NULL, or what is wrong with it. */
static const char *take_flag(struct wanted *w, const char *flag, const char *value)
{
    struct str text = {value, strlen(value)};
    if (strcmp(flag, "--name") == 0) {
        w->name = value;
        return ctl_name_ok(value) ? NULL : CTL_NAME_RULE;
    }
    if (strcmp(flag, "--read") == 0)
        return access_add_prefix(&w->read, text) ? NULL : "a read prefix is malformed";
    if (strcmp(flag, "--write") == 0)
        return access_add_prefix(&w->write, text) ? NULL : "a write prefix is malformed";
    if (strcmp(flag, "--expires") == 0)
        return !parse_expires(value, &w->expires) ? "--expires is not a time"
               : w->expires <= time(NULL)         ? "--expires is in the past"
                                                  : NULL;
    return "unknown flag";
}

static int add(const struct conf *conf, const struct wanted *w)
{
    char token[SEAL_TOKEN_LEN + 1];
    unsigned char hash[SEAL_TOKEN_HASH_BYTES];
    size_t name_len = strlen(w->name);
    struct db_op *op = db_op_new(DB_OP_TOKEN_NEW,
                                 name_len + sizeof hash + w->read.len + w->write.len);
    seal_token_new(token);
    if (op == NULL || !seal_token_hash(token, SEAL_TOKEN_LEN, hash)) {
        db_op_free(op);
        return CTL_FAILED;
    }
    db_op_copy(op, 0, DB_VALUE_TEXT, w->name, name_len);
    db_op_copy(op, 1, DB_VALUE_BLOB, hash, sizeof hash);
    db_op_copy(op, 2, DB_VALUE_TEXT, w->read.data, w->read.len);
    db_op_copy(op, 3, DB_VALUE_TEXT, w->write.data, w->write.len);
    db_op_int(op, 4, w->expires);
    int status = ctl_apply(conf, &words, op);
    if (status == CTL_OK)
        printf("%s\n", token);
    db_op_free(op);
    return status;
}

static int new_token(const struct conf *conf, int argc, char **argv)
{
    struct wanted w = {0};
    const char *wrong = argc % 2 != 0 ? "a flag has no value" : NULL;
    for (int i = 0; wrong == NULL && i < argc; i += 2)
        wrong = take_flag(&w, argv[i], argv[i + 1]);
    if (wrong == NULL && w.name == NULL)
        wrong = "--name is missing";
    if (wrong == NULL && w.read.len == 0 && w.write.len == 0)
        wrong = "--read or --write is missing: the token would be good for nothing";
    int status = wrong != NULL ? usage(wrong) : add(conf, &w);
    buf_free(&w.read);
    buf_free(&w.write);
    return status;
}

static int revoke_token(const struct conf *conf, const char *name)
{
    struct db_op *op = db_op_new(DB_OP_TOKEN_REVOKE, strlen(name));
    if (op == NULL)
        return CTL_FAILED;
    db_op_copy(op, 0, DB_VALUE_TEXT, name, strlen(name));
    int status = ctl_apply(conf, &words, op);
    db_op_free(op);
    return status;
}

static void print_token(void *arg, const struct db_token *t)
{
    (void)arg;
    printf("%s\t", t->name);
    ctl_print_lines(t->read, t->read_len);
    ctl_print_lines(t->write, t->write_len);
    ctl_print_time(t->created, '\t');
    ctl_print_time(t->expires, '\n');
}

static int list(const struct conf *conf)
{
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    struct db_reader *reader;
    enum db_result result = db_reader_open(&db, &reader, &error);
    if (result == DB_OK) {
        printf("name\tread\twrite\tcreated\texpires\n");
        result = db_token_list(reader, print_token, NULL);
        db_reader_close(reader);
    }
    if (result == DB_OK)
        return CTL_OK;
    fprintf(stderr, "hanji token: %s\n", error.text[0] ? error.text : db_result_text(result));
    return CTL_FAILED;
}

int ctl_token(const struct conf *conf, int argc, char **argv)
{
    if (argc < 1)
        return usage("new, list or revoke is missing");
    if (strcmp(argv[0], "new") == 0)
        return new_token(conf, argc - 1, argv + 1);
    if (strcmp(argv[0], "list") == 0 && argc == 1)
        return list(conf);
    if (strcmp(argv[0], "revoke") == 0 && argc == 2)
        return revoke_token(conf, argv[1]);
    return usage("the arguments do not fit");
}
