/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shape of a network: hosts, switches, and channels, each of which is one direction of a cable.
 * docs/network-model.md has the topologies, their routes, and the reason why routing cannot
 * deadlock.
 *
 *   nodes      0 .. hosts-1 are hosts, from there on switches
 *   channels   2h leads from host h to its switch, 2h+1 back; those between
 *              switches follow
 *   ports      the channels that leave a switch, in a fixed order: those to its
 *              hosts first, then as the topology says
 *
 * Invariant: every host has one cable, and there is a route from every host to every other. Nothing
 * of it changes during a simulation.
 */
#ifndef SIM_NET_GRAPH_H
#define SIM_NET_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_ERROR = 512 };
enum net_kind { NET_FATTREE, NET_TORUS, NET_DRAGONFLY, NET_FILE };
enum net_routing { NET_STATIC, NET_ADAPTIVE };
enum { NET_LEVELS = 6, NET_DIMENSIONS = 8 };

/* The network that a user asks for: "fattree:radix=36", "torus:8x8x8", "dragonfly:a=8,h=4,p=4", or
 * the name of a Graphviz file. */
struct net_spec {
    const char *text;
    enum net_kind kind;
    uint32_t radix, oversubscription, levels; /* fattree; levels 0: as many as the ranks need */
    uint32_t dimensions, size[NET_DIMENSIONS];
    uint32_t a, h, p, groups; /* dragonfly; groups 0: a * h + 1 */
};

/* A fat tree. A switch of level i has down[i] children and up[i] parents; level 0 are the hosts.
 * The number of a switch within its level is (its position among the switches above the same hosts)
 * + low[i] * (number of that group of hosts). */
struct net_tree {
    uint32_t levels;
    /* up[i]: parents of a node of level i, down[i]: its children */
    uint32_t down[NET_LEVELS + 1], up[NET_LEVELS + 1];
    uint32_t first[NET_LEVELS + 2]; /* by level: number of its first switch */
    /* by level: hosts below one of its switches */
    uint64_t below[NET_LEVELS + 1];
    uint32_t low[NET_LEVELS + 1]; /* by level: how many of its switches are above the same hosts */
};

struct net_torus {
    uint32_t dimensions, size[NET_DIMENSIONS];
    uint32_t stride[NET_DIMENSIONS];
    /* by dimension: port of the channel upwards; the next port is that of the channel downwards */
    uint32_t port[NET_DIMENSIONS];
};

/* A dragonfly. The ports between groups are numbered over all routers of a group: port j leads to
 * the group `j % (groups - 1) + 1` further on. */
struct net_dragonfly {
    uint32_t a, h, p, groups;
    uint32_t cables; /* parallel cables between each two groups */
};

struct net_file {
    uint16_t *distance; /* distance from switch to switch; a row for each destination */
    char **names;       /* by node */
};

struct net_link {
    uint32_t from, to; /* nodes */
};

struct net_graph {
    enum net_kind kind;
    uint32_t hosts, switches, channels, capacity;
    uint32_t longest; /* switches on the longest of all shortest routes */
    struct net_link *links;
    /* by switch: its first index in `ports`; one more behind the last switch */
    uint32_t *first_port;
    uint32_t *ports;
    union {
        struct net_tree tree;
        struct net_torus torus;
        struct net_dragonfly dragonfly;
        struct net_file file;
    };
};

/* net_spec_parse() reads the network that the user asks for; -1 with `error` set. `text` must
 * outlive `spec`. */
int net_spec_parse(struct net_spec *spec, const char *text, char error[NET_ERROR]);

/* net_graph_open() builds the network, with at least `ranks` hosts; -1 with `error` set and nothing
 * to close. */
int net_graph_open(struct net_graph *g, const struct net_spec *spec, uint32_t ranks,
                   char error[NET_ERROR]);
void net_graph_close(struct net_graph *g);

/* net_vcs() returns how many virtual channels the routing needs on channels between switches. */
uint32_t net_vcs(const struct net_graph *g, enum net_routing routing);

/* net_path_switches() returns how many switches a static route has, or, where routes are not fixed,
 * a shortest one. */
uint32_t net_path_switches(const struct net_graph *g, uint32_t from, uint32_t to);

/* net_node_name() writes the name by which reports call a node. */
void net_node_name(const struct net_graph *g, uint32_t node, char *text, size_t size);

/* net_node_word() writes a name of a node without spaces: host0, leaf0, spine2 and, between these,
 * level2.1; switch0,1; router3.1, router 3 of group 1; of a file its own. net_link_find() finds
 * the link between two nodes that "NODE-NODE" names, as its two channels; false: there is none. */
void net_node_word(const struct net_graph *g, uint32_t node, char *text, size_t size);
bool net_link_find(const struct net_graph *g, const char *text, uint32_t channel[2]);

static inline uint32_t net_switch_of(const struct net_graph *g, uint32_t host)
{
    return g->links[2 * (size_t)host].to - g->hosts;
}

static inline uint32_t net_port(const struct net_graph *g, uint32_t sw, uint32_t port)
{
    return g->ports[g->first_port[sw] + port];
}

/* ---- Functions that build topologies ---- */

/* net_graph_begin() makes `hosts` hosts and `switches` switches without cables. net_graph_host()
 * adds the cable of a host; the cables of all hosts must be added first, in order. net_graph_add()
 * adds a channel. net_graph_ports() is called when all channels are there. They return -1 if memory
 * is short. */
int net_graph_begin(struct net_graph *g, uint32_t hosts, uint32_t switches, uint64_t channels);
void net_graph_add(struct net_graph *g, uint32_t from, uint32_t to);
void net_graph_host(struct net_graph *g, uint32_t host, uint32_t sw);
int net_graph_ports(struct net_graph *g);

int net_fattree_build(struct net_graph *g, const struct net_spec *spec, uint32_t ranks,
                      char error[NET_ERROR]);
int net_torus_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR]);
int net_dragonfly_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR]);
int net_file_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR]);

/* net_file_parse() is net_file_build() for text in memory instead of a file. */
int net_file_parse(struct net_graph *g, const char *name, const char *text, size_t length,
                   char error[NET_ERROR]);
/* net_file_measure() computes the distances; it fails if a host cannot reach another one. */
int net_file_measure(struct net_graph *g, const char *name, char error[NET_ERROR]);

#endif
