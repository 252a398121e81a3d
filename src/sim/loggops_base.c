/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare part of what events do; see loggops_base.h. */
#include "loggops_base.h"

#include <stdlib.h>

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
    if (o->count == o->capacity) {
        size_t capacity = o->capacity > 0 ? 2 * o->capacity : 1024;
        struct event *events = realloc(o->events, capacity * sizeof(*events));
        if (events == NULL) {
            w->short_of_memory = true;
            return;
        }
        o->events = events;
        o->capacity = capacity;
    }
    o->events[o->count++] = *e;
}

/* (s-1) * rate, rounded once, to the nearest picosecond, half to even. */
static uint64_t product(uint64_t bytes, uint64_t rate)
{
    unsigned __int128 exact = (unsigned __int128)bytes * rate;
    unsigned __int128 whole = exact / SIM_AS_PER_PS;
    uint64_t rest = (uint64_t)(exact % SIM_AS_PER_PS);
    if (rest > SIM_AS_PER_PS / 2 || (rest == SIM_AS_PER_PS / 2 && (whole & 1) != 0)) {
        whole++;
    }
    return whole > LOGGOPS_LAST ? LOGGOPS_LAST + 1 : (uint64_t)whole;
}

void loggops_compute_charges(struct worker *w, uint64_t size)
{
    const struct loggops *s = w->s;
    struct charges *c = &w->charges;
    c->size = size;
    c->G = product(size - 1, s->G);
    c->O = product(size - 1, s->O);
    c->cpu = s->o + c->O <= LOGGOPS_LAST ? s->o + c->O : LOGGOPS_LAST + 1;
    c->nic = s->g + c->G <= LOGGOPS_LAST ? s->g + c->G : LOGGOPS_LAST + 1;
}
