/* hanji app run: one request to an app, as the operator, through the running server; when none
 * runs, through one that lives as long as the request. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fcgi/client.h"
#include "fcgi/log.h"
#include "fcgi/path.h"
#include "fcgi/serve.h"
#include "handlers/ctl_app.h"
#include "handlers/store.h"

enum { REQUEST_MAX = 1 << 20 };

struct asking {
    char socket[1100];
    struct client_request request;
    struct buf answer;
    unsigned status;
};

/* NAME=VALUE… as a form. False: one has no '='. */
static bool add_parameters(struct buf *form, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '=');
        if (equals == NULL || equals == words[i])
            return false;
        struct str name = {words[i], (size_t)(equals - words[i])};
        struct str value = {equals + 1, strlen(equals + 1)};
        if ((form->len > 0 && !buf_add(form, "&", 1, REQUEST_MAX)) || !path_encode(form, name) ||
            !buf_add(form, "=", 1, REQUEST_MAX) || !path_encode(form, value))
            return false;
    }
    return true;
}

/* ---- a server for one request ---------------------------------------------------------------- */

static void *ask_and_stop(void *arg)
{
    struct asking *a = arg;
    a->status = client_ask(a->socket, &a->request, &a->answer);
    serve_stop(CTL_OK);
    return NULL;
}

static void started(void *arg, struct loop *const *loops, unsigned n)
{
    struct store *store = arg;
    store->loops = loops;
    store->loop_count = n;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void broken(void)
{
    serve_stop(CTL_FAILED);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, 8) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int serve_once(const struct conf *conf, struct store *store, struct asking *a, int fds[2])
{
    pthread_t thread;
    struct loop_app app = store_app;
    app.arg = store;
    const struct serve_config serve = {
        .conf = conf,
        .app = &app,
        .listener = fds[0],
        .control = fds[1],
        .supervisor = -1,
        .started = started,
        .ending = nothing,
        .again = nothing,
        .arg = store,
    };
    if (pthread_create(&thread, NULL, ask_and_stop, a) != 0)
        return CTL_FAILED;
    int status = serve_run(&serve);
    pthread_join(thread, NULL);
    return status;
}

static int run_alone(const struct conf *conf, struct asking *a)
{
    char folder[] = "/tmp/hanji-run-XXXXXX", other[64];
    struct db_error error = {""};
    struct store store;
    int status = CTL_FAILED;
    if (mkdtemp(folder) == NULL)
        return CTL_FAILED;
    snprintf(a->socket, sizeof a->socket, "%s/control", folder);
    snprintf(other, sizeof other, "%s/listener", folder);
    log_set_level(LOG_WARN);
    serve_block_signals();
    int fds[2] = {listen_at(other), listen_at(a->socket)};
    if (fds[0] < 0 || fds[1] < 0) {
        fprintf(stderr, "hanji app: %s: %s\n", folder, strerror(errno));
    } else if (!store_open(&store, conf, broken, &error)) {
        fprintf(stderr, "hanji app: %s\n", error.text);
    } else {
        status = serve_once(conf, &store, a, fds);
        store_close(&store);
    }
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    unlink(other);
    unlink(a->socket);
    rmdir(folder);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int print_answer(const struct conf *conf, const struct asking *a)
{
    if (a->status == 599) {
        fprintf(stderr, "hanji app: the server behind %s could not be asked: %s\n", conf->control,
                errno != 0 ? strerror(errno) : "no proper answer");
        return CTL_FAILED;
    }
    fwrite(a->answer.data, 1, a->answer.len, stdout);
    if (a->status >= 400)
        fprintf(stderr, "hanji app: the answer's status is %u\n", a->status);
    return a->status < 400 ? CTL_OK : CTL_FAILED;
}

static int ask(const struct conf *conf, struct asking *a)
{
    snprintf(a->socket, sizeof a->socket, "%s", conf->control);
    errno = 0;
    a->status = client_ask(a->socket, &a->request, &a->answer);
    if (a->status == 0 && run_alone(conf, a) != CTL_OK)
        return CTL_FAILED;
    return print_answer(conf, a);
}

int ctl_app_run(const struct conf *conf, int argc, char **argv)
{
    struct asking a = {.request = {.method = "GET"}};
    struct buf form = {0};
    char path[2048];
    if (argc > 0 && strncmp(argv[0], "--", 2) == 0) {
        const char *word = argv[0] + 2;
        a.request.method = strcmp(word, "post") == 0     ? "POST"
                           : strcmp(word, "put") == 0    ? "PUT"
                           : strcmp(word, "delete") == 0 ? "DELETE"
                                                         : NULL;
        argc--;
        argv++;
    }
    if (a.request.method == NULL || argc < 2)
        return ctl_app_usage("run takes the name of an app and a route (\"\" or / for its first "
                             "page)");
    int n = snprintf(path, sizeof path, "/apps/%s/%s", argv[0],
                     argv[1] + (argv[1][0] == '/'));
    if (n < 0 || (size_t)n >= sizeof path || !add_parameters(&form, argc - 2, argv + 2)) {
        buf_free(&form);
        return ctl_app_usage("parameters are NAME=VALUE");
    }
    a.request.path = path;
    if (strcmp(a.request.method, "GET") == 0) {
        a.request.query = (struct str){(const char *)form.data, form.len};
    } else {
        a.request.content_type = "application/x-www-form-urlencoded";
        a.request.body = form.data;
        a.request.n = form.len;
    }
    int status = ask(conf, &a);
    buf_free(&form);
    buf_free(&a.answer);
    return status;
}
