/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds fat trees, tori and dragonflies; see graph.h. */
#include "graph.h"

#include <stdio.h>

/* A network with more channels than this is refused: a simulation packet by packet would take too
 * long. */
static const uint64_t channels_most = UINT64_C(1) << 27;

static int too_large(const struct net_spec *spec, char error[NET_ERROR])
{
    snprintf(error, NET_ERROR, "%s: too large; at most %llu channels can be simulated", spec->text,
             (unsigned long long)channels_most);
    return -1;
}

/* ---- Fat tree ---- */

/* Computes the shape of a tree with so many levels; false if its hosts cannot be counted in 32
 * bits. */
static bool shape_tree(struct net_tree *t, const struct net_spec *spec, uint32_t levels)
{
    uint32_t up = spec->radix / (1 + spec->oversubscription), half = spec->radix / 2;
    uint64_t hosts = 1;
    *t = (struct net_tree){.levels = levels};
    t->up[0] = 1;
    t->below[0] = 1;
    for (uint32_t i = 1; i <= levels; i++) {
        t->down[i] = i == levels ? spec->radix : i == 1 ? spec->radix - up : half;
        t->up[i] = i == levels ? 0 : i == 1 ? up : half;
        hosts *= t->down[i];
        t->below[i] = hosts;
        if (hosts > channels_most) {
            return false;
        }
    }
    uint32_t low = 1;
    for (uint32_t i = 1; i <= levels; i++) {
        t->low[i] = low *= t->up[i - 1];
        t->first[i + 1] = t->first[i] + low * (uint32_t)(hosts / t->below[i]);
    }
    return true;
}

static uint64_t tree_channels(const struct net_tree *t)
{
    uint64_t hosts = t->below[t->levels], count = 2 * hosts;
    for (uint32_t i = 1; i < t->levels; i++) {
        count += 2 * hosts / t->below[i] * t->low[i] * t->up[i];
    }
    return count;
}

/* Adds the channels of switch s of level i: those to its children, unless the children are hosts,
 * then those to its parents. The switch is parent number `position / low[i - 1]` of each of its
 * children. */
static void wire_switch(struct net_graph *g, uint32_t i, uint32_t s)
{
    const struct net_tree *t = &g->tree;
    uint32_t node = g->hosts + t->first[i] + s, position = s % t->low[i], group = s / t->low[i];
    uint32_t children = i == 1 ? 0 : t->down[i];
    for (uint32_t child = 0; child < children; child++) {
        uint32_t below = position % t->low[i - 1] + t->low[i - 1] * (group * t->down[i] + child);
        net_graph_add(g, node, g->hosts + t->first[i - 1] + below);
    }
    for (uint32_t parent = 0; parent < t->up[i]; parent++) {
        uint32_t above = position + t->low[i] * parent + t->low[i + 1] * (group / t->down[i + 1]);
        net_graph_add(g, node, g->hosts + t->first[i + 1] + above);
    }
}

int net_fattree_build(struct net_graph *g, const struct net_spec *spec, uint32_t ranks,
                      char error[NET_ERROR])
{
    uint32_t levels = spec->levels > 0 ? spec->levels : 1;
    struct net_tree *t = &g->tree;
    bool counted = shape_tree(t, spec, levels);
    while (spec->levels == 0 && counted && t->below[levels] < ranks && levels < NET_LEVELS) {
        counted = shape_tree(t, spec, ++levels);
    }
    if (!counted || tree_channels(t) > channels_most) {
        return too_large(spec, error);
    }
    uint32_t hosts = (uint32_t)t->below[levels];
    if (net_graph_begin(g, hosts, t->first[levels + 1], tree_channels(t)) != 0) {
        return -1;
    }
    for (uint32_t h = 0; h < hosts; h++) {
        net_graph_host(g, h, h / t->down[1]);
    }
    for (uint32_t i = 1; i <= levels; i++) {
        for (uint32_t s = 0; t->first[i] + s < t->first[i + 1]; s++) {
            wire_switch(g, i, s);
        }
    }
    g->longest = 2 * levels - 1;
    return net_graph_ports(g);
}

/* ---- Torus ---- */

int net_torus_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR])
{
    struct net_torus *t = &g->torus;
    uint64_t count = 1;
    uint32_t port = 1; /* port 0 leads to the host */
    t->dimensions = spec->dimensions;
    g->longest = 1;
    for (uint32_t d = 0; d < t->dimensions; d++) {
        t->size[d] = spec->size[d];
        t->stride[d] = (uint32_t)count;
        t->port[d] = port;
        port += t->size[d] > 2 ? 2 : t->size[d] - 1;
        g->longest += t->size[d] / 2;
        count *= t->size[d];
        if (count * (port + 1) > channels_most) {
            return too_large(spec, error);
        }
    }
    if (net_graph_begin(g, (uint32_t)count, (uint32_t)count, count * (port + 1)) != 0) {
        return -1;
    }
    for (uint32_t s = 0; s < count; s++) {
        net_graph_host(g, s, s);
    }
    for (uint32_t s = 0; s < count; s++) {
        for (uint32_t d = 0; d < t->dimensions; d++) {
            uint32_t size = t->size[d], x = s / t->stride[d] % size, base = s - x * t->stride[d];
            uint32_t up = base + (x + 1) % size * t->stride[d],
                     down = base + (x + size - 1) % size * t->stride[d];
            if (size > 1) {
                net_graph_add(g, g->hosts + s, g->hosts + up);
            }
            if (size > 2) {
                net_graph_add(g, g->hosts + s, g->hosts + down);
            }
        }
    }
    return net_graph_ports(g);
}

/* ---- Dragonfly ---- */

/* Returns where port `port` of a group leads: the group, and the port of that group at the other
 * end. */
static void follow(const struct net_dragonfly *f, uint32_t group, uint32_t port, uint32_t *to,
                   uint32_t *to_port)
{
    uint32_t round = port / (f->groups - 1), step = port % (f->groups - 1);
    *to = (group + step + 1) % f->groups;
    *to_port = round * (f->groups - 1) + f->groups - 2 - step;
}

static void wire_router(struct net_graph *g, uint32_t group, uint32_t router)
{
    const struct net_dragonfly *f = &g->dragonfly;
    uint32_t node = g->hosts + group * f->a + router;
    for (uint32_t other = 0; other < f->a; other++) {
        if (other != router) {
            net_graph_add(g, node, g->hosts + group * f->a + other);
        }
    }
    for (uint32_t i = 0; i < f->h; i++) {
        uint32_t port = router * f->h + i, to, to_port;
        if (port < f->cables * (f->groups - 1)) {
            follow(f, group, port, &to, &to_port);
            net_graph_add(g, node, g->hosts + to * f->a + to_port / f->h);
        }
    }
}

int net_dragonfly_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR])
{
    uint64_t most = (uint64_t)spec->a * spec->h + 1, groups = spec->groups;
    groups = groups > 0 ? groups : most;
    if (groups > most) {
        snprintf(error, NET_ERROR,
                 "%s: a group has a * h = %llu cables to others, too few for %llu groups",
                 spec->text, (unsigned long long)most - 1, (unsigned long long)groups);
        return -1;
    }
    uint64_t routers = groups * spec->a, ports = 2 * (uint64_t)spec->p + spec->a + spec->h;
    if (routers > channels_most || routers * ports > channels_most) {
        return too_large(spec, error);
    }
    struct net_dragonfly *f = &g->dragonfly;
    *f = (struct net_dragonfly){spec->a, spec->h, spec->p, (uint32_t)groups,
                                groups > 1 ? (uint32_t)((most - 1) / (groups - 1)) : 0};
    if (net_graph_begin(g, (uint32_t)routers * f->p, (uint32_t)routers, routers * ports) != 0) {
        return -1;
    }
    for (uint32_t host = 0; host < g->hosts; host++) {
        net_graph_host(g, host, host / f->p);
    }
    for (uint32_t r = 0; r < routers; r++) {
        wire_router(g, r / f->a, r % f->a);
    }
    g->longest = 1 + (f->a > 1) + (f->groups > 1) * (1 + (f->a > 1));
    if (f->groups > 1 && f->a > 1) {
        g->longest = 4;
    }
    return net_graph_ports(g);
}
