/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets under way are lost (lost.c). */
#ifndef FABRIC_SLMP_LOST_H
#define FABRIC_SLMP_LOST_H

#include "engine.h"

void slmp_tx_heard(struct slmp_flow *, const struct slmp_segment *); /* notes an acknowledgement */
uint32_t slmp_tx_lose(struct slmp_flow *); /* returns how many packets were found lost */
int64_t slmp_tx_lost_at(const struct slmp_flow *);
void slmp_tx_ask(struct slmp_flow *);
/* slmp_tx_unanswered() says whether so many questions, over at least `longest`, had no answer that
 * the peer may be dead. slmp_tx_hush() ends the questions. */
bool slmp_tx_unanswered(const struct slmp_flow *, int64_t longest);
void slmp_tx_hush(struct slmp_flow *);
bool slmp_tx_advance(struct slmp_flow *); /* false: the peer is dead */

#endif
