/* SPDX-License-Identifier: BSD-3-Clause */
/* The search of the entry that a request is for (lookup.c). */
#ifndef NIC_LOOKUP_H
#define NIC_LOOKUP_H

#include "nic/rx.h"

/* rx_look_up() returns the entry that a request is for; NULL with `*fail` says why there is none,
 * and NULL with rx->held that the message waits. rx_forget_found() forgets what earlier lookups
 * found at its portal table entry, so that the next one searches. */
struct le *rx_look_up(struct rx *rx, ptl_ni_fail_t *fail);
void rx_forget_found(const struct rx *rx);

#endif
