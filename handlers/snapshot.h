/* POST /snapshot: several documents as they are at one moment. */
#ifndef HANJI_HANDLERS_SNAPSHOT_H
#define HANJI_HANDLERS_SNAPSHOT_H

#include "handlers/routes.h"

handler_fn snapshot;

#endif
