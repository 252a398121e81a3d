/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many packets at saturation, with the least buffers that there can be, so that
 * virtual channels are full everywhere: all must come, and the invariants hold all the time.
 * Usage: net_million [PACKETS], in each topology.
 */
#include "net_try.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What came, and when: runs that differ anywhere differ here. */
struct outcome {
    struct net_counts counts;
    uint64_t last;
};

static uint64_t bytes_at(struct try_net *t)
{
    return 1 + try_draw(t) % (3 * TRY_PACKET);
}

/* Half of the messages go to hosts drawn by lot, the others as far as the next quarter of
 * all hosts: round rings, to other groups, to other subtrees. */
static uint32_t aim(struct try_net *t, uint32_t from)
{
    if (try_draw(t) % 2 == 0) {
        return (uint32_t)(try_draw(t) % t->g.hosts);
    }
    return (uint32_t)((from + t->g.hosts / 4 + try_draw(t) % 2) % t->g.hosts);
}

static int fill(struct try_net *t, uint64_t packets)
{
    uint64_t sent = 0;
    while (sent < packets) {
        uint32_t from = (uint32_t)(try_draw(t) % t->g.hosts);
        struct net_message m = {.from = from,
                                .to = aim(t, from),
                                .bytes = bytes_at(t),
                                .time = sent / t->g.hosts * TRY_PACKET * 20,
                                .pace = t->c.byte,
                                .ordered = try_draw(t) % 4 != 0,
                                .ref = from};
        sent += m.from != m.to ? (m.bytes + TRY_PACKET - 1) / TRY_PACKET : 0;
        if (net_send(t->n, &m) != 0) {
            return -1;
        }
    }
    return 0;
}

static struct outcome run(const char *spec, const struct net_config *c, uint64_t packets)
{
    struct try_net t;
    try_open(&t, spec, c);
    if (fill(&t, packets) != 0) {
        fprintf(stderr, "%s: cannot send\n", spec);
        exit(1);
    }
    try_drain(&t);
    struct outcome o = {*net_counts(t.n), t.last};
    try_close(&t);
    return o;
}

static void write_graph(const char *path)
{
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    fprintf(f, "graph {\n"); /* a wheel of 16 switches with spokes to every fourth */
    for (int i = 0; i < 16; i++) {
        fprintf(f, "  H%d -- s%d; H%d -- s%d;\n  s%d -- s%d;\n", 2 * i, i, 2 * i + 1, i, i,
                (i + 1) % 16);
    }
    fprintf(f, "  s0 -- hub; s4 -- hub; s8 -- hub; s12 -- hub\n}\n");
    fclose(f);
}

int main(int argc, char **argv)
{
    static const char *const specs[] = {"fattree:radix=8,levels=3",
                                        "fattree:radix=12,levels=2,oversubscription=2",
                                        "torus:16",
                                        "torus:5x6x4",
                                        "dragonfly:a=4,h=2,p=2",
                                        "dragonfly:a=4,h=2,p=2,groups=4",
                                        "wheel.dot"};
    uint64_t packets = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    write_graph("wheel.dot");
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        for (int mode = 0; mode < 4; mode++) {
            struct net_config c = try_config;
            c.buffer = TRY_PACKET;
            c.routing = mode / 2 == 0 ? NET_STATIC : NET_ADAPTIVE;
            c.store_and_forward = mode % 2 != 0;
            struct outcome o = run(specs[i], &c, packets);
            printf("%s, %s, %s: %" PRIu64 " packets, %" PRIu64 " hops, %" PRIu64 " waits\n",
                   specs[i], mode / 2 == 0 ? "static" : "adaptive",
                   mode % 2 != 0 ? "store-and-forward" : "cut-through", o.counts.packets,
                   o.counts.hops, o.counts.waits);
            if (o.counts.packets < packets * 3 / 4 || o.counts.waits < o.counts.packets) {
                fprintf(stderr, "the network was not full\n");
                return 1;
            }
            if (mode == 2) {
                struct outcome again = run(specs[i], &c, packets);
                if (memcmp(&o, &again, sizeof(o)) != 0) {
                    fprintf(stderr, "a second run differs\n");
                    return 1;
                }
            }
        }
    }
    return 0;
}
