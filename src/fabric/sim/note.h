/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank notes of its NIC for the reports of `pinwheel sim`: what was taken for how long, and
 * who waited for it (note.c). It changes nothing that happens.
 */
#ifndef FABRIC_SIM_NOTE_H
#define FABRIC_SIM_NOTE_H

#include "fabric/sim/sim.h"

/* note_waits() counts a message that has been handed over; note_begun() its first packet, now: the
 * message could have left at `ready`. */
void note_waits(struct sim_fabric *f);
void note_begun(struct sim_fabric *f, uint64_t ready);
/* note_transfer() counts a transfer of the DMA engine that is asked for now. */
void note_transfer(struct sim_fabric *f, uint64_t start, uint64_t taken, uint64_t bytes);
/* note_host() notes what the program does for so long, beginning when it has used its time. */
void note_host(struct sim_clock *c, enum sim_span_what what, uint64_t ps);
/* note_phase() notes a phase that ends now. */
void note_phase(struct sim_clock *c, uint32_t phase, uint64_t began);
/* note_packet_out() notes a packet that takes the egress port from now on, note_packet_in() one
 * that has arrived, and is ready at a time. */
void note_packet_out(struct sim_fabric *f, const struct sim_packet *p, uint64_t taken);
void note_packet_in(struct sim_fabric *f, const struct sim_packet *p, uint64_t ready);
/* note_spent() gives the row of a place of RV32 code, of its rank; the last row has all that find
 * none. */
uint64_t *note_spent(struct sim_clock *c, const struct fabric_place *p);
/* note_handler() counts that an HPU was taken. */
void note_handler(struct sim_fabric *f, const struct fabric_took *t);

#endif
