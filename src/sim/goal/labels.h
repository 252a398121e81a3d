/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The labels of one rank: a hash table with open addressing from a label's text to
 * its operation. The text itself stays where it was read, in the origins of the
 * operations. A new rank begins with a new generation, so nothing is cleared;
 * it begins with few slots, so that small ranks after a large one stay in cache.
 */
#ifndef SIM_GOAL_LABELS_H
#define SIM_GOAL_LABELS_H

#include "read.h"
#include "scan.h"

enum { GOAL_LABELS_FIRST = 64 }; /* slots a rank begins with, a power of two */

/* No operation: there are at most GOAL_ANY of them. */
#define GOAL_NO_NODE UINT32_MAX

struct goal_slot {
    uint32_t generation; /* of the table when it was filled; another: free */
    uint32_t hash;
    uint32_t node;
};

/* Zeroed is a table that must be begun. */
struct goal_labels {
    struct goal_slot *slots;
    uint64_t room; /* slots there is memory for */
    uint64_t mask; /* of those in use */
    uint64_t count;
    uint32_t generation;
};

/* goal_labels_begin() empties the table for another rank; returns false if there
 * is no memory. */
bool goal_labels_begin(struct goal_labels *l);
void goal_labels_free(struct goal_labels *l);

/* goal_labels_add() adds a label that goal_labels_find() did not find; returns
 * false if there is no memory. `origins` are those of the rank's operations. */
bool goal_labels_add(struct goal_labels *l, uint32_t hash, uint32_t node);

/* goal_labels_find() returns the operation with that label, or GOAL_NO_NODE. */
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
