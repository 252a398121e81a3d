/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places of handlers' messages that wait for room at their peer. Their number is limited, and
 * shared so that a peer that takes no messages, or a context that floods, only holds up its own
 * ones.
 *
 *      nic->shares[kind] ── taken of `limit` ──┬─ peer ── taken ──┬─ context ── taken: struct share
 *                                              ├─ peer            └─ context
 *                                              └─ ...
 *
 * A message takes a place when it is queued at its peer, and gives it back when it leaves the queue
 * or its peer, its NIC or the program ends. It may take one while
 *
 *   - S1  its peer has none taken: a peer's first place is its own, and beyond `limit`;
 *   - S2  or its peer has taken fewer than are free, and its context at this peer fewer than the
 *         peer may still take.
 *
 * So one peer has half of the places at most, n peers have n/(n+1) of them, and one context has a
 * third where no other one sends; a peer that has a place does not take the last free one.
 * The NIC's lock guards all of it.
 */
#ifndef NIC_SHARE_H
#define NIC_SHARE_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

/* Messages from the handler's own memory (SHARE_OWN) are copied when they have to wait; those from
 * the entry's (SHARE_HOST) only take up an operation of the NIC. */
enum share_kind { SHARE_OWN, SHARE_HOST, SHARE_KINDS };

#define SHARE_CHAINS 64

struct shares {
    unsigned limit, taken;
    struct list chain[SHARE_CHAINS]; /* lists of struct share */
};

/* The places that a context has taken at a peer. It exists while `taken` is not 0. */
struct share {
    struct list link;
    struct shares *of;
    unsigned *peer; /* count of the places that all contexts have taken at the peer */
    uint32_t context;
    unsigned taken;
};

void shares_init(struct shares *s, unsigned limit);

/* share_is_open() says whether a message of the context may take a place at the peer. The address
 * of its count stands for the peer. */
bool share_is_open(const struct shares *s, const unsigned *peer, uint32_t context);

/* share_take() takes a place, share_give() gives back one of that share. NULL: memory is short. */
struct share *share_take(struct shares *s, unsigned *peer, uint32_t context);
void share_give(struct share *share);

#endif
