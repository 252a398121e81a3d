/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.13: event queues. */
#include "nic/wait.h"
#include "portals/api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle)
{
    struct ni *ni;
    int rc = api_find_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (eq_handle == NULL || count == 0) {
        return api_refuse_null(__func__, "eq_handle", eq_handle)
                   ?: api_refuse_call("PtlEQAlloc is refused: count is 0, and must be at least 1");
    }
    ptl_event_t *ring = count <= EQ_MAX_EVENTS ? calloc(count, sizeof(*ring)) : NULL;
    if (ring == NULL) {
        api_refuse_call("PtlEQAlloc is refused: count %" PRIu64 " is more than %" PRIu64
                        ", or than there is memory for",
                        (uint64_t)count, (uint64_t)EQ_MAX_EVENTS);
        return PTL_NO_SPACE;
    }
    if (!api_lock(__func__, ni, ni_handle)) {
        free(ring);
        return PTL_ARG_INVALID;
    }
    struct eq *eq = table_ready(&ni->eqs) ? table_take(&ni->eqs) : NULL;
    if (eq != NULL) {
        eq->ni = ni;
        eq->wakeup = &ni->nic->wakeup;
        eq->count = count;
        eq->dropped = false;
        /* Other threads may ask whether the queue that had this memory before is empty. */
        atomic_store_explicit(&eq->head, 0, memory_order_relaxed);
        atomic_store_explicit(&eq->tail, 0, memory_order_relaxed);
        eq_use_ring(eq, ring, count, 0);
        *eq_handle = eq->slot.handle;
    } else {
        free(ring);
        rc = api_refuse_space(__func__, "max_eqs", ni->limits.max_eqs);
    }
    return api_unlock(ni, rc);
}

int PtlEQFree(ptl_handle_eq_t eq_handle)
{
    struct ni *ni;
    struct eq *eq;
    int rc = api_lock_object(__func__, eq_handle, HANDLE_EQ, &ni, &eq);
    if (rc == PTL_OK) {
        free(eq->ring);
        table_drop(&ni->eqs, eq);
        /* a thread that waits for the queue is to find its handle invalid */
        ni->nic->wakeup.due = true;
        process_renew();
        api_unlock(ni, rc);
    }
    return rc;
}

/* The condition of a wait: one of several queues has an event. */
struct eq_wait {
    struct nic *nic;
    const ptl_handle_eq_t *handles;
    unsigned size;
    unsigned which;
    ptl_event_t *event;
    int rc;
};

/* Takes an event of the first queue that has one, or finds that one was freed. It begins behind the
 * queue that had the last event, so that a queue which never runs empty does not starve the
 * others. */
static bool take_one(void *arg)
{
    struct eq_wait *w = arg;
    unsigned i = w->nic->poll_next < w->size ? w->nic->poll_next : 0;
    for (unsigned n = 0; n < w->size; n++, i = i + 1 < w->size ? i + 1 : 0) {
        struct ni *ni;
        struct eq *eq;
        int rc = api_object(w->handles[i], HANDLE_EQ, &ni, &eq);
        w->rc = rc == PTL_OK ? eq_take(eq, w->event) : rc;
        if (w->rc != PTL_EQ_EMPTY) {
            w->which = i;
            w->nic->poll_next = i + 1;
            return true;
        }
    }
    return false;
}

/* Polls any number of queues, and may wait. */
static int poll_any(const char *call, struct eq_wait *w, ptl_time_t timeout)
{
    struct ni *ni;
    int rc = api_find_all(call, w->handles, w->size, HANDLE_EQ, &ni);
    if (rc == PTL_OK && w->event == NULL) {
        rc = api_refuse_call("%s is refused: event is NULL", call);
    }
    if (rc != PTL_OK) {
        return rc;
    }
    w->nic = ni->nic;
    rc = ni_wait_abort(ni, take_one, w, api_timeout(timeout), PTL_EQ_EMPTY);
    if (timeout == 0 && rc == PTL_EQ_EMPTY && w->nic->time != NULL) {
        nic_quiet(w->nic); /* the time that a look takes is still to pass */
        rc = ni_wait_abort(ni, take_one, w, 0, PTL_EQ_EMPTY);
    }
    if (timeout == 0) {
        nic_note_poll(w->nic, rc == PTL_OK);
    }
    return rc == PTL_OK ? w->rc : rc;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
    struct eq_wait w = {.handles = &eq_handle, .size = 1, .event = event};
    return poll_any(__func__, &w, PTL_TIME_FOREVER);
}

/* ---- polls that do not wait, of one queue or two ---- */

/* The queues that this thread polled last: most polls are repeated. `known_pair` has those of
 * PtlEQPoll(), in its order; `known_one` that of PtlEQGet(), twice. */
struct known {
    /* PtlEQFree() and the end of an NI begin a new epoch, and so outdate it */
    struct api_when when;
    ptl_handle_eq_t handles[2];
    unsigned next;  /* queue that is looked at first: not the one that had the last event */
    unsigned which; /* PtlEQGet(): receives the index that the program does not ask for */
    bool found;     /* the last poll has found an event */
    struct nic *nic;
    struct eq *queues[2];
};
static __thread struct known known_pair __attribute__((tls_model("initial-exec")));
static __thread struct known known_one __attribute__((tls_model("initial-exec")));

/* Whether these two handles are the remembered ones. */
static inline bool is_pair(const struct known *k, const ptl_handle_eq_t *handles)
{
    uint64_t ours, theirs;
    _Static_assert(sizeof(k->handles) == sizeof(ours), "two handles are a word");
    memcpy(&ours, k->handles, sizeof(ours));
    memcpy(&theirs, handles, sizeof(theirs));
    return ours == theirs;
}

static int remember(const char *call, struct known *k, const ptl_handle_eq_t *handles,
                    unsigned size)
{
    struct api_when now = api_now();
    struct ni *ni[2];
    k->when.epoch = 0;
    for (unsigned i = 0; i < 2; i++) {
        k->handles[i] = handles[i & (size - 1)];
        if (unlikely(api_object(k->handles[i], HANDLE_EQ, &ni[i], &k->queues[i]) != PTL_OK)) {
            return api_refuse_object(call, k->handles[i], HANDLE_EQ);
        }
    }
    if (ni[0] != ni[1]) {
        return api_refuse_object(call, k->handles[1], HANDLE_EQ);
    }
    k->nic = ni[0]->nic;
    k->next = 0;
    k->found = false;
    k->when = now;
    return PTL_OK;
}

/* Whether queue *i, or else the other one, has an event, as far as can be told without the lock;
 * *i becomes the one that has. */
static inline bool choose(const struct known *k, unsigned *i)
{
    return !eq_empty(k->queues[*i]) || !eq_empty(k->queues[*i ^= 1]);
}

/* Takes an event of queue `i`; lock held. If another thread has freed the queue, its memory is
 * still that of a queue. */
static inline int take_from(struct known *k, unsigned i, ptl_event_t *event, unsigned int *which)
{
    struct eq *eq = k->queues[i];
    if (unlikely(eq->slot.handle != k->handles[i])) {
        return PTL_ARG_INVALID;
    }
    int rc = eq_take(eq, event);
    if (likely(rc != PTL_EQ_EMPTY)) {
        *which = i;
        k->next = i ^ 1;
        k->found = true;
    }
    return rc;
}

/* take(), for a thread that has not the lock's bias. */
__attribute__((noinline)) static int take_locked(struct known *k, unsigned i, ptl_event_t *event,
                                                 unsigned int *which)
{
    nic_lock(k->nic);
    int rc = take_from(k, i, event, which);
    nic_unlock(k->nic);
    nic_note_poll(k->nic, true);
    return rc;
}

/* Takes an event of queue `i`. A thread that has the lock's bias takes it without the lock's slow
 * path, and without nic_unlock(): to take an event wakes no other thread. */
static inline __attribute__((always_inline)) int take(struct known *k, unsigned i,
                                                      ptl_event_t *event, unsigned int *which)
{
    struct nic *nic = k->nic;
    uint32_t slot = lock_slot;
    if (unlikely(!lock_enter_slot(&nic->lock, slot))) {
        return take_locked(k, i, event, which);
    }
    int rc = take_from(k, i, event, which);
    lock_leave_slot(&nic->lock, slot);
    nic_note_poll(nic, true);
    return rc;
}

/* Has the NIC do what it has to do, and takes an event if there is one then. */
__attribute__((noinline)) static int advance_and_take(struct known *k, ptl_event_t *event,
                                                      unsigned int *which)
{
    struct nic *nic = k->nic;
    int rc = PTL_EQ_EMPTY;
    nic_lock(nic);
    bool moved = nic_advance(nic);
    if (moved) {
        unsigned i = k->next;
        rc = choose(k, &i) ? take_from(k, i, event, which) : PTL_EQ_EMPTY;
    }
    nic_unlock(nic);
    /* a poll counts as a find also if the messages that moved had no events */
    nic_note_poll(nic, moved);
    return rc;
}

/* Polls when both queues were empty: looks whether the NIC has something to do. */
__attribute__((noinline)) static int look(struct known *k, ptl_event_t *event, unsigned int *which)
{
    struct nic *nic = k->nic;
    nic_take_over(nic);
    if (unlikely(!nic_quiet(nic))) {
        return advance_and_take(k, event, which);
    }
    /* keeps loads of several looks from overlapping: these would slow down the peer that writes
     * there */
    load_fence();
    nic_note_poll(nic, false);
    return PTL_EQ_EMPTY;
}

static inline int take_or_look(struct known *k, ptl_event_t *event, unsigned int *which)
{
    unsigned i = k->next;
    return choose(k, &i) ? take(k, i, event, which) : look(k, event, which);
}

/* Says that there is no event, without a look, to a program that polls again after the last event.
 * A program takes events until there is none, and then acts on them: a message that the NIC took
 * earlier would miss the entries that the program is about to append. */
__attribute__((noinline)) static int none_after_last(struct known *k)
{
    k->found = false;
    nic_foresee(k->nic);
    return PTL_EQ_EMPTY;
}

/* PtlEQGet() for a queue that is not the remembered one. */
__attribute__((noinline)) static int get_first(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
    int rc = remember("PtlEQGet", &known_one, &eq_handle, 1);
    if (rc == PTL_OK && event == NULL) {
        rc = api_refuse_call("PtlEQGet is refused: event is NULL");
    }
    return rc == PTL_OK ? take_or_look(&known_one, event, &known_one.which) : rc;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
    struct known *k = &known_one;
    if (unlikely(!api_still(&k->when)) || unlikely(k->handles[0] != eq_handle) ||
        unlikely(event == NULL)) {
        return get_first(eq_handle, event);
    }
    PAUSE_POINT("remembered");
    return likely(eq_empty(k->queues[0])) ? look(k, event, &k->which)
                                          : take(k, 0, event, &k->which);
}

/* PtlEQPoll() for queues that are not the remembered pair, or with a time to wait. */
__attribute__((noinline)) static int poll_first(const ptl_handle_eq_t *eq_handles,
                                                unsigned int size, ptl_time_t timeout,
                                                ptl_event_t *event, unsigned int *which)
{
    const struct process *process = process_current();
    if (process == NULL || process->users == 0) {
        return PTL_NO_INIT;
    }
    if (eq_handles == NULL || size == 0 || event == NULL || which == NULL) {
        return api_refuse_null("PtlEQPoll", "eq_handles event which", eq_handles, event, which)
                   ?: api_refuse_call("PtlEQPoll is refused: size is 0, and must be at least 1");
    }
    struct eq_wait w = {.handles = eq_handles, .size = size, .event = event};
    int rc;
    if (timeout == 0 && size == 2) {
        rc = remember("PtlEQPoll", &known_pair, eq_handles, size);
        rc = rc == PTL_OK ? take_or_look(&known_pair, event, &w.which) : rc;
    } else if (timeout == 0 && size == 1) {
        rc = PtlEQGet(eq_handles[0], event);
    } else {
        rc = poll_any("PtlEQPoll", &w, timeout);
    }
    if (rc == PTL_OK || rc == PTL_EQ_DROPPED) {
        *which = w.which;
    }
    return rc;
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
              ptl_event_t *event, unsigned int *which)
{
    struct known *k = &known_pair;
    if (unlikely(((size ^ 2) | timeout) != 0) || unlikely(!api_still(&k->when)) ||
        unlikely(eq_handles == NULL) || unlikely(!is_pair(k, eq_handles)) ||
        unlikely(event == NULL || which == NULL)) {
        return poll_first(eq_handles, size, timeout, event, which);
    }
    PAUSE_POINT("remembered");
    unsigned i = k->next;
    if (choose(k, &i)) {
        return take(k, i, event, which);
    }
    return k->found ? none_after_last(k) : look(k, event, which);
}
