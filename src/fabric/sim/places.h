/* SPDX-License-Identifier: BSD-3-Clause */
/* Where NICs are (places.c). */
#ifndef FABRIC_SIM_PLACES_H
#define FABRIC_SIM_PLACES_H

#include "fabric/sim/sim.h"

/* sim_nid_of() is the NID of this process: ranks of host i are at i + 1, and so are the processes
 * that they have forked. sim_free_pid() is the PID of a NIC that is opened now: the wanted one (0:
 * any), or 0, since that is taken. */
uint32_t sim_nid_of(const struct sim_clock *c);
uint32_t sim_free_pid(const struct sim_fabric *f, uint32_t wanted);
/* Of struct fabric_ops. */
enum fabric_connect sim_connect(struct fabric *fabric, uint32_t nid, uint32_t pid,
                                struct reason *why);

#endif
