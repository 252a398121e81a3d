/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel's receiving side: order, duplicates, acknowledgements (rx.c). */
#ifndef FABRIC_SLMP_RX_H
#define FABRIC_SLMP_RX_H

#include "engine.h"

/* also makes the flow ready for the next session */
void slmp_rx_end(struct slmp_flow *, enum slmp_status);
void slmp_rx_data(struct slmp_flow *, const struct slmp_wire *);
void slmp_rx_asked(struct slmp_flow *, const struct slmp_wire *); /* handles an ACK with SYN */
void slmp_rx_resume(struct slmp_flow *);
void slmp_rx_fill(struct slmp_flow *, struct slmp_wire *);
bool slmp_rx_output(struct slmp_flow *, struct slmp_packet *);
int64_t slmp_rx_deadline(const struct slmp_flow *);

#endif
