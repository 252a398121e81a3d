/* SPDX-License-Identifier: BSD-3-Clause */
/* The event queue's memory; see queue.h. */
#include "queue.h"

#include <stdlib.h>

int sim_queue_grow(struct sim_queue *q)
{
    size_t capacity = q->capacity > 0 ? 2 * q->capacity : 64;
    struct sim_event *events = realloc(q->events, capacity * sizeof(*events));
    if (events == NULL) {
        return -1;
    }
    q->events = events;
    q->capacity = capacity;
    return 0;
}

void sim_queue_free(struct sim_queue *q)
{
    free(q->events);
    *q = (struct sim_queue){0};
}
