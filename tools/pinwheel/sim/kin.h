/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a rank: it, and those that were forked (kin.c). */
#ifndef PINWHEEL_SIM_KIN_H
#define PINWHEEL_SIM_KIN_H

#include "state.h"

/* kin_ended() says whether a process has ended, or is about to; kin_note_end() notes it. */
bool kin_ended(struct coordinator *c, uint32_t place);
void kin_note_end(struct coordinator *c, uint32_t place);
/* kin_alive() says whether any process of a rank is left. kin_in_fence() says whether one of them
 * is in a fence, and lets `over` be no sooner than when that can be known, or would be with one HPU
 * more (`sooner`). */
bool kin_alive(const struct coordinator *c, uint32_t rank);
bool kin_in_fence(const struct coordinator *c, uint32_t rank, uint64_t *over, uint64_t *sooner);
/* kin_stir() tells processes that wait outside of Portals of what those in c->back have done; all
 * are idle. */
void kin_stir(struct coordinator *c);
/* kin_turn() is the time below which a process may go on for all that others of its rank may do; 0:
 * it is not its turn. */
uint64_t kin_turn(const struct coordinator *c, uint32_t place);
/* kin_look() is called when nothing else happens: it has all who wait outside of Portals look once
 * more, and after that those who wait for anybody, now and then. False: there is nobody. */
bool kin_look(struct coordinator *c);

#endif
