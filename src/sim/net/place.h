/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement of ranks on the hosts of a network. */
#ifndef SIM_NET_PLACE_H
#define SIM_NET_PLACE_H

#include "graph.h"

/* net_place() sets the host of each rank. `how` is "linear" (in order), "random" (by `seed`), or
 * the name of a file with a host for each rank, by its number or by the name in the Graphviz file.
 * No host gets two ranks. Returns -1 with `error` set. */
int net_place(const char *how, const struct net_graph *g, uint32_t ranks, uint64_t seed,
              uint32_t *host, char error[NET_ERROR]);

#endif
