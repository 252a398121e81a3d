/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.13: event queues. */
#include "portals/api.h"

#include <stdlib.h>
#include <string.h>

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle)
{
    struct ni *ni;
    int rc = api_ni_only(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (eq_handle == NULL || count == 0) {
        return PTL_ARG_INVALID;
    }
    ptl_event_t *ring = count <= EQ_MAX_EVENTS ? calloc(count, sizeof(*ring)) : NULL;
    if (ring == NULL) {
        return PTL_NO_SPACE;
    }
    nic_lock(ni->nic);
    struct eq *eq = table_add(&ni->eqs);
    if (eq != NULL) {
        eq->ni = ni;
        eq->news = &ni->nic->news;
        eq->ring = ring;
        eq->count = eq->size = count;
        *eq_handle = eq->slot.handle;
    }
    nic_unlock(ni->nic);
    if (eq == NULL) {
        free(ring);
        return PTL_NO_SPACE;
    }
    return PTL_OK;
}

int PtlEQFree(ptl_handle_eq_t eq_handle)
{
    struct ni *ni;
    int rc = api_ni(eq_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct eq *eq;
    nic_lock(ni->nic);
    rc = api_object(eq_handle, HANDLE_EQ, &ni, &eq);
    if (rc == PTL_OK) {
        free(eq->ring);
        table_drop(&ni->eqs, eq);
        ni->nic->news.due = true; /* for who waits for it: it is an invalid handle now */
        process_renew(ni->nic->process);
    }
    nic_unlock(ni->nic);
    return rc;
}

/* What a thread waits for: an event of one of some queues. */
struct eq_wait {
    struct nic *nic;
    const ptl_handle_eq_t *handles;
    unsigned size;
    unsigned which;
    ptl_event_t *event;
    int rc;
};

/* Takes an event of the first queue that has one, or notices one that was freed. From behind
 * the queue that had the last event: one that never runs empty must not starve the others. */
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

/* The usual case of it: one queue. */
struct one_wait {
    struct eq *eq;
    ptl_handle_eq_t handle;
    ptl_event_t *event;
    int rc;
};

static inline bool take_next(void *arg)
{
    struct one_wait *w = arg;
    w->rc = w->eq->slot.handle == w->handle ? eq_take(w->eq, w->event) : PTL_ARG_INVALID;
    return w->rc != PTL_EQ_EMPTY;
}

/* Finds the NI of the queues, all of which must be of one, and whether they are all
 * empty, as far as can be told without the lock. */
static int find_queues(const ptl_handle_eq_t *handles, unsigned size, struct ni **result,
                       bool *empty)
{
    *empty = true;
    struct ni *ni = NULL;
    for (unsigned i = 0; i < size; i++) {
        struct ni *of;
        struct eq *eq;
        int rc = api_object(handles[i], HANDLE_EQ, &of, &eq);
        if (rc != PTL_OK) {
            return rc;
        }
        if (i > 0 && of != ni) {
            return PTL_ARG_INVALID;
        }
        ni = of;
        *empty &= eq_empty(eq);
    }
    *result = ni;
    return PTL_OK;
}

static int find_queue(ptl_handle_eq_t handle, const ptl_event_t *event, struct ni **ni,
                      struct eq **eq)
{
    int rc = api_object(handle, HANDLE_EQ, ni, eq);
    return rc == PTL_OK && event == NULL ? PTL_ARG_INVALID : rc;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
    struct ni *ni;
    struct eq *eq;
    int rc = find_queue(eq_handle, event, &ni, &eq);
    if (rc != PTL_OK) {
        return rc;
    }
    struct one_wait w = {.eq = eq, .handle = eq_handle, .event = event};
    return nic_look(ni->nic, take_next, &w, eq_empty(eq)) ? w.rc : PTL_EQ_EMPTY;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
    struct ni *ni;
    struct eq *eq;
    int rc = find_queue(eq_handle, event, &ni, &eq);
    if (rc != PTL_OK) {
        return rc;
    }
    struct one_wait w = {.eq = eq, .handle = eq_handle, .event = event};
    rc = ni_wait_abort(ni, take_next, &w, -1, PTL_EQ_EMPTY);
    return rc == PTL_OK ? w.rc : rc;
}

/* A poll that may wait, or of more queues than are remembered. */
static int poll_any(struct eq_wait *w, ptl_time_t timeout)
{
    bool empty;
    struct ni *ni;
    int rc = find_queues(w->handles, w->size, &ni, &empty);
    if (rc != PTL_OK) {
        return rc;
    }
    w->nic = ni->nic;
    if (timeout == 0) {
        return nic_look(w->nic, take_one, w, empty) ? w->rc : PTL_EQ_EMPTY;
    }
    int64_t ns = timeout == PTL_TIME_FOREVER ? -1 : (int64_t)timeout * 1000000;
    rc = ni_wait_abort(ni, take_one, w, ns, PTL_EQ_EMPTY);
    return rc == PTL_OK ? w->rc : rc;
}

/* The queues that this thread polled last without waiting, if they were one or two: most polls
 * find nothing or one event, and to look handles up is then most of the work. Of one queue both
 * places have it. */
struct polled {
    uint64_t epoch; /* 0: none. PtlEQFree() begins another one, as the end of an NI does. */
    ptl_handle_eq_t handles[2];
    unsigned size;
    bool next; /* which one is looked at first: not the one that had the last event */
    bool last; /* that event left them empty */
    struct nic *nic;
    struct eq *queues[2];
};
static __thread struct polled last_polled __attribute__((tls_model("initial-exec")));

/* Whether that was these, and nothing has gone since. */
static inline bool is_polled(const struct polled *p, const ptl_handle_eq_t *handles, unsigned size)
{
    const struct process *process = process_current();
    return usual(process != NULL &&
                 atomic_load_explicit(&process->epoch, memory_order_acquire) == p->epoch &&
                 p->size == size && handles != NULL && p->handles[0] == handles[0] &&
                 p->handles[1] == handles[size - 1]);
}

static void remember(struct polled *p, const ptl_handle_eq_t *handles, unsigned size)
{
    uint64_t epoch = atomic_load(&process_current()->epoch); /* that before they are found */
    bool empty;
    p->epoch = 0;
    struct ni *of;
    int rc = size <= 2 ? find_queues(handles, size, &of, &empty) : PTL_ARG_INVALID;
    p->nic = rc == PTL_OK ? of->nic : NULL;
    for (unsigned i = 0; rc == PTL_OK && i < 2; i++) {
        struct ni *ni;
        p->handles[i] = handles[i == 0 ? 0 : size - 1];
        rc = api_object(p->handles[i], HANDLE_EQ, &ni, &p->queues[i]);
    }
    if (rc == PTL_OK) {
        p->size = size;
        p->next = p->last = false;
        p->epoch = epoch;
    }
}

static inline bool all_empty(const struct polled *p)
{
    return eq_empty(p->queues[0]) && eq_empty(p->queues[1]);
}

/* Takes an event of them; lock held. One that was freed meanwhile has its memory still. */
static inline int take_polled(struct polled *p, ptl_event_t *event, unsigned int *which)
{
    unsigned i = eq_empty(p->queues[p->next]) ? !p->next : p->next;
    struct eq *eq = p->queues[i];
    if (rare(eq->slot.handle != p->handles[i])) {
        return PTL_ARG_INVALID;
    }
    int rc = eq_take(eq, event);
    if (rc != PTL_EQ_EMPTY) {
        *which = i & (p->size - 1);
        p->next = !i;
        p->last = all_empty(p);
    }
    return rc;
}

static inline int poll_again(struct polled *p, ptl_event_t *event, unsigned int *which)
{
    struct nic *nic = p->nic;
    bool look = all_empty(p), moved = true;
    if (look) {
        /* Programs take events until there is none, and then act on what they have. So after
         * the last one there is none, without a look: what comes meanwhile would find the
         * entries missing that they are about to append. */
        if (p->last) {
            p->last = false;
            nic->ops->foresee(nic->fabric);
            return PTL_EQ_EMPTY;
        }
        nic_take_over(nic);
        if (nic_quiet(nic)) {
            load_fence(); /* looks that overlap get into the way of who writes there */
            nic_note_poll(nic, false);
            return PTL_EQ_EMPTY;
        }
    }
    nic_lock(nic);
    if (look) {
        moved = nic_advance(nic);
    }
    int rc = moved ? take_polled(p, event, which) : PTL_EQ_EMPTY;
    nic_unlock(nic);
    nic_note_poll(nic, rc != PTL_EQ_EMPTY);
    return rc;
}

/* Any poll, and the first one of queues that are to be remembered. */
__attribute__((noinline)) static int poll_first(struct polled *p, const ptl_handle_eq_t *eq_handles,
                                                unsigned int size, ptl_time_t timeout,
                                                ptl_event_t *event, unsigned int *which)
{
    const struct process *process = process_current();
    if (process == NULL || process->users == 0) {
        return PTL_NO_INIT;
    }
    if (eq_handles == NULL || size == 0 || event == NULL || which == NULL) {
        return PTL_ARG_INVALID;
    }
    struct eq_wait w = {.handles = eq_handles, .size = size, .event = event};
    int rc = poll_any(&w, timeout);
    if (rc == PTL_OK || rc == PTL_EQ_DROPPED) {
        *which = w.which;
    }
    if (timeout == 0 && rc != PTL_ARG_INVALID) {
        remember(p, eq_handles, size);
    }
    return rc;
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
              ptl_event_t *event, unsigned int *which)
{
    struct polled *p = &last_polled;
    if (usual(timeout == 0 && is_polled(p, eq_handles, size) && event != NULL && which != NULL)) {
        return poll_again(p, event, which);
    }
    return poll_first(p, eq_handles, size, timeout, event, which);
}
