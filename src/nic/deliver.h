/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a message at its receiver (deliver.c). */
#ifndef NIC_DELIVER_H
#define NIC_DELIVER_H

#include "nic/rx.h"

/* rx_tell() posts the full event of a message at its entry and counts it. */
void rx_tell(const struct rx *rx);
/* rx_gather_ack() notes the ack of a message that went as it was asked, to be sent with
 * others when the NIC has taken what is there, or at once if nothing is behind the message;
 * false: there is no room for it. */
bool rx_gather_ack(struct rx *rx, ptl_list_t list);
/* rx_add_ack() does so where there is room for it, and nothing that it must wait for; one that is
 * the first or the last of several takes rx_send_ack(). */
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
/* rx_reply_at_once() sends the reply of a get, all data with it; false: it cannot leave so, or not
 * now, and nothing has happened. */
bool rx_reply_at_once(struct rx *rx);
/* rx_done() ends a message, or says RX_WAIT and is called again. */
enum rx_step rx_done(struct nic_peer *peer, struct fabric_rx *rx, enum fabric_status status);
/* acks_advance() sends the acks that were gathered while messages were taken, but
 * leaves those for which there is no room. */
void acks_advance(struct nic *nic);
/* rx_reply_sent() notes that the last byte of a get's data has left. */
void rx_reply_sent(struct fabric_tx *tx, enum fabric_status status);

#endif
