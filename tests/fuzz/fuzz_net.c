/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what reads networks: Graphviz files. One that is accepted is a network in
 * which a message from each of a few hosts to each comes, over as many channels as the
 * distances say. An input of one line without braces is taken for a --network option.
 */
#include "fuzz.h"

#include "sim/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void left(void *context, uint32_t ref, uint64_t time, uint64_t waited)
{
    (void)context;
    (void)ref;
    (void)time;
    (void)waited;
}

static void deliver(void *context, uint32_t ref, const struct net_arrival *a, uint64_t now)
{
    MUST(a->first <= a->last && a->last <= now && ref < 64);
    MUST(a->last_way.path + a->last_way.serial <= a->last);
    (*(uint64_t *)context)++;
}

static void try_network(const struct net_graph *g)
{
    uint64_t came = 0, sent = 0, time, hops = 0;
    char error[NET_ERROR];
    struct net_hooks hooks = {left, deliver, NULL, &came};
    struct net_config c = {
        .packet = 100, .buffer = 100, .byte = 1000000, .hop = 10, .cable = 1, .seed = 1};
    struct net *n = net_open(g, &c, &hooks);
    MUST(n != NULL);
    for (uint32_t from = 0; from < g->hosts && from < 8; from++) {
        for (uint32_t to = 0; to < g->hosts && to < 8; to++) {
            struct net_message m = {.from = from, .to = to, .bytes = 250, .ref = 8 * from + to};
            MUST(net_send(n, &m) == 0);
            hops += from != to ? 3 * (net_path_switches(g, from, to) + 1) : 0;
            sent++;
        }
    }
    while (net_next(n, &time)) {
        MUST(net_step(n) == 0);
    }
    MUST(came == sent && net_counts(n)->hops == hops);
    MUST(net_check(n, error) == 0);
    net_close(n);
}

static void check_option(const char *text)
{
    char error[NET_ERROR] = "";
    struct net_spec spec;
    if (net_spec_parse(&spec, text, error) != 0) {
        MUST(error[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { TEXT_MAX = 5000 };
    struct net_graph g;
    char error[NET_ERROR] = "", option[128];
    if (size >= TEXT_MAX) {
        return 0;
    }
    if (size < sizeof(option) && memchr(data, '{', size) == NULL) {
        memcpy(option, data, size);
        option[size] = '\0';
        check_option(option);
    }
    if (net_file_parse(&g, "input", (const char *)data, size, error) == 0) {
        try_network(&g);
    } else {
        MUST(strncmp(error, "input", 5) == 0);
    }
    net_graph_close(&g);
    return 0;
}
