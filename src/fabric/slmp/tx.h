/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel's sending side (tx.c). */
#ifndef FABRIC_SLMP_TX_H
#define FABRIC_SLMP_TX_H

#include "engine.h"

void slmp_tx_start(struct slmp_flow *);
void slmp_tx_end(struct slmp_flow *, enum slmp_status);
void slmp_give_back(struct slmp_peer *, struct list *messages, enum slmp_status);
void slmp_tx_ack(struct slmp_flow *, const struct slmp_wire *);
void slmp_tx_acked(struct slmp_flow *, struct slmp_segment *);
void slmp_tx_settle(struct slmp_flow *, uint32_t acked, int64_t rtt); /* rtt 0: not measured */
bool slmp_tx_output(struct slmp_flow *, struct slmp_packet *);
int64_t slmp_tx_deadline(const struct slmp_flow *);
void slmp_message_parts(const struct slmp_message *, uint64_t offset, uint32_t length,
                        struct slmp_packet *);

#endif
