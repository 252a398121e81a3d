/* SPDX-License-Identifier: BSD-3-Clause */
/* The less frequent parts of what every event does; see loggops_base.h. */
#include "loggops_base.h"

#include "base/array.h"

uint64_t loggops_overflow(struct worker *w, uint32_t rank, uint32_t op)
{
    if (!w->overflow || rank < w->overflow_rank ||
        (rank == w->overflow_rank && op < w->overflow_op)) {
        w->overflow = true;
        w->overflow_rank = rank;
        w->overflow_op = op;
    }
    return LOGGOPS_LAST;
}

void loggops_put_out(struct worker *w, struct outbox *o, const struct event *e)
{
    if (!ARRAY_ROOM(o->events, o->count, o->capacity, 1024)) {
        w->short_of_memory = true;
        return;
    }
    o->events[o->count++] = *e;
}

void loggops_compute_charges(struct worker *w, uint64_t size)
{
    charges_compute(&w->charges, w->s->in->parameters, size);
}
