/* SPDX-License-Identifier: BSD-3-Clause */
/* What a Graphviz file says: names, and edges between them. */
#ifndef SIM_NET_DOT_H
#define SIM_NET_DOT_H

#include "graph.h"

enum { NET_DOT_NODES = 1 << 24 };

struct net_dot {
    bool directed;
    uint32_t nodes;
    size_t edges; /* one way each; an edge of a graph is two */
    char **names;
    struct net_link *edge;
    uint32_t *table; /* node + 1 by hash */
    uint32_t slots;
};

/* net_dot_read() reads `length` bytes at `text`; `name` stands for the file in errors.
 * Returns 0, or -1 with `error` set and nothing to free. */
int net_dot_read(struct net_dot *d, const char *name, const char *text, size_t length,
                 char error[NET_ERROR]);
void net_dot_free(struct net_dot *d);

#endif
