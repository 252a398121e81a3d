/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for networks of all shapes; see graph.h. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int net_graph_begin(struct net_graph *g, uint32_t hosts, uint32_t switches, uint64_t channels)
{
    g->hosts = hosts;
    g->switches = switches;
    g->capacity = (uint32_t)channels;
    g->links = malloc(channels * sizeof(*g->links));
    return g->links != NULL ? 0 : -1;
}

void net_graph_add(struct net_graph *g, uint32_t from, uint32_t to)
{
    g->links[g->channels++] = (struct net_link){from, to};
}

void net_graph_host(struct net_graph *g, uint32_t host, uint32_t sw)
{
    net_graph_add(g, host, g->hosts + sw);
    net_graph_add(g, g->hosts + sw, host);
}

int net_graph_ports(struct net_graph *g)
{
    g->first_port = calloc((size_t)g->switches + 2, sizeof(*g->first_port));
    g->ports = malloc(((size_t)g->channels + 1) * sizeof(*g->ports));
    if (g->first_port == NULL || g->ports == NULL) {
        return -1;
    }
    uint32_t *next = g->first_port + 1; /* counts ports first; afterwards it is first_port */
    for (uint32_t c = 0; c < g->channels; c++) {
        if (g->links[c].from >= g->hosts) {
            next[g->links[c].from - g->hosts + 1]++;
        }
    }
    for (uint32_t s = 0; s < g->switches; s++) {
        next[s + 1] += next[s];
    }
    for (uint32_t c = 0; c < g->channels; c++) {
        if (g->links[c].from >= g->hosts) {
            g->ports[next[g->links[c].from - g->hosts]++] = c;
        }
    }
    return 0;
}

int net_graph_open(struct net_graph *g, const struct net_spec *spec, uint32_t ranks,
                   char error[NET_ERROR])
{
    int status;
    *g = (struct net_graph){.kind = spec->kind};
    error[0] = '\0';
    switch (spec->kind) {
    case NET_FATTREE:
        status = net_fattree_build(g, spec, ranks, error);
        break;
    case NET_TORUS:
        status = net_torus_build(g, spec, error);
        break;
    case NET_DRAGONFLY:
        status = net_dragonfly_build(g, spec, error);
        break;
    default:
        status = net_file_build(g, spec, error);
    }
    if (status == 0 && g->hosts < ranks) {
        snprintf(error, NET_ERROR, "%s has %u hosts, too few for %u ranks", spec->text, g->hosts,
                 ranks);
        status = -1;
    }
    if (status != 0) {
        if (error[0] == '\0') {
            snprintf(error, NET_ERROR, "%s: not enough memory", spec->text);
        }
        net_graph_close(g);
    }
    return status;
}

void net_graph_close(struct net_graph *g)
{
    if (g->kind == NET_FILE) {
        free(g->file.distance);
        for (uint32_t i = 0; g->file.names != NULL && i < g->hosts + g->switches; i++) {
            free(g->file.names[i]);
        }
        free(g->file.names);
    }
    free(g->links);
    free(g->first_port);
    free(g->ports);
    *g = (struct net_graph){.kind = NET_TORUS};
}

uint32_t net_vcs(const struct net_graph *g, enum net_routing routing)
{
    switch (g->kind) {
    case NET_FATTREE:
        return 1;
    case NET_TORUS:
        return 2;
    case NET_DRAGONFLY:
        return routing == NET_STATIC ? 2 : 3;
    default:
        return g->longest > 1 ? g->longest - 1 : 1;
    }
}

static uint32_t tree_switches(const struct net_graph *g, uint32_t from, uint32_t to)
{
    for (uint32_t level = 1; level <= g->tree.levels; level++) {
        if (from / g->tree.below[level] == to / g->tree.below[level]) {
            return 2 * level - 1;
        }
    }
    return 2 * g->tree.levels - 1;
}

static uint32_t torus_switches(const struct net_graph *g, uint32_t from, uint32_t to)
{
    uint32_t count = 1;
    for (uint32_t d = 0; d < g->torus.dimensions; d++) {
        uint32_t size = g->torus.size[d], x = from / g->torus.stride[d] % size,
                 y = to / g->torus.stride[d] % size, up = (y + size - x) % size;
        count += up <= size - up ? up : size - up;
    }
    return count;
}

static uint32_t dragonfly_switches(const struct net_graph *g, uint32_t from, uint32_t to)
{
    const struct net_dragonfly *f = &g->dragonfly;
    uint32_t router = from / f->p, last = to / f->p, group = router / f->a, home = last / f->a;
    if (router == last) {
        return 1;
    }
    if (group == home) {
        return 2;
    }
    /* With parallel cables between two groups the destination chooses the cable; see route.c. */
    uint32_t offset = (home + f->groups - group) % f->groups,
             round = f->cables > 1 ? to % f->cables : 0;
    uint32_t out = (round * (f->groups - 1) + offset - 1) / f->h;
    uint32_t in = (round * (f->groups - 1) + f->groups - 1 - offset) / f->h;
    return 2 + (out != router % f->a) + (in != last % f->a);
}

uint32_t net_path_switches(const struct net_graph *g, uint32_t from, uint32_t to)
{
    switch (g->kind) {
    case NET_FATTREE:
        return tree_switches(g, from, to);
    case NET_TORUS:
        return torus_switches(g, from, to);
    case NET_DRAGONFLY:
        return dragonfly_switches(g, from, to);
    default:
        return 1u +
               g->file
                   .distance[(size_t)net_switch_of(g, to) * g->switches + net_switch_of(g, from)];
    }
}

static void torus_name(const struct net_graph *g, uint32_t sw, char *text, size_t size)
{
    int length = snprintf(text, size, "switch ");
    for (uint32_t d = 0; d < g->torus.dimensions; d++) {
        length += snprintf(text + length, size - (size_t)length, "%s%u", d > 0 ? "," : "",
                           sw / g->torus.stride[d] % g->torus.size[d]);
    }
}

static uint32_t level_of(const struct net_tree *t, uint32_t sw)
{
    uint32_t level = 1;
    while (level < t->levels && sw >= t->first[level + 1]) {
        level++;
    }
    return level;
}

void net_node_name(const struct net_graph *g, uint32_t node, char *text, size_t size)
{
    uint32_t sw = node - g->hosts, level;
    if (g->kind == NET_FILE) {
        snprintf(text, size, "%s", g->file.names[node]);
        return;
    }
    if (node < g->hosts) {
        snprintf(text, size, "host %u", node);
        return;
    }
    switch (g->kind) {
    case NET_FATTREE:
        level = level_of(&g->tree, sw);
        snprintf(text, size, "switch %u of level %u", sw - g->tree.first[level], level);
        break;
    case NET_TORUS:
        torus_name(g, sw, text, size);
        break;
    default:
        snprintf(text, size, "router %u of group %u", sw % g->dragonfly.a, sw / g->dragonfly.a);
    }
}

void net_node_word(const struct net_graph *g, uint32_t node, char *text, size_t size)
{
    uint32_t sw = node - g->hosts;
    if (g->kind == NET_FILE) {
        snprintf(text, size, "%s", g->file.names[node]);
    } else if (node < g->hosts) {
        snprintf(text, size, "host%u", node);
    } else if (g->kind == NET_TORUS) {
        torus_name(g, sw, text, size);
        memmove(text + 6, text + 7, strlen(text + 7) + 1); /* without the space */
    } else if (g->kind == NET_DRAGONFLY) {
        snprintf(text, size, "router%u.%u", sw % g->dragonfly.a, sw / g->dragonfly.a);
    } else {
        uint32_t level = level_of(&g->tree, sw), number = sw - g->tree.first[level];
        if (level == 1 || level == g->tree.levels) {
            snprintf(text, size, "%s%u", level == 1 ? "leaf" : "spine", number);
        } else {
            snprintf(text, size, "level%u.%u", level, number);
        }
    }
}

bool net_link_find(const struct net_graph *g, const char *text, uint32_t channel[2])
{
    enum { NAME = 256 };
    char from[NAME], to[NAME], link[2 * NAME + 2];
    bool found[2] = {false, false};
    for (uint32_t i = 0; i < g->channels && !(found[0] && found[1]); i++) {
        net_node_word(g, g->links[i].from, from, sizeof(from));
        net_node_word(g, g->links[i].to, to, sizeof(to));
        for (int back = 0; back < 2; back++) {
            snprintf(link, sizeof(link), "%s-%s", back ? to : from, back ? from : to);
            if (!found[back] && strcmp(link, text) == 0) {
                found[back] = true;
                channel[back] = i;
            }
        }
    }
    return found[0] && found[1];
}
