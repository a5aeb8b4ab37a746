/* POST /batch: several operations on documents, all or none. */
#ifndef HANJI_HANDLERS_BATCH_H
#define HANJI_HANDLERS_BATCH_H

#include "handlers/routes.h"

handler_fn batch;

#endif
