/* SPDX-License-Identifier: BSD-3-Clause */
/* What the coordinator believes of what ranks share with it (shared.c). */
#ifndef PINWHEEL_SIM_SHARED_H
#define PINWHEEL_SIM_SHARED_H

#include "state.h"

/* shared_spoil() notes that what a rank shares makes no sense, and says so, once; the run stops. */
void shared_spoil(struct coordinator *c, uint32_t place, const char *what);

/* shared_take() reads the record of a rank whose turn is over, shared_take_last() that of one that
 * has ended, perhaps in the midst of its turn, and shared_take_new() that of a place that was taken
 * by a child. shared_give() writes one, for the next turn. */
void shared_take(struct coordinator *c, uint32_t place);
void shared_take_last(struct coordinator *c, uint32_t place);
void shared_take_new(struct coordinator *c, uint32_t place);
void shared_give(struct coordinator *c, uint32_t place);
/* shared_free() has the place of a child that has ended be taken again. */
void shared_free(struct coordinator *c, uint32_t place);
/* shared_close() notes when a NIC was closed at the latest: its process has ended. */
void shared_close(struct coordinator *c, uint32_t place, uint64_t time);

/* shared_process() is the number of a place's process; 0: it has not come. shared_left() says
 * whether it is about to end, shared_stopped() whether it is stopped, and shared_signal() whether
 * it was sent a signal. */
uint32_t shared_process(struct coordinator *c, uint32_t place);
bool shared_left(struct coordinator *c, uint32_t place);
bool shared_stopped(struct coordinator *c, uint32_t place);
bool shared_signal(struct coordinator *c, uint32_t place);

/* shared_packet() reads the number `i` of the packets that a rank has sent, for the caller to free,
 * and adds it to the sum of these; NULL: memory is short, or the packet makes no sense. */
struct sim_packet *shared_packet(struct coordinator *c, uint32_t place, uint32_t i, uint64_t *sum);

/* shared_figures() reads the figures of a place when all is over; shared_check_spans() says whether
 * its spans are those that were summed up. */
void shared_figures(struct coordinator *c, uint32_t place, struct sim_figures *f);
void shared_check_spans(struct coordinator *c, uint32_t place, bool same);

#endif
