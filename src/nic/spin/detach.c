/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with handlers that leave their channel, so that a slow handler holds up its own entry
 * and not what its senders have for others. Only with HPUs that are threads: else whoever makes
 * progress runs the handlers, one after the other.
 *
 *   channel ──header matched──► detach()  ── no payload, or all of it here ────────► invocation
 *                                  └─ a copy takes it ──► fabric ──► detach_stored() ──► begins
 *
 * Which ones: gets, and what lies in its record whole, always. A longer one is copied only where
 * that spares others time: if it waits for one before it at its entry, or if handlers of this entry
 * took long of late. Else its packets are used in place, in its channel.
 *
 * How many: of a sender, as many packets at an entry as its context may have in its queue
 * (PINWHEEL_HPU_QUEUE), and at all entries SHARE times as many. What finds no place stays in its
 * channel, and holds its sender back. A message leaves when it is the first of its channel: one
 * that may leave, and is behind others there, begins no handler before that.
 *
 * Of one that has left its channel, "detached", its header has been matched, in its turn. Those of
 * a peer are in order in its list `detached`, and this order holds:
 *
 *   - handlers of one entry have one message of a peer at a time: each waits for the ones before
 *     it, as one in the channel does;
 *   - answers leave in the order of the messages, also that of the one in the channel;
 *   - a message for an entry without handlers waits, in its channel, until none is left: who sends
 *     to such an entry last may rely on all that he has sent before;
 *   - so does one that would match a use-once entry that one of them has in hand: its handlers may
 *     yet leave the entry where it is (detach_keeps()).
 */
#include "nic/spin/detach.h"

#include "nic/peer.h"
#include "nic/spin_calls.h"

#include <string.h>

#define SHARE 8
/* A message is long if its handlers take LONG_NS, and a nanosecond for LONG_BYTES_A_NS bytes. */
#define LONG_NS 50000
#define LONG_BYTES_A_NS 2
#define REMEMBERED 8 /* for so many messages a long handler is remembered */

/* ---- Leaving ---- */

static uint64_t packets_of(const struct rx *rx)
{
    uint64_t packet = rx->peer->nic->packet_size;
    return rx->f.length <= packet ? 1 : rx->f.length / packet + (rx->f.length % packet != 0);
}

/* Whether there is a place for it; a message longer than all places never finds one. */
static bool has_place(const struct rx *rx, uint64_t packets)
{
    const struct nic_peer *peer = rx->peer;
    uint64_t most = (uint64_t)peer->nic->process->options.number[OPT_HPU_QUEUE];
    if (packets > most || peer->detached_packets + packets > SHARE * most) {
        return false;
    }
    LIST_EACH(const struct invocation, v, &peer->detached, turn) {
        packets += v->rx.at.le == rx->at.le ? v->packets : 0;
    }
    return packets <= most;
}

/* Whether the payload is worth a copy. */
static bool is_due(const struct rx *rx)
{
    return rx->f.length <= rx->peer->nic->inline_max || rx->at.le->handlers->slow != 0 ||
           detach_behind_entry(rx);
}

bool detach_may(const struct rx *rx)
{
    bool unreadable = rx->m->type != MESSAGE_GET && rx->m->length != 0 && rx->f.length == 0;
    return rx->peer->nic->sched != NULL && rx->class == FABRIC_REQUEST && !rx->away &&
           rx->local == NULL && !unreadable && is_due(rx) && has_place(rx, packets_of(rx));
}

/* The message is the invocation's from now on, and the channel's no more. */
static void hand_over(struct rx *rx, struct invocation *v)
{
    struct nic_peer *peer = rx->peer;
    memcpy(v->rx.f.header, rx->f.header, sizeof(rx->f.header));
    v->rx.peer = peer;
    v->rx.detached = v->rx.decided = true;
    v->rx.at = rx->at;
    rx->at.ni = NULL; /* it is that one's now */
    rx_reset(rx);
    list_push_back(&peer->detached, &v->turn);
    peer->detached_packets += v->packets;
    invocation_begin(v);
}

bool detach(struct rx *rx)
{
    struct invocation *v = invocation_new(rx->peer->nic, rx->f.length);
    if (v == NULL) {
        return false;
    }
    v->packets = (unsigned)packets_of(rx);
    if (rx->f.length == 0) {
        hand_over(rx, v);
        rx->m->type = 0; /* nothing is left of it here */
        return true;
    }
    rx->stored = v;
    rx_lend(rx, (struct memory){v->data, NULL, 0}, rx->f.length);
    return true;
}

bool detach_stored(struct rx *rx, enum fabric_status status)
{
    struct invocation *v = rx->stored;
    rx->stored = NULL;
    if (status == FABRIC_OK && rx->at.fail == PTL_NI_OK) {
        hand_over(rx, v);
        return true;
    }
    invocation_drop(v);
    return false;
}

void detach_note(struct handlers *h, uint64_t length, int64_t took)
{
    if (took > LONG_NS + (int64_t)(length / LONG_BYTES_A_NS)) {
        h->slow = REMEMBERED;
    } else if (h->slow != 0) {
        h->slow--;
    }
}

/* ---- Order ---- */

bool detach_behind_entry(const struct rx *rx)
{
    LIST_EACH(const struct invocation, v, &rx->peer->detached, turn) {
        if (&v->rx == rx || v->rx.at.le == rx->at.le) {
            return &v->rx != rx;
        }
    }
    return false;
}

bool detach_behind_answer(const struct rx *rx)
{
    if (rx->class == FABRIC_ASK) {
        return false; /* one before it may wait for this answer */
    }
    LIST_EACH(const struct invocation, v, &rx->peer->detached, turn) {
        if (&v->rx == rx || v->rx.at.response_due) {
            return &v->rx != rx;
        }
    }
    return false;
}

bool detach_keeps(const struct nic_peer *peer, const struct le *le)
{
    LIST_EACH(const struct invocation, v, &peer->detached, turn) {
        if (v->rx.at.le == le) {
            return true;
        }
    }
    return false;
}

void detach_left(struct invocation *v, const struct le *le)
{
    struct nic_peer *peer = v->rx.peer;
    LIST_EACH(struct invocation, next, &peer->detached, turn) {
        if (next->rx.at.le == le && !next->rx.header_begun) {
            invoke_stir(&next->rx);
            return;
        }
    }
}

/* Lets the one go on that is the next to answer. */
static void kick_answer(struct nic_peer *peer)
{
    LIST_EACH(struct invocation, next, &peer->detached, turn) {
        if (next->rx.at.response_due) {
            if (next->behind && next->whole.m.phase == RX_DONE) {
                invoke_stir(&next->rx);
            }
            return;
        }
    }
}

void detach_end(struct invocation *v)
{
    struct nic_peer *peer = v->rx.peer;
    v->rx.peer = &peer->nic->host;
    list_remove(&v->turn);
    peer->detached_packets -= v->packets;
    kick_answer(peer);
    peer_let_go(peer);
}

void detach_peer_down(struct nic_peer *peer)
{
    LIST_EACH(struct invocation, v, &peer->detached, turn) {
        v->rx.at.response_due = false;
        invoke_stir(&v->rx); /* it may have waited to answer */
    }
}
