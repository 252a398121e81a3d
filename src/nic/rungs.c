/* SPDX-License-Identifier: BSD-3-Clause */
/* Places in long lists of triggered operations, found by bisection: rungs.h. */
#include "nic/rungs.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    STRIDE = 64, /* links between two rungs */
    FEWEST = 16
};

struct rungs {
    uint32_t count, room;
    struct rung {
        uint64_t threshold;
        struct list *link;
    } rung[];
};

static uint64_t threshold_of(const struct list *link)
{
    return container_of(link, const struct triggered, link)->threshold;
}

/* Returns the index of the first rung whose threshold is above the given one, or `count`. */
static uint32_t above(const struct rungs *r, uint64_t threshold)
{
    return (uint32_t)ARRAY_FIRST(i, r->count, r->rung[i].threshold > threshold);
}

/* Drops the rungs whose links have left the list; `first` is the threshold of the list's first
 * link. */
static void let_go(struct rungs *r, uint64_t first)
{
    uint32_t gone = first != 0 ? above(r, first - 1) : 0;
    memmove(r->rung, r->rung + gone, (r->count - gone) * sizeof(r->rung[0]));
    r->count -= gone;
}

/* Adds a rung. If memory is short it adds none, and the next walk is longer. */
static void add(struct ct *ct, uint32_t place, struct list *link)
{
    struct rungs *r = ct->rungs;
    uint32_t count = r != NULL ? r->count : 0;
    if (r == NULL || count == r->room) {
        uint32_t room = count != 0 ? 2 * count : FEWEST;
        r = realloc(r, sizeof(*r) + room * sizeof(r->rung[0]));
        if (r == NULL) {
            return;
        }
        r->count = count;
        r->room = room;
        ct->rungs = r;
    }
    memmove(r->rung + place + 1, r->rung + place, (count - place) * sizeof(r->rung[0]));
    r->rung[place] = (struct rung){threshold_of(link), link};
    r->count++;
}

struct list *rungs_place(struct ct *ct, uint64_t threshold)
{
    struct list *after = ct->triggers.prev;
    uint32_t place = 0;
    if (ct->rungs != NULL) {
        let_go(ct->rungs, threshold_of(ct->triggers.next));
        place = above(ct->rungs, threshold);
        if (place < ct->rungs->count) {
            after = ct->rungs->rung[place].link->prev;
        }
    }
    for (unsigned steps = 1; after != &ct->triggers && threshold_of(after) > threshold; steps++) {
        if (steps % STRIDE == 0) {
            add(ct, place, after);
        }
        after = after->prev;
    }
    return after;
}

void rungs_forget(struct ct *ct)
{
    free(ct->rungs);
    ct->rungs = NULL;
}
