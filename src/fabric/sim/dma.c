/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The DMA engine takes one transfer after the other, deposits and those of handlers, each for n ·
 * G_dma; host memory takes what the engine and the program move, each for n · G_host. A transfer
 * begins when both are free. What the egress port reads from host memory takes neither: it has
 * L_dma before it, and leaves no faster than G_dma.
 */
#include "fabric/sim/dma.h"

#include "fabric/sim/lead.h"
#include "fabric/sim/note.h"

uint64_t sim_memory_take(struct sim_clock *c, uint64_t at, uint64_t bytes)
{
    uint64_t begin = at > c->port->memory_free ? at : c->port->memory_free;
    uint64_t taken = sim_bytes_ps(bytes, sim_machine(c)->host_byte);
    c->port->memory_free = begin + taken;
    c->figures.counts.memory += taken;
    return begin;
}

uint64_t sim_dma_take(struct sim_fabric *f, uint64_t bytes, uint64_t *taken)
{
    uint64_t now = f->clock->now, n = bytes != 0 ? bytes : 1, *free = &f->clock->port->dma_free;
    uint64_t begin = sim_memory_take(f->clock, now > *free ? now : *free, n);
    *taken = sim_bytes_ps(n, sim_machine(f->clock)->dma_byte);
    *free = begin + *taken;
    note_transfer(f, begin, *taken, n);
    lead_transfer(f, begin, *taken);
    return begin;
}

/* A transfer of a handler, whose bytes are not on their way yet: so it takes the engine's time
 * itself. */
uint64_t sim_dma(struct fabric *fabric, uint64_t bytes, bool to_host)
{
    struct sim_fabric *f = sim_of(fabric);
    uint64_t taken, end = sim_dma_take(f, bytes, &taken) + taken;
    if (to_host) {
        f->written = end + sim_machine(f->clock)->dma;
    }
    return end;
}

uint64_t sim_dma_written(struct fabric *fabric, bool tells)
{
    struct sim_fabric *f = sim_of(fabric);
    uint64_t taken;
    if (f->written > f->clock->now || !tells) {
        return f->written > f->clock->now ? f->written : f->clock->now;
    }
    return sim_dma_take(f, 1, &taken) + sim_machine(f->clock)->dma;
}

/* The program reads or writes memory beside the NIC. */
void sim_touch(uint64_t bytes)
{
    struct sim_clock *c = sim_clock_join();
    if (c != NULL && bytes != 0) {
        const struct sim_machine *m = sim_machine(c);
        uint64_t start = c->now + c->debt, begin = sim_memory_take(c, start, bytes);
        uint64_t end = begin + m->host + sim_bytes_ps(bytes, m->host_byte);
        note_host(c, SIM_SPAN_COMPUTE, end - start);
        c->debt = end - c->now;
        sim_clock_break(c);
        sim_clock_settle(c);
    }
}
