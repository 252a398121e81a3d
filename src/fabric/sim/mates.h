/* SPDX-License-Identifier: BSD-3-Clause */
/* HPUs of a NIC that the ranks of a host share (mates.c). */
#ifndef FABRIC_SIM_MATES_H
#define FABRIC_SIM_MATES_H

#include "fabric/sim/sim.h"

/* Of struct fabric_time. */
bool mates_take_hpu(struct fabric *fabric, unsigned hpu, uint64_t since);
void mates_give_hpu(struct fabric *fabric, unsigned hpu);
uint64_t mates_want_hpus(struct fabric *fabric, const uint64_t *since);

/* mates_freed() has the NIC look for free HPUs; mates_leave() gives all back that a rank has. */
void mates_freed(void *fabric);
void mates_leave(struct sim_clock *c);

#endif
