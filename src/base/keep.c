/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of one type that is never given back; see keep.h. */
#include "base/keep.h"

#include "base/forks.h"

#include <stdlib.h>

void *keep_take(struct keep *k, size_t size)
{
    forks_take(&k->lock);
    struct kept *object = k->first;
    if (object != NULL) {
        k->first = object->next;
    }
    forks_give(&k->lock);
    return object != NULL ? object : calloc(1, size);
}

void keep_put(struct keep *k, void *object)
{
    struct kept *kept = object;
    forks_take(&k->lock);
    kept->next = k->first;
    k->first = kept;
    forks_give(&k->lock);
}
