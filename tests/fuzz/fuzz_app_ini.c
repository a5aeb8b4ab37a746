/* app.ini, and (its first line) the name of a file of an app: what is taken is within its bounds, every text that is
 * told is whole, and a pattern has no segment that is empty but the last. */
#include "db/guard.h"
#include "fcgi/path.h"
#include "handlers/app_files.h"
#include "handlers/app_ini.h"
#include "tests/fuzz/must.h"

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg;
    (void)line;
    MUST(file[0] != 0 && text[0] != 0 && strlen(text) < 240);
}

static void prefixes_ok(const char *lines)
{
    MUST(strlen(lines) < APP_PREFIXES_BYTES && lines[0] != '/' && strstr(lines, "\n/") == NULL && strstr(lines, "\n\n") == NULL);
}

static void name_ok(const char *path)
{
    struct app_text t;
    const char *wrong = app_file_kind(path, &t);
    if (wrong != NULL || (t.kind != APP_SCRIPT && t.kind != APP_PAGE))
        return;
    MUST(strlen(t.pattern) < strlen(path) && strstr(t.pattern, "//") == NULL && t.pattern[0] != '/');
    MUST(utf8_ok(t.pattern, strlen(t.pattern)) && strpbrk(t.pattern, "\\?#% \t\r\n\"'<>") == NULL);
    MUST(t.pattern[0] != '.' && t.pattern[0] != '_');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct app_ini ini;
    struct db_faults faults = {.tell = tell};
    char *text = malloc(size + 1);
    MUST(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    app_ini_defaults(&ini, "shop");
    app_ini_read(&ini, "shop/app.ini", (struct str){text, size}, &faults);
    MUST(strlen(ini.title) <= APP_TITLE_MAX && utf8_ok(ini.title, strlen(ini.title)));
    MUST(ini.rows >= 1 && ini.rows <= APP_ROWS_MAX && ini.time_ms >= 1 && ini.time_ms <= APP_TIME_MAX_MS && ini.body >= 1);
    MUST(strlen(ini.csp) < APP_CSP_BYTES && strpbrk(ini.csp, "\r\n") == NULL);
    prefixes_ok(ini.documents_read);
    prefixes_ok(ini.documents_write);
    text[strcspn(text, "\n")] = 0;
    name_ok(text);
    free(text);
    return 0;
}
