/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trip times, congestion window, pacing (cc.c). */
#ifndef FABRIC_SLMP_CC_H
#define FABRIC_SLMP_CC_H

#include "engine.h"

void slmp_cc_reset(struct slmp_cc *, const struct slmp_config *, bool plain);
void slmp_cc_sample(struct slmp_cc *, const struct slmp_config *, int64_t rtt, int64_t now);
void slmp_cc_acked(struct slmp_cc *, const struct slmp_config *, uint32_t packets, int64_t rtt,
                   uint32_t in_flight, int64_t now);
void slmp_cc_lost(struct slmp_cc *, uint32_t packets);
void slmp_cc_timeout(struct slmp_cc *, const struct slmp_config *, uint32_t lost, int64_t now);
int64_t slmp_cc_rto(const struct slmp_cc *, const struct slmp_config *);
void slmp_cc_sent(struct slmp_cc *, double part, int64_t now);
int64_t slmp_cc_min(const struct slmp_cc *);

#endif
