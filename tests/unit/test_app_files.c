/* handlers/app_files, app: which files are what, what is refused, and which route a path has. */
#include "handlers/app_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/temp.h"

static char told[8192];

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    size_t at = strlen(told);
    (void)arg;
    snprintf(told + at, sizeof told - at, "%s:%u: %s\n", file, line, text);
}

/* ---- names ---- */

static void kind_of(const char *path, enum app_kind kind, const char *pattern)
{
    struct app_text t;
    const char *wrong = app_file_kind(path, &t);
    ck_assert_msg(wrong == NULL, "%s: %s", path, wrong);
    ck_assert_msg(t.kind == kind, "%s is %d", path, t.kind);
    ck_assert_str_eq(t.pattern, pattern);
    ck_assert_str_eq(t.path, path);
}

static void wrong_name(const char *path, const char *said)
{
    struct app_text t;
    const char *wrong = app_file_kind(path, &t);
    ck_assert_msg(wrong != NULL, "%s was taken", path);
    ck_assert_msg(strstr(wrong, said) != NULL, "%s: %s", path, wrong);
}

START_TEST(names_that_mean_something)
{
    struct app_text t;
    kind_of("app.ini", APP_INI, "");
    kind_of("schema/001-first.sql", APP_SCHEMA, "");
    kind_of("index.get.sql", APP_SCRIPT, "");
    kind_of("index.html", APP_PAGE, "");
    kind_of("list.get.sql", APP_SCRIPT, "list");
    kind_of("item/:id.get.sql", APP_SCRIPT, "item/:id");
    kind_of("item/index.html", APP_PAGE, "item/");
    kind_of("a/:b/c/:d_1.html", APP_PAGE, "a/:b/c/:d_1");
    kind_of("feed.xml.get.sql", APP_SCRIPT, "feed.xml");
    kind_of("gr\xc3\xbc\xc3\x9f.html", APP_PAGE, "gr\xc3\xbc\xc3\x9f");
    kind_of("order.inbox.sql", APP_EVENT, "order");
    kind_of("New-order_2.inbox.sql", APP_EVENT, "New-order_2");
    kind_of("_layout.html", APP_PARTIAL, "");
    kind_of("_parts/row.html", APP_PARTIAL, "");
    static const char *const ends[] = {"get", "post", "put", "delete"};
    for (int i = 0; i < APP_METHODS; i++) {
        char path[32];
        snprintf(path, sizeof path, "x.%s.sql", ends[i]);
        ck_assert_ptr_null(app_file_kind(path, &t));
        ck_assert_int_eq(t.method, i);
    }
}
END_TEST

START_TEST(names_that_mean_nothing)
{
    static const char *const names[] = {".git/config", ".index.get.sql.swp", "static/app.css", "static/x.sql",
                                        "README.md", "LICENSE", "_notes.txt", "_x.get.sql", "_old/index.get.sql",
                                        "schema/README", "index.html~", "4913"};
    for (size_t i = 0; i < COUNT(names); i++)
        kind_of(names[i], APP_NOTHING, "");
}
END_TEST

START_TEST(names_that_are_mistakes)
{
    wrong_name("list.sql", "a script is called ROUTE.get.sql");
    wrong_name("list.GET.sql", "a script is called ROUTE.get.sql");
    wrong_name("list.patch.sql", "a script is called ROUTE.get.sql");
    wrong_name("a/b.inbox.sql", "EVENT.inbox.sql");
    wrong_name("a b.inbox.sql", "EVENT.inbox.sql");
    wrong_name("-a.inbox.sql", "EVENT.inbox.sql");
    wrong_name(":id.inbox.sql", "EVENT.inbox.sql");
    wrong_name("12345678901234567890123456789012345678901234567890123456789012345.inbox.sql", "EVENT.inbox.sql");
    wrong_name("schema/1-first.sql", "NNN-name.sql");
    wrong_name("schema/0001-first.sql", "NNN-name.sql");
    wrong_name("schema/001first.sql", "NNN-name.sql");
    wrong_name("schema/001-.sql", "NNN-name.sql");
    wrong_name("schema/a/001-first.sql", "NNN-name.sql");
    wrong_name("style.css", "static/");
    wrong_name("js/app.js", "static/");
    wrong_name("a b.html", "a route has letters");
    wrong_name("a?.html", "a route has letters");
    wrong_name("a%41.html", "a route has letters");
    wrong_name("-rf.html", "a route has letters");
    wrong_name("\xff.html", "a route has letters");
    wrong_name(":.html", "a parameter of a route");
    wrong_name(":1.html", "a parameter of a route");
    wrong_name(":_user.html", "a parameter of a route");
    wrong_name(":a-b.html", "a parameter of a route");
    wrong_name("x/:id/:id.html", "two parameters");
    wrong_name("1/2/3/4/5/6/7/8/9.html", "at most 8 segments");
}
END_TEST

/* ---- folders ---- */

static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s", temp_path(path));
    for (char *p = whole + strlen(temp_path("")); (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(whole, 0755);
        *p = '/';
    }
    temp_file(path, text, strlen(text));
}

static unsigned read_app(struct app_files *files)
{
    char folder[512];
    struct db_faults faults = {.tell = tell};
    told[0] = 0;
    snprintf(folder, sizeof folder, "%s", temp_path("shop"));
    const struct app_source source = {.name = "shop", .folder = folder};
    app_files_read(files, &source, &faults);
    return faults.count;
}

START_TEST(a_folder_is_read)
{
    struct app_files files;
    put("shop/index.get.sql", "SELECT 1");
    put("shop/app.ini", "title = x");
    put("shop/item/:id.html", "");
    put("shop/static/x.sql", "not read");
    put("shop/.git/x.sql", "not read");
    ck_assert_msg(read_app(&files) == 0, "%s", told);
    ck_assert_uint_eq(files.count, 3);
    ck_assert_str_eq(files.list[0].path, "app.ini");
    ck_assert_str_eq(files.list[1].path, "index.get.sql");
    ck_assert_mem_eq(files.list[1].data, "SELECT 1", 9);
    ck_assert_uint_eq(files.list[2].bytes, 0);
    ck_assert_ptr_eq(app_files_find(&files, "item/:id.html"), &files.list[2]);
    ck_assert_ptr_null(app_files_find(&files, "item"));
    ck_assert_int_gt(files.newest_ms, 0);
    app_files_free(&files);
}
END_TEST

START_TEST(every_fault_of_a_folder_is_told)
{
    struct app_files files;
    put("shop/a.sql", "");
    put("shop/b.css", "");
    ck_assert_uint_eq(read_app(&files), 2);
    ck_assert_ptr_nonnull(strstr(told, "shop/a.sql:0: a script is called ROUTE.get.sql"));
    ck_assert_ptr_nonnull(strstr(told, "shop/b.css:0: files that are sent as they are stand in static/\n"));
    app_files_free(&files);
}
END_TEST

START_TEST(no_folder)
{
    struct app_files files;
    ck_assert_uint_eq(read_app(&files), 1);
    ck_assert_str_eq(told, "shop:0: the folder cannot be opened: No such file or directory\n");
    app_files_free(&files);
}
END_TEST

START_TEST(links)
{
    struct app_files files;
    put("secret.html", "secret");
    put("shop/in/real.html", "x");
    ck_assert_int_eq(symlink("in/real.html", temp_path("shop/inside.html")), 0);
    ck_assert_int_eq(symlink("../secret.html", temp_path("shop/out.html")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", temp_path("shop/absolute.html")), 0);
    ck_assert_int_eq(symlink("..", temp_path("shop/up")), 0);
    ck_assert_int_eq(symlink("nowhere", temp_path("shop/nothing")), 0);
    ck_assert_uint_eq(read_app(&files), 3);
    ck_assert_ptr_nonnull(strstr(told, "shop/out.html:0: a link that leaves the app's folder is not followed\n"));
    ck_assert_ptr_nonnull(strstr(told, "shop/absolute.html:0: a link that leaves"));
    ck_assert_ptr_nonnull(strstr(told, "shop/up:0: a link that leaves"));
    ck_assert_uint_eq(files.count, 2);
    ck_assert_ptr_nonnull(app_files_find(&files, "inside.html"));
    app_files_free(&files);
}
END_TEST

START_TEST(a_folder_within_itself)
{
    struct app_files files;
    put("shop/a.html", "");
    ck_assert_int_eq(symlink(".", temp_path("shop/self")), 0);
    ck_assert_uint_ge(read_app(&files), 1);
    ck_assert_ptr_nonnull(strstr(told, "at most 8"));
    app_files_free(&files);
}
END_TEST

START_TEST(what_is_no_file)
{
    struct app_files files;
    put("shop/a.html", "");
    ck_assert_int_eq(mkfifo(temp_path("shop/b.html"), 0644), 0);
    ck_assert_int_eq(mkfifo(temp_path("shop/pipe"), 0644), 0); /* nobody's business */
    ck_assert_uint_eq(read_app(&files), 1);
    ck_assert_str_eq(told, "shop/b.html:0: it is no file\n");
    app_files_free(&files);
}
END_TEST

START_TEST(a_file_too_large)
{
    struct app_files files;
    put("shop/a.html", "");
    ck_assert_int_eq(truncate(temp_path("shop/a.html"), APP_FILE_BYTES_MAX), 0);
    ck_assert_uint_eq(read_app(&files), 0);
    app_files_free(&files);
    ck_assert_int_eq(truncate(temp_path("shop/a.html"), APP_FILE_BYTES_MAX + 1), 0);
    ck_assert_uint_eq(read_app(&files), 1);
    ck_assert_str_eq(told, "shop/a.html:0: it is larger than 256 KiB\n");
    app_files_free(&files);
}
END_TEST

START_TEST(too_many_files)
{
    struct app_files files;
    char name[40];
    put("shop/a.html", "");
    for (int i = 0; i < APP_FILES_MAX; i++) {
        snprintf(name, sizeof name, "shop/p%d.html", i);
        temp_file(name, "", 0);
    }
    ck_assert_uint_eq(read_app(&files), 1);
    ck_assert_ptr_nonnull(strstr(told, "an app has at most 1200 files and 8 MiB of them\n"));
    app_files_free(&files);
}
END_TEST

START_TEST(only_below)
{
    put("shop/a.html", "x");
    put("b.html", "x");
    int dir = open(temp_path("shop"), O_PATH | O_DIRECTORY);
    int fd = app_open_below(dir, "a.html", O_RDONLY);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_lt(app_open_below(dir, "../b.html", O_RDONLY), 0);
    ck_assert_int_lt(app_open_below(dir, "/etc/passwd", O_RDONLY), 0);
    close(dir);
}
END_TEST

START_TEST(an_app_in_the_program)
{
    static const unsigned char one[] = "SELECT 1", css[] = "x";
    static const struct app_file list[] = {{"static/a.css", css, 1}, {"index.get.sql", one, 8}};
    const struct app_source source = {.name = "console", .file = list, .count = 2, .console = true};
    struct db_faults faults = {.tell = tell};
    struct app_files files;
    app_files_read(&files, &source, &faults);
    ck_assert_uint_eq(faults.count, 0);
    ck_assert_uint_eq(files.count, 1);
    ck_assert_ptr_eq(files.list[0].data, one);
    app_files_free(&files);
}
END_TEST

/* ---- routes ---- */

static struct app_route routes[8];
static struct app app = {.route = routes};

/* In the order of app_load. */
static void have(const char *const *pattern, unsigned count)
{
    memset(routes, 0, sizeof routes);
    app.count = count;
    for (unsigned i = 0; i < count; i++) {
        routes[i].pattern = pattern[i];
        for (const char *p = pattern[i];; p++) {
            size_t n = strcspn(p, "/");
            routes[i].segment[routes[i].segments++] = (struct str){p, n};
            p += n;
            if (*p == 0)
                break;
        }
    }
}

static const char *match(const char *path, char *given)
{
    struct app_segment s[APP_SEGMENTS_MAX];
    unsigned count;
    given[0] = 0;
    const struct app_route *r = app_match(&app, (struct str){path, strlen(path)}, s, &count);
    for (unsigned i = 0; i < count; i++)
        sprintf(given + strlen(given), "%.*s=%.*s;", (int)s[i].name.n, s[i].name.p, (int)s[i].value.n, s[i].value.p);
    return r != NULL ? r->pattern : "none";
}

START_TEST(paths_and_routes)
{
    static const char *const patterns[] = {"", "item/", "item/new", "item/:id", "item/:id/edit", ":any"};
    char given[256];
    have(patterns, COUNT(patterns));
    ck_assert_str_eq(match("", given), "");
    ck_assert_str_eq(match("item/", given), "item/");
    ck_assert_str_eq(match("item/new", given), "item/new");
    ck_assert_str_eq(given, "");
    ck_assert_str_eq(match("item/42", given), "item/:id");
    ck_assert_str_eq(given, "id=42;");
    ck_assert_str_eq(match("item/42/edit", given), "item/:id/edit");
    ck_assert_str_eq(match("item/new/edit", given), "item/:id/edit");
    ck_assert_str_eq(given, "id=new;");
    ck_assert_str_eq(match("item", given), ":any");
    ck_assert_str_eq(match("item/42/", given), "none");
    ck_assert_str_eq(match("item/42/editor", given), "none");
    ck_assert_str_eq(match("a/b/c/d/e/f/g/h/i/j", given), "none");
    ck_assert_str_eq(match("/", given), "none");
    ck_assert_ptr_eq(app_route(&app, "item/:id"), &routes[3]);
    ck_assert_ptr_null(app_route(&app, "item/42"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_files");
    TCase *t = run_case(s, "names");
    tcase_add_test(t, names_that_mean_something);
    tcase_add_test(t, names_that_mean_nothing);
    tcase_add_test(t, names_that_are_mistakes);
    tcase_add_test(t, an_app_in_the_program);
    tcase_add_test(t, paths_and_routes);
    t = run_case(s, "folders");
    temp_use(t);
    tcase_add_test(t, a_folder_is_read);
    tcase_add_test(t, every_fault_of_a_folder_is_told);
    tcase_add_test(t, no_folder);
    tcase_add_test(t, links);
    tcase_add_test(t, a_folder_within_itself);
    tcase_add_test(t, what_is_no_file);
    tcase_add_test(t, a_file_too_large);
    tcase_add_test(t, too_many_files);
    tcase_add_test(t, only_below);
    return run_suite(s);
}
