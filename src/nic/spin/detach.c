/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with handlers that leave their channel, so that a slow handler holds up its own entry,
 * but not the messages of the same senders to other entries. Only with HPUs that are threads: else
 * the thread that makes progress runs the handlers, one after the other.
 *
 *   channel ──header matched──► detach()  ── no payload, or all of it here ────────► invocation
 *                                  └─ else to a copy ──► fabric ──► detach_stored() ──► begins
 *
 * Which messages: always gets, and those whose payload lies in the record. A longer payload is
 * copied, in real time, only where that saves other messages time: if the message waits for one
 * before it at its entry, or if handlers of this entry took long lately. Else handlers use its
 * packets in the channel.
 *
 * How many: of one sender, at one entry, as many packets as an execution context may have in its
 * queue (PINWHEEL_HPU_QUEUE), and at all entries SHARE times as many. A message that finds no place
 * stays in its channel, and holds its sender back. A message leaves when it is the first of its
 * channel; until then, one that may leave begins no handler.
 *
 * A message that has left its channel is "detached". Its header was matched in its turn. The peer
 * has its detached messages in order, in the list `detached`, and the NIC keeps this order:
 *
 *   - handlers of one entry have one message of a peer at a time: each waits for the ones before
 *     it, and so does the one in the channel;
 *   - answers leave in the order of the messages, with that of the one in the channel;
 *   - a message for an entry without handlers waits in its channel until none is left: so when a
 *     sender's last message to such an entry ends, all its earlier ones have ended;
 *   - so does a message that would match a use-once entry which a detached message has reserved:
 *     its handlers may still leave that entry in its list (detach_keeps()).
 */
#include "nic/spin/detach.h"

#include "nic/peer.h"
#include "nic/spin_calls.h"

#include <string.h>

#define SHARE 8
/* Handlers are slow if a message takes them more than LONG_NS, and a nanosecond for each
 * LONG_BYTES_A_NS bytes. */
#define LONG_NS 50000
#define LONG_BYTES_A_NS 2
#define REMEMBERED 8 /* handlers that were slow count as slow for so many more messages */

/* ---- Leaving the channel ---- */

static uint64_t packets_of(const struct rx *rx)
{
    uint64_t packet = rx->peer->nic->packet_size;
    return rx->f.length <= packet ? 1 : rx->f.length / packet + (rx->f.length % packet != 0);
}

/* Whether there are places for the message's packets. A message longer than all places never finds
 * them. */
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

/* Whether the message shall leave: its payload is short, or worth a copy. A simulated NIC goes on
 * with the messages behind one whose handlers run (turn_passes()), and so needs none to leave. */
static bool is_due(const struct rx *rx)
{
    const struct nic *nic = rx->peer->nic;
    return nic->time == NULL && (rx->f.length <= nic->inline_max ||
                                 rx->at.le->handlers->slow != 0 || detach_behind_entry(rx));
}

bool detach_may(const struct rx *rx)
{
    bool unreadable = rx->m->type != MESSAGE_GET && rx->m->length != 0 && rx->f.length == 0;
    return rx->peer->nic->sched != NULL && rx->class == FABRIC_REQUEST && !rx->away &&
           rx->local == NULL && !unreadable && is_due(rx) && has_place(rx, packets_of(rx));
}

/* Moves the message from its channel's object to the invocation, and resets the former. */
static void hand_over(struct rx *rx, struct invocation *v)
{
    struct nic_peer *peer = rx->peer;
    memcpy(v->rx.f.header, rx->f.header, sizeof(rx->f.header));
    v->rx.peer = peer;
    v->rx.detached = v->rx.decided = true;
    v->rx.at = rx->at;
    rx->at.ni = NULL; /* the message is the invocation's now */
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
        rx->m->type = 0; /* the channel's object has no message any more */
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
        return false; /* a message before it may be waiting for this very answer */
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

/* Has the next message that is to answer go on, if it waits for that. */
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
        invoke_stir(&v->rx); /* it may have waited for its turn to answer */
    }
}
