/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The labels of one rank: a hash table with open addressing from a label's text to its operation.
 * The text of a label stays where it was read; the origins of the operations point to it. For each
 * rank the table begins a new generation, which makes all older slots free without clearing them.
 * It uses few slots at first, so that small ranks after a large one stay in the cache.
 */
#ifndef SIM_GOAL_LABELS_H
#define SIM_GOAL_LABELS_H

#include "read.h"
#include "scan.h"

enum { GOAL_LABELS_FIRST = 64 }; /* slots a rank begins with, a power of two */

/* No operation has this index: a rank has at most GOAL_ANY operations. */
#define GOAL_NO_NODE UINT32_MAX

struct goal_slot {
    /* the table's generation when the slot was filled; if that is another one now the slot is
     * free */
    uint32_t generation;
    uint32_t hash;
    uint32_t node;
};

/* A zeroed struct must be begun before use. */
struct goal_labels {
    struct goal_slot *slots;
    uint64_t room; /* slots there is memory for */
    uint64_t mask; /* number of slots in use - 1, a mask of hashes */
    uint64_t count;
    uint32_t generation;
};

/* goal_labels_begin() empties the table for the next rank; false if memory is short. */
bool goal_labels_begin(struct goal_labels *l);
void goal_labels_free(struct goal_labels *l);

/* goal_labels_add() adds a label that goal_labels_find() has not found; false if memory is
 * short. */
bool goal_labels_add(struct goal_labels *l, uint32_t hash, uint32_t node);

/* goal_labels_find() returns the operation with the label `w`, or GOAL_NO_NODE. `origins` are those
 * of the rank's operations. */
static inline uint32_t goal_labels_find(const struct goal_labels *l, const struct goal_word *w,
                                        const struct goal_origin *origins)
{
    for (uint64_t i = w->hash;; i++) {
        const struct goal_slot *slot = &l->slots[i & l->mask];
        if (slot->generation != l->generation) {
            return GOAL_NO_NODE;
        }
        if (slot->hash == w->hash) {
            const struct goal_origin *o = &origins[slot->node];
            if (o->label_length == w->length && memcmp(o->label, w->at, w->length) == 0) {
                return slot->node;
            }
        }
    }
}

#endif
