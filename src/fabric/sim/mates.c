/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPUs that the ranks of a host share. A rank takes one for a call, and gives it back when the call
 * ends or is suspended. Who finds none that is free says since when it waits, and is poked when one
 * is: the HPU is for the call that waits longest, of several for that of the lowest rank.
 *
 *      want, in its slot ──► another rank's call ends: give ──► poke: coordinator ──► look, take
 *
 * Invariant: an HPU that is free and wanted is about to be looked at by the rank that has waited
 * longest, since whoever frees one, or no longer wants one, pokes the others.
 */
#include "fabric/sim/mates.h"

/* The slot that is to have an HPU next; `slots`: none wants it. */
static uint32_t next_of(const struct sim_clock *c, unsigned hpu)
{
    uint32_t first = c->slots;
    for (uint32_t i = 0; i < c->slots; i++) {
        uint64_t since = c->port->slot[i].waits[hpu];
        if (since != SIM_NEVER && (first == c->slots || since < c->port->slot[first].waits[hpu])) {
            first = i;
        }
    }
    return first;
}

bool mates_take_hpu(struct fabric *fabric, unsigned hpu, uint64_t since)
{
    const struct sim_clock *c = sim_of(fabric)->clock;
    c->port->slot[c->slot].waits[hpu] = since;
    if (c->port->hpu[hpu] != 0 || next_of(c, hpu) != c->slot) {
        return false;
    }
    c->port->hpu[hpu] = c->slot + 1;
    return true;
}

void mates_give_hpu(struct fabric *fabric, unsigned hpu)
{
    const struct sim_clock *c = sim_of(fabric)->clock;
    c->port->hpu[hpu] = c->port->hpu[hpu] == c->slot + 1 ? 0 : c->port->hpu[hpu];
}

/* Returns the HPUs that are free for this rank, as bits. */
uint64_t mates_want_hpus(struct fabric *fabric, const uint64_t *since)
{
    struct sim_clock *c = sim_of(fabric)->clock;
    uint64_t free = 0;
    bool others = false;
    for (unsigned i = 0; i < sim_machine(c)->hpus; i++) {
        c->port->slot[c->slot].waits[i] = since[i];
        uint32_t next = c->port->hpu[i] == 0 ? next_of(c, i) : c->slots;
        free |= next == c->slot ? UINT64_C(1) << i : 0;
        others |= next != c->slots && next != c->slot;
    }
    if (others) {
        sim_clock_poke(c);
    }
    return free;
}

void mates_freed(void *fabric)
{
    struct sim_fabric *f = fabric;
    f->setup.up->hpus_free(f->setup.nic);
}

void mates_leave(struct sim_clock *c)
{
    sim_slot_clear(c->port, c->slot);
    if (c->slots > 1) {
        sim_clock_poke(c);
    }
}
