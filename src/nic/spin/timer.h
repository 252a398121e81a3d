/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers that run the handlers of an entry. All timers of a NIC are here, in the order in which
 * they are due, by the clock nic->now(); nobody looks at them in between. Who drives the NIC is
 * told by nic->wake_at() when to call timers_advance(): the NIC thread, which then has a timer of
 * the kernel's (progress.c), or whoever keeps another clock.
 *
 *   timer_start() ─► WAITS ─ due ─► a tick begins (invoke.c) ─► WAITS, until it is due again
 *                      ▲   └ no room: once more after RETRY_NS  └► gone, if it ticks once
 *                      └── the tick before has not ended: this one is left out
 *
 * A timer goes with its entry, and with its NI. Every function wants the NIC's lock.
 */
#ifndef NIC_SPIN_TIMER_H
#define NIC_SPIN_TIMER_H

#include "nic/objects.h"

/* timer_start() gives a new one, which ticks `delay` ns from now; NULL: there is no room. */
struct timer *timer_start(struct le *le, int64_t delay, int64_t period, uint64_t argument);

/* timer_end() forgets it; a tick that has begun goes on. */
void timer_end(struct timer *t);

#endif
