/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notified puts and gets, and the requests of their targets. A request looks for notices of its
 * region (notice.c) when its owner asks.
 *
 * Who waits for one process only asks it now and then whether it still is (a probe): a message of
 * no bytes that no entry takes. Its failure says that the process has ended, or, -ESTALE, that it
 * has not. A stopped process leaves the probe under way.
 */
#include "inside.h"

#include <stdlib.h>

enum { LOOK_MS = 200 };

/* A probe outlives its request if it is under way when that is closed. */
struct probe {
    struct request request;
    struct pw_rma_key key; /* of no region: the source, and match bits that none has */
    struct probe *next;
};

struct pw_notify {
    struct pw_rma_region *region;
    struct pw_notice wanted;
    uint32_t count;
    struct probe *probe; /* NULL: any process may be the source */
    atomic_bool asking;  /* a thread uses the probe */
    /* under the lock of the rail's queue of notices */
    uint32_t left;
    struct pw_notice last;
};

/* ---- Origins ---- */

static int send_notified(struct operation *o, bool get, uint64_t local, size_t length,
                         uint64_t offset, uint32_t tag)
{
    const struct pw_rma_key *key = o->key;
    ptl_match_bits_t bits = notify_bits(key->is.bits) | tag;
    o->user_ptr = (char *)o->user_ptr + USER_NOTIFIED;
    int rc = operation_message(o);
    if (rc == 0 && get) {
        operation_sent(
            o,
            PtlGet(o->md, local, length, key->is.id, key->is.notify_pt, bits, offset, o->user_ptr),
            length > 0);
    } else if (rc == 0) {
        operation_sent(o,
                       PtlPut(o->md, local, length, PTL_ACK_REQ, key->is.id, key->is.notify_pt,
                              bits, offset, o->user_ptr, 0),
                       length > key->rail->limits.max_volatile_size);
    }
    return rc;
}

/* What one message cannot bring goes ahead of it, and is waited for: the notice is for all. */
static int send_ahead(struct pw_rma_key *key, bool get, uint64_t local, size_t length,
                      uint64_t offset)
{
    struct pw_rma_request request;
    int rc = get ? pw_rma_get(key, (void *)local, length, offset, &request)
                 : pw_rma_put(key, (const void *)local, length, offset, &request);
    return rc != 0 ? rc : pw_rma_wait(&request);
}

static int notified(struct pw_rma_key *key, bool get, const void *local, size_t length,
                    uint64_t offset, uint32_t tag, struct pw_rma_request *request)
{
    struct operation o;
    uint64_t ahead = 0, most = key->rail->limits.max_msg_size;
    int rc = operation_check(key, local, length, offset,
                             PW_RMA_NOTIFY | (get ? PW_RMA_READ : PW_RMA_WRITE));
    if (rc != 0 || tag > PW_NOTIFY_TAG_MAX) {
        return rc != 0 ? rc : -EINVAL;
    }
    operation_begin(&o, key, request);
    if (length > most) {
        ahead = (length - 1) / most * most;
        rc = send_ahead(key, get, (uintptr_t)local, ahead, offset);
    }
    if (rc == 0) {
        rc = send_notified(&o, get, (uintptr_t)local + ahead, length - ahead, offset + ahead, tag);
    } else if (rc != -ECANCELED) {
        operation_failed(&o, rc);
        rc = 0;
    }
    operation_begun(&o);
    return rc;
}

int pw_notify_put(struct pw_rma_key *key, const void *from, size_t length, uint64_t offset,
                  uint32_t tag, struct pw_rma_request *request)
{
    return notified(key, false, from, length, offset, tag, request);
}

int pw_notify_get(struct pw_rma_key *key, void *to, size_t length, uint64_t offset, uint32_t tag,
                  struct pw_rma_request *request)
{
    return notified(key, true, to, length, offset, tag, request);
}

/* ---- Probes ---- */

static bool probe_is_over(const struct probe *p)
{
    return atomic_load(&p->request.parts) == 0;
}

void probe_begin(struct probe *p)
{
    struct operation o;
    operation_begin(&o, &p->key, (struct pw_rma_request *)&p->request);
    o.passes = true; /* who waits sends it, perhaps in a flush */
    if (operation_message(&o) == 0) {
        operation_sent(
            &o, PtlPut(o.md, 0, 0, PTL_ACK_REQ, p->key.is.id, p->key.is.pt, 0, 0, o.user_ptr, 0),
            false);
    }
    operation_begun(&o);
}

/* Whether the source is known to have ended; asks it again if it has answered. */
static bool source_has_ended(struct pw_notify *n)
{
    struct probe *p = n->probe;
    bool ended;
    if (p == NULL || atomic_exchange(&n->asking, true)) {
        return false; /* any process may come; or another thread asks */
    }
    if (probe_over(p, &ended) && !ended) {
        probe_begin(p);
    }
    atomic_store(&n->asking, false);
    return ended;
}

struct probe *probe_make(struct rail *rail, ptl_process_t source)
{
    struct probe *p = calloc(1, sizeof(*p));
    if (p != NULL) {
        p->request.rail = rail;
        p->key = (struct pw_rma_key){.rail = rail, .counter = &rail->counters[0]};
        p->key.is.id = source;
        p->key.is.pt = rail->pt;
    }
    return p;
}

bool probe_over(struct probe *p, bool *ended)
{
    bool over;
    pw_rma_test((struct pw_rma_request *)&p->request, &over);
    *ended = over && atomic_load(&p->request.error) == -EPIPE;
    return over;
}

ptl_process_t probe_target(const struct probe *p)
{
    return p->key.is.id;
}

void probe_leave(struct rail *rail, struct probe *p)
{
    bool over;
    pthread_mutex_lock(&rail->queue.lock);
    p->next = rail->probes;
    rail->probes = p;
    pthread_mutex_unlock(&rail->queue.lock);
    pw_rma_test((struct pw_rma_request *)&p->request, &over); /* takes what has come */
    probes_free(rail, false);
}

void probes_free(struct rail *rail, bool all)
{
    pthread_mutex_lock(&rail->queue.lock);
    for (struct probe **at = &rail->probes; *at != NULL;) {
        struct probe *p = *at;
        if (all || probe_is_over(p)) {
            *at = p->next;
            free(p);
        } else {
            at = &p->next;
        }
    }
    pthread_mutex_unlock(&rail->queue.lock);
}

/* ---- Requests ---- */

static bool one_process(const struct pw_notify *n)
{
    const ptl_process_t *s = &n->wanted.source;
    return n->region->rma->logical ? s->rank != PTL_RANK_ANY
                                   : s->phys.nid != PTL_NID_ANY && s->phys.pid != PTL_PID_ANY;
}

int pw_notify_open(struct pw_rma_region *region, const ptl_process_t *source, uint32_t tag,
                   uint32_t count, struct pw_notify **notify)
{
    if ((region->access & PW_RMA_NOTIFY) == 0 || count == 0 ||
        (tag > PW_NOTIFY_TAG_MAX && tag != PW_NOTIFY_TAG_ANY)) {
        return -EINVAL;
    }
    struct pw_notify *n = calloc(1, sizeof(*n));
    if (n == NULL) {
        return -ENOMEM;
    }
    n->region = region;
    n->wanted.tag = tag;
    n->count = count;
    if (source != NULL) {
        n->wanted.source = *source;
    } else if (region->rma->logical) {
        n->wanted.source.rank = PTL_RANK_ANY;
    } else {
        n->wanted.source.phys.nid = PTL_NID_ANY;
        n->wanted.source.phys.pid = PTL_PID_ANY;
    }
    if (one_process(n) && (n->probe = probe_make(region->rail, n->wanted.source)) == NULL) {
        free(n);
        return -ENOMEM;
    }
    atomic_fetch_add(&region->watchers, 1);
    *notify = n;
    return 0;
}

static pthread_mutex_t *lock_of(const struct pw_notify *n)
{
    return &notices_queue(n->region->rail)->lock;
}

int pw_notify_start(struct pw_notify *notify)
{
    pthread_mutex_lock(lock_of(notify));
    bool started = notify->left != 0;
    if (!started) {
        notify->left = notify->count;
    }
    pthread_mutex_unlock(lock_of(notify));
    return started ? -EINVAL : 0;
}

/* Takes the notices that are there. */
static void gather(struct pw_notify *n)
{
    while (n->left > 0 && notices_take(n->region, &n->wanted, &n->last)) {
        n->left--;
    }
}

/* Looks for notices, for up to `wait` ms. The caller has the lock. */
static int look(struct pw_notify *n, ptl_time_t wait)
{
    int rc = 0;
    gather(n);
    if (n->left > 0) {
        rc = notices_look(n->region->rail, wait);
        gather(n);
    }
    return rc;
}

int pw_notify_test(struct pw_notify *notify, bool *over, struct pw_notice *last)
{
    pthread_mutex_lock(lock_of(notify));
    int rc = look(notify, 0);
    *over = notify->left == 0;
    if (*over && last != NULL) {
        *last = notify->last;
    }
    pthread_mutex_unlock(lock_of(notify));
    return *over || rc == -EAGAIN ? 0 : rc;
}

int pw_notify_wait(struct pw_notify *notify, struct pw_notice *last)
{
    int rc = 0;
    pthread_mutex_lock(lock_of(notify));
    while (rc == 0) {
        rc = look(notify, LOOK_MS);
        if (notify->left == 0) {
            break;
        }
        if (rc == -EAGAIN) {
            pthread_mutex_unlock(lock_of(notify));
            rc = source_has_ended(notify) ? -EPIPE : 0;
            pthread_mutex_lock(lock_of(notify));
        }
    }
    if (rc == -EPIPE) {
        look(notify, 0); /* what came before its end */
    }
    bool over = notify->left == 0;
    if (over && last != NULL) {
        *last = notify->last;
    }
    pthread_mutex_unlock(lock_of(notify));
    return over ? 0 : rc;
}

void pw_notify_close(struct pw_notify *notify)
{
    if (notify->probe != NULL) {
        probe_leave(notify->region->rail, notify->probe);
    }
    atomic_fetch_sub(&notify->region->watchers, 1);
    free(notify);
}
