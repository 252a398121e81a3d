/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection ends (teardown.c). */
#ifndef FABRIC_SHM_TEARDOWN_H
#define FABRIC_SHM_TEARDOWN_H

#include "fabric/shm/shm.h"

/* peer_name(a).text is how the log names a peer. */
struct peer_name {
    char text[48];
};
struct peer_name peer_name(const struct fabric_address *a);
/* peer_leave() says in our slot at the peer that we write nothing more there: it may be another
 * sender's after that. peer_forget() frees a peer, which the NIC may not know yet. */
void peer_leave(struct shm_peer *p);
void peer_forget(struct shm_peer *p);
/* peer_lost() notes that a peer died, left or broke the rules; peer_empty() then takes what it has
 * left behind, as much as one look takes of any peer, true if there was something; and
 * peer_tear_down() ends the connection as far as it can, true when the peer is gone. */
void peer_lost(struct shm_peer *p, const char *why);
bool peer_empty(struct shm_peer *p);
bool peer_tear_down(struct shm_peer *p);
/* peer_is_probed(): whether peers_probe() asks if its process still has its segment. */
bool peer_is_probed(struct shm_peer *p);
void peers_probe(struct shm_fabric *f);

#endif
