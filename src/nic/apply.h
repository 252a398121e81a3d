/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics at their target (apply.c). */
#ifndef NIC_APPLY_H
#define NIC_APPLY_H

#include "nic/rx.h"

/* rx_atomic_sound() checks the header of an atomic: legal, whole elements, one packet. */
bool rx_atomic_sound(const struct rx *rx);
/* rx_apply() does an atomic, whose payload has come whole, on the entry that the lookup has
 * found. */
void rx_apply(struct rx *rx, const uint8_t *payload);

#endif
