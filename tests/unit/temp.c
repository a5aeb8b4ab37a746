#include "tests/unit/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[512];   /* of the case, made and removed by the process that runs the tests */
static char folder[600]; /* of the test, below root */
static int saved_stderr = -1;

static void make_root(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/hanji-unit.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (mkdtemp(root) == NULL) {
        perror(root);
        exit(EXIT_FAILURE);
    }
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void remove_root(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "%s/XXXXXX", root);
    ck_assert_msg(mkdtemp(folder) != NULL, "%s: %s", folder, strerror(errno));
}

void temp_use(TCase *t)
{
    tcase_add_unchecked_fixture(t, make_root, remove_root);
    tcase_add_checked_fixture(t, make_folder, NULL);
}

const char *temp_path(const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s%s%s", folder, *name ? "/" : "", name);
    return path;
}

const char *temp_file(const char *name, const void *p, size_t n)
{
    const char *path = temp_path(name);
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    ck_assert_uint_eq(fwrite(p, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

char *temp_read(const char *path, size_t *n)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0 && fstat(fd, &st) == 0, "%s: %s", path, strerror(errno));
    char *p = malloc((size_t)st.st_size + 1);
    ck_assert_ptr_nonnull(p);
    ssize_t got = read(fd, p, (size_t)st.st_size);
    ck_assert_int_eq(got, st.st_size);
    close(fd);
    *n = (size_t)got;
    p[got] = 0;
    return p;
}

void temp_capture_stderr(void)
{
    int fd = open(temp_path("stderr"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    saved_stderr = dup(2);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dup2(fd, 2), 2);
    close(fd);
}

char *temp_captured(void)
{
    size_t n;
    dup2(saved_stderr, 2);
    close(saved_stderr);
    return temp_read(temp_path("stderr"), &n);
}
