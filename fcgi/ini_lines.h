/* Files of "key = value" lines, as hanji.conf and every app.ini are: inih without three of its
 * habits.
 *
 * A line that begins with a blank does not go on with the value before it, '#' starts a comment
 * behind a value as ';' does, and a line that is too long is a fault, not two lines. */
#ifndef HANJI_FCGI_INI_LINES_H
#define HANJI_FCGI_INI_LINES_H

#include <stdbool.h>
#include <stdio.h>

struct ini_lines {
    FILE *file;
    /* One line; line has its number. False: no more are wanted. */
    bool (*take)(struct ini_lines *l, const char *section, const char *name, const char *value);
    void *arg; /* the caller's */
    int line;  /* the one that was read last, from 1 */
    int most;  /* bytes that a line may have; set when one is too long */
    bool too_long;
    bool stopped; /* take returned false */
};

/* Reads all of file. Returns 0, or the first line that is not "key = value" (the others were
 * taken); too_long, stopped and ferror(file) are the caller's to look at first. */
int ini_lines_read(struct ini_lines *l) __attribute__((warn_unused_result));

#endif
