/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks at saturation, against theory (docs/network-model.md): each host offers
 * more than can be carried; what is carried is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net_try.h"

static uint32_t uniform(struct try_net *t, uint32_t from, const void *parameter)
{
    (void)from;
    (void)parameter;
    return (uint32_t)(try_draw(t) % t->g.hosts);
}

static uint32_t shift(struct try_net *t, uint32_t from, const void *parameter)
{
    return (from + *(const uint32_t *)parameter) % t->g.hosts;
}

/* All others send to the first host. */
static uint32_t incast(struct try_net *t, uint32_t from, const void *parameter)
{
    (void)t;
    (void)parameter;
    return from == 0 ? TRY_SILENT : 0;
}

static void near(double found, double theory)
{
    print_message("  %.4f of the line rate, theory %.4f\n", found, theory);
    assert_true(found >= 0.95 * theory && found <= 1.05 * theory);
}

static double try_shift(const char *spec, uint32_t by, enum net_routing routing)
{
    struct try_net t;
    struct net_config c = try_config;
    c.routing = routing;
    try_open(&t, spec, &c);
    double found = try_load(&t, shift, &by, 1, false, 1000);
    try_close(&t);
    return found;
}

static void shifts_on_a_fat_tree(void **state)
{
    (void)state;
    static const uint32_t by[] = {1, 3, 4, 17, 64, 100};
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        near(try_shift("fattree:radix=8,levels=3", by[i], NET_STATIC), 1);
    }
    near(try_shift("fattree:radix=16,levels=2", 37, NET_STATIC), 1);
}

static void try_incast(const char *spec)
{
    struct try_net t;
    struct net_config c = try_config;
    try_open(&t, spec, &c);
    uint32_t k = t.g.hosts - 1;
    near(try_load(&t, incast, NULL, 0.5, false, 200 * k), 1.0 / k);
    for (uint32_t h = 1; h <= k; h++) { /* each of them, from however far */
        assert_in_range(t.delivered[h], 95, 105);
    }
    try_close(&t);
}

static void incasts(void **state)
{
    (void)state;
    try_incast("fattree:radix=8,levels=1");
    try_incast("fattree:radix=8,levels=2");
    try_incast("torus:4x4");
    try_incast("dragonfly:a=2,h=2,p=2");
}

/* A little more than what can be carried is offered: much more would change the mix,
 * since messages that go far suffer most. */
static double try_uniform(const char *spec, double load, uint64_t packets)
{
    struct try_net t;
    struct net_config c = try_config;
    c.buffer = 32 * TRY_PACKET;
    try_open(&t, spec, &c);
    double found = try_load(&t, uniform, NULL, load, true, packets);
    try_close(&t);
    return found;
}

static void uniform_on_tori(void **state)
{
    (void)state;
    near(try_uniform("torus:4x4", 1, 2000), 1);
    near(try_uniform("torus:8x8", 1, 2000), 1);
    near(try_uniform("torus:4x4x4", 1, 1000), 1);
    near(try_uniform("torus:16x16", 0.51, 1000), 0.5);
    near(try_uniform("torus:32", 0.255, 4000), 0.25);
    near(try_uniform("torus:16x16", 0.3, 500), 0.3); /* what is offered, below that */
}

/* All go a little less than half round a ring: the short way, or either way. */
static void tornado(void **state)
{
    (void)state;
    double fixed = try_shift("torus:16", 7, NET_STATIC);
    double adaptive = try_shift("torus:16", 7, NET_ADAPTIVE);
    near(fixed, 1.0 / 7);
    near(adaptive, 4.0 * 16 / (14 * 18));
    assert_true(adaptive > 1.6 * fixed);
}

/* All of a group go to the next one, over one cable: by other groups there is more room. */
static uint32_t next_group(struct try_net *t, uint32_t from, const void *parameter)
{
    (void)parameter;
    uint32_t size = t->g.dragonfly.a * t->g.dragonfly.p;
    return (from / size * size + size + (uint32_t)(try_draw(t) % size)) % t->g.hosts;
}

static void dragonfly_to_the_next_group(void **state)
{
    (void)state;
    double found[2];
    for (int routing = 0; routing < 2; routing++) {
        struct try_net t;
        struct net_config c = try_config;
        c.routing = (enum net_routing)routing;
        try_open(&t, "dragonfly:a=4,h=2,p=2", &c);
        found[routing] = try_load(&t, next_group, NULL, 1, true, 2000);
        try_close(&t);
    }
    near(found[NET_STATIC], 1.0 / 8);
    print_message("  adaptive %.4f\n", found[NET_ADAPTIVE]);
    assert_true(found[NET_ADAPTIVE] > 2 * found[NET_STATIC]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_on_a_fat_tree),
        cmocka_unit_test(incasts),
        cmocka_unit_test(uniform_on_tori),
        cmocka_unit_test(tornado),
        cmocka_unit_test(dragonfly_to_the_next_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
