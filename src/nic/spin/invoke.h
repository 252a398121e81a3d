/* SPDX-License-Identifier: BSD-3-Clause */
/* Invocations: messages with handlers that are in no channel. invoke.c takes them through their
 * stages; detach.c makes them of messages that leave their channel. */
#ifndef NIC_SPIN_INVOKE_H
#define NIC_SPIN_INVOKE_H

#include "fabric/rx_machine.h"
#include "nic/rx.h"

struct invocation {
    struct rx rx;
    struct list link; /* in nic->invoked or nic->invoked_away */
    /* in the `detached` list of the peer that has sent it, if it has left a channel */
    struct list turn;
    unsigned packets;    /* places that its packets take among those of its sender (detach.c) */
    struct timer *timer; /* the periodic timer whose tick it is, until that ends; else NULL */
    uint8_t *data;
    size_t room;           /* bytes of memory at `data` */
    struct rx_whole whole; /* state of the machine that drives it */
    /* it waits until an earlier message has left its entry, or has sent its answer */
    bool behind;
};

/* invocation_new() makes an invocation with room for `length` bytes, in no list yet; NULL: memory
 * is short. invocation_drop() gives its memory back to the next one; it must be in no list. */
struct invocation *invocation_new(struct nic *nic, uint64_t length);
void invocation_drop(struct invocation *v);
/* invocation_begin() puts an invocation in nic->invoked, so that it begins. */
void invocation_begin(struct invocation *v);
/* invoke() has the handlers of an entry run on a copy of `length` bytes, or as a tick of a timer on
 * none; lock held. Returns a PTL_ code. */
struct invoke_what {
    const void *data;
    uint64_t length;
    uint64_t hdr_data;
    struct timer *timer;
};
int invoke(struct le *le, const struct invoke_what *what);

#endif
