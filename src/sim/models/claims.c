/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of claims on a cpu or nic; see claims.h. */
#include "claims.h"

#include "base/array.h"
#include "base/heap.h"

static bool before(const uint32_t *a, const uint32_t *b, const void *of)
{
    const struct event *events = of;
    return event_before(&events[*a - 1], &events[*b - 1]);
}

HEAP_OF(early, uint32_t, 2, before)

int claims_add_early(struct claims *q, const struct event *events, uint32_t new)
{
    if (!ARRAY_ROOM(q->early, q->early_count, q->early_capacity, 16)) {
        return -1;
    }
    early_rise(q->early, q->early_count++, &new, events);
    return 0;
}

void claims_drop_early(struct claims *q, const struct event *events)
{
    uint32_t last = q->early[--q->early_count];
    early_sink(q->early, q->early_count, &last, events);
}
