/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Phases of a program (PtlSimMark()): how long each took, and what was taken in it. A phase that
 * begins again goes on; the time before the first mark is in none.
 */
#ifndef FABRIC_SIM_MARK_H
#define FABRIC_SIM_MARK_H

#include "fabric/sim/rank.h"

/* sim_mark() ends the open phase of a rank, and begins the one of that name; NULL or "": none. */
void sim_mark(struct sim_clock *c, const char *name);

/* sim_taken() is what a rank has taken until a time. */
static inline struct sim_taken sim_taken(const struct sim_figures *f, uint64_t now)
{
    const struct sim_counts *c = &f->counts;
    struct sim_taken t = {.time = now,
                          .messages = c->messages,
                          .packets = c->packets,
                          .bytes = c->bytes,
                          .egress = c->egress,
                          .dma = c->dma,
                          .handlers = c->handlers,
                          .shortage = c->shortage,
                          .looks = c->looks,
                          .skipped = c->skipped};
    for (unsigned i = 0; i < SIM_HPUS; i++) {
        t.hpu += c->hpu[i];
    }
    return t;
}

static inline void sim_taken_add(struct sim_taken *sum, const struct sim_taken *begin,
                                 const struct sim_taken *end)
{
    sum->time += end->time - begin->time;
    sum->messages += end->messages - begin->messages;
    sum->packets += end->packets - begin->packets;
    sum->bytes += end->bytes - begin->bytes;
    sum->egress += end->egress - begin->egress;
    sum->dma += end->dma - begin->dma;
    sum->handlers += end->handlers - begin->handlers;
    sum->hpu += end->hpu - begin->hpu;
    sum->shortage += end->shortage - begin->shortage;
    sum->looks += end->looks - begin->looks;
    sum->skipped += end->skipped - begin->skipped;
}

/* sim_phase_taken() is what was taken in a phase, of `phases` (at most SIM_PHASES), for reports:
 * the open one lasts until `now`, which is that of the rank's last turn. */
static inline struct sim_taken sim_phase_taken(const struct sim_figures *f, uint64_t now,
                                               uint32_t i)
{
    struct sim_taken sum = f->phase[i].taken;
    if (f->phase_open == i + 1 && now > f->phase_began.time) {
        struct sim_taken end = sim_taken(f, now);
        sim_taken_add(&sum, &f->phase_began, &end);
    }
    return sum;
}

#endif
