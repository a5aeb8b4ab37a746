#include "handlers/courier_item.h"

#include <stdlib.h>
#include <string.h>

void courier_item_empty(struct courier_item *item)
{
    struct courier_target *t = item->target;
    if (t != NULL && --t->items == 0) {
        explicit_bzero(t->secret, sizeof t->secret);
        free(t->ca);
        free(t);
    }
    free(item->body);
    item->target = NULL;
    item->body = NULL;
    item->type = NULL;
}

void courier_item_free(struct courier_item *item)
{
    if (item == NULL)
        return;
    courier_item_empty(item);
    free(item);
}
