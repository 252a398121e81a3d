/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents of a Graphviz file: names of nodes, and edges between them. */
#ifndef SIM_NET_DOT_H
#define SIM_NET_DOT_H

#include "graph.h"

#include "base/hash.h"

enum { NET_DOT_NODES = 1 << 24 };

struct net_dot_node {
    UT_hash_handle hh;
    char *name;
    uint32_t number;
};

struct net_dot {
    bool directed;
    uint32_t nodes;
    /* edges in one direction each; an undirected edge of the graph is two */
    size_t edges, room;
    struct net_dot_node *node; /* nodes in the order of the file, and hashed by name */
    struct net_link *edge;
};

/* net_dot_read() reads the `length` bytes at `text`; errors call the file `name`. Returns 0, or -1
 * with `error` set and nothing to free. */
int net_dot_read(struct net_dot *d, const char *name, const char *text, size_t length,
                 char error[NET_ERROR]);
void net_dot_free(struct net_dot *d);

#endif
