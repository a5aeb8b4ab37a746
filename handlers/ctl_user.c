/* hanji user add|list|passwd|grant|logout|remove
 *
 * Passwords come from the terminal, without echo, or as one line of standard input, never from the
 * arguments. They are hashed here: only the hash travels to the server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "db/user.h"
#include "handlers/access.h"
#include "handlers/ctl.h"
#include "handlers/store.h"
#include "seal/password.h"

_Static_assert((int)CTL_NAME_MAX == (int)DB_USER_NAME_MAX, "one rule for names");

struct rights {
    struct buf read, write;
    bool nothing;
};

static const struct ctl_words words = {
    .command = "user",
    .exists = "there is a user of that name",
    .none = "there is no user of that name",
};

static int usage(const char *why)
{
    fprintf(stderr,
            "hanji user: %s\n"
            "usage: hanji [-c CONF] user add NAME [--read PREFIX]... [--write PREFIX]...\n"
            "       hanji [-c CONF] user list\n"
            "       hanji [-c CONF] user passwd NAME\n"
            "       hanji [-c CONF] user grant NAME [--read PREFIX]... [--write PREFIX]... | "
            "--nothing\n"
            "       hanji [-c CONF] user logout NAME\n"
            "       hanji [-c CONF] user remove NAME\n"
            "A PREFIX is as for `hanji token`. `grant` replaces what was granted before.\n"
            "The password is asked for, or read as one line from standard input.\n",
            why);
    return CTL_USAGE;
}

static int fail(const char *why)
{
    fprintf(stderr, "hanji user: %s\n", why);
    return CTL_FAILED;
}

/* One line of standard input without its end; from a terminal with a prompt and without echo. The
 * length, or -1. */
static ssize_t read_line(const char *prompt, char *line, size_t cap)
{
    struct termios was, quiet;
    bool terminal = tcgetattr(STDIN_FILENO, &was) == 0;
    size_t n = 0;
    int c;
    if (terminal) {
        quiet = was;
        quiet.c_lflag &= (tcflag_t)~ECHO;
        quiet.c_lflag |= ECHONL;
        if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) != 0)
            return -1;
        fputs(prompt, stderr); /* after what was typed too early has been dropped */
    }
    while ((c = getchar()) != EOF && c != '\n' && n < cap)
        line[n++] = (char)c;
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &was);
    return (c == EOF && n == 0) || (c != EOF && c != '\n') ? -1 : (ssize_t)n;
}

/* NULL, or what is wrong with the password that was given; fills hash. */
static const char *ask_password(char hash[SEAL_PASSWORD_HASH_MAX])
{
    char one[SEAL_PASSWORD_MAX], two[SEAL_PASSWORD_MAX];
    const char *wrong = NULL;
    ssize_t n = read_line("Password: ", one, sizeof one), again = n;
    if (n >= 0 && isatty(STDIN_FILENO))
        again = read_line("Once more: ", two, sizeof two);
    else if (n >= 0)
        memcpy(two, one, (size_t)n);
    if (n < SEAL_PASSWORD_MIN)
        wrong = "a password has 8 to 1024 bytes, on one line";
    else if (memchr(one, 0, (size_t)n) != NULL)
        wrong = "a password has no NUL";
    else if (again != n || memcmp(one, two, (size_t)n) != 0)
        wrong = "the two are not the same";
    else if (!seal_password_hash((struct seal_text){one, (size_t)n}, hash))
        wrong = "memory is short";
    seal_wipe(one, sizeof one);
    seal_wipe(two, sizeof two);
    return wrong;
}

/* NULL, or what is wrong with the flags. */
static const char *take_rights(struct rights *r, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        bool write = strcmp(argv[i], "--write") == 0;
        if (strcmp(argv[i], "--nothing") == 0) {
            r->nothing = true;
            continue;
        }
        if (!write && strcmp(argv[i], "--read") != 0)
            return "unknown flag";
        if (++i == argc)
            return "a flag has no value";
        if (!access_add_prefix(write ? &r->write : &r->read,
                               (struct str){argv[i], strlen(argv[i])}))
            return "a prefix is malformed";
    }
    bool some = r->read.len > 0 || r->write.len > 0;
    return some && r->nothing   ? "--nothing stands alone"
           : some || r->nothing ? NULL
                                : "--read or --write is missing";
}

static void free_rights(struct rights *r)
{
    buf_free(&r->read);
    buf_free(&r->write);
}

static int apply(const struct conf *conf, const struct ctl_words *w, struct db_op *op)
{
    if (op == NULL)
        return fail("memory is short");
    int status = ctl_apply(conf, w, op);
    db_op_free(op);
    return status;
}

static int add(const struct conf *conf, const char *name, const struct rights *r)
{
    char hash[SEAL_PASSWORD_HASH_MAX];
    const char *wrong = ask_password(hash);
    if (wrong != NULL)
        return fail(wrong);
    size_t name_len = strlen(name), hash_len = strlen(hash);
    struct db_op *op = db_op_new(DB_OP_USER_NEW, name_len + hash_len + r->read.len + r->write.len);
    if (op != NULL) {
        db_op_copy(op, 0, DB_VALUE_TEXT, name, name_len);
        db_op_copy(op, 1, DB_VALUE_TEXT, hash, hash_len);
        db_op_copy(op, 2, DB_VALUE_TEXT, r->read.data, r->read.len);
        db_op_copy(op, 3, DB_VALUE_TEXT, r->write.data, r->write.len);
    }
    return apply(conf, &words, op);
}

static int grant(const struct conf *conf, const char *name, const struct rights *r)
{
    size_t name_len = strlen(name);
    struct db_op *op = db_op_new(DB_OP_USER_GRANT, name_len + r->read.len + r->write.len);
    if (op != NULL) {
        db_op_copy(op, 0, DB_VALUE_TEXT, name, name_len);
        db_op_copy(op, 1, DB_VALUE_TEXT, r->read.data, r->read.len);
        db_op_copy(op, 2, DB_VALUE_TEXT, r->write.data, r->write.len);
    }
    return apply(conf, &words, op);
}

static int passwd(const struct conf *conf, const char *name)
{
    char hash[SEAL_PASSWORD_HASH_MAX];
    const char *wrong = ask_password(hash);
    if (wrong != NULL)
        return fail(wrong);
    size_t name_len = strlen(name), hash_len = strlen(hash);
    struct db_op *op = db_op_new(DB_OP_USER_PASSWORD, name_len + hash_len);
    if (op != NULL) {
        db_op_copy(op, 0, DB_VALUE_TEXT, name, name_len);
        db_op_copy(op, 1, DB_VALUE_TEXT, hash, hash_len);
    }
    return apply(conf, &words, op);
}

/* An operation that takes the name only. */
static int by_name(const struct conf *conf, enum db_op_kind kind, const char *name)
{
    struct ctl_words w = words;
    struct db_op *op = db_op_new(kind, strlen(name));
    if (op != NULL)
        db_op_copy(op, 0, DB_VALUE_TEXT, name, strlen(name));
    if (kind == DB_OP_SESSION_END_USER)
        w.none = "nobody of that name is logged in";
    return apply(conf, &w, op);
}

static void print_user(void *arg, const struct db_user *u)
{
    (void)arg;
    printf("%s\t", u->name);
    ctl_print_lines(u->read, u->read_len);
    ctl_print_lines(u->write, u->write_len);
    ctl_print_time(u->created, '\t');
    printf("%lld\n", (long long)u->sessions);
}

static int list(const struct conf *conf)
{
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    struct db_reader *reader;
    enum db_result result = db_reader_open(&db, &reader, &error);
    if (result == DB_OK) {
        printf("name\tread\twrite\tcreated\tsessions\n");
        result = db_user_list(reader, print_user, NULL);
        db_reader_close(reader);
    }
    return result == DB_OK ? CTL_OK : fail(error.text[0] ? error.text : db_result_text(result));
}

static int with_rights(const struct conf *conf, int argc, char **argv)
{
    struct rights r = {0};
    bool adds = strcmp(argv[0], "add") == 0;
    const char *wrong = take_rights(&r, argc - 2, argv + 2);
    int status = wrong != NULL ? usage(wrong)
                 : adds        ? add(conf, argv[1], &r)
                               : grant(conf, argv[1], &r);
    free_rights(&r);
    return status;
}

int ctl_user(const struct conf *conf, int argc, char **argv)
{
    const char *verb = argc > 0 ? argv[0] : "";
    if (strcmp(verb, "list") == 0 && argc == 1)
        return list(conf);
    if (argc < 2)
        return usage("the arguments do not fit");
    if (!ctl_name_ok(argv[1]))
        return usage(CTL_NAME_RULE);
    if (strcmp(verb, "add") == 0 || strcmp(verb, "grant") == 0)
        return with_rights(conf, argc, argv);
    if (strcmp(verb, "passwd") == 0 && argc == 2)
        return passwd(conf, argv[1]);
    if (strcmp(verb, "logout") == 0 && argc == 2)
        return by_name(conf, DB_OP_SESSION_END_USER, argv[1]);
    if (strcmp(verb, "remove") == 0 && argc == 2)
        return by_name(conf, DB_OP_USER_REMOVE, argv[1]);
    return usage("the arguments do not fit");
}
