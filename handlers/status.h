/* How the server is: for probes, people and Prometheus. */
#ifndef HANJI_HANDLERS_STATUS_H
#define HANJI_HANDLERS_STATUS_H

#include "handlers/routes.h"

handler_fn status_health;  /* GET /health: public, 200 while the store can be read */
handler_fn status_json;    /* GET /status */
handler_fn status_metrics; /* GET /metrics: Prometheus text format 0.0.4 */

struct store;

/* Appends what /status says, but seq and documents are 0: they are in the file. Any thread. */
void status_process_json(const struct store *store, struct buf *out);

#endif
