/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Freedom of deadlock, by what the routing does: of every pair of hosts packets are led
 * through a network, under many loads if routes are adaptive. Each step from a virtual channel
 * whose buffer is held to one that is waited for is an edge. There must be no cycle of them (Dally
 * and Seitz); and in a ring with one virtual channel there must be one, or nothing is shown by
 * this. docs/network-model.md says why there is none, whatever the size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net_try.h"
#include "sim/net/state.h"

enum { LOADS = 20 };

struct edges {
    uint8_t *to; /* a row for each virtual channel: the virtual channels that it waits for */
    uint8_t *state;
    uint32_t vcs;
    uint64_t count;
};

/* A virtual channel's number; with `merged` all virtual channels of a channel are one. */
static uint32_t number(const struct try_net *t, uint32_t channel, uint32_t vc, bool merged)
{
    return channel * t->n->vcs + (merged ? 0 : vc);
}

static void lead(struct try_net *t, struct edges *e, uint32_t from, uint32_t to, bool merged)
{
    struct net_packet p = {.from = from,
                           .to = to,
                           .channel = 2 * from,
                           .dimension = UINT8_MAX,
                           .via = NET_NONE,
                           .serial = try_draw(t)};
    for (uint32_t steps = 0;; steps++) {
        uint32_t sw = t->g.links[p.channel].to - t->g.hosts;
        uint32_t held = number(t, p.channel, p.vc, merged);
        uint32_t next = net_route(t->n, &p, sw);
        assert_true(steps < 64 && t->g.links[next].from == sw + t->g.hosts);
        if (net_to_host(t->n, next)) {
            assert_int_equal(next, 2 * to + 1);
            return; /* a host takes all that comes */
        }
        assert_true(p.next < t->n->vcs);
        uint8_t *edge = &e->to[(size_t)held * e->vcs + number(t, next, p.next, merged)];
        e->count += !*edge;
        *edge = 1;
        p.channel = next;
        p.vc = p.next;
    }
}

/* Whether a cycle can be reached from a virtual channel: one that is met while it is being looked
 * at. */
enum { NEW, OPEN, DONE };
static bool in_cycle(struct edges *e, uint32_t vc)
{
    e->state[vc] = OPEN;
    for (uint32_t next = 0; next < e->vcs; next++) {
        if (e->to[(size_t)vc * e->vcs + next] &&
            (e->state[next] == OPEN || (e->state[next] == NEW && in_cycle(e, next)))) {
            return true;
        }
    }
    e->state[vc] = DONE;
    return false;
}

static bool has_cycle(const char *spec, enum net_routing routing, bool merged)
{
    struct try_net t;
    struct net_config c = try_config;
    c.routing = routing;
    try_open(&t, spec, &c);
    struct edges e = {.vcs = t.g.channels * t.n->vcs};
    e.to = calloc(e.vcs, e.vcs);
    e.state = calloc(e.vcs, 1);
    assert_true(e.to != NULL && e.state != NULL);
    for (int load = 0; load < (routing == NET_ADAPTIVE ? LOADS : 1); load++) {
        for (uint32_t i = 0; i < t.g.channels; i++) {
            t.n->channels[i].queued = try_draw(&t) % 1000000;
        }
        for (uint32_t pair = 0; pair < t.g.hosts * t.g.hosts; pair++) {
            if (pair / t.g.hosts != pair % t.g.hosts) {
                lead(&t, &e, pair / t.g.hosts, pair % t.g.hosts, merged);
            }
        }
    }
    bool found = false;
    for (uint32_t vc = 0; vc < e.vcs && !found; vc++) {
        found = e.state[vc] == NEW && in_cycle(&e, vc);
    }
    assert_true(e.count > 0);
    for (uint32_t i = 0; i < t.g.channels; i++) {
        t.n->channels[i].queued = 0;
    }
    free(e.to);
    free(e.state);
    try_close(&t);
    return found;
}

static void no_cycle_in_any_topology(void **state)
{
    static const char *const specs[] = {
        "fattree:radix=4,levels=3",
        "fattree:radix=6,oversubscription=2,levels=2",
        "torus:8",
        "torus:7",
        "torus:2x3x4",
        "torus:4x4x4",
        "torus:2x2x2x2x2",
        "dragonfly:a=4,h=2,p=2",
        "dragonfly:a=3,h=2,p=2,groups=4",
        "dragonfly:a=2,h=1,p=3,groups=2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        for (int routing = NET_STATIC; routing <= NET_ADAPTIVE; routing++) {
            if (has_cycle(specs[i], (enum net_routing)routing, false)) {
                fail_msg("%s: virtual channels wait for each other in a ring, routing %d", specs[i],
                         routing);
            }
        }
    }
}

/* Rings and meshes of cables as a file may have them. */
static void no_cycle_in_a_file(void **state)
{
    char path[] = "/tmp/net_cycles_XXXXXX.dot";
    int fd = mkstemps(path, 4);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    (void)state;
    assert_non_null(f);
    fprintf(f, "graph g {\n");
    for (int i = 0; i < 12; i++) {
        fprintf(f, "H%d -- s%d\ns%d -- s%d\n", i, i, i, (i + 1) % 12);
    }
    fprintf(f, "s0 -- s6\ns3 -- s9\ns1 -- s5\n}\n");
    fclose(f);
    for (int routing = NET_STATIC; routing <= NET_ADAPTIVE; routing++) {
        assert_false(has_cycle(path, (enum net_routing)routing, false));
    }
    assert_true(has_cycle(path, NET_STATIC, true));
    remove(path);
}

static void one_virtual_channel_is_too_few_for_a_ring(void **state)
{
    (void)state;
    assert_true(has_cycle("torus:8", NET_STATIC, true));
    assert_true(has_cycle("torus:4x4x4", NET_ADAPTIVE, true));
    assert_true(has_cycle("dragonfly:a=4,h=2,p=2", NET_ADAPTIVE, true));
    assert_false(has_cycle("fattree:radix=4,levels=3", NET_ADAPTIVE, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cycle_in_any_topology),
        cmocka_unit_test(no_cycle_in_a_file),
        cmocka_unit_test(one_virtual_channel_is_too_few_for_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
