/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers, which of them have something to do, which packet leaves next (peer.c). */
#ifndef FABRIC_SLMP_PEER_H
#define FABRIC_SLMP_PEER_H

#include "engine.h"

/* Whatever may give a peer something to do says slmp_touch(). */
void slmp_touch(struct slmp_peer *);
void slmp_active_advance(struct slmp *);
bool slmp_active_output(struct slmp *, struct slmp_packet *);
int64_t slmp_active_due(const struct slmp *);
void slmp_peer_free(struct slmp_peer *);
void slmp_peer_path(struct slmp_peer *, uint32_t longest);
/* slmp_peer_make() needs a place; `whose` as for slmp_room_place(). */
struct slmp_peer *slmp_peer_make(struct slmp *, const struct slmp_address *,
                                 const struct slmp_whose *);
uint32_t *slmp_peer_forgotten(struct slmp *, const struct slmp_address *);
void slmp_peer_end(struct slmp_peer *, enum slmp_status);
/* slmp_peer_rings() gives a channel its rings; false without memory. Without them nothing is under
 * way in it, and no packet but an acknowledgement leaves or comes. */
bool slmp_peer_rings(struct slmp_flow *);
uint64_t slmp_draw(struct slmp *); /* a number that nobody can guess, and not 0 */
uint64_t slmp_mix(const struct slmp *, uint64_t a, uint64_t b); /* a keyed hash */

#endif
