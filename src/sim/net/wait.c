/* SPDX-License-Identifier: BSD-3-Clause */
/* Two kinds of queues: of packets that wait for a virtual channel, the oldest first; and of
 * messages that wait until an earlier one of the same pair was delivered. */
#include "state.h"

#include "base/array.h"
#include "base/heap.h"
#include "sim/util/random.h"

#include <stdlib.h>

#define BEFORE(a, b, of) net_wait_before(a, b)
HEAP_OF(heap, struct net_wait, 2, BEFORE)

int net_wait_push(struct net_vc *vc, const struct net_wait *w)
{
    if (!ARRAY_ROOM(vc->heap, vc->count, vc->capacity, 4)) {
        return -1;
    }
    heap_rise(vc->heap, vc->count++, w, NULL);
    return 0;
}

void net_wait_sink(struct net_vc *vc)
{
    struct net_wait first = vc->heap[0];
    heap_sink(vc->heap, vc->count, &first, NULL);
}

void net_wait_drop(struct net_vc *vc)
{
    vc->heap[0] = vc->heap[--vc->count];
    if (vc->count > 1) {
        net_wait_sink(vc);
    }
}

/* ---- Pairs: a hash table of the last transfer of each pair ---- */

static uint32_t *slot_of(struct net *n, const struct net_message *m)
{
    uint64_t key = (uint64_t)m->from << 32 | m->to;
    return &n->pairs[goal_mix(key + 1) & (n->pairs_slots - 1)];
}

static int grow_pairs(struct net *n)
{
    uint32_t slots = n->pairs_slots, *old = n->pairs;
    uint32_t *new = calloc(slots > 0 ? 2 * (size_t)slots : 64, sizeof(*new));
    if (new == NULL) {
        return -1;
    }
    n->pairs = new;
    n->pairs_slots = slots > 0 ? 2 * slots : 64;
    for (uint32_t i = 0; i < slots; i++) {
        uint32_t next;
        for (uint32_t t = old[i]; t != 0; t = next) {
            struct net_transfer *tr = &n->transfers[t - 1];
            uint32_t *slot = slot_of(n, &tr->m);
            next = tr->next;
            tr->next = *slot;
            *slot = t;
        }
    }
    free(old);
    return 0;
}

int net_pair_join(struct net *n, uint32_t transfer)
{
    struct net_transfer *t = &n->transfers[transfer];
    if (n->pairs_count == n->pairs_slots && grow_pairs(n) != 0) {
        return -1;
    }
    uint32_t *link = slot_of(n, &t->m);
    for (; *link != 0; link = &n->transfers[*link - 1].next) {
        struct net_transfer *last = &n->transfers[*link - 1];
        if (last->m.from == t->m.from && last->m.to == t->m.to) {
            last->after = transfer + 1; /* `t` takes the place of `last` in the hash chain */
            t->behind = true;
            t->next = last->next;
            *link = transfer + 1;
            return 0;
        }
    }
    *link = transfer + 1;
    t->next = 0;
    n->pairs_count++;
    return 0;
}

uint32_t net_pair_leave(struct net *n, uint32_t transfer)
{
    struct net_transfer *t = &n->transfers[transfer];
    if (t->after != 0) {
        n->transfers[t->after - 1].behind = false;
        return t->after;
    }
    uint32_t *link = slot_of(n, &t->m);
    while (*link != transfer + 1) {
        link = &n->transfers[*link - 1].next;
    }
    *link = t->next;
    n->pairs_count--;
    return 0;
}
