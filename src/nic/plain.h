/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast path of a message at its receiver (plain.c). */
#ifndef NIC_PLAIN_H
#define NIC_PLAIN_H

#include "nic/rx.h"

/* plain_short() is rx_short() (receive.h), with fewer steps for most messages. */
enum rx_step plain_short(struct nic_peer *peer, struct fabric_rx *rx, const void *payload);

#endif
