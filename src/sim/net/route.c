/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routing: at each switch it chooses the channel by which a packet leaves, and the virtual channel.
 * docs/network-model.md proves that virtual channels cannot wait for each other in a cycle.
 */
#include "state.h"

#include "sim/util/random.h"

/* ---- Fat tree: up to a switch above the destination, then down ---- */

static uint32_t route_tree(const struct net *n, struct net_packet *p, uint32_t sw)
{
    const struct net_graph *g = n->g;
    const struct net_tree *t = &g->tree;
    uint32_t level = 1;
    while (level < t->levels && sw >= t->first[level + 1]) {
        level++;
    }
    uint32_t group = (sw - t->first[level]) / t->low[level];
    if (p->to / t->below[level] == group) {
        uint32_t child = (uint32_t)(p->to / t->below[level - 1] % t->down[level]);
        return net_port(g, sw, child);
    }
    uint32_t up = t->up[level], choice = p->to / t->low[level] % up;
    uint32_t best = net_port(g, sw, t->down[level] + choice);
    for (uint32_t i = 1; n->c.routing == NET_ADAPTIVE && i < up; i++) {
        uint32_t other = net_port(g, sw, t->down[level] + (choice + i) % up);
        best = net_load(n, other) < net_load(n, best) ? other : best;
    }
    return best;
}

/* ---- Torus: one dimension after the other; virtual channel 1 after the dateline ---- */

static uint32_t coordinate(const struct net_torus *t, uint32_t sw, uint32_t d)
{
    return sw / t->stride[d] % t->size[d];
}

/* If both ways round are equally long, half of the pairs of hosts take each: the way upwards if the
 * sum of the coordinates is even. */
static bool upwards_if_even(const struct net_torus *t, uint32_t from, uint32_t to, uint32_t d)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < t->dimensions; i++) {
        sum += coordinate(t, from, i) + (i != d ? coordinate(t, to, i) : 0);
    }
    return sum % 2 == 0;
}

static void choose_way(const struct net *n, struct net_packet *p, uint32_t sw, uint32_t d,
                       uint32_t up)
{
    const struct net_torus *t = &n->g->torus;
    uint32_t size = t->size[d], down = size - up, port = t->port[d];
    uint32_t from = p->from;
    p->dimension = (uint8_t)d;
    p->crossed = false;
    p->up = up != down ? up < down : size == 2 || upwards_if_even(t, from, p->to, d);
    if (n->c.routing == NET_ADAPTIVE && size > 2) {
        uint64_t load[2] = {net_load(n, net_port(n->g, sw, port)),
                            net_load(n, net_port(n->g, sw, port + 1))};
        unsigned __int128 by_up = (unsigned __int128)load[0] * up,
                          by_down = (unsigned __int128)load[1] * down;
        p->up = by_up != by_down ? by_up < by_down : p->up;
    }
}

static uint32_t route_torus(const struct net *n, struct net_packet *p, uint32_t sw)
{
    const struct net_torus *t = &n->g->torus;
    for (uint32_t d = 0; d < t->dimensions; d++) {
        uint32_t size = t->size[d], x = coordinate(t, sw, d), y = coordinate(t, p->to, d);
        if (x == y) {
            continue;
        }
        if (p->dimension != d) {
            choose_way(n, p, sw, d, y > x ? y - x : y + size - x);
        }
        p->crossed |= x == (p->up ? size - 1 : 0);
        p->next = p->crossed;
        return net_port(n->g, sw, t->port[d] + (size > 2 && !p->up));
    }
    return 2 * p->to + 1;
}

/* ---- Dragonfly: the virtual channel is the number of groups passed ---- */

/* Returns the port, counted over all routers of `group`, by which a packet leaves it for the group
 * `target`. */
static uint32_t exit_port(const struct net_dragonfly *f, uint32_t group, uint32_t target,
                          uint32_t to)
{
    uint32_t offset = (target + f->groups - group) % f->groups;
    return (to % f->cables) * (f->groups - 1) + offset - 1;
}

static uint32_t channel_to(const struct net_graph *g, uint32_t sw, uint32_t exit)
{
    const struct net_dragonfly *f = &g->dragonfly;
    uint32_t router = sw % f->a, out = exit / f->h;
    if (router == out) {
        return net_port(g, sw, f->p + f->a - 1 + exit % f->h);
    }
    return net_port(g, sw, f->p + (out < router ? out : out - 1));
}

/* Returns how many channels lead from router `sw` to the group `target`; *in is the router at which
 * the last one arrives. */
static uint32_t count_way(const struct net_dragonfly *f, uint32_t sw, uint32_t target, uint32_t to,
                          uint32_t *in)
{
    uint32_t group = sw / f->a, out = exit_port(f, group, target, to) / f->h;
    *in = target * f->a + exit_port(f, target, group, to) / f->h;
    return 1 + (sw % f->a != out);
}

/* Chooses the group by which a packet goes, at its first router: directly, or by a random other
 * group if the direct way has more load. */
static void choose_group(const struct net *n, struct net_packet *p, uint32_t sw, uint32_t home)
{
    const struct net_dragonfly *f = &n->g->dragonfly;
    uint32_t group = sw / f->a, last = net_switch_of(n->g, p->to), in;
    if (group == home || f->groups < 3) {
        return;
    }
    uint32_t low = group < home ? group : home, high = group < home ? home : group;
    uint32_t via = (uint32_t)goal_scale(goal_random(n->c.seed, p->serial), f->groups - 3);
    via += via >= low;
    via += via >= high;
    uint64_t direct = count_way(f, sw, home, p->to, &in);
    direct += in != last;
    uint64_t around = count_way(f, sw, via, p->to, &in);
    around += count_way(f, in, home, p->to, &in);
    around += in != last;
    uint32_t short_way = channel_to(n->g, sw, exit_port(f, group, home, p->to)),
             long_way = channel_to(n->g, sw, exit_port(f, group, via, p->to));
    if ((unsigned __int128)net_load(n, short_way) * direct >
        (unsigned __int128)net_load(n, long_way) * around) {
        p->via = via;
    }
}

static uint32_t route_dragonfly(const struct net *n, struct net_packet *p, uint32_t sw)
{
    const struct net_graph *g = n->g;
    const struct net_dragonfly *f = &g->dragonfly;
    uint32_t last = net_switch_of(g, p->to), home = last / f->a, group = sw / f->a;
    if (sw == last) {
        return 2 * p->to + 1;
    }
    if (n->c.routing == NET_ADAPTIVE && net_from_host(n, p->channel)) {
        choose_group(n, p, sw, home);
    }
    if (p->via == group) {
        p->via = NET_NONE;
    }
    p->next = p->hops;
    if (group == home && p->via == NET_NONE) {
        uint32_t router = sw % f->a, other = last % f->a;
        return net_port(g, sw, f->p + (other < router ? other : other - 1));
    }
    uint32_t exit = exit_port(f, group, p->via != NET_NONE ? p->via : home, p->to);
    p->hops += exit / f->h == sw % f->a;
    return channel_to(g, sw, exit);
}

/* ---- Any graph: shortest routes; a virtual channel for each hop between switches ---- */

static uint32_t route_file(const struct net *n, struct net_packet *p, uint32_t sw)
{
    const struct net_graph *g = n->g;
    uint32_t last = net_switch_of(g, p->to), count = 0;
    const uint16_t *distance = g->file.distance + (size_t)last * g->switches;
    if (sw == last) {
        return 2 * p->to + 1;
    }
    uint32_t begin = g->first_port[sw], end = g->first_port[sw + 1];
    for (uint32_t i = begin; i < end; i++) {
        uint32_t to = g->links[g->ports[i]].to;
        count += to >= g->hosts && distance[to - g->hosts] + 1 == distance[sw];
    }
    /* The candidates are the ports that lead nearer to the destination. The search begins with the
     * one that static routing takes for this destination. */
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a network is connected */
    uint32_t first = p->to % count, best = NET_NONE, kept = NET_NONE, k = 0;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t c = g->ports[i], to = g->links[c].to;
        if (to < g->hosts || distance[to - g->hosts] + 1 != distance[sw]) {
            continue;
        }
        kept = k++ == first ? c : kept;
        best = best == NET_NONE || net_load(n, c) < net_load(n, best) ? c : best;
    }
    if (n->c.routing == NET_STATIC || net_load(n, kept) <= net_load(n, best)) {
        best = kept;
    }
    p->next = p->hops++;
    return best;
}

uint32_t net_route(const struct net *n, struct net_packet *p, uint32_t sw)
{
    p->next = 0;
    switch (n->g->kind) {
    case NET_FATTREE:
        return route_tree(n, p, sw);
    case NET_TORUS:
        return route_torus(n, p, sw);
    case NET_DRAGONFLY:
        return route_dragonfly(n, p, sw);
    default:
        return route_file(n, p, sw);
    }
}
