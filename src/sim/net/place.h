/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement of ranks on the hosts of a network. */
#ifndef SIM_NET_PLACE_H
#define SIM_NET_PLACE_H

#include "graph.h"

/* net_place() fills in the host of each rank: "linear" takes them in order, "random"
 * as the seed says, anything else is a file of hosts, rank by rank, by number or by the
 * name that a Graphviz file gives them. No host gets two ranks. -1 with `error` set. */
int net_place(const char *how, const struct net_graph *g, uint32_t ranks, uint64_t seed,
              uint32_t *host, char error[NET_ERROR]);

#endif
