/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers (peer.c): found, spoken to, lost. */
#ifndef NIC_PEER_H
#define NIC_PEER_H

#include "nic/objects.h"

struct nic_peer *peer_get(struct nic *nic, uint32_t nid, uint32_t pid);
/* peer_resolve() returns the peer of a target, which is a rank or an address as the NI has it, or
 * NULL. A NIC remembers the last peer of a physical target; peer_met() finds it, or that of a rank,
 * if a fabric has it. */
struct nic_peer *peer_look_up(struct ni *ni, ptl_process_t target);
static inline struct nic_peer *peer_met(struct ni *ni, ptl_process_t target)
{
    struct nic_peer *p;
    if (ni_is_logical(ni)) {
        p = target.rank < ni->map_size ? ni->map_peers[target.rank] : NULL;
    } else {
        p = ni->nic->last_peer;
        p = p != NULL && p->nid == target.phys.nid && p->pid == target.phys.pid ? p : NULL;
    }
    return likely(p != NULL && p->fabric != NULL) ? p : NULL;
}
static inline struct nic_peer *peer_resolve(struct ni *ni, ptl_process_t target)
{
    struct nic_peer *p = peer_met(ni, target);
    return likely(p != NULL) ? p : peer_look_up(ni, target);
}
/* A peer is in nic->busy while operations or asks wait for it, so that peers_advance() looks at it.
 * peer_rouse() puts it there when one begins to wait; peer_rest() takes it out when none is
 * left. */
static inline bool peer_nothing_waits(const struct nic_peer *p)
{
    return list_empty(&p->waiting) && list_empty(&p->asks);
}
static inline void peer_rouse(struct nic_peer *p)
{
    if (list_empty(&p->busy)) {
        list_push_back(&p->nic->busy, &p->busy);
    }
    atomic_store_explicit(&p->nic->attention, true, memory_order_relaxed);
}
static inline void peer_rest(struct nic_peer *p)
{
    if (peer_nothing_waits(p)) {
        list_remove(&p->busy);
    }
}
/* peer_let_go() frees a peer that is dead, once none of its detached messages is left. */
void peer_let_go(struct nic_peer *p);
/* peers_advance() sends the operations that wait; peers_deadline() returns when it must be called
 * next, or -1. */
bool peers_advance(struct nic *nic);
int64_t peers_deadline(struct nic *nic);
void peers_free(struct nic *nic);
/* nic_upcalls are the functions that a fabric calls in its NIC; nic_upcalls_staged the same ones
 * without fast paths. */
extern const struct fabric_upcalls nic_upcalls, nic_upcalls_staged;

#endif
