/* SPDX-License-Identifier: BSD-3-Clause */
/* A message alone in a network: every pair of hosts, against the closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "net_try.h"

/* Sizes around those of a packet, and bytes that come slower than the link takes them. */
static const uint64_t sizes[] = {1, 100, 4095, 4096, 4097, 8192, 100000};
static const uint64_t paces[] = {0, 20000000, 35000000};

/* Stored packets of one message may overtake each other on adaptive ways. */
static void compare(struct try_net *t, uint32_t from, uint32_t to)
{
    bool overtake = t->c.store_and_forward && t->c.routing == NET_ADAPTIVE;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (overtake && sizes[i] > t->c.packet) {
            break;
        }
        for (size_t k = 0; k < sizeof(paces) / sizeof(paces[0]); k++) {
            uint64_t right = net_zero_load(&t->g, &t->c, from, to, sizes[i], paces[k]);
            assert_int_equal(try_one(t, from, to, sizes[i], paces[k]), right);
            /* None of it was contention, but for a short packet behind a longer one. */
            if (!t->c.store_and_forward || sizes[i] <= t->c.packet) {
                assert_int_equal(t->way.path + t->way.serial, right);
                uint64_t switches = from == to ? 0 : net_path_switches(&t->g, from, to);
                assert_int_equal(t->way.path,
                                 from == to ? 0
                                            : switches * t->c.hop + (switches + 1) * t->c.cable);
            }
        }
    }
    const struct net_counts *c = net_counts(t->n);
    assert_int_equal(c->delivered, c->packets);
}

/* Hop counts that net_path_switches() does not compute, but this test: by the switches
 * that the packets of one message were carried over. */
static void count_hops(struct try_net *t, uint32_t from, uint32_t to)
{
    uint64_t before = net_counts(t->n)->hops;
    try_one(t, from, to, 1, 0);
    uint64_t hops = net_counts(t->n)->hops - before;
    assert_int_equal(hops, from == to ? 0 : net_path_switches(&t->g, from, to) + 1);
}

static void try_all(const char *spec)
{
    for (int mode = 0; mode < 4; mode++) {
        struct net_config c = try_config;
        struct try_net t;
        c.store_and_forward = mode % 2 != 0;
        c.routing = mode < 2 ? NET_STATIC : NET_ADAPTIVE;
        try_open(&t, spec, &c);
        uint32_t step = t.g.hosts > 40 ? t.g.hosts / 20 : 1;
        for (uint32_t from = 0; from < t.g.hosts; from += step) {
            for (uint32_t to = 0; to < t.g.hosts; to += step) {
                compare(&t, from, to);
                count_hops(&t, from, to);
            }
        }
        try_close(&t);
    }
}

static void fat_trees(void **state)
{
    (void)state;
    try_all("fattree:radix=4,levels=1");
    try_all("fattree:radix=6,levels=2");
    try_all("fattree:radix=4,levels=3");
    try_all("fattree:radix=12,levels=2,oversubscription=2");
}

static void tori(void **state)
{
    (void)state;
    try_all("torus:7");
    try_all("torus:4x5");
    try_all("torus:2x1x4");
}

static void dragonflies(void **state)
{
    (void)state;
    try_all("dragonfly:a=2,h=1,p=2");
    try_all("dragonfly:a=4,h=2,p=1,groups=4");
    try_all("dragonfly:a=3,h=1,p=2,groups=1");
    try_all("dragonfly:a=1,h=5,p=2");
}

static void graphs(void **state)
{
    (void)state;
    FILE *f = fopen("latency.dot", "w");
    assert_non_null(f);
    fputs("graph { H0 -- a -- H1; a -- b [label=\"x -- y\"]; b -- c; c -- H2; c -- a2; a2 -- H3;\n"
          "a2 -- d; d -- a }\n",
          f);
    assert_int_equal(fclose(f), 0);
    try_all("latency.dot");
}

/* The numbers of the sPIN paper, by hand: 3 switches and 4 cables, 283.6 ns. */
static void by_hand(void **state)
{
    (void)state;
    struct try_net t;
    try_open(&t, "fattree:radix=36,levels=2", &try_config);
    assert_int_equal(t.g.hosts, 648);
    assert_int_equal(try_one(&t, 0, 647, 1, 0), 283600);
    assert_int_equal(try_one(&t, 0, 17, 1, 0), 116800);
    assert_int_equal(try_one(&t, 0, 647, 8192, 0), 283600 + 8191 * 20);
    try_close(&t);
    struct net_config c = try_config;
    c.store_and_forward = true;
    try_open(&t, "fattree:radix=36,levels=3", &c);
    assert_int_equal(t.g.hosts, 11664);
    /* Five switches, six cables, and a whole packet at each switch. */
    assert_int_equal(try_one(&t, 0, 11663, 4096, 0), 250000 + 200400 + 6 * 4095 * 20);
    try_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fat_trees), cmocka_unit_test(tori),    cmocka_unit_test(dragonflies),
        cmocka_unit_test(graphs),    cmocka_unit_test(by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
