/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message with handlers that is in no channel, as invoke.c, which has it go through its stages,
 * and detach.c, which takes it out of its channel, know it.
 */
#ifndef NIC_SPIN_INVOKE_H
#define NIC_SPIN_INVOKE_H

#include "fabric/rx_machine.h"
#include "nic/rx.h"

struct invocation {
    struct rx rx;
    struct list link;    /* nic->invoked or nic->invoked_away */
    struct list turn;    /* of the peer that has sent it, if it is detached */
    unsigned packets;    /* places that it takes in the queue of its context */
    struct timer *timer; /* the periodic timer whose tick it is, until that ends; else NULL */
    uint8_t *data;
    size_t room;           /* for it */
    struct rx_whole whole; /* its progress */
    bool behind;           /* it waits for another one to leave its entry, or to send its answer */
};

/* invocation_new() makes one with room for `length` bytes, in no list yet; NULL: memory is short.
 * invocation_drop() is done with one that is in no list: the next one has its memory again. */
struct invocation *invocation_new(struct nic *nic, uint64_t length);
void invocation_drop(struct invocation *v);
/* invocation_begin() lets it begin. */
void invocation_begin(struct invocation *v);
/* invoke() has the handlers of an entry run on a copy of `length` bytes, or on none as a tick of a
 * timer; lock held. Gives a PTL_ code. */
struct invoke_what {
    const void *data;
    uint64_t length;
    uint64_t hdr_data;
    struct timer *timer;
};
int invoke(struct le *le, const struct invoke_what *what);

#endif
