/* hanji sql: the sqlite3 shell on the database, with the settings a guest beside the server
 * needs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/db.h"
#include "handlers/ctl.h"

int ctl_sql(const struct conf *conf, int argc, char **argv)
{
    size_t settings = 0;
    while (db_shell_commands[settings] != NULL)
        settings++;
    char **args = calloc(2 * settings + (size_t)argc + 3, sizeof *args);
    size_t n = 0;
    static char program[] = "sqlite3", flag[] = "-cmd";
    if (args == NULL)
        return CTL_FAILED;
    if (access(conf->database, R_OK) != 0) { /* the shell would make an empty file */
        fprintf(stderr, "hanji sql: %s: %s\n", conf->database, strerror(errno));
        free(args);
        return CTL_FAILED;
    }
    args[n++] = program;
    for (size_t i = 0; i < settings; i++) {
        args[n++] = flag;
        args[n++] = (char *)(uintptr_t)db_shell_commands[i];
    }
    args[n++] = (char *)(uintptr_t)conf->database;
    for (int i = 0; i < argc; i++)
        args[n++] = argv[i];
    umask(077); /* copies made in there hold all documents */
    execvp(program, args);
    fprintf(stderr, "hanji sql: the sqlite3 shell cannot be started: %s (Debian package sqlite3)\n",
            strerror(errno));
    free(args);
    return CTL_FAILED;
}
