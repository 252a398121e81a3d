/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: the rarer steps, which event.h does not have inline. */
#include "nic/event.h"

#include "nic/objects.h"

#include <stdlib.h>

void eq_make_room(struct eq *eq)
{
    if (eq->size > eq->count && eq_extend(eq, 2 * eq->size - eq->count) == 0) {
        return;
    }
    uint64_t head = atomic_load_explicit(&eq->head, memory_order_relaxed);
    atomic_store_explicit(&eq->head, head + 1, memory_order_relaxed);
    eq->take = eq_next_place(eq, eq->take);
    eq->dropped = true;
    eq->ni->nic->stats->events_lost++;
}

void eq_post(struct eq_ref ref, const ptl_event_t *event)
{
    if (eq_ref_alive(ref)) {
        *eq_place(ref.eq) = *event;
        eq_placed(ref.eq);
    }
}

int eq_extend(struct eq *eq, uint64_t more)
{
    uint64_t size = eq->count + more;
    if (size <= eq->size) {
        return 0;
    }
    ptl_event_t *ring = size <= 2 * EQ_MAX_EVENTS ? calloc(size, sizeof(*ring)) : NULL;
    if (ring == NULL) {
        return -1;
    }
    uint64_t used = atomic_load_explicit(&eq->tail, memory_order_relaxed) -
                    atomic_load_explicit(&eq->head, memory_order_relaxed);
    for (uint64_t i = 0; i < used; i++) {
        ring[i] = *eq->take;
        eq->take = eq_next_place(eq, eq->take);
    }
    free(eq->ring);
    eq_use_ring(eq, ring, size, used);
    return 0;
}
