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
/* note_handler() counts that an HPU was taken. */
void note_handler(struct sim_fabric *f, const struct fabric_took *t);

#endif
