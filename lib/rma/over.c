/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How operations begin and end: counting, failures, requests, flushes. C1 to C7 are in inside.h.
 *
 *      begin ──► issued + 1 ──► Portals ──► ack or reply ──┬──► success + 1
 *                                                          └──► failure + 1, and an event
 *      who takes the event      notes the error, then success + 1, failure - 1
 *      event of a request       parts - 1
 *      flush                    waits until success = issued, which does not move; on mapped
 *                               memory, a fence
 *
 * What Portals refuses at once counts as a message that has failed.
 */
#include "inside.h"

#include <sched.h>

static int errno_of_failure(ptl_ni_fail_t fail)
{
    switch (fail) {
    case PTL_NI_UNDELIVERABLE:
        return -EPIPE;
    case PTL_NI_DROPPED:
        return -ESTALE;
    case PTL_NI_PT_DISABLED:
        return -ENOBUFS;
    case PTL_NI_OP_VIOLATION:
        return -EACCES;
    case PTL_NI_PERM_VIOLATION:
        return -EPERM;
    case PTL_NI_SEGV:
        return -EFAULT;
    default:
        return -EIO;
    }
}

/* ---- Errors: the first one stays ---- */

static void note(_Atomic int *error, int code)
{
    int none = 0;
    atomic_compare_exchange_strong(error, &none, code);
}

void error_note(struct request *request, struct pw_rma_peer *peer, int code)
{
    if (request != NULL) {
        note(&request->error, code);
    } else {
        note(&peer->error, code);
        note(&peer->rma->error, code);
    }
}

/* ---- Events ---- */

/* Counts a message that has failed as over (C1). */
static void failed(struct counter *c, bool counted)
{
    PtlCTInc(c->ct, (ptl_ct_event_t){.success = 1});
    if (counted) {
        PtlCTInc(c->ct, (ptl_ct_event_t){.failure = (ptl_size_t)-1});
    }
}

static void take(void *owner, const ptl_event_t *event)
{
    struct rail *rail = owner;
    if (event->type == PTL_EVENT_PUT) {
        call_answered(rail, event);
        return;
    }
    if (event->type != PTL_EVENT_ACK && event->type != PTL_EVENT_REPLY) {
        return; /* a SEND that failed: its ACK or REPLY tells it, too */
    }
    uintptr_t user = (uintptr_t)event->user_ptr;
    uintptr_t what = user & (USER_REQUEST | USER_NOTIFIED | USER_CALL);
    void *whose = (char *)event->user_ptr - what;
    if (what == USER_CALL) {
        bool fails = event->ni_fail_type != PTL_NI_OK;
        struct counter *c = call_told(whose, fails ? errno_of_failure(event->ni_fail_type) : 0);
        if (fails) {
            failed(c, true);
        }
        atomic_fetch_sub(&rail->told, 1);
        return;
    }
    struct request *request = (what & USER_REQUEST) != 0 ? whose : NULL;
    struct pw_rma_peer *peer = request == NULL ? whose : NULL;
    if (event->ni_fail_type != PTL_NI_OK) {
        int code = errno_of_failure(event->ni_fail_type);
        /* of notified messages the entry for those that find no region refuses all */
        error_note(request, peer, code == -EACCES && (what & USER_NOTIFIED) != 0 ? -ESTALE : code);
        failed(request != NULL ? request->counter : &rail->counters[peer->number % COUNTERS], true);
    }
    if (request != NULL) {
        KILL_POINT("rma-told");
        atomic_fetch_sub(&rail->told, 1);
        atomic_fetch_sub(&request->parts, 1);
    }
}

/* Takes one event, if `wait` after waiting for it. The caller has the queue's lock. Who waits while
 * there are calls asks for their targets now and then, without the lock (call.h, D3). */
static int one_event(struct rail *rail, bool wait)
{
    bool asks = wait && rail->calls != NULL;
    int rc = queue_event(&rail->queue, !wait ? 0 : asks ? ASK_MS : PTL_TIME_FOREVER, take, rail);
    if (asks && rc == -EAGAIN) {
        pthread_mutex_unlock(&rail->queue.lock);
        calls_ask(rail);
        pthread_mutex_lock(&rail->queue.lock);
        rc = 0;
    }
    return rc;
}

int rail_event(struct rail *rail)
{
    pthread_mutex_lock(&rail->queue.lock);
    int rc = one_event(rail, true);
    pthread_mutex_unlock(&rail->queue.lock);
    return rc;
}

/* Takes events until none of the counter's failures is left. */
static int take_failures(struct rail *rail, struct counter *c)
{
    ptl_ct_event_t value;
    int rc = 0;
    pthread_mutex_lock(&rail->queue.lock);
    while (rc == 0 && PtlCTGet(c->ct, &value) == PTL_OK && value.failure != 0) {
        rc = one_event(rail, true);
    }
    pthread_mutex_unlock(&rail->queue.lock);
    return rc;
}

/* ---- Counters ---- */

bool counter_is_over(struct counter *c)
{
    ptl_ct_event_t value;
    return PtlCTGet(c->ct, &value) == PTL_OK && value.success == atomic_load(&c->issued);
}

int counter_wait(struct rail *rail, struct counter *c, uint64_t messages)
{
    if (atomic_load_explicit(&c->over, memory_order_acquire) >= messages) {
        return 0;
    }
    for (;;) {
        ptl_ct_event_t value;
        if (PtlCTWait(c->ct, messages, &value) != PTL_OK) {
            return -ECANCELED;
        }
        if (value.success >= messages) {
            /* An older value that takes the place of a newer one makes somebody look again. */
            atomic_store_explicit(&c->over, value.success, memory_order_release);
            return 0;
        }
        if (take_failures(rail, c) != 0) {
            return -ECANCELED;
        }
    }
}

/* ---- Operations ---- */

int operation_check(const struct pw_rma_key *key, const void *local, size_t length, uint64_t offset,
                    unsigned access)
{
    if (offset > key->is.length || length > key->is.length - offset ||
        (uintptr_t)local + length < length) {
        return -EINVAL;
    }
    return (key->is.access & access) == access ? 0 : -EACCES;
}

void operation_begin(struct operation *o, struct pw_rma_key *key, struct pw_rma_request *request)
{
    struct request *r = (struct request *)request;
    *o = (struct operation){.key = key,
                            .request = r,
                            .user_ptr = key->peer,
                            .md = key->counter->quiet,
                            .tells = r != NULL};
    if (r != NULL) {
        r->rail = key->rail;
        r->counter = key->counter;
        atomic_store(&r->parts, 1);
        atomic_store(&r->error, 0);
        o->user_ptr = (char *)r + USER_REQUEST;
        o->md = key->counter->telling;
    }
}

/* Takes events of requests until there is room for one of this message's. */
static int room_to_tell(struct rail *rail)
{
    int rc = 0;
    if (atomic_fetch_add(&rail->told, 1) + 1 > TOLD) {
        pthread_mutex_lock(&rail->queue.lock);
        while (rc == 0 && atomic_load(&rail->told) > TOLD) {
            rc = one_event(rail, true);
        }
        pthread_mutex_unlock(&rail->queue.lock);
    }
    return rc;
}

/* A message that was not sent is over. */
static void not_sent(struct operation *o)
{
    failed(o->key->counter, false);
    if (o->tells) {
        atomic_fetch_sub(&o->key->rail->told, 1);
    }
    if (o->request != NULL) {
        atomic_fetch_sub(&o->request->parts, 1);
    }
}

/* Waits until no flush of the counter keeps new messages away (C7), and helps it to end. */
static int wait_for_flushes(struct rail *rail, struct counter *c)
{
    int rc = 0;
    while (rc == 0 && atomic_load(&c->draining) != 0) {
        rc = counter_wait(rail, c, atomic_load(&c->issued));
        sched_yield();
    }
    return rc;
}

int operation_message(struct operation *o)
{
    struct rail *rail = o->key->rail;
    struct counter *c = o->key->counter;
    int rc = 0;
    if (atomic_load_explicit(&c->draining, memory_order_relaxed) != 0 && !o->passes) {
        rc = wait_for_flushes(rail, c);
        if (rc != 0) {
            return rc;
        }
    }
    if (o->request != NULL) {
        atomic_fetch_add(&o->request->parts, 1);
    }
    if (o->tells) {
        rc = room_to_tell(rail);
    }
    uint64_t n = atomic_fetch_add(&c->issued, 1) + 1;
    o->number = n;
    KILL_POINT("rma-counted");
    if (rc == 0 && n > IN_FLIGHT &&
        n - IN_FLIGHT > atomic_load_explicit(&c->over, memory_order_relaxed)) {
        /* A message waits only for such as were begun before it. */
        rc = counter_wait(rail, c, n - IN_FLIGHT / 2);
    }
    if (rc != 0) {
        not_sent(o);
    }
    return rc;
}

void operation_sent(struct operation *o, int ptl_code, bool lends)
{
    if (ptl_code != PTL_OK) {
        int code = ptl_code == PTL_NO_SPACE      ? -ENOMEM
                   : ptl_code == PTL_ARG_INVALID ? -EIO
                                                 : -ECANCELED;
        error_note(o->request, o->key->peer, code);
        not_sent(o);
    } else if (lends) {
        atomic_store_explicit(&o->key->counter->lent, o->number, memory_order_release);
    }
}

void operation_failed(struct operation *o, int code)
{
    error_note(o->request, o->key->peer, code);
}

void operation_begun(struct operation *o)
{
    KILL_POINT("rma-begun");
    if (o->request != NULL) {
        atomic_fetch_sub(&o->request->parts, 1);
    }
}

/* ---- Requests ---- */

/* Takes events, and if `wait` waits for them, until the request is over. 0, -EAGAIN: there is none
 * left and the request is not over, or -ECANCELED. */
static int request_events(struct request *r, bool wait)
{
    int rc = 0;
    if (atomic_load(&r->parts) != 0) {
        pthread_mutex_lock(&r->rail->queue.lock);
        while (atomic_load(&r->parts) != 0 && rc == 0) {
            rc = one_event(r->rail, wait);
        }
        pthread_mutex_unlock(&r->rail->queue.lock);
    }
    return rc;
}

int pw_rma_test(struct pw_rma_request *request, bool *over)
{
    struct request *r = (struct request *)request;
    int rc = request_events(r, false);
    *over = atomic_load(&r->parts) == 0;
    return *over ? atomic_load(&r->error) : rc == -EAGAIN ? 0 : rc;
}

int pw_rma_wait(struct pw_rma_request *request)
{
    struct request *r = (struct request *)request;
    int rc = request_events(r, true);
    return atomic_load(&r->parts) == 0 ? atomic_load(&r->error) : rc;
}

/* ---- Flushes ---- */

/* Waits until all messages of a counter are over, and says whether there was a moment at which none
 * was under way (C7). */
static int counter_reach(struct rail *rail, struct counter *c, bool *none)
{
    uint64_t n = atomic_load(&c->issued);
    int rc = counter_wait(rail, c, n);
    *none = rc != 0 || atomic_load(&c->issued) == n;
    return rc;
}

static int counter_flush(struct rail *rail, struct counter *c)
{
    uint64_t lent = atomic_load(&c->lent);
    bool none;
    KILL_POINT("rma-flush");
    int rc = counter_reach(rail, c, &none);
    if (!none) {
        atomic_fetch_add(&c->draining, 1);
        while (!none) {
            rc = counter_reach(rail, c, &none);
        }
        atomic_fetch_sub(&c->draining, 1);
    }
    if (rc == 0 && lent != 0) {
        atomic_compare_exchange_strong(&c->lent, &lent, 0);
    }
    return rc;
}

int pw_rma_flush(struct pw_rma_peer *peer)
{
    struct pw_rma *rma = peer->rma;
    int rc = 0;
    for (unsigned i = 0; i < rma->count && rc == 0; i++) {
        struct rail *rail = &rma->rails[i];
        rc = counter_flush(rail, &rail->counters[peer->number % COUNTERS]);
        if (rc == 0) {
            rc = calls_wait(peer, i);
        }
    }
    int direct = direct_flush(peer);
    if (rc == 0 && atomic_load_explicit(&peer->error, memory_order_relaxed) != 0) {
        rc = atomic_exchange(&peer->error, 0);
    }
    return rc != 0 ? rc : direct;
}

int pw_rma_flush_all(struct pw_rma *rma)
{
    int rc = 0;
    for (unsigned i = 0; i < rma->count; i++) {
        for (int c = 0; c < COUNTERS && rc == 0; c++) {
            rc = counter_flush(&rma->rails[i], &rma->rails[i].counters[c]);
        }
        if (rc == 0) {
            rc = calls_wait_all(&rma->rails[i]);
        }
    }
    direct_flush_all(rma);
    return rc != 0 ? rc : atomic_exchange(&rma->error, 0);
}

/* Waits for the operations of a counter that have lent their buffers, and others with them. */
static void counter_flush_local(struct rail *rail, struct counter *c)
{
    if (atomic_load(&c->lent) != 0) {
        counter_flush(rail, c);
    }
}

void pw_rma_flush_local(struct pw_rma_peer *peer)
{
    for (unsigned i = 0; i < peer->rma->count; i++) {
        struct rail *rail = &peer->rma->rails[i];
        counter_flush_local(rail, &rail->counters[peer->number % COUNTERS]);
        calls_wait(peer, i);
    }
}

void pw_rma_flush_local_all(struct pw_rma *rma)
{
    for (unsigned i = 0; i < rma->count; i++) {
        for (int k = 0; k < COUNTERS; k++) {
            counter_flush_local(&rma->rails[i], &rma->rails[i].counters[k]);
        }
        calls_wait_all(&rma->rails[i]);
    }
}
