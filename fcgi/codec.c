#include "fcgi/codec.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcgios.h>
#include <string.h>

enum { NO_DESCRIPTOR = 0x7fff0000 }; /* never a real descriptor; only our OS_* see it */

/* What OS_Read has still to serve to the decoder of this thread. */
static _Thread_local struct {
    const unsigned char *p;
    size_t n;
} feed;

static _Thread_local FCGX_Request decoder;
static _Thread_local bool decoder_ready;

int OS_LibInit(int stdioFds[3])
{
    (void)stdioFds;
    return 0;
}

int OS_Read(int fd, char *buf, size_t len)
{
    if (fd != NO_DESCRIPTOR)
        return -1;
    size_t n = len < feed.n ? len : feed.n;
    memcpy(buf, feed.p, n);
    feed.p += n;
    feed.n -= n;
    return (int)n;
}

int OS_Write(int fd, char *buf, size_t len)
{
    (void)fd, (void)buf, (void)len;
    errno = EBADF;
    return -1;
}

int OS_Accept(int listen_sock, int fail_on_intr, const char *webServerAddrs)
{
    (void)listen_sock, (void)fail_on_intr, (void)webServerAddrs;
    errno = ECONNABORTED;
    return -1;
}

int OS_IpcClose(int ipcFd, int shutdown)
{
    (void)ipcFd, (void)shutdown;
    return 0;
}

int OS_IsFcgi(int sock)
{
    (void)sock;
    return 1;
}

void OS_ShutdownPending(void)
{
}

int OS_CreateLocalIpcFd(const char *bindPath, int backlog)
{
    (void)bindPath, (void)backlog;
    errno = EINVAL;
    return -1;
}

static bool decoder_init(void)
{
    if (decoder_ready)
        return true;
    if (FCGX_Init() != 0 || FCGX_InitRequest(&decoder, -1, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
        return false;
    decoder_ready = true;
    return true;
}

/* Surrounds the collected pairs with the records libfcgi expects: BEGIN, PARAMS, end of PARAMS. */
static bool wrap(struct frame *f)
{
    unsigned char end[FRAME_HEADER_BYTES];
    size_t content = f->params.len - FRAME_PARAMS_AT;
    unsigned char *p = f->params.data;
    frame_put_header(p, FCGI_BEGIN_REQUEST, 1, 8);
    memset(p + FRAME_HEADER_BYTES, 0, 8);
    p[FRAME_HEADER_BYTES + 1] = FRAME_RESPONDER;
    p[FRAME_HEADER_BYTES + 2] = FRAME_KEEP_CONN;
    frame_put_header(p + 2 * FRAME_HEADER_BYTES, FCGI_PARAMS, 1, content);
    frame_put_header(end, FCGI_PARAMS, 1, 0);
    return buf_add(&f->params, end, sizeof end,
                   FRAME_PARAMS_AT + FRAME_PARAMS_MAX + FRAME_HEADER_BYTES);
}

bool codec_decode(struct frame *f, codec_param_fn *each, void *arg)
{
    if (f->params.len <= FRAME_PARAMS_AT ||
        !frame_pairs_ok(f->params.data + FRAME_PARAMS_AT, f->params.len - FRAME_PARAMS_AT) ||
        !decoder_init() || !wrap(f))
        return false;
    feed.p = f->params.data;
    feed.n = f->params.len;
    decoder.ipcFd = NO_DESCRIPTOR;
    decoder.keepConnection = 1; /* else FCGX_Accept_r closes ipcFd before it reads */
    bool ok = FCGX_Accept_r(&decoder) == 0 && FCGX_GetError(decoder.in) == 0;
    for (char **pair = ok ? decoder.envp : NULL; ok && *pair != NULL; pair++) {
        const char *equals = strchr(*pair, '=');
        ok = equals != NULL && each(arg, *pair, (size_t)(equals - *pair));
    }
    FCGX_Free(&decoder, 0);
    feed.n = 0;
    return ok;
}
