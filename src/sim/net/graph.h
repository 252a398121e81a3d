/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shape of a network: hosts, switches, and channels, each of which leads one
 * way along a cable; and who goes where in it. docs/network-model.md has the
 * topologies, their routes and why these cannot lock each other up.
 *
 *   nodes      0 .. hosts-1 are hosts, from there on switches
 *   channels   2h leads from host h to its switch, 2h+1 back; those between
 *              switches follow
 *   ports      the channels that leave a switch, in a fixed order: those to its
 *              hosts first, then as the topology says
 *
 * Invariant: every host has one cable, and a route leads from each to each. Nothing
 * here changes while a network is simulated.
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

/* The network that a user asks for: fattree:radix=36, torus:8x8x8, dragonfly:a=8,h=4,p=4, FILE.dot.
 */
struct net_spec {
    const char *text;
    enum net_kind kind;
    uint32_t radix, oversubscription, levels; /* fattree; levels 0: as many as the ranks need */
    uint32_t dimensions, size[NET_DIMENSIONS];
    uint32_t a, h, p, groups; /* dragonfly; groups 0: a * h + 1 */
};

/* A tree's level i has switches with `down` children and `up` parents each; level 0
 * is the hosts. A switch is (position among parents) + low * (group of hosts). */
struct net_tree {
    uint32_t levels;
    uint32_t down[NET_LEVELS + 1], up[NET_LEVELS + 1]; /* up[i]: parents of a node of level i */
    uint32_t first[NET_LEVELS + 2];                    /* number of the first switch of a level */
    uint64_t below[NET_LEVELS + 1];                    /* hosts below a switch of a level */
    uint32_t low[NET_LEVELS + 1]; /* switches of a level above the same hosts */
};

struct net_torus {
    uint32_t dimensions, size[NET_DIMENSIONS];
    uint32_t stride[NET_DIMENSIONS];
    uint32_t port[NET_DIMENSIONS]; /* of the channel upwards; the one downwards follows */
};

/* Port j of a group, counted over its routers, leads `j % (groups - 1) + 1` groups on. */
struct net_dragonfly {
    uint32_t a, h, p, groups;
    uint32_t cables; /* between each two groups */
};

struct net_file {
    uint16_t *distance; /* from switch to switch: row by destination */
    char **names;       /* of nodes */
};

struct net_link {
    uint32_t from, to; /* nodes */
};

struct net_graph {
    enum net_kind kind;
    uint32_t hosts, switches, channels, capacity;
    uint32_t longest; /* switches on the longest route that is a shortest one */
    struct net_link *links;
    uint32_t *first_port; /* by switch, and one more */
    uint32_t *ports;
    union {
        struct net_tree tree;
        struct net_torus torus;
        struct net_dragonfly dragonfly;
        struct net_file file;
    };
};

/* net_spec_parse() reads what the user wrote; -1 with `error` set. `text` must outlive it. */
int net_spec_parse(struct net_spec *spec, const char *text, char error[NET_ERROR]);

/* net_graph_open() builds the network for at least `ranks` hosts; -1 with `error` set
 * and nothing to close. */
int net_graph_open(struct net_graph *g, const struct net_spec *spec, uint32_t ranks,
                   char error[NET_ERROR]);
void net_graph_close(struct net_graph *g);

/* net_vcs() says how many virtual channels the routing needs between switches. */
uint32_t net_vcs(const struct net_graph *g, enum net_routing routing);

/* net_path_switches() counts the switches of a static route, or of a shortest one. */
uint32_t net_path_switches(const struct net_graph *g, uint32_t from, uint32_t to);

/* net_node_name() writes what people call a node. */
void net_node_name(const struct net_graph *g, uint32_t node, char *text, size_t size);

static inline uint32_t net_switch_of(const struct net_graph *g, uint32_t host)
{
    return g->links[2 * (size_t)host].to - g->hosts;
}

static inline uint32_t net_port(const struct net_graph *g, uint32_t sw, uint32_t port)
{
    return g->ports[g->first_port[sw] + port];
}

/* ---- For topologies ---- */

/* net_graph_begin() makes `hosts` hosts and `switches` switches without cables,
 * net_graph_add() a channel, net_graph_host() the cable of host `host`: those of all
 * hosts come first, in order. net_graph_ports() follows all. -1: memory is short. */
int net_graph_begin(struct net_graph *g, uint32_t hosts, uint32_t switches, uint64_t channels);
void net_graph_add(struct net_graph *g, uint32_t from, uint32_t to);
void net_graph_host(struct net_graph *g, uint32_t host, uint32_t sw);
int net_graph_ports(struct net_graph *g);

int net_fattree_build(struct net_graph *g, const struct net_spec *spec, uint32_t ranks,
                      char error[NET_ERROR]);
int net_torus_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR]);
int net_dragonfly_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR]);
int net_file_build(struct net_graph *g, const struct net_spec *spec, char error[NET_ERROR]);

/* net_file_parse() is net_file_build() for text in memory. */
int net_file_parse(struct net_graph *g, const char *name, const char *text, size_t length,
                   char error[NET_ERROR]);
/* net_file_measure() fills in the distances and finds what cannot be reached. */
int net_file_measure(struct net_graph *g, const char *name, char error[NET_ERROR]);

#endif
