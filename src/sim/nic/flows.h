/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: what the NICs remember of the messages of one class from one rank to another. They have an
 * index, and are found by a hash table of both ranks.
 */
#ifndef SIM_NIC_FLOWS_H
#define SIM_NIC_FLOWS_H

#include "base/array.h"
#include "sim/util/random.h"

#include <stdbool.h>
#include <string.h>

struct nic_flow {
    uint32_t from, to;
    uint64_t ready;  /* when the last packet that has come is */
    uint64_t leaves; /* when the last message can leave */
    /* Messages that were handed over and have not ended, in their order; the first of them that has
     * no entry yet, since its first packet, or that of one before it, is still to be ready; and the
     * first of which the DMA engine has not all that it writes. NIC_NONE: none. */
    uint32_t first, last, unmatched, frontier;
    uint32_t handled;       /* messages at handlers that have not ended */
    uint32_t handled_entry; /* the entry of the last one that was matched */
    bool mixed;             /* there were some at several entries */
    uint32_t for_program;   /* messages that have come, and that its program has not matched yet */
};

/* A zeroed struct has none. */
struct nic_flows {
    struct nic_flow *at;
    uint32_t *slots; /* index + 1; 0: free */
    size_t count, room, slot_room;
};

static inline uint32_t *nic_flow_slot(const struct nic_flows *f, uint32_t from, uint32_t to)
{
    size_t i = (size_t)goal_mix(((uint64_t)from << 32 | to) + 1) & (f->slot_room - 1);
    while (f->slots[i] != 0 &&
           (f->at[f->slots[i] - 1].from != from || f->at[f->slots[i] - 1].to != to)) {
        i = (i + 1) & (f->slot_room - 1);
    }
    return &f->slots[i];
}

static inline bool nic_flows_grow(struct nic_flows *f)
{
    size_t room = f->slot_room != 0 ? 2 * f->slot_room : 256;
    uint32_t *slots = calloc(room, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    free(f->slots);
    f->slots = slots;
    f->slot_room = room;
    for (size_t i = 0; i < f->count; i++) {
        *nic_flow_slot(f, f->at[i].from, f->at[i].to) = (uint32_t)i + 1;
    }
    return true;
}

/* nic_flow() finds or makes a flow, and returns its index; UINT32_MAX: no memory. */
static inline uint32_t nic_flow(struct nic_flows *f, uint32_t from, uint32_t to)
{
    if (2 * f->count >= f->slot_room && !nic_flows_grow(f)) {
        return UINT32_MAX;
    }
    uint32_t *slot = nic_flow_slot(f, from, to);
    if (*slot == 0) {
        if (!ARRAY_ROOM(f->at, f->count, f->room, 256)) {
            return UINT32_MAX;
        }
        f->at[f->count] = (struct nic_flow){.from = from,
                                            .to = to,
                                            .first = UINT32_MAX,
                                            .last = UINT32_MAX,
                                            .unmatched = UINT32_MAX,
                                            .frontier = UINT32_MAX};
        *slot = (uint32_t)++f->count;
    }
    return *slot - 1;
}

static inline void nic_flows_free(struct nic_flows *f)
{
    free(f->at);
    free(f->slots);
}

#endif
