/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and handles messages: pins for peers, remote callbacks, answers, and the completion of this
 * node's requests. When a message arrives it is only read and queued; the rest happens in a poll,
 * since a pin takes longer than the client's network handler may, unless the client allows that
 * (PW_FIREHOSE_IN_HANDLER).
 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Thread_local unsigned firehose_in_callback __attribute__((tls_model("initial-exec")));

static void range_to_region(struct pw_firehose_region *to, const struct pin_range *from)
{
    to->addr = from->addr;
    to->len = from->len;
    memcpy(to->handle, from->handle, sizeof(to->handle));
}

/* Wakes all threads that wait, and notes that a poll has something to do if units are to be
 * unpinned, revoked or given up. The caller holds the lock. */
void firehose_wake(struct pw_firehose *f)
{
    if (pin_gone_due(f->pin)) {
        atomic_store_explicit(&f->work, true, memory_order_release);
    }
    for (unsigned n = f->sleepers; n > 0; n--) {
        condition_signal(&f->changed);
    }
}

int firehose_move(struct pw_firehose *f, const struct pw_firehose_region *unpins, size_t u,
                  struct pw_firehose_region *pins, size_t n)
{
    if (u + n == 0) {
        return 0;
    }
    firehose_watch(f, pins, n);
    firehose_in_callback++;
    int rc = f->ops.move(f->config.client, unpins, u, pins, n);
    firehose_in_callback--;
    rc = rc > 0 ? -rc : rc;
    return rc == PIN_RESTART ? -EINTR : rc; /* that one is the engine's own */
}

void firehose_send(struct pw_firehose *f, unsigned node, const void *bytes, size_t length)
{
    firehose_in_callback++;
    int rc = f->ops.send(f->config.client, node, bytes, length);
    firehose_in_callback--;
    if (rc != 0) {
        pw_firehose_peer_dead(f, node);
    }
}

/* Takes the requests that have ended: a remote one becomes due, and firehose_run() completes it or
 * first asks for its remote callback. */
void firehose_ended(struct pw_firehose *f, struct list *ended)
{
    struct list *at;
    while ((at = list_pop_front(ended)) != NULL) {
        struct pin_request *r = container_of(at, struct pin_request, ended);
        struct call *c = container_of(r, struct call, engine);
        if (c->user == NULL) {
            pin_gave(r);
            call_free(c);
            continue;
        }
        c->error = r->error;
        c->done = true;
        if (!c->local) {
            list_push_back(&f->due, &c->link);
            atomic_store_explicit(&f->work, true, memory_order_release);
        }
    }
    firehose_wake(f);
}

/* Makes the message of a committed request, which the caller sends and frees; NULL: memory is
 * short. The caller holds the lock: as soon as it is given, the request may end. */
void *firehose_move_message(struct pw_firehose *f, struct call *c, size_t *length)
{
    struct message m = {.type = MESSAGE_MOVE, .token = c->engine.token};
    unsigned char *bytes = malloc(f->config.max_message), *at;
    struct pin_range *ranges = calloc(2 * (size_t)f->units_most, sizeof(*ranges));
    if (bytes == NULL || ranges == NULL) {
        free(bytes);
        free(ranges);
        return NULL;
    }
    m.unpin_count = pin_unpins(&c->engine, ranges);
    m.pin_count = pin_pins(&c->engine, ranges + m.unpin_count);
    m.callback = c->asked = (c->flags & PW_FIREHOSE_REMOTE_CALLBACK) != 0;
    m.args_length = (uint32_t)c->args_length;
    at = wire_write(bytes, &m);
    for (uint32_t i = 0; i < m.unpin_count + m.pin_count; i++) {
        at = wire_put(at, &ranges[i], false);
    }
    memcpy(at, c->args, c->args_length);
    *length = wire_size(&m);
    free(ranges);
    return bytes;
}

/* Sends the message of a move. Without the message the peer would keep units pinned that the
 * request has replaced: so, if there was no memory for it, the peer is treated as dead. */
void firehose_send_move(struct pw_firehose *f, unsigned node, void *bytes, size_t length)
{
    if (bytes == NULL) {
        pw_firehose_peer_dead(f, node);
        return;
    }
    firehose_send(f, node, bytes, length);
    free(bytes);
}

/* Asks the peer for the remote callback of a request that needed no move, because other requests
 * were pinning all its units. */
static void ask_callback(struct pw_firehose *f, struct call *c)
{
    unsigned char bytes[PW_FIREHOSE_HEADER + 16 + PW_FIREHOSE_ARGS];
    struct pin_range range = {.addr = c->engine.addr, .len = c->engine.len};
    struct message m = {.type = MESSAGE_CALLBACK,
                        .callback = true,
                        .pin_count = 1,
                        .args_length = (uint32_t)c->args_length};
    unsigned node = c->engine.node;
    mutex_take(&f->lock);
    m.token = c->token = ++f->token | TOKEN_CALLBACK;
    c->asked = true;
    list_push_back(&f->asked, &c->link);
    memcpy(wire_put(wire_write(bytes, &m), &range, false), c->args, c->args_length);
    mutex_give(&f->lock);
    firehose_send(f, node, bytes, wire_size(&m));
}

/* Tells the client that a remote request has ended. */
void firehose_complete(struct pw_firehose *f, struct call *c)
{
    struct pw_firehose_request *user = c->user;
    pw_firehose_completed completed = c->completed;
    void *context = c->context;
    int error = c->error, local_hit = c->local_hit;
    mutex_take(&f->lock);
    user->addr = c->engine.addr;
    user->len = c->engine.len;
    if (error != 0) {
        call_free(c);
        user->internal[1] = 0;
    } else {
        struct pin_range range;
        pin_entry_range(c->engine.uses[0].entry, &range);
        memcpy(user->handle, range.handle, sizeof(user->handle));
    }
    __atomic_store_n(&user->internal[0], error != 0 ? R_FREE : R_HELD, __ATOMIC_RELEASE);
    mutex_give(&f->lock);
    if (completed != NULL) {
        firehose_in_callback++;
        completed(context, user, error, local_hit);
        firehose_in_callback--;
    }
}

/* ---- Requests of peers ---- */

static void answer(struct pw_firehose *f, unsigned node, uint64_t token, enum message_type type,
                   int error, const struct pin_range *pins, uint32_t count)
{
    struct message m = {
        .type = type, .token = token, .error = error, .pin_count = error == 0 ? count : 0};
    unsigned char small[PW_FIREHOSE_HEADER], *bytes = small, *at;
    if (m.pin_count > 0 && (bytes = malloc(wire_size(&m))) == NULL) {
        pw_firehose_peer_dead(f, node); /* without the answer the peer would wait for ever */
        return;
    }
    at = wire_write(bytes, &m);
    for (uint32_t i = 0; i < m.pin_count; i++) {
        at = wire_put(at, &pins[i], true);
    }
    firehose_send(f, node, bytes, wire_size(&m));
    if (bytes != small) {
        free(bytes);
    }
}

static void run_callback(struct pw_firehose *f, const struct served *s)
{
    if (f->ops.remote != NULL) {
        firehose_in_callback++;
        f->ops.remote(f->config.client, s->node, s->regions, s->count,
                      s->args_length > 0 ? s->args : NULL, s->args_length);
        firehose_in_callback--;
    }
}

/* Serves a move of a peer: unpins and pins for it, runs its remote callback, and answers. */
static void serve(struct pw_firehose *f, struct pin_serve *s)
{
    uint32_t u = s->leave_count, n = s->fresh_count;
    struct pin_range *ranges = calloc(2 * ((size_t)u + n + 1), sizeof(*ranges));
    struct pw_firehose_region *regions = calloc((size_t)u + n + 1, sizeof(*regions));
    int rc = -ENOMEM;
    struct pin_range one;
    if (ranges != NULL && regions != NULL) {
        mutex_take(&f->lock);
        pin_serve_unpins(s, ranges);
        pin_serve_pins(s, ranges + u);
        mutex_give(&f->lock);
        for (uint32_t i = 0; i < u + n; i++) {
            range_to_region(&regions[i], &ranges[i]);
        }
        rc = firehose_move(f, regions, u, regions + u, n);
        for (uint32_t i = 0; i < n && rc == 0; i++) {
            memcpy(ranges[u + i].handle, regions[u + i].handle, PW_FIREHOSE_HANDLE);
        }
    } else {
        /* Memory is short: it unpins one unit after the other, and pins none. */
        for (uint32_t i = 0; i < u; i++) {
            struct pw_firehose_region region;
            pin_entry_range(s->leaves[i], &one);
            range_to_region(&region, &one);
            firehose_move(f, &region, 1, NULL, 0);
        }
    }
    mutex_take(&f->lock);
    bool ended = pin_served(f->pin, s, n > 0 ? rc : 0, ranges != NULL ? ranges + u : NULL);
    firehose_wake(f);
    mutex_give(&f->lock);
    free(ranges);
    free(regions);
    if (!ended) {
        return;
    }
    struct served *callback = s->client;
    if (s->answer && s->error == 0 && callback != NULL) {
        callback->count = s->pin_count;
        for (uint32_t i = 0; i < s->pin_count; i++) {
            range_to_region(&callback->regions[i], &s->pins[i]);
        }
        run_callback(f, callback);
    }
    if (s->answer) {
        answer(f, s->peer, s->token, MESSAGE_ANSWER, s->error, s->pins, s->pin_count);
    }
    free(callback);
    pin_serve_free(s);
}

/* Does one thing that is due; false: nothing is. */
static bool run_one(struct pw_firehose *f)
{
    struct list *at;
    mutex_take(&f->lock);
    struct pin_serve *s = atomic_load(&f->alarms) == 0 ? pin_serve_next(f->pin) : NULL;
    struct served *callback = NULL;
    struct call *c = NULL;
    if (s == NULL && (at = list_pop_front(&f->callbacks)) != NULL) {
        callback = container_of(at, struct served, link);
    } else if (s == NULL && (at = list_pop_front(&f->due)) != NULL) {
        c = container_of(at, struct call, link);
    }
    mutex_give(&f->lock);
    if (s != NULL) {
        serve(f, s);
    } else if (callback != NULL) {
        run_callback(f, callback);
        answer(f, callback->node, callback->token, MESSAGE_CALLED, 0, NULL, 0);
        free(callback);
    } else if (c == NULL) {
        return firehose_forget_step(f);
    } else if (c->error == PIN_RESTART) {
        firehose_restart(f, c);
    } else if (c->error == 0 && (c->flags & PW_FIREHOSE_REMOTE_CALLBACK) && !c->asked) {
        ask_callback(f, c);
    } else {
        firehose_complete(f, c);
    }
    return true;
}

/* Serves moves, runs callbacks and completes requests until nothing is due. */
void firehose_run(struct pw_firehose *f)
{
    do {
        while (atomic_exchange_explicit(&f->work, false, memory_order_acq_rel)) {
            while (run_one(f)) {
            }
        }
    } while (firehose_forget_ended(f));
}

void pw_firehose_poll(struct pw_firehose *f)
{
    if (firehose_in_callback == 0) {
        firehose_run(f);
    }
}

/* ---- Messages that arrive ---- */

static struct served *served_new(unsigned node, const struct message *m)
{
    struct served *s = calloc(1, sizeof(*s) + (m->pin_count + 1) * sizeof(s->regions[0]));
    if (s != NULL) {
        s->node = node;
        s->token = m->token;
        s->count = m->pin_count;
        s->args_length = m->args_length;
        memcpy(s->args, m->args, m->args_length);
    }
    return s;
}

static int take_move(struct pw_firehose *f, unsigned node, const struct message *m,
                     const struct pin_range *ranges)
{
    struct pin_serve *s;
    struct served *callback = m->callback ? served_new(node, m) : NULL;
    if (m->callback && callback == NULL) {
        return -ENOMEM;
    }
    mutex_take(&f->lock);
    int rc = pin_arrive(f->pin, node, m->token, ranges, m->unpin_count, ranges + m->unpin_count,
                        m->pin_count, &s);
    if (rc == 0) {
        s->client = callback;
    }
    mutex_give(&f->lock);
    if (rc != 0) {
        free(callback);
    }
    return rc;
}

static int take_called(struct pw_firehose *f, unsigned node, const struct message *m)
{
    int rc = -EPROTO;
    mutex_take(&f->lock);
    for (struct list *at = f->asked.next; at != &f->asked; at = at->next) {
        struct call *c = container_of(at, struct call, link);
        if (c->token == m->token && c->engine.node == node) {
            list_remove(&c->link);
            list_push_back(&f->due, &c->link);
            rc = 0;
            break;
        }
    }
    mutex_give(&f->lock);
    return rc;
}

static int take(struct pw_firehose *f, unsigned node, const struct message *m,
                struct pin_range *ranges)
{
    const unsigned char *at = m->unpins;
    for (uint32_t i = 0; i < m->unpin_count + m->pin_count; i++) {
        at = wire_get(at, &ranges[i], m->type == MESSAGE_ANSWER);
    }
    if (m->type == MESSAGE_MOVE) {
        return take_move(f, node, m, ranges);
    }
    if (m->type == MESSAGE_CALLED) {
        return take_called(f, node, m);
    }
    if (m->type == MESSAGE_REVOKE) {
        return firehose_take_revoke(f, node, ranges, m->pin_count);
    }
    if (m->type == MESSAGE_CALLBACK) {
        struct served *s = served_new(node, m);
        for (uint32_t i = 0; s != NULL && i < m->pin_count; i++) {
            range_to_region(&s->regions[i], &ranges[i]);
        }
        mutex_take(&f->lock);
        if (s != NULL) {
            list_push_back(&f->callbacks, &s->link);
        }
        mutex_give(&f->lock);
        return s != NULL ? 0 : -ENOMEM;
    }
    struct list ended;
    list_init(&ended);
    mutex_take(&f->lock);
    int rc = pin_finish(f->pin, node, m->token, m->error, ranges, m->pin_count, &ended);
    firehose_ended(f, &ended);
    mutex_give(&f->lock);
    return rc;
}

/* Says once that a peer has another version of the library. */
static void tell_version(struct pw_firehose *f, unsigned node, const void *bytes, size_t length)
{
    unsigned own, version = wire_version(bytes, length, &own);
    if (version != 0 && version != own && !atomic_exchange(&f->told_version, true)) {
        fprintf(
            stderr,
            "firehose: node %u: a message of node %u has version %u, not %u: it is refused; use "
            "one version of libpinwheel-firehose on all nodes\n",
            f->config.self, node, version, own);
    }
}

int pw_firehose_deliver(struct pw_firehose *f, unsigned node, const void *bytes, size_t length)
{
    struct message m;
    int rc =
        node < f->config.nodes && node != f->config.self ? wire_read(bytes, length, &m) : -EPROTO;
    bool move = rc == 0 && m.type == MESSAGE_MOVE;
    if (rc == 0 && length > f->config.max_message) {
        rc = -EPROTO;
    }
    if (rc == 0) {
        struct pin_range *ranges = calloc((size_t)m.unpin_count + m.pin_count + 1, sizeof(*ranges));
        rc = ranges == NULL ? -ENOMEM : take(f, node, &m, ranges);
        free(ranges);
    }
    if (rc != 0) {
        mutex_take(&f->lock);
        pin_stats_of(f->pin)->refused++;
        mutex_give(&f->lock);
        tell_version(f, node, bytes, length);
        if (rc == -EPROTO && move) {
            answer(f, node, m.token, MESSAGE_ANSWER, rc, NULL, 0);
        }
        return rc;
    }
    atomic_store_explicit(&f->work, true, memory_order_release);
    if ((f->config.flags & PW_FIREHOSE_IN_HANDLER) && firehose_in_callback == 0) {
        firehose_run(f);
    }
    return 0;
}

int pw_firehose_peer_dead(struct pw_firehose *f, unsigned node)
{
    struct list ended;
    list_init(&ended);
    mutex_take(&f->lock);
    int rc = pin_peer_dead(f->pin, node, &ended);
    firehose_ended(f, &ended);
    struct list *at = f->asked.next;
    while (rc == 0 && at != &f->asked) {
        struct call *c = container_of(at, struct call, link);
        at = at->next;
        if (c->engine.node == node) {
            list_remove(&c->link);
            c->error = -EPIPE;
            pin_release(f->pin, &c->engine);
            list_push_back(&f->due, &c->link);
        }
    }
    atomic_store_explicit(&f->work, true, memory_order_release);
    firehose_wake(f);
    mutex_give(&f->lock);
    return rc;
}
