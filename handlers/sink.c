#include "handlers/sink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fcgi/listen.h"
#include "handlers/control.h"
#include "handlers/store.h"

static void deliver(void *arg, struct db_op *list)
{
    struct sink *s = arg;
    pthread_mutex_lock(&s->mutex);
    s->back = list;
    pthread_cond_signal(&s->done);
    pthread_mutex_unlock(&s->mutex);
}

static void broken(void *arg)
{
    (void)arg; /* every operation says so */
}

bool sink_open(struct sink *s, const struct conf *conf, struct db_error *error)
{
    struct conf_error locked;
    struct db_writer_hooks hooks = {.deliver = deliver, .broken = broken, .arg = s};
    *s = (struct sink){.conf = conf, .db = store_db_config(conf)};
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->done, NULL);
    s->lock = listen_lock(conf->database, &locked);
    if (s->lock < 0) {
        if (errno == EWOULDBLOCK)
            return true;
        snprintf(error->text, sizeof error->text, "%s", locked.text);
        return false;
    }
    s->db.queue_operations = s->db.queue_bytes = UINT64_MAX; /* one at a time, whatever its size */
    return db_writer_start(&s->db, &hooks, &s->writer, error) == DB_OK;
}

bool sink_apply(struct sink *s, struct db_op *op, struct db_error *error)
{
    op->next = NULL;
    if (s->lock < 0) {
        enum control_result sent = control_send(s->conf->control, op);
        if (sent == CONTROL_DONE)
            return true;
        if (sent == CONTROL_FAILED && errno == EMSGSIZE) {
            snprintf(error->text, sizeof error->text,
                     "it is larger than the server takes: raise max_body, or stop the server and "
                     "import into the file");
            return false;
        }
        snprintf(error->text, sizeof error->text, "the server behind %.300s could not be asked: %s",
                 s->conf->control,
                 sent == CONTROL_NOBODY ? "it does not listen"
                 : errno != 0           ? strerror(errno)
                                        : "no proper answer");
        return false;
    }
    if (!db_writer_reserve(s->writer, op)) {
        snprintf(error->text, sizeof error->text, "memory is short");
        return false;
    }
    s->back = NULL;
    db_writer_submit(s->writer, op);
    pthread_mutex_lock(&s->mutex);
    while (s->back == NULL)
        pthread_cond_wait(&s->done, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
    return true;
}

void sink_close(struct sink *s)
{
    db_writer_stop(s->writer);
    s->writer = NULL;
    if (s->lock >= 0)
        close(s->lock);
    s->lock = -1;
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->mutex);
}
