/* hanji app new|check|run|list|total */
#include "handlers/ctl_app.h"

#include <stdlib.h>
#include <string.h>

#include "db/totals.h"

int ctl_app_usage(const char *why)
{
    fprintf(stderr,
            "hanji app: %s\n"
            "usage: hanji [-c CONF] app new [--from APP] NAME\n"
            "       hanji [-c CONF] app check [NAME|FOLDER]\n"
            "       hanji [-c CONF] app run [--post|--put|--delete] NAME ROUTE "
            "[PARAMETER=VALUE]...\n"
            "       hanji [-c CONF] app list\n"
            "       hanji app total TABLE [COLUMN]...\n",
            why);
    return CTL_USAGE;
}

bool ctl_app_folder(const struct conf *conf)
{
    if (conf->apps[0] == 0)
        fprintf(stderr, "hanji app: the configuration names no folder of apps (`apps = FOLDER`)\n");
    return conf->apps[0] != 0;
}

/* What SQL takes as a name without quotes, and this command as a table or column. */
static bool sql_name_ok(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return name[0] != 0 && strchr(first, name[0]) != NULL && name[strspn(name, others)] == 0 &&
           strlen(name) <= CTL_NAME_MAX;
}

static int total(int argc, char **argv)
{
    if (argc < 1 || argc > 1 + DB_TOTALS_COLUMNS_MAX)
        return ctl_app_usage("total takes a table and at most 16 columns");
    for (int i = 0; i < argc; i++)
        if (!sql_name_ok(argv[i]))
            return ctl_app_usage("a table or column has letters, digits and '_'");
    char *text = db_totals_schema(argv[0], (const char *const *)argv + 1, (unsigned)argc - 1);
    if (text == NULL) {
        fprintf(stderr, "hanji app: memory is short\n");
        return CTL_FAILED;
    }
    fputs(text, stdout);
    free(text);
    return CTL_OK;
}

int ctl_app(const struct conf *conf, int argc, char **argv)
{
    const char *word = argc > 0 ? argv[0] : "";
    if (strcmp(word, "new") == 0)
        return ctl_app_new(conf, argc - 1, argv + 1);
    if (strcmp(word, "check") == 0)
        return ctl_app_check(conf, argc - 1, argv + 1);
    if (strcmp(word, "run") == 0)
        return ctl_app_run(conf, argc - 1, argv + 1);
    if (strcmp(word, "list") == 0)
        return ctl_app_list(conf, argc - 1, argv + 1);
    if (strcmp(word, "total") == 0)
        return total(argc - 1, argv + 1);
    return ctl_app_usage("new, check, run, list or total is missing");
}
