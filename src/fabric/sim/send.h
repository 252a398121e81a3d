/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves a simulated NIC (send.c). */
#ifndef FABRIC_SIM_SEND_H
#define FABRIC_SIM_SEND_H

#include "fabric/sim/sim.h"

/* Those of struct fabric_ops. */
enum fabric_send sim_send(struct fabric_peer *p, enum fabric_class class, struct fabric_tx *tx);
enum fabric_short sim_send_short(struct fabric_peer *p, enum fabric_class class, const void *header,
                                 const void *payload, size_t length);
bool sim_unsent(struct fabric_peer *p);
/* Of struct fabric_time. */
bool sim_egress_room(struct fabric *fabric);

/* sim_drop_departures() ends what has not left for a peer as undeliverable. */
void sim_drop_departures(struct sim_fabric *f, struct sim_peer *p);

#endif
