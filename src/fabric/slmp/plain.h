/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of plain peers, in both directions (plain.c). */
#ifndef FABRIC_SLMP_PLAIN_H
#define FABRIC_SLMP_PLAIN_H

#include "engine.h"

void slmp_plain_input(struct slmp *, const struct slmp_address *, const struct slmp_wire *);
void slmp_plain_end(struct slmp_peer *, enum slmp_status);
void slmp_plain_advance(struct slmp_peer *);
int64_t slmp_plain_deadline(const struct slmp_peer *);
bool slmp_plain_unacked(struct slmp_peer *, struct slmp_packet *);

#endif
