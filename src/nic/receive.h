/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of a message at its receiver up to its payload (receive.c). */
#ifndef NIC_RECEIVE_H
#define NIC_RECEIVE_H

#include "nic/rx.h"

/* rx_short() takes a message that has come whole through as many stages as can be done at once;
 * staged_short() none, so that each message begins with rx_header(). */
enum rx_step rx_short(struct nic_peer *peer, struct fabric_rx *rx, const void *payload);
enum rx_step staged_short(struct nic_peer *peer, struct fabric_rx *rx, const void *payload);
enum rx_step rx_header(struct nic_peer *peer, struct fabric_rx *rx);
enum rx_step rx_packet(struct nic_peer *peer, struct fabric_rx *rx, void *data, uint64_t offset,
                       size_t length);
/* rx_adopt() takes an entry for a message that the host has started: it has not come through a
 * fabric. */
void rx_adopt(struct rx *rx, struct le *le);

#endif
