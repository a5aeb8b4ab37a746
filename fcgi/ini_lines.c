#include "fcgi/ini_lines.h"

#include <ini.h>
#include <string.h>

/* inih reads through this. */
static char *next_line(char *line, int size, void *stream)
{
    struct ini_lines *l = stream;
    if (l->too_long || l->stopped || fgets(line, size, l->file) == NULL)
        return NULL;
    l->line++;
    if (strchr(line, '\n') == NULL && !feof(l->file)) {
        l->too_long = true;
        l->most = size - 2;
        return NULL;
    }
    size_t lead = strspn(line, " \t");
    memmove(line, line + lead, strlen(line + lead) + 1);
    for (char *p = line; (p = strchr(p, '#')) != NULL; p++)
        if (p > line && (p[-1] == ' ' || p[-1] == '\t')) {
            memcpy(p, "\n", 2);
            break;
        }
    return line;
}

static int take_line(void *arg, const char *section, const char *name, const char *value)
{
    struct ini_lines *l = arg;
    if (!l->stopped)
        l->stopped = !l->take(l, section, name, value);
    return !l->stopped;
}

int ini_lines_read(struct ini_lines *l)
{
    l->line = 0;
    l->too_long = l->stopped = false;
    return ini_parse_stream(next_line, l, take_line, l);
}
