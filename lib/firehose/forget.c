/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is gone: units are unpinned, peers told to give up theirs, units of peers given up,
 * and requests begun anew that came meanwhile. All of that happens in polls, as pins for peers do.
 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pw_firehose_forget(struct pw_firehose *f, uint64_t addr, uint64_t len,
                       pw_firehose_forgotten done, void *context)
{
    struct forgetting *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return -ENOMEM;
    }
    *g = (struct forgetting){.addr = addr, .len = len, .done = done, .context = context};
    mutex_take(&f->lock);
    int rc = pin_forget(f->pin, addr, len, false, &g->when);
    firehose_wake(f);
    mutex_give(&f->lock);
    if (rc == 0 && firehose_in_callback == 0) {
        firehose_run(f);
    }
    mutex_take(&f->lock);
    if (rc == 0 && !pin_forgotten(f->pin, addr, len, g->when)) {
        list_push_back(&f->forgets, &g->link);
        atomic_fetch_add(&f->later, 1);
        rc = PW_FIREHOSE_LATER;
    }
    mutex_give(&f->lock);
    if (rc != PW_FIREHOSE_LATER) {
        free(g);
    }
    return rc;
}

/* Unpins one unit that was forgotten; false: there is none. */
static bool unpin_one(struct pw_firehose *f)
{
    struct pin_range range;
    mutex_take(&f->lock);
    struct pin_entry *unit = pin_gone_next(f->pin, &range);
    mutex_give(&f->lock);
    if (unit == NULL) {
        return false;
    }
    struct pw_firehose_region region = {.addr = range.addr, .len = range.len};
    memcpy(region.handle, range.handle, sizeof(region.handle));
    firehose_move(f, &region, 1, NULL, 0);
    mutex_take(&f->lock);
    pin_gone(f->pin, unit);
    /* moves of peers may have waited for this */
    atomic_store_explicit(&f->work, true, memory_order_release);
    firehose_wake(f);
    mutex_give(&f->lock);
    return true;
}

/* Tells one peer to give up units; false: there is none to tell, or memory is short. */
static bool revoke_some(struct pw_firehose *f)
{
    unsigned char *bytes = malloc(f->config.max_message), *at;
    struct pin_range *ranges = calloc(f->units_most + 1, sizeof(*ranges));
    struct message m = {.type = MESSAGE_REVOKE};
    uint32_t peer;
    if (bytes != NULL && ranges != NULL) {
        mutex_take(&f->lock);
        m.pin_count = pin_revoke_next(f->pin, &peer, ranges, f->units_most);
        m.token = m.pin_count > 0 ? ++f->token : 0;
        mutex_give(&f->lock);
    }
    if (m.pin_count > 0) {
        at = wire_write(bytes, &m);
        for (uint32_t i = 0; i < m.pin_count; i++) {
            at = wire_put(at, &ranges[i], false);
        }
        firehose_send(f, peer, bytes, wire_size(&m));
    }
    free(bytes);
    free(ranges);
    return m.pin_count > 0;
}

/* Sends one move that gives up units that were revoked; false: there are none, or memory is
 * short. */
static bool give_up(struct pw_firehose *f)
{
    struct call *c = calloc(1, sizeof(*c));
    void *message = NULL;
    size_t length;
    if (c == NULL) {
        return false;
    }
    list_init(&c->alive);
    mutex_take(&f->lock);
    int rc = pin_give_up(f->pin, &c->engine, f->units_most);
    unsigned node = c->engine.node;
    if (rc == PIN_SENT) {
        list_push_back(&f->giving, &c->alive);
        message = firehose_move_message(f, c, &length);
    }
    mutex_give(&f->lock);
    if (rc != PIN_SENT) {
        free(c);
        return false;
    }
    firehose_send_move(f, node, message, length);
    return true;
}

/* Does one thing that follows from memory that is gone; false: there is nothing that can be done
 * now. */
bool firehose_forget_step(struct pw_firehose *f)
{
    mutex_take(&f->lock);
    bool due = pin_gone_due(f->pin);
    mutex_give(&f->lock);
    if (!due || unpin_one(f) || revoke_some(f) || give_up(f)) {
        return due;
    }
    atomic_store(&f->short_of_memory, true);
    return false;
}

/* ---- Requests that begin anew ---- */

/* Puts a call among those that begin anew. The caller holds the lock. */
static void wait_anew(struct pw_firehose *f, struct call *c)
{
    list_push_back(&f->restarts, &c->link);
    atomic_fetch_add(&f->later, 1);
}

/* Called for a remote call whose request has ended with PIN_RESTART. */
void firehose_restart(struct pw_firehose *f, struct call *c)
{
    mutex_take(&f->lock);
    c->error = 0;
    c->asked = c->done = c->began = false;
    wait_anew(f, c);
    firehose_wake(f);
    mutex_give(&f->lock);
}

/* Goes on with the request of a call that begins anew, and returns a step of the engine or an
 * error. */
static int begin_anew(struct pw_firehose *f, struct call *c)
{
    unsigned node = c->user->node;
    if (f->config.patience > 0 && c->polls++ >= f->config.patience) {
        if (c->began) {
            pin_cancel(f->pin, &c->engine);
        }
        return -ETIMEDOUT;
    }
    if (c->began && c->yields && pin_winner(f->pin, node)) {
        return PIN_YIELD;
    }
    int step = c->began ? pin_again(f->pin, &c->engine)
                        : pin_begin(f->pin, &c->engine, node, c->addr, c->len);
    c->began = true;
    c->yields = step == PIN_YIELD;
    return step;
}

/* Goes on once with each call that begins anew; true: some of them have ended. */
static bool restart_all(struct pw_firehose *f)
{
    bool ended = false;
    mutex_take(&f->lock);
    for (unsigned n = list_count(&f->restarts); n > 0 && atomic_load(&f->alarms) == 0; n--) {
        struct list *at = list_pop_front(&f->restarts);
        if (at == NULL) {
            break; /* another thread has it */
        }
        struct call *c = container_of(at, struct call, link);
        unsigned node = c->user->node;
        size_t length;
        list_init(&c->link);
        atomic_fetch_sub(&f->later, 1);
        int step = begin_anew(f, c);
        if (step == PIN_AGAIN || step == PIN_YIELD) {
            wait_anew(f, c);
        } else if (step == PIN_SENT) {
            void *message = firehose_move_message(f, c, &length);
            mutex_give(&f->lock);
            firehose_send_move(f, node, message, length);
            mutex_take(&f->lock);
        } else if (step <= PIN_DONE) {
            c->error = step;
            c->done = ended = true;
            list_push_back(&f->due, &c->link);
        }
        firehose_wake(f);
    }
    if (ended || !list_empty(&f->restarts)) {
        atomic_store_explicit(&f->work, true, memory_order_release);
    }
    mutex_give(&f->lock);
    return ended;
}

/* Takes the calls of pw_firehose_forget() for which nothing is pinned any more out of the list. */
static void take_forgotten(struct pw_firehose *f, struct list *ended)
{
    struct list *at = f->forgets.next;
    while (at != &f->forgets) {
        struct forgetting *g = container_of(at, struct forgetting, link);
        at = at->next;
        if (pin_forgotten(f->pin, g->addr, g->len, g->when)) {
            list_remove(&g->link);
            list_push_back(ended, &g->link);
            atomic_fetch_sub(&f->later, 1);
        }
    }
}

/* Calls back for memory that is not pinned any more, and goes on with requests that begin anew;
 * true: some of them have ended. */
bool firehose_forget_ended(struct pw_firehose *f)
{
    struct list ended, *at;
    if (atomic_exchange(&f->short_of_memory, false)) {
        atomic_store_explicit(&f->work, true, memory_order_release);
    }
    if (atomic_load(&f->later) == 0) {
        return false;
    }
    list_init(&ended);
    mutex_take(&f->lock);
    take_forgotten(f, &ended);
    bool restarts = !list_empty(&f->restarts);
    mutex_give(&f->lock);
    while ((at = list_pop_front(&ended)) != NULL) {
        struct forgetting *g = container_of(at, struct forgetting, link);
        if (g->done != NULL) {
            firehose_in_callback++;
            g->done(g->context);
            firehose_in_callback--;
        }
        free(g);
    }
    return restarts && restart_all(f);
}

int firehose_take_revoke(struct pw_firehose *f, unsigned node, const struct pin_range *ranges,
                         uint32_t count)
{
    mutex_take(&f->lock);
    int rc = pin_revoked(f->pin, node, ranges, count);
    mutex_give(&f->lock);
    return rc;
}

void firehose_forget_free(struct pw_firehose *f)
{
    struct list *at;
    while ((at = list_pop_front(&f->giving)) != NULL) {
        struct call *c = container_of(at, struct call, alive);
        pin_gave(&c->engine);
        free(c);
    }
    while ((at = list_pop_front(&f->forgets)) != NULL) {
        free(container_of(at, struct forgetting, link));
    }
}
