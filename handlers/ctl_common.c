#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "db/writer.h"
#include "fcgi/resp.h"
#include "handlers/control.h"
#include "handlers/ctl.h"
#include "handlers/store.h"

bool ctl_name_ok(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-_.@", name[i]) == NULL)
            return false;
    return n >= 1 && n <= CTL_NAME_MAX;
}

int ctl_apply(const struct conf *conf, const struct ctl_words *words, struct db_op *op)
{
    struct db_error error = {""};
    struct db_config db = store_db_config(conf);
    enum control_result sent = control_send(conf->control, op);
    if (sent == CONTROL_FAILED) {
        fprintf(stderr, "hanji %s: the server behind %s could not be asked: %s\n", words->command,
                conf->control, errno != 0 ? strerror(errno) : "no proper answer");
        return CTL_FAILED;
    }
    enum db_result result = sent == CONTROL_DONE ? op->result : db_writer_once(&db, op, &error);
    if (result == DB_OK)
        return CTL_OK;
    const char *why = result == DB_EXISTS ? words->exists
                      : result == DB_NONE ? words->none
                      : result == DB_CONFLICT && words->conflict != NULL ? words->conflict
                      : error.text[0] != 0 ? error.text
                                           : db_result_text(result);
    fprintf(stderr, "hanji %s: %s\n", words->command, why);
    return CTL_FAILED;
}

void ctl_print_lines(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        putchar(p[i] == '\n' ? ' ' : p[i]);
    if (n == 0)
        putchar('-');
    putchar('\t');
}

void ctl_print_time(int64_t unix_s, char end)
{
    char text[RFC3339_LEN];
    put_rfc3339(text, unix_s);
    if (unix_s == 0)
        printf("never%c", end);
    else
        printf("%.*s%c", RFC3339_LEN, text, end);
}
