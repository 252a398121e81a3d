/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers that run the handlers of an entry. nic->timers has all timers of a NIC in the order in
 * which they are due, by the clock nic->now(). nic->wake_at() asks for a call of timers_advance()
 * when the first one is due: the NIC thread sets a timerfd for it (progress.c), a simulator an
 * event of its own clock.
 *
 *   timer_start() ─► WAITS ─ due ─► a tick begins (invoke.c) ─► WAITS, until it is due again
 *                      ▲   └ no room: again after RETRY_NS  └► gone, if it ticks once
 *                      └── the last tick has not ended: this one is left out
 *
 * A timer ends with its entry, and with its NI. The caller of each function holds the NIC's lock.
 */
#ifndef NIC_SPIN_TIMER_H
#define NIC_SPIN_TIMER_H

#include "nic/objects.h"

/* timer_start() makes a timer, which ticks first `delay` ns from now; NULL: there is no room for
 * it. */
struct timer *timer_start(struct le *le, int64_t delay, int64_t period, uint64_t argument);

/* timer_end() frees a timer; a tick that has begun goes on. */
void timer_end(struct timer *t);

#endif
