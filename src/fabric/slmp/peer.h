/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers, those with work to do, and the next packet to send (peer.c). */
#ifndef FABRIC_SLMP_PEER_H
#define FABRIC_SLMP_PEER_H

#include "engine.h"

/* slmp_touch() must be called after everything that may give a peer work to do. */
void slmp_touch(struct slmp_peer *);
void slmp_active_advance(struct slmp *);
bool slmp_active_output(struct slmp *, struct slmp_packet *);
int64_t slmp_active_due(const struct slmp *);
void slmp_peer_free(struct slmp_peer *);
void slmp_peer_path(struct slmp_peer *, uint32_t longest);
/* slmp_peer_make() makes a peer, if slmp_room_place() finds a place; `whose` as in there. */
struct slmp_peer *slmp_peer_make(struct slmp *, const struct slmp_address *,
                                 const struct slmp_whose *);
uint32_t *slmp_peer_forgotten(struct slmp *, const struct slmp_address *);
void slmp_peer_end(struct slmp_peer *, enum slmp_status);
/* slmp_peer_rings() gives a channel its rings; false: memory is short. A channel without rings has
 * no packets under way, and sends and takes only acknowledgements. */
bool slmp_peer_rings(struct slmp_flow *);
uint64_t slmp_draw(struct slmp *); /* returns a number that cannot be guessed, and is not 0 */
uint64_t slmp_mix(const struct slmp *, uint64_t a, uint64_t b); /* returns a keyed hash */

#endif
