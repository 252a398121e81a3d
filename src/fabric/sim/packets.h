/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that come to a simulated NIC (packets.c). */
#ifndef FABRIC_SIM_PACKETS_H
#define FABRIC_SIM_PACKETS_H

#include "fabric/sim/sim.h"

/* sim_take_packet() takes a packet that the coordinator brings to a struct sim_fabric. */
void sim_take_packet(void *fabric, const struct sim_packet *p);
/* sim_flow_of() is what a NIC remembers of a sender and class; sim_free_flows() frees all that. */
static inline struct sim_flow *sim_flow_of(const struct sim_fabric *f, uint32_t rank,
                                           enum fabric_class class)
{
    return &f->flow[(size_t)rank * FABRIC_CLASSES + class];
}
void sim_free_flows(struct sim_fabric *f);

#endif
