/* SPDX-License-Identifier: BSD-3-Clause */
/* Pins and releases. A pin that is a hit of one unit, and its release, take no lock. */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Counts one in the calling thread's stripe. */
static void count(struct pw_firehose *f, unsigned what, unsigned node)
{
    uint32_t slot = lock_slot != LOCK_SLOTS ? lock_slot : lock_take_slot();
    _Atomic uint64_t *at = &f->stripes[slot].count[what][node != f->config.self];
    if (slot != LOCK_SLOTS) {
        uint64_t before = atomic_load_explicit(at, memory_order_relaxed);
        atomic_store_explicit(at, before + 1, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(at, 1, memory_order_relaxed);
    }
}

static int refuse(struct pw_firehose *f, int error)
{
    mutex_take(&f->lock);
    pin_stats_of(f->pin)->refused++;
    mutex_give(&f->lock);
    return error;
}

static void set_state(struct pw_firehose_request *r, uint64_t state)
{
    __atomic_store_n(&r->internal[0], state, __ATOMIC_RELEASE);
}

static uint64_t state_of(const struct pw_firehose_request *r)
{
    return __atomic_load_n(&r->internal[0], __ATOMIC_ACQUIRE);
}

void call_free(struct call *c)
{
    list_remove(&c->alive);
    free(c);
}

static void wait_changed(struct pw_firehose *f)
{
    f->sleepers++;
    condition_wait(&f->changed, &f->lock);
    f->sleepers--;
}

/* Waits while a watcher has seen that memory changes and has not said where. The caller holds the
 * lock, which is given meanwhile. */
void firehose_wait(struct pw_firehose *f)
{
    while (atomic_load(&f->alarms) > 0) {
        wait_changed(f);
    }
}

/* Begins a call for a pin that is no hit without the lock, and takes the lock. NULL if memory is
 * short; then it has not taken the lock. */
static struct call *call_begin(struct pw_firehose *f, struct pw_firehose_request *r)
{
    struct call *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    list_init(&c->link);
    list_init(&c->alive);
    c->user = r;
    r->internal[1] = (uint64_t)(uintptr_t)c;
    mutex_take(&f->lock);
    f->request_alloc++;
    list_push_back(&f->alive, &c->alive);
    firehose_wait(f);
    return c;
}

/* Checks whether the client may make this pin; returns 0 or a negative errno value. */
static int check(struct pw_firehose *f, unsigned node, bool remote,
                 const struct pw_firehose_request *r)
{
    if (firehose_in_callback > 0) {
        return refuse(f, -EDEADLK);
    }
    if (r == NULL || (remote && (node == f->config.self || node >= f->config.nodes))) {
        return refuse(f, -EINVAL);
    }
    return state_of(r) != R_FREE ? refuse(f, -EBUSY) : 0;
}

/* A pin that finds one unit with the whole range pinned takes it without the lock, and is counted
 * as `what`; false: there is none, and nothing was done. */
static bool fast(struct pw_firehose *f, unsigned what, unsigned node, uint64_t addr, uint64_t len,
                 struct pw_firehose_request *r)
{
    uint32_t generation;
    if (len == 0) {
        return false;
    }
    struct pin_entry *x = pin_take(f->pin, node, addr, len, &generation);
    if (x == NULL) {
        return false;
    }
    pin_entry_parts(x, &r->addr, &r->len, r->handle);
    r->node = node;
    r->internal[1] = (uint64_t)(uintptr_t)x;
    r->internal[2] = generation;
    set_state(r, R_FAST);
    count(f, what, node);
    return true;
}

/* Sets the request to the range that its call has pinned. The caller holds the lock. */
static void hold(struct pw_firehose_request *r, const struct call *c)
{
    pin_entry_parts(c->engine.uses[0].entry, &r->addr, &r->len, r->handle);
    r->addr = c->engine.addr;
    r->len = c->engine.len;
    r->node = c->engine.node;
    set_state(r, R_HELD);
}

/* Ends a call that has failed, and gives the lock, which the caller holds. */
static int fail(struct pw_firehose *f, struct call *c, int error)
{
    struct pw_firehose_request *r = c->user;
    call_free(c);
    r->internal[1] = 0;
    set_state(r, R_FREE);
    firehose_wake(f);
    mutex_give(&f->lock);
    return error;
}

/* Makes progress once. The caller holds the lock, which is given meanwhile. */
static void poll_once(struct pw_firehose *f)
{
    mutex_give(&f->lock);
    if (f->ops.poll != NULL) {
        firehose_in_callback++;
        f->ops.poll(f->config.client);
        firehose_in_callback--;
    }
    firehose_run(f);
    mutex_take(&f->lock);
}

/* Polls until the engine has decided on a request. The caller holds the lock; it is given during
 * the polls. */
static int gather(struct pw_firehose *f, struct call *c, int step)
{
    unsigned long polls = 0;
    while (step == PIN_AGAIN || step == PIN_YIELD) {
        if (f->config.patience > 0 && polls++ >= f->config.patience) {
            pin_cancel(f->pin, &c->engine);
            return -ETIMEDOUT;
        }
        firehose_wake(f); /* the request may have rolled back, so others may go on */
        if (step == PIN_YIELD) {
            while (pin_winner(f->pin, c->engine.node)) {
                /* the winner may be a request that begins anew, which has no thread of its own */
                if (list_empty(&f->restarts)) {
                    wait_changed(f);
                } else {
                    poll_once(f);
                }
            }
        } else {
            poll_once(f);
        }
        firehose_wait(f);
        step = pin_again(f->pin, &c->engine);
    }
    firehose_wake(f); /* the request may have been the winner, for which others wait */
    return step;
}

static void to_regions(struct pw_firehose_region *to, const struct pin_range *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i].addr = from[i].addr;
        to[i].len = from[i].len;
        memcpy(to[i].handle, from[i].handle, sizeof(to[i].handle));
    }
}

/* Memory for the units that a local request unpins and pins, in the form of the engine and in the
 * client's. That of a request in one or two pages is in the plan itself. */
enum { PLANNED = 4 };
struct plan {
    struct pin_range *ranges, few_ranges[PLANNED];
    struct pw_firehose_region *regions, few_regions[PLANNED];
};

static bool plan_open(struct plan *plan, size_t units)
{
    bool few = units <= PLANNED;
    plan->ranges = few ? plan->few_ranges : calloc(units, sizeof(*plan->ranges));
    plan->regions = few ? plan->few_regions : calloc(units, sizeof(*plan->regions));
    return plan->ranges != NULL && plan->regions != NULL;
}

static void plan_close(struct plan *plan)
{
    if (plan->ranges != plan->few_ranges) {
        free(plan->ranges);
        free(plan->regions);
    }
}

/* Unpins and pins units of this node for a local request. The caller holds the lock; it is given
 * meanwhile. */
static void pin_here(struct pw_firehose *f, struct call *c, const struct plan *plan)
{
    struct list ended;
    list_init(&ended);
    uint32_t u = pin_unpins(&c->engine, plan->ranges);
    uint32_t n = pin_pins(&c->engine, plan->ranges + u);
    mutex_give(&f->lock);
    to_regions(plan->regions, plan->ranges, u + n);
    int rc = firehose_move(f, plan->regions, u, plan->regions + u, n);
    for (uint32_t i = u; i < u + n; i++) {
        memcpy(plan->ranges[i].handle, plan->regions[i].handle, PW_FIREHOSE_HANDLE);
    }
    mutex_take(&f->lock);
    pin_finish(f->pin, f->config.self, c->engine.token, n > 0 ? rc : 0, plan->ranges + u, n,
               &ended);
    firehose_ended(f, &ended);
    /* moves of peers may have waited for this */
    atomic_store_explicit(&f->work, true, memory_order_release);
}

int pw_firehose_local_pin(struct pw_firehose *f, uint64_t addr, uint64_t len,
                          struct pw_firehose_request *r)
{
    unsigned self = f->config.self;
    int rc = check(f, self, false, r);
    if (rc != 0 || fast(f, COUNT_PIN, self, addr, len, r)) {
        return rc;
    }
    if (len > f->max_local_pin) {
        return refuse(f, -EMSGSIZE);
    }
    uint64_t page = f->config.page, pages = ((addr & (page - 1)) + len + page - 1) / page;
    size_t units = 2 * (f->config.flags & PW_FIREHOSE_REGIONS ? 1 : pages);
    struct plan plan;
    struct call *c = plan_open(&plan, units) ? call_begin(f, r) : NULL;
    rc = -ENOMEM;
    if (c != NULL) {
        c->local = true;
        rc = gather(f, c, pin_begin(f->pin, &c->engine, self, addr, len));
        if (rc == PIN_SENT) {
            pin_here(f, c, &plan);
        }
        while (rc > PIN_DONE && !c->done) {
            wait_changed(f);
        }
        rc = rc < 0 ? rc : c->error;
        if (rc == 0) {
            hold(r, c);
            mutex_give(&f->lock);
        } else {
            fail(f, c, rc);
        }
    }
    plan_close(&plan);
    firehose_run(f);
    return rc;
}

int pw_firehose_remote_pin(struct pw_firehose *f, unsigned node, uint64_t addr, uint64_t len,
                           unsigned flags, struct pw_firehose_request *r, pw_firehose_args args,
                           pw_firehose_completed completed, void *context)
{
    int rc = check(f, node, true, r);
    bool quiet = (flags & PW_FIREHOSE_RETURN_IF_PINNED) != 0;
    if (rc != 0) {
        return rc;
    }
    r->flags = flags;
    if (fast(f, COUNT_PIN, node, addr, len, r)) {
        if (!quiet && completed != NULL) {
            firehose_in_callback++;
            completed(context, r, 0, 1);
            firehose_in_callback--;
        }
        return 0;
    }
    unsigned char bytes[PW_FIREHOSE_ARGS];
    size_t args_length = 0, length = 0;
    if ((flags & PW_FIREHOSE_REMOTE_CALLBACK) && args != NULL) {
        firehose_in_callback++;
        args_length = args(context, bytes);
        firehose_in_callback--;
        if (args_length > sizeof(bytes)) {
            return refuse(f, -EMSGSIZE);
        }
    }
    struct call *c = call_begin(f, r);
    if (c == NULL) {
        return -ENOMEM;
    }
    set_state(r, R_AWAITED);
    r->node = node;
    c->flags = flags;
    c->completed = completed;
    c->context = context;
    c->args_length = args_length;
    c->addr = addr;
    c->len = len;
    memcpy(c->args, bytes, args_length);
    rc = gather(f, c, pin_begin(f->pin, &c->engine, node, addr, len));
    if (rc < 0) {
        return fail(f, c, rc);
    }
    if (rc == PIN_DONE) {
        c->local_hit = c->asked = true;
        c->completed = quiet ? NULL : completed;
        mutex_give(&f->lock);
        firehose_complete(f, c);
        return 0;
    }
    void *message = rc == PIN_SENT ? firehose_move_message(f, c, &length) : NULL;
    mutex_give(&f->lock);
    if (rc == PIN_SENT) {
        firehose_send_move(f, node, message, length);
    }
    return PW_FIREHOSE_LATER;
}

static int try_it(struct pw_firehose *f, unsigned node, bool remote, uint64_t addr, uint64_t len,
                  struct pw_firehose_request *r, unsigned what)
{
    int rc = check(f, node, remote, r);
    if (rc != 0) {
        return rc;
    }
    if (fast(f, what, node, addr, len, r)) {
        if (what == COUNT_PARTIAL) { /* no more than the pages that were asked for */
            uint64_t mask = f->config.page - 1;
            r->addr = addr & ~mask;
            r->len = ((addr + (len - 1)) | mask) + 1 - r->addr;
        }
        return 0;
    }
    struct call *c = call_begin(f, r);
    if (c == NULL) {
        return -ENOMEM;
    }
    rc = (what == COUNT_TRY ? pin_try : pin_partial)(f->pin, &c->engine, node, addr, len);
    if (rc != 0) {
        return fail(f, c, rc);
    }
    hold(r, c);
    mutex_give(&f->lock);
    return 0;
}

int pw_firehose_try_local_pin(struct pw_firehose *f, uint64_t addr, uint64_t len,
                              struct pw_firehose_request *r)
{
    return try_it(f, f->config.self, false, addr, len, r, COUNT_TRY);
}

int pw_firehose_partial_local_pin(struct pw_firehose *f, uint64_t addr, uint64_t len,
                                  struct pw_firehose_request *r)
{
    return try_it(f, f->config.self, false, addr, len, r, COUNT_PARTIAL);
}

int pw_firehose_try_remote_pin(struct pw_firehose *f, unsigned node, uint64_t addr, uint64_t len,
                               struct pw_firehose_request *r)
{
    return try_it(f, node, true, addr, len, r, COUNT_TRY);
}

int pw_firehose_partial_remote_pin(struct pw_firehose *f, unsigned node, uint64_t addr,
                                   uint64_t len, struct pw_firehose_request *r)
{
    return try_it(f, node, true, addr, len, r, COUNT_PARTIAL);
}

/* ---- Releases ---- */

static int release_fast(struct pw_firehose *f, struct pw_firehose_request *r)
{
    struct pin_entry *x = (struct pin_entry *)(uintptr_t)r->internal[1];
    uint32_t generation = (uint32_t)r->internal[2];
    int error;
    count(f, COUNT_RELEASE, r->node);
    if (pin_drop(f->pin, x, generation, &error)) {
        return error == 0 ? 0 : refuse(f, error);
    }
    mutex_take(&f->lock);
    error = pin_drop_locked(f->pin, x, generation);
    firehose_wake(f);
    mutex_give(&f->lock);
    return error;
}

static int release_one(struct pw_firehose *f, struct pw_firehose_request *r)
{
    uint64_t state = R_FAST;
    if (__atomic_compare_exchange_n(&r->internal[0], &state, R_FREE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return release_fast(f, r);
    }
    if (state != R_HELD) {
        return refuse(f, state == R_AWAITED ? -EBUSY : -EALREADY);
    }
    struct call *c = (struct call *)(uintptr_t)r->internal[1];
    if (!__atomic_compare_exchange_n(&r->internal[0], &state, R_FREE, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        return refuse(f, -EALREADY);
    }
    mutex_take(&f->lock);
    pin_release(f->pin, &c->engine);
    call_free(c);
    firehose_wake(f);
    mutex_give(&f->lock);
    return 0;
}

int pw_firehose_release(struct pw_firehose *f, struct pw_firehose_request *const *requests,
                        size_t n)
{
    int error = 0;
    for (size_t i = 0; i < n; i++) {
        int rc = requests[i] != NULL ? release_one(f, requests[i]) : refuse(f, -EINVAL);
        error = error == 0 ? rc : error;
    }
    return error;
}
