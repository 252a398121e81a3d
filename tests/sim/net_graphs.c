/* SPDX-License-Identifier: BSD-3-Clause */
/* What networks users can ask for: shapes, Graphviz files, places of ranks, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/net/place.h"
#include "sim/util/parameters.h"

static void shape(const char *text, uint32_t hosts, uint32_t switches, uint32_t channels)
{
    struct net_spec spec;
    struct net_graph g;
    char error[NET_ERROR];
    assert_int_equal(net_spec_parse(&spec, text, error), 0);
    assert_int_equal(net_graph_open(&g, &spec, 1, error), 0);
    assert_int_equal(g.hosts, hosts);
    assert_int_equal(g.switches, switches);
    assert_int_equal(g.channels, channels);
    /* Every channel has one that leads back, and every port is a channel of its switch. */
    for (uint32_t i = 0; i < g.channels; i++) {
        uint32_t back = 0, there = 0;
        for (uint32_t k = 0; k < g.channels; k++) {
            back += g.links[k].from == g.links[i].to && g.links[k].to == g.links[i].from;
            there += g.links[k].from == g.links[i].from && g.links[k].to == g.links[i].to;
        }
        assert_int_equal(back, there);
    }
    for (uint32_t s = 0; s < g.switches; s++) {
        for (uint32_t i = g.first_port[s]; i < g.first_port[s + 1]; i++) {
            assert_int_equal(g.links[g.ports[i]].from, g.hosts + s);
        }
    }
    net_graph_close(&g);
}

static void shapes(void **state)
{
    (void)state;
    shape("fattree:radix=8,levels=1", 8, 1, 16);
    shape("fattree:radix=8,levels=2", 32, 12, 2 * (32 + 32));
    shape("fattree:radix=8,levels=3", 128, 80, 2 * 128 * 3);
    shape("fattree:radix=12,oversubscription=2,levels=2", 96, 16, 2 * (96 + 48));
    shape("torus:5", 5, 5, 10 + 10);
    shape("torus:4x3x2", 24, 24, 48 + 24 * 5);
    shape("dragonfly:a=4,h=2,p=3", 108, 36, 216 + 9 * (12 + 8));
    shape("dragonfly:a=4,h=2,p=1,groups=4", 16, 16, 32 + 4 * (12 + 6)); /* 8 cables: 2 to each */
    shape("dragonfly:a=2,h=1,p=1,groups=1", 2, 2, 4 + 2);
}

static void refused(const char *text, uint32_t ranks, const char *because)
{
    struct net_spec spec;
    struct net_graph g;
    char error[NET_ERROR];
    assert_true(net_spec_parse(&spec, text, error) != 0 ||
                net_graph_open(&g, &spec, ranks, error) != 0);
    if (strstr(error, because) == NULL || strstr(error, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\" of %s", error, because, text);
    }
}

static void bad_shapes(void **state)
{
    (void)state;
    refused("hypercube:4", 1, "must be fattree:");
    refused("fattree:radix=0", 1, "radix=2 to 4096");
    refused("fattree:radix=", 1, "radix=2 to 4096");
    refused("fattree:radix", 1, "\"radix\" must be");
    refused("fattree:width=4", 1, "\"width=4\" must be");
    refused("fattree:radix=9", 1, "must be even");
    refused("fattree:radix=8,oversubscription=2", 1, "multiple of oversubscription + 1 = 3");
    refused("fattree:radix=8,levels=2", 33, "32 hosts, too few for 33 ranks");
    refused("fattree:radix=4096,levels=6", 1, "too large");
    refused("torus", 1, "torus:8x8x8");
    refused("torus:8x", 1, "torus:8x8x8");
    refused("torus:8x0", 1, "from 1 to");
    refused("torus:1x1x1x1x1x1x1x1x1", 1, "up to 8 sizes");
    refused("torus:1000000x1000000", 1, "too large");
    refused("torus:4x4", 17, "16 hosts, too few for 17 ranks");
    refused("dragonfly", 1, "a= is missing");
    refused("dragonfly:a=4,p=2", 1, "h= is missing");
    refused("dragonfly:a=4,h=2,p=2,groups=10", 1, "a * h = 8 cables");
    refused("dragonfly:a=4096,h=4096,p=4096", 1, "too large");
    refused("./nowhere.dot", 1, "No such file");
}

static void levels_by_need(void **state)
{
    (void)state;
    struct net_spec spec;
    struct net_graph g;
    char error[NET_ERROR];
    static const struct {
        uint32_t ranks, hosts;
    } cases[] = {{2, 8}, {8, 8}, {9, 32}, {33, 128}, {129, 512}};
    assert_int_equal(net_spec_parse(&spec, "fattree:radix=8", error), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(net_graph_open(&g, &spec, cases[i].ranks, error), 0);
        assert_int_equal(g.hosts, cases[i].hosts);
        net_graph_close(&g);
    }
}

/* ---- Graphviz ---- */

static void reads(const char *text, uint32_t hosts, uint32_t switches, uint32_t channels,
                  uint32_t longest)
{
    struct net_graph g;
    char error[NET_ERROR] = "";
    if (net_file_parse(&g, "x.dot", text, strlen(text), error) != 0) {
        fail_msg("%s: %s", text, error);
    }
    assert_int_equal(g.hosts, hosts);
    assert_int_equal(g.switches, switches);
    assert_int_equal(g.channels, channels);
    assert_int_equal(g.longest, longest);
    net_graph_close(&g);
}

static void good_files(void **state)
{
    (void)state;
    reads("graph { H1 -- s -- H2 }", 2, 1, 4, 1);
    reads("strict graph \"a b\" {\n# a comment\nrankdir=LR; node [shape=box]; edge[a=b,c=d];\n"
          "H1 -- s [label=\"-> }\", weight=2][x=y]; /* H9 -- s */ s -- H2; // end\n}\n",
          2, 1, 4, 1);
    reads("digraph net { H1->a; a->H1; a->b; b->a; b->a; b -> \"H 2\" -> b; }", 2, 2, 7, 2);
    reads("graph { H1:eth0:n -- \"a\\\"b\" -- H2; -1.5 -- \"a\\\"b\"; }", 2, 2, 6, 1);
    reads("graph { \"H1\" -- s -- t -- u -- H2; s -- u; \"node\" -- s }", 2, 4, 4 + 8, 2);
}

static void bad_file(const char *text, const char *because)
{
    struct net_graph g;
    char error[NET_ERROR] = "";
    assert_int_equal(net_file_parse(&g, "x.dot", text, strlen(text), error), -1);
    net_graph_close(&g);
    if (strstr(error, because) == NULL || strstr(error, "x.dot") != error) {
        fail_msg("\"%s\" does not say \"%s\"", error, because);
    }
}

static void bad_files(void **state)
{
    (void)state;
    bad_file("", "begins with graph or digraph");
    bad_file("graf { }", "line 1: a Graphviz file begins");
    bad_file("graph {\n H1 -- s\n", "line 3: a node, an edge or '}' is expected");
    bad_file("graph {\n H1 -> s\n}", "line 2: -> in a graph");
    bad_file("digraph { H1 -- s }", "-- in a digraph");
    bad_file("graph { H1 -- \"s }", "no end");
    bad_file("graph { H1 -- s [a=b }", "']' is expected");
    bad_file("graph { subgraph x { H1 -- s } }", "subgraphs are not read");
    bad_file("graph { H1 -- { a b } }", "name of a node is expected");
    bad_file("graph { H1 -- s -- H2 } x", "nothing is expected after");
    bad_file("graph { H1 -- s -- s }", "from s to itself");
    bad_file("graph { H1 -- <b>s</b> }", "'<' is not expected");
    bad_file("graph { a -- b }", "there is no host");
    bad_file("graph { H1 -- H2 }", "H1 is joined to host H2");
    bad_file("graph { H1 -- s; H1 -- t; s -- t }", "H1 has two cables");
    bad_file("graph { H1; s }", "H1 must have one cable");
    bad_file("digraph { H1 -> s; s -> H2; H2 -> s }",
             "H1 must have one cable to a switch and back");
    bad_file("graph { H1 -- s; H2 -- t }", "no way leads from H2 to H1");
    bad_file("digraph { H1->s; s->H1; H2->t; t->H2; s->t }", "no way leads from H2 to H1");
}

/* ---- Places of ranks ---- */

static const char *place(const char *how, const char *file, uint32_t ranks, uint32_t host[8])
{
    static char error[NET_ERROR];
    struct net_graph g;
    static const char text[] = "graph { H7 -- s; H5 -- s; H3 -- s; H1 -- s }";
    assert_int_equal(net_file_parse(&g, "x.dot", text, strlen(text), error), 0);
    if (file != NULL) {
        FILE *f = fopen(how, "w");
        assert_non_null(f);
        fputs(file, f);
        assert_int_equal(fclose(f), 0);
    }
    error[0] = '\0';
    int status = net_place(how, &g, ranks, 5, host, error);
    net_graph_close(&g);
    assert_int_equal(status, error[0] == '\0' ? 0 : -1);
    return error;
}

static void places(void **state)
{
    (void)state;
    uint32_t host[8], again[8], seen = 0;
    assert_string_equal(place("linear", NULL, 4, host), "");
    assert_true(host[0] == 0 && host[3] == 3);
    assert_string_equal(place("random", NULL, 4, host), "");
    assert_string_equal(place("random", NULL, 4, again), "");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(host[i], again[i]);
        seen |= 1u << host[i];
    }
    assert_int_equal(seen, 15);
    assert_string_equal(place("p.txt", "# hosts\nH1 0 # first two\n\n2\n", 3, host), "");
    assert_true(host[0] == 3 && host[1] == 0 && host[2] == 2);
    assert_non_null(strstr(place("p.txt", "0 1\n", 3, host), "has hosts for 2 ranks; there are 3"));
    assert_non_null(strstr(place("p.txt", "0\n4\n", 2, host), "line 2: \"4\" is no host"));
    assert_non_null(strstr(place("p.txt", "H9\n", 2, host), "\"H9\" is no host"));
    assert_non_null(strstr(place("p.txt", "1\nH5\n", 2, host), "has rank 0 already"));
    assert_non_null(strstr(place("nowhere.txt", NULL, 2, host), "No such file"));
}

static void rates(void **state)
{
    (void)state;
    uint64_t byte;
    char error[256];
    static const struct {
        const char *text;
        uint64_t byte; /* 0: refused */
    } cases[] = {{"400Gbit/s", 20000000},
                 {"50GB/s", 20000000},
                 {"0.8Tbit/s", 10000000},
                 {"100Mbit/s", 80000000000},
                 {"3B/s", 333333333333333333},
                 {"1kB/s", 1000000000000000},
                 {"400", 0},
                 {"400Gb", 0},
                 {"0GB/s", 0},
                 {"-1GB/s", 0},
                 {"GB/s", 0},
                 {"1.5.2GB/s", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = sim_rate_parse(&byte, "--link-rate", cases[i].text, error, sizeof(error));
        assert_int_equal(status, cases[i].byte != 0 ? 0 : -1);
        if (status == 0) {
            assert_int_equal(byte, cases[i].byte);
        } else {
            assert_non_null(strstr(error, cases[i].text));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),         cmocka_unit_test(bad_shapes),
        cmocka_unit_test(levels_by_need), cmocka_unit_test(good_files),
        cmocka_unit_test(bad_files),      cmocka_unit_test(places),
        cmocka_unit_test(rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
