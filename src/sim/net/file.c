/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a network from a Graphviz file: nodes whose names begin with H are hosts, as in LogGOPSim,
 * all others are switches. It computes the distances between switches.
 */
#include "base/array.h"
#include "dot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SWITCHES_MOST = 8192, SWITCHES_LONGEST = 256 };
static const size_t file_most = (size_t)1 << 28;
#define FAR UINT16_MAX

static bool is_host(const char *name)
{
    return name[0] == 'H';
}

/* Returns the numbers of nodes in the graph, by their numbers in the file; g->file.names gets the
 * nodes' names. */
static uint32_t *number_nodes(struct net_graph *g, struct net_dot *d)
{
    uint32_t *number = malloc((d->nodes + 1) * sizeof(*number));
    uint32_t host = 0, sw = 0;
    g->file.names = calloc((size_t)d->nodes + 1, sizeof(*g->file.names));
    if (number == NULL || g->file.names == NULL) {
        free(number);
        return NULL;
    }
    for (struct net_dot_node *n = d->node; n != NULL; n = n->hh.next) {
        number[n->number] = is_host(n->name) ? host++ : g->hosts + sw++;
        g->file.names[number[n->number]] = n->name;
        n->name = NULL;
    }
    return number;
}

/* Adds the cable of each host: one channel to its switch and one back. */
static int wire_hosts(struct net_graph *g, const struct net_dot *d, const char *name,
                      const uint32_t *number, char error[NET_ERROR])
{
    /* by host, switch + 1: at the end of the channel from it, and of the one to it; 0: none yet */
    struct net_link *cable = calloc(g->hosts, sizeof(*cable));
    if (cable == NULL) {
        return -1;
    }
    for (size_t i = 0; i < d->edges && error[0] == '\0'; i++) {
        uint32_t from = number[d->edge[i].from], to = number[d->edge[i].to];
        uint32_t host = from < g->hosts ? from : to, other = from < g->hosts ? to : from;
        if (host >= g->hosts) {
            continue;
        }
        uint32_t *end = from < g->hosts ? &cable[host].to : &cable[host].from;
        if (other < g->hosts) {
            snprintf(error, NET_ERROR,
                     "%.200s: host %.60s is joined to host %.60s; hosts are joined to "
                     "switches",
                     name, g->file.names[from], g->file.names[to]);
        } else if (*end != 0) {
            snprintf(error, NET_ERROR, "%.200s: host %.60s has two cables; a host has one", name,
                     g->file.names[host]);
        }
        *end = other + 1;
    }
    for (uint32_t h = 0; h < g->hosts && error[0] == '\0'; h++) {
        if (cable[h].to == 0 || cable[h].from != cable[h].to) {
            snprintf(error, NET_ERROR,
                     "%.200s: host %.60s must have one cable to a switch and back", name,
                     g->file.names[h]);
        } else {
            net_graph_host(g, h, cable[h].to - 1 - g->hosts);
        }
    }
    free(cable);
    return error[0] == '\0' ? 0 : -1;
}

static int wire(struct net_graph *g, struct net_dot *d, const char *name, char error[NET_ERROR])
{
    uint32_t *number = number_nodes(g, d);
    if (number == NULL) {
        return -1;
    }
    int status = wire_hosts(g, d, name, number, error);
    for (size_t i = 0; i < d->edges && status == 0; i++) {
        uint32_t from = number[d->edge[i].from], to = number[d->edge[i].to];
        if (from >= g->hosts && to >= g->hosts) {
            net_graph_add(g, from, to);
        }
    }
    free(number);
    return status == 0 ? net_graph_ports(g) : -1;
}

/* ---- Distances ---- */

/* By switch: the switches from which a channel leads to it. Channels of hosts are left out. */
struct inwards {
    uint32_t *first, *from;
};

static int find_inwards(const struct net_graph *g, struct inwards *in)
{
    in->first = calloc((size_t)g->switches + 2, sizeof(*in->first));
    in->from = malloc(((size_t)g->channels + 1) * sizeof(*in->from));
    if (in->first == NULL || in->from == NULL) {
        return -1;
    }
    uint32_t *next = in->first + 1;
    for (uint32_t c = 2 * g->hosts; c < g->channels; c++) {
        next[g->links[c].to - g->hosts + 1]++;
    }
    for (uint32_t s = 0; s < g->switches; s++) {
        next[s + 1] += next[s];
    }
    for (uint32_t c = 2 * g->hosts; c < g->channels; c++) {
        in->from[next[g->links[c].to - g->hosts]++] = g->links[c].from - g->hosts;
    }
    return 0;
}

/* Computes the distance of every switch from switch `to`, by a breadth-first search; `queue` has
 * room for all switches. */
static void spread(const struct net_graph *g, const struct inwards *in, uint32_t to,
                   uint16_t *distance, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    memset(distance, 0xff, g->switches * sizeof(*distance));
    distance[to] = 0;
    queue[tail++] = to;
    while (head < tail) {
        uint32_t s = queue[head++];
        for (uint32_t i = in->first[s]; i < in->first[s + 1]; i++) {
            uint32_t before = in->from[i];
            if (distance[before] == FAR) {
                distance[before] = (uint16_t)(distance[s] + 1);
                queue[tail++] = before;
            }
        }
    }
}

/* Checks that every host can reach every other, and finds the longest of the shortest routes. */
static int check_ways(struct net_graph *g, const char *name, char error[NET_ERROR])
{
    g->longest = 1;
    uint32_t before = UINT32_MAX;
    for (uint32_t to = 0; to < g->hosts; to++) {
        uint32_t sw = net_switch_of(g, to);
        if (sw == before) {
            continue; /* the row of this switch was checked for the host before */
        }
        before = sw;
        for (uint32_t from = 0; from < g->hosts; from++) {
            uint32_t far = g->file.distance[(size_t)sw * g->switches + net_switch_of(g, from)];
            if (far == FAR) {
                snprintf(error, NET_ERROR, "%.200s: no way leads from %.60s to %.60s", name,
                         g->file.names[from], g->file.names[to]);
                return -1;
            }
            g->longest = far + 1 > g->longest ? far + 1 : g->longest;
        }
    }
    if (g->longest > SWITCHES_LONGEST) {
        snprintf(error, NET_ERROR,
                 "%.200s: a shortest way has %u switches; at most %d can be simulated", name,
                 g->longest, SWITCHES_LONGEST);
        return -1;
    }
    return 0;
}

int net_file_measure(struct net_graph *g, const char *name, char error[NET_ERROR])
{
    struct inwards in = {NULL, NULL};
    uint32_t *queue = malloc(g->switches * sizeof(*queue));
    g->file.distance = malloc((size_t)g->switches * g->switches * sizeof(*g->file.distance));
    int status = queue != NULL && g->file.distance != NULL ? find_inwards(g, &in) : -1;
    if (status == 0) {
        for (uint32_t to = 0; to < g->switches; to++) {
            spread(g, &in, to, g->file.distance + (size_t)to * g->switches, queue);
        }
        status = check_ways(g, name, error);
    }
    free(queue);
    free(in.first);
    free(in.from);
    return status;
}

/* ---- The file ---- */

static int check_counts(const struct net_graph *g, const struct net_dot *d, const char *name,
                        char error[NET_ERROR])
{
    if (g->hosts == 0) {
        snprintf(error, NET_ERROR,
                 "%.200s: there is no host; nodes whose names begin with H are hosts", name);
    } else if (g->switches > SWITCHES_MOST) {
        snprintf(error, NET_ERROR, "%.200s: %u switches; at most %d can be simulated", name,
                 g->switches, SWITCHES_MOST);
    } else if (d->edges > (1u << 27)) {
        snprintf(error, NET_ERROR, "%.200s: too many edges", name);
    }
    return error[0] == '\0' ? 0 : -1;
}

int net_file_parse(struct net_graph *g, const char *name, const char *text, size_t length,
                   char error[NET_ERROR])
{
    struct net_dot d;
    uint32_t hosts = 0;
    *g = (struct net_graph){.kind = NET_FILE};
    error[0] = '\0';
    if (net_dot_read(&d, name, text, length, error) != 0) {
        return -1;
    }
    for (const struct net_dot_node *n = d.node; n != NULL; n = n->hh.next) {
        hosts += is_host(n->name);
    }
    g->hosts = hosts;
    g->switches = d.nodes - hosts;
    int status = check_counts(g, &d, name, error);
    if (status == 0) {
        status = net_graph_begin(g, hosts, d.nodes - hosts, d.edges + 2 * (size_t)hosts + 1);
    }
    if (status == 0) {
        status = wire(g, &d, name, error);
    }
    net_dot_free(&d);
    return status == 0 ? net_file_measure(g, name, error) : -1;
}

static int read_all(FILE *f, char **text, size_t *length)
{
    size_t room = 0;
    for (*length = 0; ARRAY_ROOM(*text, *length, room, 1 << 16);) {
        *length += fread(*text + *length, 1, room - *length, f);
        if (*length < room) {
            return ferror(f) != 0 ? -1 : 0;
        }
        if (room >= file_most) {
            errno = EFBIG;
            return -1;
        }
    }
    return -1;
}

int net_file_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR])
{
    char *text = NULL;
    size_t length;
    FILE *f = fopen(spec->text, "rb");
    if (f == NULL || read_all(f, &text, &length) != 0) {
        snprintf(error, NET_ERROR, "%.300s: %s", spec->text, strerror(errno));
        if (f != NULL) {
            fclose(f);
        }
        free(text);
        return -1;
    }
    fclose(f);
    int status = net_file_parse(g, spec->text, text, length, error);
    free(text);
    return status;
}
