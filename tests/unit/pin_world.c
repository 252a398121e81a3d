/* SPDX-License-Identifier: BSD-3-Clause */
#include "pin_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint64_t world_page(uint32_t page)
{
    return WORLD_BASE + (uint64_t)page * WORLD_PAGE;
}

struct world *world_open(const struct pin_config *config)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->config = *config;
    for (uint32_t i = 0; i < config->nodes; i++) {
        w->config.self = i;
        assert_int_equal(pin_open(&w->config, &w->node[i].pin), 0);
    }
    return w;
}

void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->config.nodes; i++) {
        for (uint32_t j = 0; j < WORLD_REQUESTS; j++) {
            struct world_request *r = &w->node[i].requests[j];
            if (r->state != W_IDLE && !r->fast && r->r.uses != &r->r.one) {
                free(r->r.uses); /* of a node that died */
            }
        }
        for (uint32_t j = 0; j < WORLD_GIVES; j++) {
            if (w->node[i].giving[j]) {
                pin_gave(&w->node[i].gives[j]); /* under way at the end, or of a node that died */
            }
        }
        pin_close(w->node[i].pin);
    }
    free(w);
}

static uint32_t first_page(uint64_t addr)
{
    assert_true(addr >= WORLD_BASE && addr < world_page(WORLD_PAGES));
    return (uint32_t)((addr - WORLD_BASE) / WORLD_PAGE);
}

static uint32_t last_page(uint64_t addr, uint64_t len)
{
    return first_page(addr + len - 1);
}

/* When all that a call has found is unpinned, no page that is pinned is an old one. */
static void end_forgets(struct world *w, uint32_t node)
{
    struct world_node *n = &w->node[node];
    for (uint32_t i = 0; i < WORLD_FORGETS; i++) {
        struct world_forget *g = &n->forgets[i];
        if (!g->live || !pin_forgotten(n->pin, g->addr, g->len, g->when)) {
            continue;
        }
        g->live = false;
        bool again = w->config.regions;
        for (uint32_t k = 0; k < WORLD_FORGETS; k++) {
            again |= n->forgets[k].live;
        }
        for (uint32_t p = first_page(g->addr); !again && p <= last_page(g->addr, g->len); p++) {
            assert_true(n->pinned[p] == 0 || n->pinned_age[p] == n->age[p]);
        }
    }
}

void world_check(struct world *w)
{
    char text[200];
    for (uint32_t i = 0; i < w->config.nodes; i++) {
        struct world_node *n = &w->node[i];
        if (n->dead) {
            continue;
        }
        if (pin_check(n->pin, text, sizeof(text)) != 0) {
            fail_msg("node %u: %s", i, text);
        }
        end_forgets(w, i);
        assert_true(n->units <= w->config.remote + w->config.victims);
        for (uint32_t j = 0; j < WORLD_REQUESTS; j++) {
            struct world_request *r = &n->requests[j];
            if (r->state != W_HOLDS || w->node[r->node].dead || r->error != 0) {
                continue;
            }
            for (uint32_t p = first_page(r->addr); p <= last_page(r->addr, r->len); p++) {
                assert_true(w->node[r->node].pinned[p] > 0);
            }
        }
    }
}

/* A local request that began after the memory got other pages must not hold the old ones. */
static void check_age(struct world *w, uint32_t node, const struct world_request *r)
{
    const struct world_node *n = &w->node[node];
    if (r->node != node || w->config.regions) {
        return;
    }
    for (uint32_t p = first_page(r->addr); p <= last_page(r->addr, r->len); p++) {
        w->stale |= n->pinned_age[p] != n->age[p] && r->began > n->changed[p];
    }
    assert_true(w->silent || !w->stale);
}

static void change(struct world *w, uint32_t node, const struct pin_range *r, int by)
{
    struct world_node *n = &w->node[node];
    n->units += (uint64_t)by;
    *(by > 0 ? &w->pins : &w->unpins) += 1;
    assert_true(n->units <= w->config.remote + w->config.victims);
    for (uint32_t p = first_page(r->addr); p <= last_page(r->addr, r->len); p++) {
        assert_true(by > 0 || n->pinned[p] > 0);
        n->pinned[p] = (uint16_t)(n->pinned[p] + by);
        n->pinned_age[p] = by > 0 ? n->age[p] : n->pinned_age[p];
        assert_true(w->config.regions || n->pinned[p] <= 1);
    }
}

static void change_all(struct world *w, uint32_t node, const struct pin_range *r, uint32_t n,
                       int by)
{
    for (uint32_t i = 0; i < n; i++) {
        change(w, node, &r[i], by);
    }
}

static struct world_message *message_new(struct world *w)
{
    for (uint32_t i = 0; i < WORLD_MESSAGES; i++) {
        if (!w->message[i].live) {
            memset(&w->message[i], 0, sizeof(w->message[i]));
            w->message[i].live = true;
            w->sent++;
            return &w->message[i];
        }
    }
    fail_msg("more messages than there is room for");
    return NULL;
}

static int after(struct world *w, uint32_t node, struct world_request *r, int step)
{
    r->error = step < 0 ? step : 0;
    switch (step) {
    case PIN_DONE:
        r->state = W_HOLDS;
        check_age(w, node, r);
        break;
    case PIN_WAIT:
        r->state = W_WAITS;
        break;
    case PIN_AGAIN:
        r->state = W_POLLS;
        break;
    case PIN_YIELD:
        r->state = W_YIELDS;
        break;
    case PIN_SENT:
        r->state = r->r.node == node ? W_PINS : W_WAITS;
        break;
    default:
        assert_true(step < 0);
        r->state = W_IDLE;
    }
    if (step == PIN_SENT && r->r.node != node) {
        struct world_message *m = message_new(w);
        m->from = node;
        m->to = r->r.node;
        m->token = r->r.token;
        m->unpin_count = pin_unpins(&r->r, m->unpins);
        m->pin_count = pin_pins(&r->r, m->pins);
    }
    world_check(w);
    return step;
}

int world_begin(struct world *w, uint32_t node, uint32_t i, uint32_t target, uint64_t addr,
                uint64_t len)
{
    struct world_request *r = &w->node[node].requests[i];
    assert_int_equal(r->state, W_IDLE);
    *r = (struct world_request){.node = target, .addr = addr, .len = len, .began = ++w->clock};
    return after(w, node, r, pin_begin(w->node[node].pin, &r->r, target, addr, len));
}

int world_again(struct world *w, uint32_t node, uint32_t i)
{
    struct world_request *r = &w->node[node].requests[i];
    assert_true(r->state == W_POLLS || r->state == W_YIELDS);
    return after(w, node, r, pin_again(w->node[node].pin, &r->r));
}

bool world_take(struct world *w, uint32_t node, uint32_t i, uint32_t target, uint64_t addr,
                uint64_t len)
{
    struct world_request *r = &w->node[node].requests[i];
    assert_int_equal(r->state, W_IDLE);
    *r = (struct world_request){
        .node = target, .addr = addr, .len = len, .fast = true, .began = ++w->clock};
    r->entry = pin_take(w->node[node].pin, target, addr, len, &r->generation);
    if (r->entry != NULL) {
        r->state = W_HOLDS;
        check_age(w, node, r);
    }
    world_check(w);
    return r->entry != NULL;
}

void world_cancel(struct world *w, uint32_t node, uint32_t i)
{
    struct world_request *r = &w->node[node].requests[i];
    assert_true(r->state == W_POLLS || r->state == W_YIELDS);
    pin_cancel(w->node[node].pin, &r->r);
    r->state = W_IDLE;
    world_check(w);
}

void world_release(struct world *w, uint32_t node, uint32_t i, bool fast)
{
    struct world_request *r = &w->node[node].requests[i];
    struct pin *pin = w->node[node].pin;
    int error = 0;
    assert_int_equal(r->state, W_HOLDS);
    if (!r->fast) {
        pin_release(pin, &r->r);
    } else if (!fast || !pin_drop(pin, r->entry, r->generation, &error)) {
        error = pin_drop_locked(pin, r->entry, r->generation);
    }
    assert_int_equal(error, 0);
    r->state = W_IDLE;
    world_check(w);
}

/* Requests that have ended hold what they asked for, or nothing. */
static void take_ended(struct world *w, uint32_t node, struct list *ended)
{
    struct list *at;
    while ((at = list_pop_front(ended)) != NULL) {
        struct pin_request *r = container_of(at, struct pin_request, ended);
        struct world_node *n = &w->node[node];
        if (r >= n->gives && r < n->gives + WORLD_GIVES) {
            n->giving[r - n->gives] = false;
            pin_gave(r);
            continue;
        }
        struct world_request *one = container_of(r, struct world_request, r);
        assert_true(one->state == W_WAITS || one->state == W_PINS);
        assert_true(one >= w->node[node].requests && one < w->node[node].requests + WORLD_REQUESTS);
        one->error = r->error;
        one->state = r->error == 0 ? W_HOLDS : W_IDLE;
        if (r->error == 0) {
            check_age(w, node, one);
        }
    }
}

void world_pin(struct world *w, uint32_t node, uint32_t i, int error)
{
    struct world_request *r = &w->node[node].requests[i];
    struct pin_range unpins[WORLD_MOST], pins[WORLD_MOST];
    struct list ended;
    list_init(&ended);
    assert_true(r->state == W_PINS && r->r.sent);
    change_all(w, node, unpins, pin_unpins(&r->r, unpins), -1);
    uint32_t n = pin_pins(&r->r, pins);
    if (error == 0) {
        change_all(w, node, pins, n, 1);
    }
    assert_int_equal(pin_finish(w->node[node].pin, node, r->r.token, error, pins, n, &ended), 0);
    take_ended(w, node, &ended);
    if (r->state == W_PINS) {
        r->state = W_WAITS; /* for others' pins */
    }
    world_check(w);
}

static void answer(struct world *w, uint32_t node, const struct pin_serve *s)
{
    struct world_message *m = message_new(w);
    m->reply = true;
    m->from = node;
    m->to = s->peer;
    m->token = s->token;
    m->error = s->error;
    m->pin_count = s->error == 0 ? s->pin_count : 0;
    memcpy(m->pins, s->pins, m->pin_count * sizeof(m->pins[0]));
}

void world_deliver(struct world *w, uint32_t i)
{
    struct world_message m = w->message[i];
    struct list ended;
    struct pin_serve *s;
    assert_true(m.live);
    w->message[i].live = false;
    list_init(&ended);
    if (w->node[m.to].dead) {
        return;
    }
    struct pin *pin = w->node[m.to].pin;
    int rc = m.revoke  ? pin_revoked(pin, m.from, m.pins, m.pin_count)
             : m.reply ? pin_finish(pin, m.from, m.token, m.error, m.pins, m.pin_count, &ended)
                       : pin_arrive(pin, m.from, m.token, m.unpins, m.unpin_count, m.pins,
                                    m.pin_count, &s);
    w->wrong += rc != 0;
    assert_true(rc == 0 || w->node[m.from].dead);
    take_ended(w, m.to, &ended);
    world_check(w);
}

bool world_job(struct world *w, uint32_t node, uint32_t j)
{
    struct world_node *n = &w->node[node];
    assert_null(n->jobs[j]);
    n->jobs[j] = pin_serve_next(n->pin);
    if (n->jobs[j] != NULL) {
        struct pin_range unpins[2 * WORLD_MOST * WORLD_NODES];
        assert_true(n->jobs[j]->leave_count <= 2 * WORLD_MOST * WORLD_NODES);
        change_all(w, node, unpins, pin_serve_unpins(n->jobs[j], unpins), -1);
    }
    world_check(w);
    return n->jobs[j] != NULL;
}

void world_job_end(struct world *w, uint32_t node, uint32_t j, int error)
{
    struct world_node *n = &w->node[node];
    struct pin_range pins[WORLD_MOST];
    struct pin_serve *s = n->jobs[j];
    uint32_t count = pin_serve_pins(s, pins);
    if (error == 0) {
        change_all(w, node, pins, count, 1);
    }
    n->jobs[j] = NULL;
    if (pin_served(n->pin, s, count > 0 ? error : 0, pins)) {
        if (s->answer) {
            answer(w, node, s);
        }
        pin_serve_free(s);
    }
    world_check(w);
}

void world_forget(struct world *w, uint32_t node, uint64_t addr, uint64_t len)
{
    struct world_node *n = &w->node[node];
    uint32_t i = 0;
    w->clock++;
    for (uint32_t p = first_page(addr); p <= last_page(addr, len); p++) {
        n->age[p]++;
        n->changed[p] = w->clock;
    }
    if (w->silent) {
        return;
    }
    while (n->forgets[i].live) {
        assert_true(++i < WORLD_FORGETS);
    }
    n->forgets[i] = (struct world_forget){true, addr, len, 0};
    assert_int_equal(pin_forget(n->pin, addr, len, false, &n->forgets[i].when), 0);
    world_check(w);
}

static bool give_up(struct world *w, uint32_t node)
{
    struct world_node *n = &w->node[node];
    uint32_t i = 0;
    while (n->giving[i]) {
        assert_true(++i < WORLD_GIVES);
    }
    int rc = pin_give_up(n->pin, &n->gives[i], 4);
    if (rc != PIN_SENT) {
        assert_int_equal(rc, PIN_DONE);
        return false;
    }
    n->giving[i] = true;
    struct world_message *m = message_new(w);
    m->from = node;
    m->to = n->gives[i].node;
    m->token = n->gives[i].token;
    m->unpin_count = pin_unpins(&n->gives[i], m->unpins);
    return true;
}

bool world_forget_step(struct world *w, uint32_t node)
{
    struct world_node *n = &w->node[node];
    struct pin_range range, ranges[4];
    uint32_t peer, count;
    bool did = true;
    if (n->leaving != NULL) {
        pin_gone(n->pin, n->leaving);
        n->leaving = NULL;
    } else if ((n->leaving = pin_gone_next(n->pin, &range)) != NULL) {
        change(w, node, &range, -1);
    } else if ((count = pin_revoke_next(n->pin, &peer, ranges, 4)) > 0) {
        struct world_message *m = message_new(w);
        m->revoke = true;
        m->from = node;
        m->to = peer;
        m->pin_count = count;
        memcpy(m->pins, ranges, count * sizeof(ranges[0]));
    } else {
        did = give_up(w, node);
    }
    world_check(w);
    return did;
}

void world_kill(struct world *w, uint32_t node)
{
    w->node[node].dead = true;
    for (uint32_t i = 0; i < w->config.nodes; i++) {
        struct list ended;
        list_init(&ended);
        if (!w->node[i].dead) {
            assert_int_equal(pin_peer_dead(w->node[i].pin, node, &ended), 0);
            take_ended(w, i, &ended);
        }
    }
    world_check(w);
}

void world_settle(struct world *w)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t m = 0; m < WORLD_MESSAGES; m++) {
            if (w->message[m].live) {
                world_deliver(w, m);
                moved = true;
            }
        }
        for (uint32_t i = 0; i < w->config.nodes; i++) {
            struct world_node *n = &w->node[i];
            for (uint32_t j = 0; j < WORLD_JOBS && !n->dead; j++) {
                if (n->jobs[j] != NULL || world_job(w, i, j)) {
                    world_job_end(w, i, j, 0);
                    moved = true;
                }
            }
            while (!n->dead && world_forget_step(w, i)) {
                moved = true;
            }
            for (uint32_t j = 0; j < WORLD_REQUESTS && !n->dead; j++) {
                if (n->requests[j].state == W_PINS && n->requests[j].r.sent) {
                    world_pin(w, i, j, 0);
                    moved = true;
                }
            }
        }
    }
}
