/* The seam with libfcgi: it decodes the parameters of a request from memory.
 *
 * libfcgi calls eight functions of its OS layer (fcgios.h). codec.c defines them over memory, so
 * that FCGX_* never touches a descriptor: OS_Read serves the records that frame.c has collected and
 * checked, and everything that would block, accept or close is refused. libfcgi is linked
 * statically: updates of it need a rebuild. This is the only file that touches private fields of
 * FCGX_Request (ipcFd and keepConnection, without which FCGX_Accept_r would close or accept).
 *
 * Answers are not written through FCGX streams: one decoder object then serves a whole thread, and
 * a parked request costs no 17 kB of stream buffers. Their records come from resp.c.
 *
 * Any thread; each has its own decoder. */
#ifndef HANJI_FCGI_CODEC_H
#define HANJI_FCGI_CODEC_H

#include <stdbool.h>

#include "fcgi/frame.h"

/* Gets each parameter as libfcgi decoded it: "NAME=value", NUL-terminated, dead after the call.
 * name_len is the offset of '='. Returning false stops. */
typedef bool codec_param_fn(void *arg, const char *pair, size_t name_len);

/* Decodes the parameters of the whole request in f, after checking that they are well-formed
 * (frame_pairs_ok). False: they are not, or each() stopped. */
bool codec_decode(struct frame *f, codec_param_fn *each, void *arg)
    __attribute__((warn_unused_result));

#endif
