/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets an engine with a job key takes (auth.c). */
#ifndef FABRIC_SLMP_AUTH_H
#define FABRIC_SLMP_AUTH_H

#include "engine.h"

/* In an engine without a key all of these return true, or do nothing. */
bool slmp_auth_greeting(struct slmp *, const struct slmp_wire *, const uint8_t *packet);
size_t slmp_auth_greet(struct slmp *, const struct slmp_address *to, struct slmp_wire *,
                       uint8_t *packet);
bool slmp_auth_start(struct slmp_peer *, bool initiator, uint64_t drawn, uint64_t nonce,
                     uint64_t initiated_by);
void slmp_auth_end(struct slmp_peer *);
bool slmp_auth_admit(struct slmp_peer *, const struct slmp_wire *, const uint8_t *packet);
/* slmp_auth_quote() notes in a RESET which packet it answers. slmp_auth_answers() says whether that
 * packet was sent to the peer in this session, and the RESET comes from the peer. */
void slmp_auth_quote(struct slmp_wire *reset, const struct slmp_wire *packet);
bool slmp_auth_answers(const struct slmp_peer *, const struct slmp_wire *reset);
void slmp_auth_number(struct slmp_peer *, struct slmp_wire *);
/* slmp_auth_seal() writes the header of a packet for the peer, whose parts are set, and its tag, or
 * its checksum. */
void slmp_auth_seal(struct slmp_peer *, struct slmp_packet *, const struct slmp_wire *);

#endif
