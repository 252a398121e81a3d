/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues: rings in the program's memory. A full one overwrites its oldest
 * event and says so at the next get. With flow control the ring is longer than
 * what the program asked for: messages are refused when that much is in it, and the
 * events of what is under way then still find room. What the program itself sets off
 * meanwhile (..._OVERFLOW, LINK, SEND) makes it grow: there nothing is ever lost.
 *
 * The NIC's lock guards all of it; `head` and `tail` may be looked at without. Three
 * events go through here for each message of a library such as Open MPI, so that the
 * usual case of each step is inline.
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

/* The state by which a NIC knows whether to wake the program threads that sleep on it. */
struct wakeup {
    bool due;            /* something that one of them waits for has happened since */
    unsigned any_change; /* sleepers that any change is to wake */
};

/* wakeup_tell() says that an event was posted, or that something else but a counter changed. */
static inline void wakeup_tell(struct wakeup *n)
{
    if (unlikely(n->any_change != 0)) {
        n->due = true;
    }
}

struct eq {
    struct table_slot slot;
    bool dropped;                /* events were overwritten since the last get */
    _Atomic uint64_t head, tail; /* taken, posted; tail - head <= size */
    ptl_event_t *put, *take;     /* where in the ring the next one goes and comes from */
    ptl_event_t *ring, *end;     /* its first place, and behind its last */
    /* In the next line. */
    uint64_t size;         /* of the ring; with flow control it is longer, and grows */
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

/* The place behind another one in the ring: no division. */
static inline ptl_event_t *eq_next_place(const struct eq *eq, ptl_event_t *place)
{
    return place + 1 == eq->end ? eq->ring : place + 1;
}

/* eq_use_ring() gives a queue its ring, whose first `used` places have its events. */
static inline void eq_use_ring(struct eq *eq, ptl_event_t *ring, uint64_t size, uint64_t used)
{
    eq->ring = ring;
    eq->end = ring + size;
    eq->size = size;
    eq->take = ring;
    eq->put = ring + used;
}

/* eq_make_room() makes a full queue grow, or lose its oldest event. */
void eq_make_room(struct eq *eq);

/* eq_place() is where the next event goes, for who fills it there, all of it, and then
 * calls eq_placed(). */
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

/* eq_whose() sets two fields of an event that are one word for its reader, in one store. */
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

/* Posts a copy of an event, if the queue is still there. */
void eq_post(struct eq_ref ref, const ptl_event_t *event);

/* eq_take() gives PTL_OK, PTL_EQ_DROPPED or PTL_EQ_EMPTY. */
static inline int eq_take(struct eq *eq, ptl_event_t *event)
{
    uint64_t head = atomic_load_explicit(&eq->head, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&eq->tail, memory_order_relaxed) - head;
    if (unlikely(left == 0)) {
        return PTL_EQ_EMPTY;
    }
    /* Word by word, as it was stored: a wider load of an event that came just now would
     * wait for those stores to reach the cache. */
    const uint64_t *from = (const uint64_t *)eq->take;
    uint64_t *to = (uint64_t *)event;
    _Static_assert(sizeof(*event) % sizeof(*to) == 0, "an event is whole words");
#pragma GCC unroll 10
    for (size_t i = 0; i < sizeof(*event) / sizeof(*to); i++) {
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
    }
    if (left == 1) {
        eq->put = eq->take = eq->ring; /* one that runs empty stays in the first-level cache */
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

/* eq_extend() makes room for `more` events that flow control lets through when
 * `count` are in the queue. 0, or -1 when memory is short. */
int eq_extend(struct eq *eq, uint64_t more);

#endif
