/* SPDX-License-Identifier: BSD-3-Clause */
/* A NIC as the ranks of a host share it: when its parts are free, and what each rank has of it. */
#ifndef FABRIC_SIM_PORT_H
#define FABRIC_SIM_PORT_H

#include "fabric/sim/segment.h"

/* What the ranks of a host have of its NIC, and wait for. They run one at a time, in the order of
 * virtual time, so that what one writes here the others find at that time. */
enum { SIM_PER_HOST_MOST = 64 };
struct sim_slot {
    uint64_t ready, taken; /* when its next packet can leave (0: its message has begun, SIM_NEVER:
                            * there is none); how long that takes the port */
    uint64_t buffers;      /* packet buffers that it has */
    uint64_t queued;       /* messages of its handlers of which nothing has left */
    uint64_t waits[SIM_HPUS]; /* since when a call waits for each HPU; SIM_NEVER: none does */
};

/* A NIC: when its parts are free; which slot, and 1, has each HPU, 0: none. */
struct sim_port {
    uint64_t egress_free, dma_free, memory_free, ingress_free;
    uint64_t hpu[SIM_HPUS];
    struct sim_slot slot[];
};

/* The NIC that ranks of a host share is on pages of its own; there is none where each has its own.
 */
static inline uint64_t sim_port_bytes(const struct sim_segment *s)
{
    uint64_t bytes = sizeof(struct sim_port) + s->per_host * sizeof(struct sim_slot);
    return s->per_host < 2 ? 0 : (bytes + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
}
static inline struct sim_port *sim_port_of(const struct sim_segment *s, uint32_t node)
{
    return (struct sim_port *)((uintptr_t)s + s->ports_at + node * sim_port_bytes(s));
}
static inline void sim_slot_clear(struct sim_port *p, uint32_t slot)
{
    __builtin_memset(&p->slot[slot], 0, sizeof(p->slot[slot]));
    p->slot[slot].ready = SIM_NEVER;
    for (unsigned i = 0; i < SIM_HPUS; i++) {
        p->slot[slot].waits[i] = SIM_NEVER;
        p->hpu[i] = p->hpu[i] == slot + 1 ? 0 : p->hpu[i];
    }
}

#endif
