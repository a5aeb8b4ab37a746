#include "handlers/app_trial.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool app_trial_open(struct app_trial *t, const char *spool)
{
    snprintf(t->folder, sizeof t->folder, "%s/.hanji-app-XXXXXX", spool);
    if (mkdtemp(t->folder) == NULL)
        return false;
    snprintf(t->path, sizeof t->path, "%s/trial.db", t->folder);
    t->db = (struct db_config){
        .path = t->path,
        .read_cache_bytes = 1 << 20,
        .write_cache_bytes = 1 << 20,
        .checkpoint_bytes = 16 << 20,
        .wal_limit_bytes = 256 << 20,
        .queue_operations = 1,
        .queue_bytes = 64 << 20,
        .burst_operations = 1,
    };
    return true;
}

void app_trial_close(struct app_trial *t)
{
    char path[sizeof t->folder + 260];
    DIR *dir = opendir(t->folder);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(path, sizeof path, "%s/%s", t->folder, e->d_name);
            unlink(path);
        }
    if (dir != NULL)
        closedir(dir);
    rmdir(t->folder);
}
