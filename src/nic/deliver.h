/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a message at its receiver (deliver.c). */
#ifndef NIC_DELIVER_H
#define NIC_DELIVER_H

#include "nic/rx.h"

/* rx_tell() posts the full event of a message at its entry, and counts it. */
void rx_tell(const struct rx *rx);
/* rx_gather_ack() notes a plain ack of the message, for an operation that went as it was asked. The
 * NIC sends it with others when it has taken all messages that are there, or at once if the message
 * is the last. False: the ack is not noted, as answers before it cannot leave yet. */
bool rx_gather_ack(struct rx *rx, ptl_list_t list);
/* rx_add_ack() gathers an ack where the array has room and no ack must go before it; rx_send_ack()
 * does so for an ack that begins the gathering, fills it, or is of the channel's last message. */
void rx_send_ack(struct rx *rx, uint32_t cookie, ptl_list_t list);
static inline void rx_note_ack(struct rx *rx, uint32_t cookie, ptl_list_t list)
{
    acks_set_cookie(&rx->acks, rx->ack_count, cookie);
    rx->ack_overflow |= (unsigned)(list == PTL_OVERFLOW_LIST) << rx->ack_count;
    rx->ack_count++;
}
static inline void rx_add_ack(struct rx *rx, uint32_t cookie, ptl_list_t list)
{
    COUNT_PATH(ack_gathered);
    if (rx->f.last || rx->ack_count == 0 || rx->ack_count == ACKS_MOST - 1) {
        rx_send_ack(rx, cookie, list);
    } else {
        rx_note_ack(rx, cookie, list);
    }
}
/* rx_reply_at_once() sends the reply of a get together with all its data; false: it is too long for
 * that, or cannot leave now, and the caller takes the usual way. */
bool rx_reply_at_once(struct rx *rx);
/* rx_done() ends a message; RX_WAIT: it cannot yet, and the fabric calls it again. */
enum rx_step rx_done(struct nic_peer *peer, struct fabric_rx *rx, enum fabric_status status);
/* acks_advance() sends the gathered acks of all peers; those whose channel is full stay
 * gathered. */
void acks_advance(struct nic *nic);
/* rx_reply_sent() notes that the fabric has sent the last byte of a reply. */
void rx_reply_sent(struct fabric_tx *tx, enum fabric_status status);

#endif
