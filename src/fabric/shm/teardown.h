/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection ends (teardown.c). */
#ifndef FABRIC_SHM_TEARDOWN_H
#define FABRIC_SHM_TEARDOWN_H

#include "fabric/shm/shm.h"

/* peer_name(a).text is the name of a peer for the log. */
struct peer_name {
    char text[48];
};
struct peer_name peer_name(const struct fabric_address *a);
/* peer_leave() stores SLOT_LEFT in this NIC's slot at the peer; it writes nothing there afterwards,
 * as the slot may become another sender's. peer_forget() frees a peer, which the NIC may not know
 * yet. */
void peer_leave(struct shm_peer *p);
void peer_forget(struct shm_peer *p);
/* peer_lost() notes that a peer has died, left or broken the rules. peer_empty() then takes the
 * messages that it has left, as many as one look takes of any peer; true if there were any.
 * peer_tear_down() ends the connection as far as possible; true: the peer is freed. */
void peer_lost(struct shm_peer *p, const char *why);
bool peer_empty(struct shm_peer *p);
bool peer_tear_down(struct shm_peer *p);
/* peer_is_probed() says whether peers_probe() checks that the peer still has its segment. */
bool peer_is_probed(struct shm_peer *p);
void peers_probe(struct shm_fabric *f);

#endif
