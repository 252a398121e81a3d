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
    }
    nic_unlock(ni->nic);
    return rc;
}

#define POLL_FEW 8

/* What a thread waits for: an event of one of some queues. */
struct eq_wait {
    struct nic *nic;
    struct eq **queues; /* of the first POLL_FEW handles: looked up once */
    const ptl_handle_eq_t *handles;
    unsigned size;
    unsigned which;
    ptl_event_t *event;
    int rc;
};

/* Takes an event of the i-th queue. */
static inline int take_of(struct eq_wait *w, unsigned i)
{
    struct ni *ni;
    struct eq *eq;
    if (i < POLL_FEW) {
        eq = w->queues[i]; /* its memory stays, even if it was freed meanwhile */
        return eq->slot.handle != w->handles[i] ? PTL_ARG_INVALID
               : eq_empty(eq)                   ? PTL_EQ_EMPTY
                                                : eq_take(eq, w->event);
    }
    int rc = api_object(w->handles[i], HANDLE_EQ, &ni, &eq);
    return rc == PTL_OK ? eq_take(eq, w->event) : rc;
}

static inline bool take_one(void *arg)
{
    struct eq_wait *w = arg;
    /* From behind the queue that had the last event: one that never runs empty must not
     * starve the others. */
    unsigned i = w->nic->poll_next < w->size ? w->nic->poll_next : 0;
    for (unsigned n = 0; n < w->size; n++, i = i + 1 < w->size ? i + 1 : 0) {
        w->rc = take_of(w, i);
        if (w->rc != PTL_EQ_EMPTY) {
            w->which = i;
            w->nic->poll_next = i + 1;
            return true; /* an event, or a queue that was freed meanwhile */
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

/* The queues that this thread polled last, if they were few: most polls find nothing, and
 * to look handles up is then most of the work. Their memory stays as long as the epoch. */
#define REMEMBERED 2
static __thread struct {
    uint64_t epoch; /* 0: none */
    unsigned size;
    ptl_handle_eq_t handles[REMEMBERED];
    struct eq *queues[REMEMBERED];
} last_polled __attribute__((tls_model("initial-exec")));

/* Whether the queues are those, and none was freed since. */
static inline bool recall_queues(struct eq_wait *w, uint64_t epoch)
{
    if (last_polled.size != w->size || last_polled.epoch != epoch) {
        return false;
    }
    for (unsigned i = 0; i < w->size; i++) {
        struct eq *eq = last_polled.queues[i];
        if (last_polled.handles[i] != w->handles[i] || eq->slot.handle != w->handles[i]) {
            return false;
        }
    }
    w->queues = last_polled.queues;
    w->nic = w->queues[0]->ni->nic;
    return true;
}

/* `epoch` is that before they were found. */
static void remember_queues(const struct eq_wait *w, uint64_t epoch)
{
    last_polled.epoch = 0;
    if (w->size <= REMEMBERED) {
        last_polled.size = w->size;
        memcpy(last_polled.handles, w->handles, w->size * sizeof(*w->handles));
        memcpy(last_polled.queues, w->queues, w->size * sizeof(*w->queues));
        last_polled.epoch = epoch;
    }
}

/* Finds the queues. All must be of one interface. */
static int find_queues(struct eq_wait *w)
{
    struct ni *ni = NULL;
    for (unsigned i = 0; i < w->size; i++) {
        struct ni *of;
        struct eq *eq;
        int rc = api_object(w->handles[i], HANDLE_EQ, &of, &eq);
        if (rc != PTL_OK) {
            return rc;
        }
        if (i > 0 && of != ni) {
            return PTL_ARG_INVALID;
        }
        ni = of;
        if (i < POLL_FEW) {
            w->queues[i] = eq;
        }
    }
    w->nic = ni->nic;
    return PTL_OK;
}

/* Whether all are empty, as far as can be told without the lock. */
static inline bool all_empty(const struct eq_wait *w)
{
    for (unsigned i = 0; i < w->size; i++) {
        if (i >= POLL_FEW || !eq_empty(w->queues[i])) {
            return false;
        }
    }
    return true;
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
    rc = nic_wait_abort(ni->nic, take_next, &w, -1, PTL_EQ_EMPTY);
    return rc == PTL_OK ? w.rc : rc;
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
              ptl_event_t *event, unsigned int *which)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    if (eq_handles == NULL || size == 0 || event == NULL || which == NULL) {
        return PTL_ARG_INVALID;
    }
    struct eq *queues[POLL_FEW];
    struct eq_wait w; /* no initializers: clearing them first costs more than a poll */
    w.handles = eq_handles;
    w.size = size;
    w.event = event;
    w.queues = queues;
    uint64_t epoch = atomic_load_explicit(&p->epoch, memory_order_acquire);
    int rc = PTL_OK;
    if (!recall_queues(&w, epoch)) {
        rc = find_queues(&w);
        if (rc != PTL_OK) {
            return rc;
        }
        remember_queues(&w, epoch);
    }
    if (timeout == 0) {
        rc = nic_look(w.nic, take_one, &w, all_empty(&w)) ? PTL_OK : PTL_EQ_EMPTY;
    } else {
        int64_t ns = timeout == PTL_TIME_FOREVER ? -1 : (int64_t)timeout * 1000000;
        rc = nic_wait_abort(w.nic, take_one, &w, ns, PTL_EQ_EMPTY);
    }
    if (rc != PTL_OK) {
        return rc;
    }
    *which = w.which;
    return w.rc;
}
