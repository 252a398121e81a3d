/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places of handlers' messages that wait for room at their peer, so that a peer that takes nothing,
 * or a context that floods, is in nobody's way but its own.
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
 * third where no other one sends; who has a place already does not take the last free one.
 * All of it is done under the NIC's lock.
 */
#ifndef NIC_SHARE_H
#define NIC_SHARE_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

/* Messages from the handler's own memory are copied when they have to wait; those from the entry's
 * take up an operation of the NIC's only. */
enum share_kind { SHARE_OWN, SHARE_HOST, SHARE_KINDS };

#define SHARE_CHAINS 64

struct shares {
    unsigned limit, taken;
    struct list chain[SHARE_CHAINS]; /* struct share */
};

/* What a context has taken at a peer. It is there while that is not 0. */
struct share {
    struct list link;
    struct shares *of;
    unsigned *peer; /* what all contexts have taken there */
    uint32_t context;
    unsigned taken;
};

void shares_init(struct shares *s, unsigned limit);

/* share_is_open() says whether a message of the context may take a place at the peer, which is
 * known by the address of its count. */
bool share_is_open(const struct shares *s, const unsigned *peer, uint32_t context);

/* share_take() takes a place, of whose share share_give() gives back one; NULL: no memory. */
struct share *share_take(struct shares *s, unsigned *peer, uint32_t context);
void share_give(struct share *share);

#endif
