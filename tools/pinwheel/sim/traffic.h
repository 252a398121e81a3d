/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of simulated ranks, and the network between them (traffic.c). */
#ifndef PINWHEEL_SIM_TRAFFIC_H
#define PINWHEEL_SIM_TRAFFIC_H

#include "state.h"

/* traffic_hooks are the network's, for a struct coordinator. */
extern const struct net_hooks traffic_hooks;
/* traffic_collect() puts what the ranks have sent whose turns are over into the
 * network. */
void traffic_collect(struct coordinator *c);
/* traffic_hand_over() gives a rank the packets that come to it before `until`; it returns until
 * when it has them all. */
uint64_t traffic_hand_over(struct coordinator *c, uint32_t rank, uint64_t until);

#endif
