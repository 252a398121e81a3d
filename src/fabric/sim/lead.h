/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one HPU more would gain: beside the clock runs the lead, how much sooner what happens now
 * would happen if each NIC had one HPU more (lead.c). It changes nothing that happens.
 */
#ifndef FABRIC_SIM_LEAD_H
#define FABRIC_SIM_LEAD_H

#include "fabric/sim/sim.h"

/* lead_begins() and lead_ends() follow a call that an HPU begins or goes on with, now, and that
 * ends or is suspended, now. */
void lead_begins(struct sim_fabric *f, const struct fabric_begins *b);
void lead_ends(struct sim_fabric *f, const struct fabric_took *t);
/* lead_leaves() follows a packet that takes the egress port from now on, and that could have left
 * at `ready`, which was known with a lead; lead_comes() one that has come; lead_transfer() a
 * transfer that is asked for now. */
void lead_leaves(struct sim_fabric *f, struct sim_packet *p, uint64_t ready, uint64_t lead,
                 uint64_t taken);
void lead_comes(struct sim_fabric *f, const struct sim_packet *p);
void lead_transfer(struct sim_fabric *f, uint64_t start, uint64_t taken);

#endif
