/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues: rings in the program's memory. Where a ring is full, the NIC overwrites the oldest
 * event and says so at the next get. At a portal table entry with flow control the ring is longer
 * than the program asked for: the NIC refuses messages when that many events are in it, and those
 * of messages in progress still find room. For the events that the program itself causes meanwhile
 * (..._OVERFLOW, LINK, SEND) the ring grows: so with flow control none is ever lost.
 *
 * The NIC's lock guards all of a queue; `head` and `tail` may be read without it. A library such as
 * Open MPI has three events for each message, so the usual case of each step is inline.
 */
#ifndef NIC_EVENT_H
#define NIC_EVENT_H

#include "base/branch.h"
#include "base/table.h"
#include "portals4.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define EQ_MAX_EVENTS (1ull << 26)

struct ni;

/* State by which a NIC knows whether to wake the program threads that sleep on it. */
struct wakeup {
    /* something that a sleeper waits for has happened since it was last woken */
    bool due;
    unsigned any_change; /* how many sleepers are to wake at any change */
};

/* wakeup_tell() notes that an event was posted, or anything changed but a counter. */
static inline void wakeup_tell(struct wakeup *n)
{
    if (unlikely(n->any_change != 0)) {
        n->due = true;
    }
}

struct eq {
    struct table_slot slot;
    bool dropped;                /* events were overwritten since the last get */
    _Atomic uint64_t head, tail; /* events taken, events posted; tail - head <= size */
    /* where in the ring the next event goes, and where the next one is taken */
    ptl_event_t *put, *take;
    ptl_event_t *ring, *end; /* the first place of the ring, and the one behind its last */
    /* From here on the second cache line. */
    /* places of the ring; with flow control more than `count`, and growing */
    uint64_t size;
    struct wakeup *wakeup; /* the NIC's */
    struct ni *ni;
    uint64_t count; /* events that the program asked for */
};

struct eq_ref {
    struct eq *eq; /* NULL: none */
    uint32_t handle;
};

static inline bool eq_ref_alive(struct eq_ref ref)
{
    return ref.eq != NULL && ref.eq->slot.handle == ref.handle;
}

static inline bool eq_empty(const struct eq *eq)
{
    return atomic_load_explicit(&eq->head, memory_order_relaxed) ==
           atomic_load_explicit(&eq->tail, memory_order_relaxed);
}

/* Returns the place behind another one in the ring, without a division. */
static inline ptl_event_t *eq_next_place(const struct eq *eq, ptl_event_t *place)
{
    return place + 1 == eq->end ? eq->ring : place + 1;
}

/* eq_use_ring() gives a queue its ring, whose first `used` places already hold events. */
static inline void eq_use_ring(struct eq *eq, ptl_event_t *ring, uint64_t size, uint64_t used)
{
    eq->ring = ring;
    eq->end = ring + size;
    eq->size = size;
    eq->take = ring;
    eq->put = ring + used;
}

/* eq_make_room() makes the ring of a full queue longer, or drops its oldest event. */
void eq_make_room(struct eq *eq);

/* eq_place() returns the place of the next event. The caller fills in all of the event there, and
 * then calls eq_placed(). */
static inline ptl_event_t *eq_place(struct eq *eq)
{
    if (unlikely(atomic_load_explicit(&eq->tail, memory_order_relaxed) -
                     atomic_load_explicit(&eq->head, memory_order_relaxed) ==
                 eq->size)) {
        eq_make_room(eq);
    }
    return eq->put;
}

static inline void eq_placed(struct eq *eq)
{
    uint64_t tail = atomic_load_explicit(&eq->tail, memory_order_relaxed);
    eq->put = eq_next_place(eq, eq->put);
    atomic_store_explicit(&eq->tail, tail + 1, memory_order_release);
    wakeup_tell(eq->wakeup);
}

/* eq_whose() sets the fields uid and pt_index in one store, since their reader loads them as one
 * word. */
static inline void eq_whose(ptl_event_t *event, ptl_uid_t uid, ptl_pt_index_t pt_index)
{
    _Static_assert(offsetof(ptl_event_t, pt_index) == offsetof(ptl_event_t, uid) + 4 &&
                       offsetof(ptl_event_t, uid) % 8 == 0,
                   "side by side in a word");
    uint64_t word = uid | (uint64_t)pt_index << 32;
    memcpy((char *)event + offsetof(ptl_event_t, uid), &word, sizeof(word));
}

/* eq_kinds() sets the last word of an event, its small fields, in one store. */
static inline void eq_kinds(ptl_event_t *event, ptl_event_kind_t type, ptl_list_t list,
                            ptl_ni_fail_t fail, ptl_op_t op, ptl_datatype_t datatype)
{
    _Static_assert(offsetof(ptl_event_t, type) == sizeof(*event) - 8 &&
                       offsetof(ptl_event_t, ptl_list) == sizeof(*event) - 7 &&
                       offsetof(ptl_event_t, ni_fail_type) == sizeof(*event) - 6 &&
                       offsetof(ptl_event_t, atomic_operation) == sizeof(*event) - 5 &&
                       offsetof(ptl_event_t, atomic_type) == sizeof(*event) - 4,
                   "the small fields are the bytes of the last word");
    uint64_t word = (uint64_t)type | (uint64_t)list << 8 | (uint64_t)fail << 16 |
                    (uint64_t)op << 24 | (uint64_t)datatype << 32;
    memcpy(&event->type, &word, sizeof(word));
}

/* Posts a copy of an event, if the queue still exists. */
void eq_post(struct eq_ref ref, const ptl_event_t *event);

/* eq_take() takes the oldest event. It returns PTL_OK, PTL_EQ_DROPPED or PTL_EQ_EMPTY. */
static inline int eq_take(struct eq *eq, ptl_event_t *event)
{
    uint64_t head = atomic_load_explicit(&eq->head, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&eq->tail, memory_order_relaxed) - head;
    if (unlikely(left == 0)) {
        return PTL_EQ_EMPTY;
    }
    /* Copies word by word, as the event was stored: a wider load of an event that was posted just
     * now would wait until those stores have reached the cache. */
    const uint64_t *from = (const uint64_t *)eq->take;
    uint64_t *to = (uint64_t *)event;
    _Static_assert(sizeof(*event) % sizeof(*to) == 0, "an event is whole words");
#pragma GCC unroll 10
    for (size_t i = 0; i < sizeof(*event) / sizeof(*to); i++) {
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
    }
    if (left == 1) {
        /* a queue that runs empty restarts at the first place, which is still in the L1 cache */
        eq->put = eq->take = eq->ring;
    } else {
        eq->take = eq_next_place(eq, eq->take);
    }
    atomic_store_explicit(&eq->head, head + 1, memory_order_relaxed);
    if (unlikely(eq->dropped)) {
        eq->dropped = false;
        return PTL_EQ_DROPPED;
    }
    return PTL_OK;
}

/* eq_extend() makes the ring longer by `more` places, for events of messages that flow control
 * admits while `count` events are in the queue. 0, or -1 if memory is short. */
int eq_extend(struct eq *eq, uint64_t more);

#endif
