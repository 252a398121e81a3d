/* SPDX-License-Identifier: BSD-3-Clause */
/* The search of the entry that a request is for (lookup.c). */
#ifndef NIC_LOOKUP_H
#define NIC_LOOKUP_H

#include "nic/rx.h"

/* rx_look_up() finds the entry that a request is for, or says why there is none; the message waits
 * if rx->held is set. rx_forget_found() has it search for that, whatever was found before. */
struct le *rx_look_up(struct rx *rx, ptl_ni_fail_t *fail);
void rx_forget_found(const struct rx *rx);

#endif
