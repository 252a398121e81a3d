/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path at the receiver, for the two kinds of message that are nearly all: a put that has
 * come whole and meets, at the head of its list, a fast entry that takes all of it; and acks of
 * operations that the target did as asked.
 *
 *   fabric ──► plain_short() ──usual──► over
 *                    └──────any other──► rx_short() (receive.c)
 *
 * This file either ends a message, or has done nothing, and the message passes through the stages
 * from the beginning. It does the steps of the stages (stages.h), knowing this:
 *
 *   - there is no fault to report: the message is sound, its portal table entry is open, the
 *     entry permits it and holds the whole payload;
 *   - nothing has to wait: there is room for the event, no message of the peer
 *     has left its channel for handlers, and its ack can be gathered, if it cannot leave.
 *
 * So the message has no state to keep, and struct rx stays as it is but for gathered acks.
 */
#include "nic/plain.h"

#include "nic/answer.h"
#include "nic/receive.h"
#include "nic/stages.h"

/* Whether the first word of the header is that of a put, with a kind of ack that exists, for one of
 * the four NIs. */
static inline bool is_put(const struct message *m)
{
    _Static_assert(NI_KINDS == 4 && PTL_OC_ACK_REQ == 3 && offsetof(struct message, ni) == 1 &&
                       offsetof(struct message, ack) == 2,
                   "two bits each");
    uint32_t begin;
    memcpy(&begin, m, sizeof(begin));
    return (begin & 0x00fcfcff) == MESSAGE_PUT;
}

/* Whether the entry that matched last is again the first one to match, and holds all of the put. */
static inline bool takes_it(const struct rx *rx, const struct message *m, const struct target *t)
{
    const struct le *le = t->le;
    struct match_header header = target_key(t, m);
    return likely(le != NULL) && le->fast &&
           le_permits(le, rx->peer->uid, 0) == PTL_NI_OK && /* a fast entry permits puts */
           match_is_eldest(&t->pt->priority, &le->match) && match_key(&le->match, &header) &&
           le_holds(le, m->remote_offset, m->length);
}

static inline bool find_target(const struct rx *rx, const struct message *m, struct target *t)
{
    t->ni = rx->peer->nic->ni[m->ni];
    if (unlikely(t->ni == NULL || !ni_has_pt(t->ni, m->pt_index))) {
        return false;
    }
    t->pt = &t->ni->pts[m->pt_index];
    t->le = t->pt->recent;
    t->fail = PTL_NI_OK;
    return likely(pt_is_open(t->pt) && target_source(t, rx, m) && takes_it(rx, m, t) &&
                  pt_queue_has_room(t->pt) && list_empty(&rx->peer->detached));
}

static bool is_acks(const struct rx *rx, const struct message_acks *a)
{
    return (a->head & 0xff) == MESSAGE_ACKS && acks_count(a) <= ACKS_MOST && rx->f.length == 0;
}

/* Not inlined, so that messages which are no puts save no registers for it. */
static __attribute__((noinline)) enum rx_step plain_put(struct nic_peer *peer, struct rx *rx,
                                                        const void *payload)
{
    const struct message *m = (const struct message *)rx->f.header;
    struct target t;
    bool known = m->length == rx->f.length && rx->ack_count != ACKS_MOST && find_target(rx, m, &t);
    return likely(known && put_at_entry(rx, m, &t, payload, true))
               ? RX_GO
               : rx_short(peer, &rx->f, payload);
}

enum rx_step plain_short(struct nic_peer *peer, struct fabric_rx *f, const void *payload)
{
    struct rx *rx = (struct rx *)f;
    if (rx->class == FABRIC_REQUEST) {
        return is_put((const struct message *)f->header) ? plain_put(peer, rx, payload)
                                                         : rx_short(peer, f, payload);
    }
    const struct message_acks *acks = (const struct message_acks *)f->header;
    return rx->class == FABRIC_ASK     ? RX_FIRST /* asks may have to wait */
           : likely(is_acks(rx, acks)) ? acks_done(peer, acks)
                                       : rx_short(peer, f, payload);
}
