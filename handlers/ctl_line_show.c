#include "handlers/ctl_line.h"

#include <string.h>

#include "db/line.h"
#include "handlers/ctl.h"
#include "handlers/sends_show.h"
#include "handlers/store.h"
#include "seal/keys.h"

enum { PARKED_MAX = 100, ATTEMPTS_MAX = 100 };

static int fail(const char *why)
{
    fprintf(stderr, "hanji line: %s\n", why);
    return CTL_FAILED;
}

/* A reader with its snapshot begun; NULL: told why not. */
static struct db_reader *look(const struct conf *conf)
{
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    struct db_reader *r = NULL;
    enum db_result result = db_reader_open(&db, &r, &error);
    if (result == DB_OK)
        result = db_reader_begin(r);
    if (result == DB_OK)
        return r;
    (void)fail(error.text[0] != 0 ? error.text : db_result_text(result));
    db_reader_close(r);
    return NULL;
}

/* Ends the look. */
static int done(struct db_reader *r, enum db_result result, const char *none)
{
    db_reader_close(r);
    if (result == DB_OK)
        return CTL_OK;
    return fail(result == DB_NONE ? none : db_result_text(result));
}

/* ---- list ------------------------------------------------------------------------------------ */

static void print_when(int64_t unix_s, const char *none, char end)
{
    if (unix_s > 0)
        ctl_print_time(unix_s, end);
    else
        printf("%s%c", none, end);
}

static bool print_line(void *arg, const struct db_line *line)
{
    (void)arg;
    printf("%s\t%s\t%s\t%s\t%llu\t%llu\t", line->name, sends_line_state(line->state),
           line->fifo ? "fifo" : "any", line->keys > 0 ? "sealed" : "-",
           (unsigned long long)line->waiting, (unsigned long long)line->parked);
    print_when(line->due_ms / 1000, "-", '\t');
    printf("%s\n", line->url);
    return true;
}

int ctl_line_list(const struct conf *conf)
{
    struct db_reader *r = look(conf);
    if (r == NULL)
        return CTL_FAILED;
    printf("name\tstate\torder\tsealed\twaiting\tparked\tdue\turl\n");
    return done(r, db_line_list(r, "", DB_LINES_MAX, print_line, NULL), "");
}

/* ---- show ------------------------------------------------------------------------------------ */

static enum db_result print_keys(struct db_reader *r, int64_t line)
{
    struct db_line_key keys[DB_LINE_KEYS_MAX];
    char id[SEAL_KEY_ID_HEX + 1], owner[SEAL_KEY_ID_HEX + 1];
    unsigned count = 0;
    enum db_result result = db_line_keys(r, line, keys, &count);
    for (unsigned i = 0; result == DB_OK && i < count; i++) {
        seal_key_hex(keys[i].id, id);
        seal_key_hex(keys[i].owner, owner);
        printf("key\t%s of %s until ", id, owner);
        ctl_print_time(keys[i].valid_until, '\n');
    }
    return result;
}

static bool print_stuck(void *arg, const struct db_message *m)
{
    printf("%s\t%s seq %llu, %u tries: %s\n", (const char *)arg, m->id,
           (unsigned long long)m->seq, m->tries, m->reason != NULL ? m->reason : "-");
    return true;
}

static void print_facts(const struct db_line *line)
{
    printf("name\t%s\nurl\t%s\norder\t%s\n", line->name, line->url, line->fifo ? "fifo" : "any");
    if (line->rate > 0)
        printf("rate\t%g/s\n", line->rate);
    printf("secret\t%s\nprivate addresses\t%s\ncertificates\t%s\n",
           line->secret != NULL ? "yes" : "none", line->private_ ? "allowed" : "refused",
           line->ca != NULL ? "its own" : "the machine's");
    printf("state\t%s%s%s\n", sends_line_state(line->state), line->reason != NULL ? ": " : "",
           line->reason != NULL ? line->reason : "");
    printf("last number\t%llu\nwaiting\t%llu\nparked\t%llu\ndue\t", (unsigned long long)line->seq,
           (unsigned long long)line->waiting, (unsigned long long)line->parked);
    print_when(line->due_ms / 1000, "-", '\n');
    printf("failing since\t");
    print_when(line->failing_s, "-", '\n');
    printf("made\t");
    print_when(line->created, "-", '\n');
}

static enum db_result show_line(struct db_reader *r, const char *name)
{
    struct db_line line;
    char parked[] = "parked", unopenable[] = "unopenable";
    enum db_result result = db_line_find(r, name, strlen(name), &line);
    if (result != DB_OK)
        return result;
    int64_t id = line.id;
    print_facts(&line);
    result = print_keys(r, id);
    if (result == DB_OK)
        result = db_message_list(r, id, DB_SEND_PARKED, 0, PARKED_MAX, print_stuck, parked);
    if (result == DB_OK)
        result = db_message_list(r, id, DB_SEND_UNOPENABLE, 0, PARKED_MAX, print_stuck,
                                 unopenable);
    return result;
}

static bool print_attempt(void *arg, const struct db_attempt *a)
{
    (void)arg;
    printf("try %u\t", a->number);
    ctl_print_time(a->at_ms / 1000, '\t');
    printf("%lld ms\t%u\t%s\t%s\n", (long long)a->took_ms, a->status, a->outcome,
           a->detail != NULL ? a->detail : "");
    return true;
}

static enum db_result show_message(struct db_reader *r, const char *name, const char *id)
{
    struct db_message m;
    int64_t number;
    enum db_result result = db_message_find(r, id, strlen(id), &m, &number);
    if (result == DB_OK && strcmp(m.line, name) != 0)
        result = DB_NONE;
    if (result != DB_OK)
        return result;
    printf("id\t%s\nline\t%s\nseq\t%llu\nstate\t%s%s%s%s\ntype\t%s\nsize\t%llu\nsealed\t%s\n",
           m.id, m.line, (unsigned long long)m.seq, db_send_state_name(m.state),
           m.skip ? ", to be skipped" : "", m.reason != NULL ? ": " : "",
           m.reason != NULL ? m.reason : "", m.type, (unsigned long long)m.bytes,
           m.sealed ? "yes" : "no");
    printf("tries\t%u\nmade\t", m.tries);
    ctl_print_time(m.created, '\n');
    printf("due\t");
    print_when(m.state == DB_SEND_WAITING ? m.due_ms / 1000 : 0, "-", '\n');
    printf("ended\t");
    print_when(m.ended, "-", '\n');
    return db_attempt_list(r, number, ATTEMPTS_MAX, print_attempt, NULL);
}

int ctl_line_show(const struct conf *conf, const char *name, const char *id)
{
    struct db_reader *r = look(conf);
    if (r == NULL)
        return CTL_FAILED;
    return id == NULL ? done(r, show_line(r, name), "there is no line of that name")
                      : done(r, show_message(r, name, id), "there is no such message on this line");
}
