/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each call of Firehose's engine: what it gives, what it refuses, and what becomes of a request
 * when a pin fails or a peer dies, in each state.
 */
#include "pin_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pin_config config_of(bool regions)
{
    return (struct pin_config){.nodes = 2,
                               .regions = regions,
                               .page = WORLD_PAGE,
                               .region_most = 4 * WORLD_PAGE,
                               .victims = 3,
                               .f = 3,
                               .remote = 3,
                               .most = 3,
                               .da_limit = 4};
}

static struct world *open_two(bool regions)
{
    struct pin_config config = config_of(regions);
    return world_open(&config);
}

static int ask(struct world *w, uint32_t i, uint32_t page, uint32_t pages)
{
    return world_begin(w, 0, i, 1, world_page(page), (uint64_t)pages * WORLD_PAGE);
}

static struct world_request *request(struct world *w, uint32_t i)
{
    return &w->node[0].requests[i];
}

static void limits_of_a_node(void **state)
{
    struct pin *pin;
    struct pin_config good = config_of(true), c;
    assert_int_equal(pin_open(&good, &pin), 0);
    pin_close(pin);
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        c = good;                                                                                  \
        change;                                                                                    \
        assert_int_equal(pin_open(&c, &pin), -EINVAL);                                             \
        assert_null(pin);                                                                          \
    } while (0)
    REFUSED(c.self = 2);
    REFUSED(c.page = 5000);
    REFUSED(c.victims = 0);
    REFUSED(c.remote = 2);
    REFUSED(c.most = 4);
    REFUSED(c.most = 0);
    REFUSED(c.da_limit = 0);
    REFUSED(c.region_most = 5000);
}

static void ranges(void **state)
{
    struct world *w = open_two(false);
    struct pin *pin = w->node[0].pin;
    struct pin_request r;
    assert_int_equal(pin_begin(pin, &r, 1, WORLD_BASE, 0), -EINVAL);
    assert_int_equal(pin_begin(pin, &r, 1, UINT64_MAX - 10, 12), -EINVAL);
    assert_int_equal(pin_begin(pin, &r, 1, UINT64_MAX - 10, 10), -EINVAL);
    assert_int_equal(pin_begin(pin, &r, 1, 0, UINT64_MAX), -EINVAL);
    assert_int_equal(pin_begin(pin, &r, 2, WORLD_BASE, 1), -EINVAL);
    assert_int_equal(pin_begin(pin, &r, 1, WORLD_BASE, 3 * WORLD_PAGE + 1), -EMSGSIZE);
    assert_int_equal(pin_begin(pin, &r, 0, WORLD_BASE + 1, 3 * WORLD_PAGE), -EMSGSIZE);
    assert_int_equal(pin_try(pin, &r, 1, WORLD_BASE, 0), -EINVAL);
    assert_int_equal(pin_partial(pin, &r, 2, WORLD_BASE, 1), -EINVAL);
    assert_int_equal(pin_stats(pin)->refused, 9);
    world_check(w);
    world_close(w);
}

static void try_and_partial(void **state)
{
    for (int regions = 0; regions < 2; regions++) {
        struct world *w = open_two(regions);
        struct pin *pin = w->node[0].pin;
        struct pin_request r;
        assert_int_equal(ask(w, 0, 2, 2), PIN_SENT);
        assert_int_equal(pin_try(pin, &r, 1, world_page(2), 8), -EAGAIN);
        world_settle(w);
        assert_int_equal(request(w, 0)->state, W_HOLDS);
        assert_int_equal(pin_try(pin, &r, 1, world_page(2) + 5, WORLD_PAGE), 0);
        pin_release(pin, &r);
        assert_int_equal(pin_try(pin, &r, 1, world_page(1), 2 * WORLD_PAGE), -EAGAIN);
        assert_int_equal(pin_partial(pin, &r, 1, world_page(1), 3 * WORLD_PAGE), 0);
        assert_true(r.addr == world_page(2) && r.len == 2 * WORLD_PAGE);
        pin_release(pin, &r);
        assert_int_equal(pin_partial(pin, &r, 1, world_page(4), 2 * WORLD_PAGE), -EAGAIN);
        const struct pin_counts *counts = &pin_stats(pin)->remote;
        assert_int_equal(counts->try_hit, 1);
        assert_int_equal(counts->try_miss, 2);
        assert_int_equal(counts->partial_hit, 1);
        assert_int_equal(counts->partial_miss, 1);
        assert_int_equal(counts->pin, 1);
        assert_int_equal(counts->miss, 1);
        assert_int_equal(counts->release, 2);
        world_release(w, 0, 0, false);
        world_close(w);
    }
}

static void released_twice(void **state)
{
    struct world *w = open_two(false);
    struct pin *pin = w->node[0].pin;
    uint32_t generation;
    int error;
    ask(w, 0, 0, 1);
    world_settle(w);
    world_release(w, 0, 0, false);
    struct pin_entry *x = pin_take(pin, 1, world_page(0), 8, &generation);
    assert_non_null(x);
    assert_true(pin_drop(pin, x, generation, &error) && error == 0);
    assert_true(pin_drop(pin, x, generation, &error) && error == -EALREADY);
    assert_int_equal(pin_drop_locked(pin, x, generation), -EALREADY);
    assert_int_equal(pin_drop_locked(pin, x, generation + 1), -EALREADY);
    assert_null(pin_take(pin, 1, world_page(0), WORLD_PAGE + 1, &generation));
    assert_null(pin_take(pin, 0, world_page(0), 1, &generation));
    world_check(w);
    world_close(w);
}

/* A region that overlaps one that is pinned, or lies beside it, grows over it. */
static void regions_join(void **state)
{
    struct world *w = open_two(true);
    struct pin_request r;
    ask(w, 0, 2, 1);
    world_settle(w);
    ask(w, 1, 3, 2);
    world_settle(w);
    assert_true(request(w, 1)->r.addr == world_page(2));
    assert_true(request(w, 1)->r.len == 3 * WORLD_PAGE);
    assert_int_equal(pin_try(w->node[0].pin, &r, 1, world_page(2), 3 * WORLD_PAGE), 0);
    pin_release(w->node[0].pin, &r);
    ask(w, 2, 5, 2); /* joined they would be too long */
    world_settle(w);
    assert_true(request(w, 2)->r.len == 2 * WORLD_PAGE);
    for (uint32_t i = 0; i < 3; i++) {
        world_release(w, 0, i, false);
    }
    world_close(w);
}

/* What was pinned before stays pinned, is hit without a pin, and takes a place of MAXVICTIM. */
static void pinned_before(void **state)
{
    struct world *w = open_two(false);
    struct pin *pin = w->node[1].pin;
    struct pin_range range;
    w->node[1].pinned[7] = 1;
    assert_int_equal(pin_prepin(pin, world_page(7), WORLD_PAGE, NULL), 0);
    assert_int_equal(pin_prepin(pin, world_page(7), WORLD_PAGE, NULL), -EEXIST);
    assert_int_equal(pin_prepin(pin, world_page(8) + 1, WORLD_PAGE, NULL), -EINVAL);
    assert_int_equal(pin_prepin(pin, world_page(8), 3 * WORLD_PAGE, NULL), -EMSGSIZE);
    assert_true(world_take(w, 1, 0, 1, world_page(7), 100));
    assert_int_equal(ask(w, 0, 7, 1), PIN_SENT);
    world_settle(w);
    assert_int_equal(w->pins, 0);
    world_release(w, 0, 0, false);
    world_release(w, 1, 0, true);
    assert_int_equal(world_begin(w, 1, 0, 1, world_page(9), 3 * WORLD_PAGE), PIN_AGAIN);
    world_cancel(w, 1, 0);
    assert_false(pin_drain(pin, &range));
    world_close(w);
}

/* Who asked for what cannot be pinned is told, and who waits for the same; nobody else. */
static void pin_fails_at_the_peer(void **state)
{
    struct world *w = open_two(false);
    ask(w, 0, 0, 1);
    world_settle(w);
    assert_int_equal(ask(w, 1, 0, 2), PIN_SENT);
    assert_int_equal(ask(w, 2, 1, 1), PIN_WAIT);
    assert_int_equal(ask(w, 3, 0, 1), PIN_DONE);
    world_deliver(w, 0);
    assert_true(world_job(w, 1, 0));
    world_job_end(w, 1, 0, -ENOMEM);
    world_settle(w);
    assert_true(request(w, 1)->state == W_IDLE && request(w, 1)->error == -ENOMEM);
    assert_true(request(w, 2)->state == W_IDLE && request(w, 2)->error == -ENOMEM);
    assert_true(request(w, 0)->state == W_HOLDS && request(w, 3)->state == W_HOLDS);
    assert_int_equal(pin_stats(w->node[0].pin)->failed, 2);
    assert_int_equal(ask(w, 1, 1, 1), PIN_SENT); /* and it can be asked for again */
    world_settle(w);
    assert_int_equal(request(w, 1)->state, W_HOLDS);
    assert_int_equal(pin_load(w->node[1].pin, 0).granted, 2);
    world_close(w);
}

static void pin_fails_here(void **state)
{
    struct world *w = open_two(false);
    assert_int_equal(world_begin(w, 0, 0, 0, world_page(0), WORLD_PAGE), PIN_SENT);
    assert_int_equal(world_begin(w, 0, 1, 0, world_page(0), WORLD_PAGE), PIN_WAIT);
    world_pin(w, 0, 0, -ENOMEM);
    assert_int_equal(request(w, 0)->error, -ENOMEM);
    assert_int_equal(request(w, 1)->error, -ENOMEM);
    assert_int_equal(pin_load(w->node[0].pin, 1).charged, 0);
    assert_int_equal(world_begin(w, 0, 0, 0, world_page(0), WORLD_PAGE), PIN_SENT);
    world_pin(w, 0, 0, 0);
    assert_int_equal(request(w, 0)->state, W_HOLDS);
    world_close(w);
}

/* Node 1 dies while node 0 has a request in each state, and node 0 while node 1 does its work. */
static void peer_dies(void **state)
{
    struct world *w = open_two(false);
    ask(w, 0, 0, 1);
    world_settle(w);
    assert_int_equal(ask(w, 1, 1, 1), PIN_SENT);
    assert_int_equal(ask(w, 2, 1, 1), PIN_WAIT);
    assert_int_equal(ask(w, 3, 4, 2), PIN_AGAIN);
    assert_int_equal(ask(w, 4, 6, 3), PIN_AGAIN);
    while (request(w, 3)->state == W_POLLS) {
        world_again(w, 0, 3);
        if (pin_winner(w->node[0].pin, 1)) {
            break;
        }
    }
    assert_int_equal(world_again(w, 0, 4), PIN_YIELD);
    world_kill(w, 1);
    assert_int_equal(request(w, 1)->error, -EPIPE);
    assert_int_equal(request(w, 2)->error, -EPIPE);
    assert_int_equal(world_again(w, 0, 3), -EPIPE);
    assert_int_equal(world_again(w, 0, 4), -EPIPE);
    world_release(w, 0, 0, true);
    assert_int_equal(ask(w, 0, 0, 1), -EPIPE);
    assert_int_equal(pin_load(w->node[0].pin, 1).mapped, 0);
    world_close(w);

    w = open_two(false);
    ask(w, 0, 0, 2);
    world_settle(w);
    ask(w, 1, 2, 1);
    world_deliver(w, 0);
    world_job(w, 1, 0); /* its pin is being made */
    world_kill(w, 0);
    world_settle(w);
    assert_int_equal(pin_load(w->node[1].pin, 0).granted, 0);
    assert_int_equal(pin_load(w->node[1].pin, 0).pinned, w->node[1].units);
    struct pin_serve *s;
    struct pin_range range = {.addr = world_page(9), .len = WORLD_PAGE};
    assert_int_equal(pin_arrive(w->node[1].pin, 0, 99, NULL, 0, &range, 1, &s), -EPROTO);
    world_close(w);
}

/* Messages of a peer that does not keep to the rules change nothing. */
static void hostile_moves(void **state)
{
    struct world *w = open_two(false);
    struct pin *pin = w->node[1].pin;
    struct pin_serve *s;
    struct list ended;
    struct pin_range page[5];
    for (uint32_t i = 0; i < 5; i++) {
        page[i] = (struct pin_range){.addr = world_page(i), .len = WORLD_PAGE};
    }
    struct pin_range odd = {.addr = WORLD_BASE + 8, .len = WORLD_PAGE};
    struct pin_range longer = {.addr = WORLD_BASE, .len = 2 * WORLD_PAGE};
    struct pin_range none = {.addr = WORLD_BASE, .len = 0};
    struct pin_range wraps = {.addr = UINT64_MAX - WORLD_PAGE + 1, .len = WORLD_PAGE};
    struct pin_range twice[2] = {page[0], page[0]};
#define WRONG(peer, unpins, u, pins, n)                                                            \
    assert_int_equal(pin_arrive(pin, peer, 1, unpins, u, pins, n, &s), -EPROTO)
    list_init(&ended);
    ask(w, 0, 0, 2);
    world_settle(w);
    WRONG(1, NULL, 0, page, 1);      /* oneself */
    WRONG(2, NULL, 0, page, 1);      /* nobody */
    WRONG(0, NULL, 0, page + 2, 2);  /* more than f */
    WRONG(0, NULL, 0, page, 4);      /* more than at once */
    WRONG(0, page + 3, 1, NULL, 0);  /* not its own */
    WRONG(0, twice, 2, page + 2, 1); /* twice */
    WRONG(0, NULL, 0, page, 1);      /* has it */
    WRONG(0, NULL, 0, &odd, 1);
    WRONG(0, page, 1, &longer, 1);
    WRONG(0, NULL, 0, &none, 1);
    WRONG(0, NULL, 0, &wraps, 1);
    assert_int_equal(pin_stats(pin)->refused, 11);
    assert_int_equal(pin_finish(w->node[0].pin, 1, 77, 0, page, 1, &ended), -EPROTO);
    ask(w, 1, 4, 1);
    uint64_t token = request(w, 1)->r.token;
    assert_int_equal(pin_finish(w->node[0].pin, 0, token, 0, page, 1, &ended), -EPROTO);
    assert_int_equal(pin_finish(w->node[0].pin, 1, token, 0, page, 2, &ended), -EPROTO);
    assert_int_equal(pin_finish(w->node[0].pin, 1, token, 1, page, 1, &ended), -EPROTO);
    world_settle(w);
    assert_int_equal(request(w, 1)->state, W_HOLDS);
    world_close(w);
}

/* Two that each need all: one declares deadlock, the other one gives way, and both have their turn.
 */
static void deadlock_avoided(void **state)
{
    struct world *w = open_two(false);
    for (uint32_t i = 0; i < 3; i++) {
        ask(w, i, i, 1);
    }
    world_settle(w);
    assert_int_equal(ask(w, 3, 10, 2), PIN_AGAIN);
    assert_int_equal(ask(w, 4, 20, 3), PIN_AGAIN);
    world_release(w, 0, 0, true);
    assert_int_equal(world_again(w, 0, 3), PIN_AGAIN);
    world_release(w, 0, 1, true);
    assert_int_equal(world_again(w, 0, 4), PIN_AGAIN); /* each has one now */
    world_release(w, 0, 2, true);
    uint32_t rounds = 0;
    while (request(w, 3)->state != W_IDLE || request(w, 4)->state != W_IDLE) {
        assert_true(rounds++ < 50);
        for (uint32_t i = 3; i < 5; i++) {
            struct world_request *r = request(w, i);
            if (r->state == W_POLLS || (r->state == W_YIELDS && !pin_winner(w->node[0].pin, 1))) {
                world_again(w, 0, i);
            }
            world_settle(w);
            if (r->state == W_HOLDS) {
                world_release(w, 0, i, true);
            }
        }
    }
    const struct pin_stats *stats = pin_stats(w->node[0].pin);
    assert_int_equal(stats->remote.miss, 5);
    assert_int_equal(stats->failed, 0);
    world_close(w);
}

/* A replacement that somebody hits before it is replaced is his. */
static void replacement_is_hit(void **state)
{
    struct world *w = open_two(false);
    ask(w, 0, 0, 1);
    ask(w, 1, 1, 2);
    world_settle(w);
    world_release(w, 0, 0, true);
    assert_int_equal(ask(w, 2, 10, 2), PIN_AGAIN); /* has bucket 0 as a replacement, needs two */
    assert_int_equal(ask(w, 3, 0, 1), PIN_DONE);
    assert_int_equal(pin_stats(w->node[0].pin)->stolen, 1);
    world_release(w, 0, 1, true);
    assert_int_equal(world_again(w, 0, 2), PIN_SENT);
    world_settle(w);
    assert_true(request(w, 2)->state == W_HOLDS && request(w, 3)->state == W_HOLDS);
    world_close(w);
}

/* A bucket that is on its way out is not asked for again before it is out, whatever comes first. */
static void no_unpin_after_a_later_pin(void **state)
{
    struct world *w = open_two(false);
    ask(w, 0, 0, 3);
    world_settle(w);
    world_release(w, 0, 0, true);
    assert_int_equal(ask(w, 0, 5, 1), PIN_SENT); /* replaces bucket 0 */
    assert_int_equal(ask(w, 1, 0, 1), PIN_AGAIN);
    world_settle(w);
    assert_int_equal(world_again(w, 0, 1), PIN_SENT);
    world_settle(w);
    assert_int_equal(request(w, 1)->state, W_HOLDS);
    assert_int_equal(w->node[1].pinned[0], 1);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_of_a_node),
        cmocka_unit_test(ranges),
        cmocka_unit_test(try_and_partial),
        cmocka_unit_test(released_twice),
        cmocka_unit_test(regions_join),
        cmocka_unit_test(pinned_before),
        cmocka_unit_test(pin_fails_at_the_peer),
        cmocka_unit_test(pin_fails_here),
        cmocka_unit_test(peer_dies),
        cmocka_unit_test(hostile_moves),
        cmocka_unit_test(deadlock_avoided),
        cmocka_unit_test(replacement_is_hit),
        cmocka_unit_test(no_unpin_after_a_later_pin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
