/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of one type that is never given back; see keep.h. */
#include "base/keep.h"

#include <stdlib.h>

void *keep_take(struct keep *k, size_t size)
{
    mutex_take(&k->lock);
    struct kept *object = k->first;
    if (object != NULL) {
        k->first = object->next;
    }
    mutex_give(&k->lock);
    return object != NULL ? object : calloc(1, size);
}

void keep_put(struct keep *k, void *object)
{
    struct kept *kept = object;
    mutex_take(&k->lock);
    kept->next = k->first;
    k->first = kept;
    mutex_give(&k->lock);
}

/* A list that is pushed and popped at one end is whole at any moment. */
void keep_fork(struct keep *k)
{
    k->lock = (struct mutex){0};
}
