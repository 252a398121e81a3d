/* SPDX-License-Identifier: BSD-3-Clause */
/* What a receiver remembers of each sender that has sent to it: a hash table by both. */
#ifndef SIM_NIC_PAIRS_H
#define SIM_NIC_PAIRS_H

#include "sim/util/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct nic_pair {
    uint64_t key;         /* 0: the place is free */
    uint64_t ready;       /* when its last packet is */
    uint32_t first, last; /* messages of which the DMA engine has not all: by nic_message.behind,
                           * if any waits */
    bool waits;
};

/* A zeroed struct has none. */
struct nic_pairs {
    struct nic_pair *at;
    size_t count, room; /* room: 0, or a power of two */
};

static inline struct nic_pair *nic_pair_place(struct nic_pair *at, size_t room, uint64_t key)
{
    size_t i = (size_t)goal_mix(key) & (room - 1);
    while (at[i].key != 0 && at[i].key != key) {
        i = (i + 1) & (room - 1);
    }
    return &at[i];
}

/* nic_pair() finds or makes a pair, which is valid until the next is made; NULL: no memory. */
static inline struct nic_pair *nic_pair(struct nic_pairs *p, uint32_t from, uint32_t to)
{
    uint64_t key = ((uint64_t)from << 32 | to) + 1;
    if (2 * p->count >= p->room) {
        size_t room = p->room != 0 ? 2 * p->room : 256;
        struct nic_pair *more = calloc(room, sizeof(*more));
        if (more == NULL) {
            return NULL;
        }
        for (size_t i = 0; i < p->room; i++) {
            if (p->at[i].key != 0) {
                *nic_pair_place(more, room, p->at[i].key) = p->at[i];
            }
        }
        free(p->at);
        p->at = more;
        p->room = room;
    }
    struct nic_pair *pair = nic_pair_place(p->at, p->room, key);
    p->count += pair->key == 0;
    pair->key = key;
    return pair;
}

#endif
