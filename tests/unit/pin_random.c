/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Firehose's engine in a random world: requests that overlap, hits with and without the lock,
 * messages in any order, pins that fail, peers that die, memory that gets other pages; pin_world.h
 * says what is checked after each step. At the end all is released, and nothing is left that waits.
 *
 * Usage: pin_random [SEEDS STEPS]
 */
#include "pin_world.h"

#include "../splitmix.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static unsigned long seeds = 60, steps = 1500;

struct run {
    struct world *w;
    uint64_t r;
    bool failures, deaths, forgets;
    uint64_t ended, failed;
};

static size_t any(struct run *run, size_t bound)
{
    return splitmix_below(&run->r, bound);
}

static void some_range(struct run *run, uint64_t most, uint64_t *addr, uint64_t *len)
{
    uint64_t pages = 1 + any(run, any(run, 3) == 0 ? most : 2), span = 24;
    pages = pages > most ? most : pages;
    *addr = world_page((uint32_t)any(run, span - pages + 1)) + any(run, 2) * 8;
    *len = pages * WORLD_PAGE - 8;
}

static void act(struct run *run, uint32_t node, uint32_t i)
{
    struct world *w = run->w;
    struct world_request *r = &w->node[node].requests[i];
    uint32_t target = (uint32_t)any(run, w->config.nodes);
    uint64_t addr, len;
    switch (r->state) {
    case W_IDLE:
        some_range(run, w->config.regions ? 4 : target == node ? 4 : w->config.most, &addr, &len);
        if (any(run, 2) == 0 && len < WORLD_PAGE) {
            world_take(w, node, i, target, addr, len);
        } else {
            world_begin(w, node, i, target, addr, len);
        }
        break;
    case W_POLLS:
        if (any(run, 20) == 0) {
            world_cancel(w, node, i);
        } else {
            world_again(w, node, i);
        }
        break;
    case W_YIELDS:
        if (any(run, 20) == 0) {
            world_cancel(w, node, i);
        } else if (!pin_winner(w->node[node].pin, r->node)) {
            world_again(w, node, i);
        }
        break;
    case W_PINS:
        world_pin(w, node, i, run->failures && any(run, 5) == 0 ? -ENOMEM : 0);
        break;
    case W_HOLDS:
        if (any(run, 2) == 0) {
            world_release(w, node, i, any(run, 4) != 0);
        }
        break;
    case W_WAITS:
        break;
    }
}

static void step(struct run *run)
{
    struct world *w = run->w;
    uint32_t node = (uint32_t)any(run, w->config.nodes), j = (uint32_t)any(run, 3);
    struct world_node *n = &w->node[node];
    uint32_t m = (uint32_t)any(run, WORLD_MESSAGES);
    switch (any(run, 4)) {
    case 0:
        for (uint32_t k = 0; k < WORLD_MESSAGES; k++) {
            if (w->message[(m + k) % WORLD_MESSAGES].live) {
                world_deliver(w, (m + k) % WORLD_MESSAGES);
                break;
            }
        }
        break;
    case 1:
        if (n->dead) {
            break;
        }
        if (n->jobs[j] != NULL) {
            world_job_end(w, node, j, run->failures && any(run, 5) == 0 ? -ENOMEM : 0);
        } else {
            world_job(w, node, j);
        }
        break;
    default:
        if (!n->dead) {
            act(run, node, (uint32_t)any(run, 6));
        }
    }
    if (run->forgets && !n->dead && any(run, 8) == 0) {
        world_forget_step(w, node);
    }
    if (run->forgets && !n->dead && any(run, 40) == 0) {
        uint64_t addr, len;
        some_range(run, 4, &addr, &len);
        world_forget(w, node, addr, len);
    }
    if (run->deaths && any(run, 700) == 0 && node != 0 && !n->dead) {
        world_kill(w, node);
    }
}

/* Everybody releases and polls until nobody has anything. */
static void finish(struct run *run)
{
    struct world *w = run->w;
    bool left = true;
    for (unsigned rounds = 0; left; rounds++) {
        assert_true(rounds < 1000);
        left = false;
        world_settle(w);
        for (uint32_t node = 0; node < w->config.nodes; node++) {
            for (uint32_t i = 0; i < WORLD_REQUESTS && !w->node[node].dead; i++) {
                struct world_request *r = &w->node[node].requests[i];
                if (r->state == W_HOLDS) {
                    world_release(w, node, i, true);
                } else if (r->state == W_POLLS ||
                           (r->state == W_YIELDS && !pin_winner(w->node[node].pin, r->node))) {
                    world_again(w, node, i);
                }
                left |= r->state != W_IDLE;
            }
        }
    }
    world_settle(w);
    for (uint32_t node = 0; node < w->config.nodes; node++) {
        struct world_node *n = &w->node[node];
        for (uint32_t i = 0; i < WORLD_FORGETS; i++) {
            assert_true(n->dead || !n->forgets[i].live);
        }
        struct pin_range range;
        uint64_t drained = 0, pinned = n->units;
        while (!n->dead && pin_drain(n->pin, &range)) {
            drained++;
        }
        assert_true(n->dead || drained == pinned);
    }
}

/* Returns whether a request got pages that the memory had before the request began. */
static bool run_seed(uint64_t seed, bool regions, bool failures, bool deaths, bool forgets,
                     bool silent)
{
    struct run run = {.r = seed, .failures = failures, .deaths = deaths, .forgets = forgets};
    uint64_t f = 2 + any(&run, 7);
    struct pin_config config = {.nodes = 2 + (uint32_t)any(&run, 2),
                                .regions = regions,
                                .page = WORLD_PAGE,
                                .region_most = 4 * WORLD_PAGE,
                                .victims = 4 + any(&run, 6),
                                .f = f,
                                .most = (uint32_t)(f < 6 ? f : 6),
                                .da_limit = 1 + (uint32_t)any(&run, 8)};
    config.remote = config.f * (config.nodes - 1);
    run.w = world_open(&config);
    run.w->silent = silent;
    for (unsigned long i = 0; i < steps; i++) {
        step(&run);
    }
    finish(&run);
    bool stale = run.w->stale;
    world_close(run.w);
    return stale;
}

static void pages(void **state)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run_seed(seed, false, seed % 3 == 1, false, false, false);
    }
}

static void regions(void **state)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run_seed(seed, true, seed % 3 == 1, false, false, false);
    }
}

static void deaths(void **state)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run_seed(seed, seed % 2 == 1, seed % 3 == 1, true, false, false);
    }
}

static void forgets(void **state)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run_seed(seed, seed % 2 == 1, seed % 3 == 1, seed % 5 >= 3, true, false);
    }
}

/* The same, but the engine is not told: requests get old pages. */
static void old_pages_otherwise(void **state)
{
    unsigned stale = 0;
    for (uint64_t seed = 2; seed <= 20; seed += 2) {
        stale += run_seed(seed, false, false, false, true, true);
    }
    assert_true(stale > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages),
        cmocka_unit_test(regions),
        cmocka_unit_test(deaths),
        cmocka_unit_test(forgets),
        cmocka_unit_test(old_pages_otherwise),
    };
    if (argc == 3) {
        seeds = strtoul(argv[1], NULL, 10);
        steps = strtoul(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
