/* hanji: composition. The command table, and the worker put together from its rooms. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/db.h"
#include "fcgi/conf.h"
#include "fcgi/frame.h"
#include "fcgi/log.h"
#include "fcgi/memory.h"
#include "fcgi/rights.h"
#include "fcgi/serve.h"
#include "fcgi/supervise.h"
#include "handlers/access.h"
#include "handlers/cors.h"
#include "handlers/ctl.h"
#include "handlers/nudge.h"
#include "handlers/store.h"
#include "seal/token.h"

enum { EX_CONFIG = 78, EX_IOERR = 74, EX_SOFTWARE = 70 };

/* After its drain a worker that was replaced is ended by force within this time. */
enum { SETTLE_MS = 6000 };

static const char default_conf[] = "/etc/hanji/hanji.conf";

/* What main hands to the commands that need more than the configuration. */
struct invocation {
    int argc;
    char **argv;
    int command_at;
    double started_ms;
};
static struct invocation invocation;

static ctl_fn cmd_serve, cmd_worker, cmd_conf, cmd_version;

static const struct command {
    const char *name;
    const char *arguments;
    const char *help; /* NULL: internal */
    ctl_fn *run;
    bool takes_keys; /* --KEY VALUE overrides the configuration */
} commands[] = {
    {"serve", "[--KEY VALUE]...", "serve in the foreground, log to standard error", cmd_serve,
     true},
    {"token", "new|list|revoke ...", "make, list and revoke API tokens", ctl_token, false},
    {"user", "add|list|passwd ...", "users, their passwords and rights", ctl_user, false},
    {"sql", "[OPTION]... [SQL]...", "the sqlite3 shell on the database, with the right settings",
     ctl_sql, false},
    {"check", "[FILE]", "verify the database, or a backup", ctl_check, false},
    {"backup", "[--force] DEST", "copy the database, verified, while the server runs", ctl_backup,
     false},
    {"export", "[FLAG]... [-o FILE]", "write the documents as lines of JSON", ctl_export, false},
    {"import", "[--if-absent] FILE", "take up what export wrote", ctl_import, false},
    {"restore", "FILE", "put a backup in place of the database; the server is stopped", ctl_restore,
     false},
    {"search", "add|remove|list ...", "choose what can be searched for words", ctl_search, false},
    {"line", "add|set|list|show ...", "lines: where messages are sent to, and what waits there",
     ctl_line, false},
    {"app", "new|check|run ...", "make, check and try apps: pages and writes in SQL", ctl_app,
     false},
    {"key", "new|list|export ...", "make, list, show and replace the keys of this hanji", ctl_key,
     false},
    {"inbox", "add|set|list ...", "who may post messages here, and what becomes of them", ctl_inbox,
     false},
    {"conf", "[--KEY VALUE]...", "print the effective configuration", cmd_conf, true},
    {"version", "", "print the version", cmd_version, false},
    {"worker", "", NULL, cmd_worker, true},
};

static void help(FILE *out)
{
    fprintf(out, "usage: hanji [-c CONF] COMMAND [ARGUMENTS]\n\n"
                 "hanji keeps documents behind nginx: FastCGI in, one SQLite file.\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].help != NULL)
            fprintf(out, "  %-8s%-21s %s\n", commands[i].name, commands[i].arguments,
                    commands[i].help);
    fprintf(out, "\nconfiguration keys, as `key = value` in CONF (default %s),\n"
                 "as HANJI_KEY in the environment, or as flags of serve:\n",
            default_conf);
    conf_help(out);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static void broken_store(void)
{
    serve_stop(EX_IOERR);
}

static double monotonic_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void started(void *arg, struct loop *const *loops, unsigned n)
{
    struct store *store = arg;
    store->loops = loops;
    store->loop_count = n;
    log_detail(LOG_INFO, "ready", "database %s, SQLite %s, %u thread%s, %.1f ms after start",
               store->conf->database, db_sqlite_version(), n, n == 1 ? "" : "s",
               monotonic_ms() - invocation.started_ms);
    if (!nudge_start(store->nudge, loops[0], store->conf->drain_timeout_ms + SETTLE_MS))
        log_line(LOG_WARN, "what is sent may wait for the next send", NULL);
    if (!apps_watch(store->apps))
        log_line(LOG_WARN, "edited apps need a restart", NULL);
    memory_give_back();
}

static void ending(void *arg)
{
    struct store *store = arg;
    apps_unwatch(store->apps);
    nudge_end(store->nudge);
}

static void again(void *arg)
{
    apps_look_again(((struct store *)arg)->apps);
}

static int cmd_worker(const struct conf *conf, int argc, char **argv)
{
    struct supervise_fds fds;
    struct store store;
    struct db_error error;
    (void)argc, (void)argv;
    memory_settle();
    serve_block_signals();
    if (!supervise_worker_fds(&fds)) {
        fprintf(stderr, "hanji: worker is started by serve\n");
        return CTL_USAGE;
    }
    rights_worker();
    frame_set_budget((size_t)conf->body_memory_bytes);
    if (db_init() != DB_OK || !db_temporary_folder(conf->spool) || !seal_init()) {
        log_line(LOG_ERROR, "SQLite or libsodium cannot be used", NULL);
        return EX_SOFTWARE;
    }
    if (!store_open(&store, conf, broken_store, &error)) {
        log_line(LOG_ERROR, "the database cannot be opened", "database", conf->database, "reason",
                 error.text, NULL);
        return EX_IOERR;
    }
    struct loop_app app = store_app;
    app.arg = &store;
    struct serve_config serve = {
        .conf = conf,
        .app = &app,
        .listener = fds.listener,
        .control = fds.control,
        .supervisor = fds.supervisor,
        .started = started,
        .ending = ending,
        .again = again,
        .arg = &store,
    };
    int status = serve_run(&serve);
    store_close(&store);
    log_line(LOG_INFO, "ended", NULL);
    return status;
}

static int cmd_serve(const struct conf *conf, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct supervise_config config = {
        .conf = conf, .argv = invocation.argv, .command_at = invocation.command_at};
    return supervise_run(&config);
}

static int cmd_conf(const struct conf *conf, int argc, char **argv)
{
    (void)argc, (void)argv;
    conf_print(conf, stdout);
    return CTL_OK;
}

static int cmd_version(const struct conf *conf, int argc, char **argv)
{
    (void)conf, (void)argv;
    if (argc != 0) {
        fprintf(stderr, "hanji version: it takes no arguments\n");
        return CTL_USAGE;
    }
    printf("hanji %s (SQLite %s)\n", HANJI_VERSION, db_sqlite_version());
    return CTL_OK;
}

/* The flags of a command that takes keys. NULL, or what is wrong. */
static const char *take_keys(struct conf *conf, int argc, char **argv, struct conf_error *error)
{
    for (int i = 0; i < argc; i += 2) {
        if (strncmp(argv[i], "--", 2) != 0)
            return "arguments are --KEY VALUE";
        if (i + 1 == argc)
            return "the last flag has no value";
        if (!conf_flag(conf, argv[i] + 2, argv[i + 1], error))
            return error->text;
    }
    return NULL;
}

static bool prefixes_ok(const struct conf *conf, struct conf_error *error)
{
    const char *const lists[] = {conf->public_, conf->sites, conf->basic};
    const char *const keys[] = {"public", "sites", "basic"};
    for (int i = 0; i < 3; i++) {
        struct buf lines = {0};
        bool ok = access_public(lists[i], &lines);
        buf_free(&lines);
        if (!ok)
            return conf_refuse(conf, keys[i], "a prefix is malformed", error);
    }
    return true;
}

static bool cors_ok(const struct conf *conf, struct conf_error *error)
{
    struct cors *cors = cors_new(conf->cors);
    bool ok = cors != NULL;
    cors_free(cors);
    return ok || conf_refuse(conf, "cors", "an origin is scheme://host, in small letters", error);
}

static int run(const struct command *command, const char *conf_file, int argc, char **argv)
{
    static struct conf conf;
    struct conf_error error;
    const char *file = conf_file;
    if (file == NULL && access(default_conf, R_OK) == 0)
        file = default_conf;
    if (!conf_load(&conf, file, &error)) {
        fprintf(stderr, "hanji: %s\n", error.text);
        return EX_CONFIG;
    }
    const char *wrong = command->takes_keys ? take_keys(&conf, argc, argv, &error) : NULL;
    if (wrong != NULL) {
        fprintf(stderr, "hanji %s: %s\n", command->name, wrong);
        return CTL_USAGE;
    }
    if (!conf_finish(&conf, &error) || !prefixes_ok(&conf, &error) || !cors_ok(&conf, &error)) {
        fprintf(stderr, "hanji: %s\n", error.text);
        return EX_CONFIG;
    }
    log_set_level(conf.log_level);
    return command->run(&conf, argc, argv);
}

static bool asks_help(const char *s)
{
    return strcmp(s, "--help") == 0 || strcmp(s, "-h") == 0 || strcmp(s, "help") == 0;
}

static int wrong_usage(const char *word)
{
    if (word[0] == 0)
        fprintf(stderr, "hanji: a command is missing (hanji --help lists them)\n");
    else if (strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0)
        fprintf(stderr, "hanji: %s needs a file and a command\n", word);
    else
        fprintf(stderr, "hanji: unknown command \"%s\" (hanji --help lists them)\n", word);
    return CTL_USAGE;
}

int main(int argc, char **argv)
{
    const char *conf_file = NULL;
    int at = 1;
    while (at + 1 < argc && (strcmp(argv[at], "-c") == 0 || strcmp(argv[at], "--config") == 0)) {
        conf_file = argv[at + 1];
        at += 2;
    }
    const char *word = at < argc ? argv[at] : "";
    if (asks_help(word)) {
        help(stdout);
        return CTL_OK;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    const struct command *command = find_command(word);
    if (command == NULL)
        return wrong_usage(word);
    if (argc > at + 1 && asks_help(argv[argc - 1]) && command->help != NULL) {
        printf("usage: hanji [-c CONF] %s %s\n%s\n", command->name, command->arguments,
               command->help);
        return CTL_OK;
    }
    if (command->run != cmd_worker && command->run != cmd_serve &&
        (db_init() != DB_OK || !seal_init())) {
        fprintf(stderr, "hanji: SQLite or libsodium cannot be used\n");
        return EX_SOFTWARE;
    }
    invocation = (struct invocation){argc, argv, at, monotonic_ms()};
    return run(command, conf_file, argc - at - 1, argv + at + 1);
}
