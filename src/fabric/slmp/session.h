/* SPDX-License-Identifier: BSD-3-Clause */
/* How two peers agree on a session, and how it ends (session.c). */
#ifndef FABRIC_SLMP_SESSION_H
#define FABRIC_SLMP_SESSION_H

#include "engine.h"

void slmp_session_begin(struct slmp_peer *);
/* slmp_session_input() takes a packet of an exchange or session. True: it was one of the sender's
 * session, which with a key is proved. */
bool slmp_session_input(struct slmp *, const struct slmp_address *, const struct slmp_wire *,
                        const uint8_t *packet);
/* slmp_session_version() takes a greeting in another version. */
void slmp_session_version(struct slmp *, const struct slmp_address *, const struct slmp_wire *,
                          const uint8_t *packet);
void slmp_session_hello(struct slmp *, const struct slmp_address *, const struct slmp_wire *);
void slmp_session_plain(struct slmp_peer *);
void slmp_session_leave(struct slmp_peer *);
bool slmp_session_output(struct slmp_peer *, struct slmp_packet *);
int64_t slmp_session_deadline(const struct slmp_peer *);
void slmp_session_advance(struct slmp_peer *);

#endif
