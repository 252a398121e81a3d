/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims that wait; see claims.h. */
#include "claims.h"

#include <stdlib.h>

static bool before(const struct event *events, uint32_t a, uint32_t b)
{
    return event_before(&events[a - 1], &events[b - 1]);
}

int claims_add_early(struct claims *q, const struct event *events, uint32_t new)
{
    if (q->early_count == q->early_capacity) {
        uint32_t capacity = q->early_capacity > 0 ? 2 * q->early_capacity : 16;
        uint32_t *early = realloc(q->early, capacity * sizeof(*early));
        if (early == NULL) {
            return -1;
        }
        q->early = early;
        q->early_capacity = capacity;
    }
    uint32_t i = q->early_count++;
    while (i > 0 && before(events, new, q->early[(i - 1) / 2])) {
        q->early[i] = q->early[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->early[i] = new;
    return 0;
}

void claims_drop_early(struct claims *q, const struct event *events)
{
    uint32_t last = q->early[--q->early_count], i = 0;
    for (uint32_t child = 1; child < q->early_count; child = 2 * i + 1) {
        if (child + 1 < q->early_count && before(events, q->early[child + 1], q->early[child])) {
            child++;
        }
        if (before(events, last, q->early[child])) {
            break;
        }
        q->early[i] = q->early[child];
        i = child;
    }
    q->early[i] = last;
}
