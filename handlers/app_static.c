#include "handlers/app_static.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcgi/path.h"
#include "fcgi/spool.h"
#include "handlers/app_files.h"
#include "handlers/problem.h"
#include "handlers/store.h"
#include "seal/digest.h"

enum { PIECE_BYTES = 32768, TAG_MAX = 80 };

/* The internal location of nginx-conf/hanji-locations.conf. */
static const char accel_prefix[] = "/_hanji/apps/";

struct answer {
    struct call *c;
    const struct app *app;
    struct str type;
    char tag[TAG_MAX];  /* with its quotes; "": the web server's own */
    int64_t modified_s; /* 0: not known */
};

bool app_static_is(struct str path)
{
    return str_starts(path, STR_LIT("static/")) && path.n > 7 && path.p[path.n - 1] != '/';
}

/* No segment that begins with '.'; the rest is path_ok's. */
static bool visible(struct str path)
{
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '.' && path.p[i - 1] == '/')
            return false;
    return true;
}

static struct str type_of(struct str path)
{
    static const struct {
        const char *end, *type;
    } types[] = {
        {"css", "text/css; charset=utf-8"},
        {"js", "text/javascript; charset=utf-8"},
        {"mjs", "text/javascript; charset=utf-8"},
        {"html", "text/html; charset=utf-8"},
        {"txt", "text/plain; charset=utf-8"},
        {"csv", "text/csv; charset=utf-8"},
        {"md", "text/markdown; charset=utf-8"},
        {"xml", "text/xml; charset=utf-8"},
        {"json", "application/json"},
        {"map", "application/json"},
        {"webmanifest", "application/manifest+json"},
        {"wasm", "application/wasm"},
        {"pdf", "application/pdf"},
        {"svg", "image/svg+xml"},
        {"png", "image/png"},
        {"jpg", "image/jpeg"},
        {"jpeg", "image/jpeg"},
        {"gif", "image/gif"},
        {"webp", "image/webp"},
        {"avif", "image/avif"},
        {"ico", "image/x-icon"},
        {"woff", "font/woff"},
        {"woff2", "font/woff2"},
        {"ttf", "font/ttf"},
        {"mp3", "audio/mpeg"},
        {"ogg", "audio/ogg"},
        {"mp4", "video/mp4"},
        {"webm", "video/webm"},
    };
    const char *dot = memrchr(path.p, '.', path.n);
    for (size_t i = 0; dot != NULL && i < sizeof types / sizeof *types; i++) {
        size_t n = (size_t)(path.p + path.n - dot) - 1;
        if (strlen(types[i].end) == n && strncasecmp(dot + 1, types[i].end, n) == 0)
            return (struct str){types[i].type, strlen(types[i].type)};
    }
    return STR_LIT("application/octet-stream");
}

/* True when the address says which version it wants: ?v=… */
static bool versioned(const struct call *c)
{
    const struct str q = c->req->query;
    return str_starts(q, STR_LIT("v=")) || (q.n > 3 && memmem(q.p, q.n, "&v=", 3) != NULL);
}

static void start(const struct answer *a, unsigned status)
{
    struct resp *r = a->c->resp;
    resp_start(r, status);
    if (a->tag[0] != 0)
        resp_header(r, "ETag", (struct str){a->tag, strlen(a->tag)});
    if (a->tag[0] != 0 && a->modified_s != 0)
        resp_header_date(r, "Last-Modified", a->modified_s);
    bool public_ = a->app->read == APP_PUBLIC, for_ever = versioned(a->c);
    resp_header(r, "Cache-Control",
                for_ever ? (public_ ? STR_LIT("public, max-age=31536000, immutable")
                                    : STR_LIT("private, max-age=31536000, immutable"))
                         : (public_ ? STR_LIT("no-cache") : STR_LIT("private, no-cache")));
    resp_header(r, "X-Content-Type-Options", STR_LIT("nosniff"));
    resp_header(r, "Content-Security-Policy", (struct str){a->app->csp, strlen(a->app->csp)});
    if (status == 200)
        resp_header(r, "Content-Type", a->type);
}

/* If-None-Match (weakly) or, without it, If-Modified-Since: RFC 9110 13.1. */
static bool unchanged(const struct answer *a)
{
    const struct req *req = a->c->req;
    struct str tags = req->if_none_match;
    int64_t since;
    if (tags.n > 0)
        return tags.p[0] == '*' || memmem(tags.p, tags.n, a->tag, strlen(a->tag)) != NULL;
    return a->modified_s != 0 && req->if_modified_since.n > 0 &&
           parse_http_date(req->if_modified_since, &since) && a->modified_s <= since;
}

static enum verdict not_there(struct call *c)
{
    problem(c, 404, "There is nothing at this address.");
    return REPLY;
}

/* ---- from memory ----------------------------------------------------------------------------- */

static enum verdict from_memory(struct answer *a, struct str path)
{
    const struct app_file *f = NULL;
    unsigned char digest[SEAL_DIGEST_BYTES];
    char hex[SEAL_DIGEST_HEX_LEN + 1];
    struct seal_digest d;
    for (unsigned i = 0; i < a->app->source->count; i++) {
        const struct app_file *one = &a->app->source->file[i];
        if (str_eq((struct str){one->path, strlen(one->path)}, path))
            f = one;
    }
    if (f == NULL)
        return not_there(a->c);
    seal_digest_init(&d);
    seal_digest_add(&d, f->data, f->bytes);
    seal_digest_end(&d, digest);
    seal_digest_hex(digest, hex);
    snprintf(a->tag, sizeof a->tag, "\"%.32s\"", hex);
    start(a, unchanged(a) ? 304 : 200);
    if (a->c->resp->status == 304)
        resp_no_body(a->c->resp);
    else
        resp_body(a->c->resp, f->data, f->bytes);
    return REPLY;
}

/* ---- from a file ----------------------------------------------------------------------------- */

struct file_stream {
    struct stream stream;
    int fd;
    uint64_t at, bytes;
};

static enum stream_state fill(struct stream *s, struct call *c)
{
    struct file_stream *f = (struct file_stream *)s; /* its first member */
    unsigned char piece[PIECE_BYTES];
    uint64_t left = f->bytes - f->at;
    size_t take = left < sizeof piece ? (size_t)left : sizeof piece;
    if (!spool_read(f->fd, piece, take, (size_t)f->at))
        return STREAM_BREAK; /* somebody cut the file: the client sees that bytes are missing */
    resp_write(c->resp, piece, take);
    f->at += take;
    return f->at < f->bytes ? STREAM_MORE : STREAM_END;
}

static void close_stream(struct stream *s)
{
    struct file_stream *f = (struct file_stream *)s;
    close(f->fd);
    free(f);
}

/* Takes fd. The tag is as nginx makes it, so that both ways give the same. */
static enum verdict by_us(struct answer *a, int fd, const struct stat *st)
{
    struct file_stream *f = NULL;
    snprintf(a->tag, sizeof a->tag, "\"%llx-%llx\"", (unsigned long long)st->st_mtim.tv_sec,
             (unsigned long long)st->st_size);
    a->modified_s = st->st_mtim.tv_sec;
    if (unchanged(a)) {
        close(fd);
        start(a, 304);
        resp_no_body(a->c->resp);
        return REPLY;
    }
    start(a, 200);
    resp_length(a->c->resp, (uint64_t)st->st_size);
    if (a->c->resp->head_request || st->st_size == 0) {
        close(fd);
        return REPLY;
    }
    if ((f = calloc(1, sizeof *f)) == NULL) {
        close(fd);
        return FAIL;
    }
    f->fd = fd;
    f->bytes = (uint64_t)st->st_size;
    f->stream.fill = fill;
    f->stream.close = close_stream;
    loop_stream(a->c, &f->stream);
    return STREAM;
}

/* The file's name for the web server: encoded in a URI of ours, or as it is. */
static enum verdict by_server(const struct answer *a, struct str path)
{
    const struct conf *conf = session_of(a->c)->store->conf;
    struct buf *link = &session_of(a->c)->link;
    bool accel = conf->sendfile_header == SENDFILE_X_ACCEL_REDIRECT;
    const char *folder = accel ? accel_prefix : conf->apps;
    link->len = 0;
    bool ok = buf_add(link, folder, strlen(folder), RESP_HEAD_MAX) &&
              (accel || buf_add(link, "/", 1, RESP_HEAD_MAX)) &&
              buf_add(link, a->app->name, strlen(a->app->name), RESP_HEAD_MAX) &&
              buf_add(link, "/", 1, RESP_HEAD_MAX) &&
              (accel ? path_encode(link, path) : buf_add(link, path.p, path.n, RESP_HEAD_MAX));
    if (!ok)
        return FAIL;
    start(a, 200);
    resp_header(a->c->resp, accel ? "X-Accel-Redirect" : "X-Sendfile",
                (struct str){(const char *)link->data, link->len});
    resp_body(a->c->resp, NULL, 0);
    return REPLY;
}

/* The open file, or -1: not there, a folder, a link out of static/. */
static int open_file(const struct call *c, const struct app *a, struct str path, struct stat *st)
{
    char folder[CONF_TEXT_MAX + DB_APP_NAME_MAX + 2], name[APP_PATH_MAX + 1];
    if (path.n > APP_PATH_MAX)
        return -1;
    snprintf(folder, sizeof folder, "%s/%s", session_of(c)->store->conf->apps, a->name);
    snprintf(name, sizeof name, "%.*s", (int)path.n, path.p);
    int app = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int dir = app >= 0 ? app_open_below(app, "static", O_PATH | O_DIRECTORY) : -1;
    int fd = dir >= 0 ? app_open_below(dir, name + strlen("static/"), O_RDONLY) : -1;
    if (app >= 0)
        close(app);
    if (dir >= 0)
        close(dir);
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

enum verdict app_static(struct call *c, const struct app *a, struct str path)
{
    struct answer answer = {.c = c, .app = a, .type = type_of(path)};
    struct stat st;
    if (!app_static_is(path) || !visible(path))
        return not_there(c);
    if (a->source != NULL)
        return from_memory(&answer, path);
    int fd = open_file(c, a, path, &st);
    if (fd < 0)
        return not_there(c);
    bool ours = session_of(c)->store->conf->sendfile_header == SENDFILE_NONE ||
                str_eq(c->req->sendfile, STR_LIT("off"));
    if (ours)
        return by_us(&answer, fd, &st);
    close(fd);
    return by_server(&answer, path);
}
