/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes to a simulated NIC (receive.c). */
#ifndef FABRIC_SIM_RECEIVE_H
#define FABRIC_SIM_RECEIVE_H

#include "fabric/sim/sim.h"

/* sim_take() goes on with the messages of a channel, as far as they have arrived, sim_advance()
 * with all that wait; true if anything moved. */
bool sim_take(struct sim_channel *c);
bool sim_advance(struct sim_fabric *f);
/* sim_begin_source() makes a new peer a source of messages; sim_end_peer() ends one that has no NIC
 * any more. */
void sim_begin_source(struct sim_fabric *f, struct sim_peer *p);
void sim_end_peer(struct sim_peer *p);

#endif
