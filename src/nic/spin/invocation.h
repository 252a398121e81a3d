/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message with handlers that is in no channel, as invoke.c, which has it go through its stages,
 * and detach.c, which takes it out of its channel, know it.
 */
#ifndef NIC_SPIN_INVOCATION_H
#define NIC_SPIN_INVOCATION_H

#include "fabric/rx_machine.h"
#include "nic/rx.h"

struct invocation {
    struct rx rx;
    struct list link;      /* nic->invoked or nic->invoked_away */
    struct nic_peer from;  /* who has sent it, as far as the stages ask */
    struct list turn;      /* of the peer that has sent it, if it is detached */
    struct nic_peer *peer; /* that one, nic->gone once it is; NULL: the host has sent it */
    unsigned packets;      /* places that it takes in the queue of its context */
    struct timer *timer; /* whose tick it is, while that is there; NULL: nobody waits for its end */
    uint8_t *data;
    size_t room;           /* for it */
    struct rx_whole whole; /* its progress */
    bool behind;           /* it waits for another one to leave its entry, or to send its answer */
};

/* ---- invoke.c ---- */

/* invocation_new() makes one with room for `length` bytes, in no list yet; NULL: memory is short.
 * invocation_drop() is done with one that is in no list: the next one has its memory again. */
struct invocation *invocation_new(struct nic *nic, uint64_t length);
void invocation_drop(struct invocation *v);
/* invocation_begin() lets it begin. */
void invocation_begin(struct invocation *v);

/* ---- detach.c ---- */

/* detach_end() says that one that has left its channel is at its end; detach_left() that it has
 * left its entry. */
void detach_end(struct invocation *v);
void detach_left(struct invocation *v, const struct le *le);

#endif
