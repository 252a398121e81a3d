/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detection of lost packets of a channel, and of a dead peer. A packet is lost
 *
 *  - when three packets that were sent after it have been acknowledged (each transmission has its
 *    own number, so this also holds for a packet that was sent again),
 *  - when one that was sent after it has been acknowledged, and the packet itself has had a quarter
 *    more time than that acknowledgement took (the reordering timer of RACK, RFC 8985), or
 *  - when nothing was acknowledged for a retransmission timeout; at the first one, only the oldest
 *    packet. Long before, after the probe timeout (PTO, RFC 8985), the sender sends the last
 *    packet again, once.
 */
#include "lost.h"

#include "cc.h"
#include "peer.h"

enum { REORDER = 3, UNANSWERED_LEAST = 3, RACK_LEAST = 20000, PTO_LEAST = 500000 };

/* ---- Acknowledgements ---- */

/* Whether a packet last left in packets of about the full length. */
static bool is_full(const struct slmp_flow *f, const struct slmp_segment *s)
{
    return s->most <= f->peer->segment && s->most + SLMP_OVERHEAD >= f->peer->segment;
}

/* Notes how long an acknowledgement took, for the packet with the latest transmission. A packet
 * that was sent more than once does not count, as it is not known which transmission was
 * acknowledged. */
void slmp_tx_heard(struct slmp_flow *f, const struct slmp_segment *s)
{
    f->in_vain = is_full(f, s) ? 0 : f->in_vain;
    if (s->order > f->acked_order) {
        f->acked_order = s->order;
        f->acked_took = s->again ? f->acked_took : f->peer->engine->now - s->sent_at;
    }
}

/* Marks a packet as lost. Lost packets leave again in the order of their numbers, since a receiver
 * without memory for later packets can only take the first missing one. Most packets are lost in
 * that order. */
static void lose(struct slmp_flow *f, struct slmp_segment *s)
{
    uint64_t sequence = slmp_sequence(f, s);
    struct list *before = f->lost.prev;
    s->state = SEGMENT_LOST;
    f->in_flight--;
    list_remove(&s->link);
    while (before != &f->lost &&
           slmp_sequence(f, container_of(before, struct slmp_segment, link)) > sequence) {
        before = before->prev;
    }
    list_insert_after(before, &s->link);
}

/* Whether a packet is lost: the peer has acknowledged one that left REORDER transmissions later, or
 * any that left later, and the packet has had more time since than that one took (RACK). */
static bool is_lost(struct slmp_flow *f, const struct slmp_segment *s)
{
    if (s->order + REORDER <= f->acked_order) {
        return true;
    }
    if (slmp_flow_plain(f) || s->order > f->acked_order) {
        return false;
    }
    int64_t more = f->acked_took / 4 > RACK_LEAST ? f->acked_took / 4 : RACK_LEAST;
    f->rack_at = s->sent_at + f->acked_took + more;
    return f->rack_at <= f->peer->engine->now;
}

uint32_t slmp_tx_lose(struct slmp_flow *f)
{
    struct slmp_segment *s;
    uint32_t lost = 0;
    f->rack_at = SLMP_NEVER;
    while ((s = LIST_FIRST(struct slmp_segment, &f->flight, link)) != NULL && is_lost(f, s)) {
        f->rack_at = SLMP_NEVER;
        lose(f, s);
        lost++;
    }
    return lost;
}

/* ---- Time ---- */

/* Returns since when no acknowledgement has come while the packet was under way. */
static int64_t quiet_since(const struct slmp_flow *f, const struct slmp_segment *s)
{
    return s->sent_at > f->progress ? s->sent_at : f->progress;
}

/* Returns when the oldest packet under way counts as lost. */
static int64_t timeout_at(const struct slmp_flow *f)
{
    const struct slmp_segment *s = LIST_FIRST(struct slmp_segment, &f->flight, link);
    if (s == NULL) {
        return SLMP_NEVER;
    }
    return quiet_since(f, s) + slmp_cc_rto(&f->cc, slmp_flow_config(f));
}

/* Returns the probe timeout: when the last packet under way is sent again, long before a
 * retransmission timeout. The acknowledgement of that packet tells which others are missing; no
 * packet after it could. */
static int64_t pto_at(const struct slmp_flow *f)
{
    const struct slmp_segment *s = slmp_last_segment(&f->flight);
    if (s == NULL || f->pto_sent || slmp_flow_plain(f) || f->cc.srtt == 0 ||
        !list_empty(&f->lost)) {
        return SLMP_NEVER;
    }
    int64_t spread = 2 * f->cc.rttvar > f->cc.srtt ? 2 * f->cc.rttvar : f->cc.srtt;
    int64_t wait = f->cc.srtt + spread + slmp_flow_config(f)->ack_delay;
    return quiet_since(f, s) + (wait > PTO_LEAST ? wait : PTO_LEAST);
}

int64_t slmp_tx_lost_at(const struct slmp_flow *f)
{
    int64_t at = slmp_earlier(timeout_at(f), pto_at(f));
    return slmp_earlier(at, slmp_earlier(f->rack_at, f->probe_at));
}

/* Counts one more question. False: the peer has been silent for too long, and for several
 * questions. */
static bool ask_again(struct slmp_flow *f)
{
    struct slmp *e = f->peer->engine;
    int64_t next = slmp_cc_rto(&f->cc, &e->config);
    if (f->unanswered++ == 0) {
        slmp_wait_begin(&f->wait, e->now, next);
    } else {
        slmp_wait_on(&f->wait, e->now, next);
    }
    return f->unanswered < UNANSWERED_LEAST || f->wait.before < e->config.silence;
}

/* Several timeouts have passed without an acknowledgement of a long packet, although the peer may
 * live: perhaps a device on the path silently drops long packets. So shorter ones are tried, of
 * lengths that paths allow, and later longer ones again. */
static void suspect(struct slmp_flow *f)
{
    static const uint32_t usual[] = {1472, 1232, 548, 0};
    enum { IN_VAIN = 3 };
    struct slmp_peer *p = f->peer;
    unsigned i = 0;
    if (slmp_flow_plain(f) || ++f->in_vain < IN_VAIN) {
        return;
    }
    f->in_vain = 0;
    while (usual[i] >= p->segment + SLMP_OVERHEAD) {
        i++;
    }
    if (usual[i] > 0) {
        slmp_peer_path(p, usual[i]);
        p->raise_at = p->engine->now + SLMP_RAISE_AFTER;
        p->engine->counters.shortened++;
    }
}

/* At the first timeout only the oldest packet is sent again: a receiver that got no processor for a
 * while has lost nothing, and its answer tells what is missing (as in RFC 8985). At the next one
 * all packets that are old count as lost. */
static void time_out(struct slmp_flow *f)
{
    struct slmp *e = f->peer->engine;
    int64_t old = e->now - slmp_cc_rto(&f->cc, &e->config);
    bool ask = f->cc.backoff == 0 && f->in_flight <= f->cc.window;
    bool full = false;
    uint32_t lost = 0;
    struct slmp_segment *s;
    while ((s = LIST_FIRST(struct slmp_segment, &f->flight, link)) != NULL && s->sent_at <= old) {
        lose(f, s);
        full = full || is_full(f, s);
        lost++;
        if (ask) {
            break;
        }
    }
    if (full) {
        suspect(f);
    }
    e->counters.timeouts++;
    f->progress = e->now;
    f->cc.next = f->cc.next < e->now ? f->cc.next : e->now;
    if (ask || slmp_flow_plain(f)) {
        f->cc.backoff += slmp_cc_rto(&f->cc, &e->config) < e->config.rto_max;
    } else {
        slmp_cc_timeout(&f->cc, &e->config, lost, e->now);
    }
}

void slmp_tx_ask(struct slmp_flow *f)
{
    struct slmp *e = f->peer->engine;
    if (f->in_flight == 0 && f->probe_at == SLMP_NEVER) {
        f->probe_at = e->now + slmp_cc_rto(&f->cc, &e->config);
        f->probe = true;
        f->ack_now = true;
        ask_again(f);
    }
}

bool slmp_tx_unanswered(const struct slmp_flow *f, int64_t longest)
{
    return f->unanswered >= UNANSWERED_LEAST &&
           slmp_waited(&f->wait, f->peer->engine->now) >= longest;
}

void slmp_tx_hush(struct slmp_flow *f)
{
    f->probe_at = SLMP_NEVER;
    f->probe = f->ack_now = false;
    f->unanswered = 0;
}

bool slmp_tx_advance(struct slmp_flow *f)
{
    struct slmp *e = f->peer->engine;
    bool alive = true;
    if (f->peer->raise_at <= e->now) {
        f->peer->raise_at = SLMP_NEVER;
        slmp_peer_path(f->peer, SLMP_PACKET_MAX);
    }
    if (f->rack_at <= e->now) {
        slmp_cc_lost(&f->cc, slmp_tx_lose(f));
    }
    if (timeout_at(f) <= e->now) {
        time_out(f);
        alive = ask_again(f);
    } else if (pto_at(f) <= e->now) {
        f->pto_sent = true;
        lose(f, slmp_last_segment(&f->flight));
    }
    if (f->probe_at <= e->now) {
        f->cc.backoff += slmp_cc_rto(&f->cc, &e->config) < e->config.rto_max;
        f->probe_at = e->now + slmp_cc_rto(&f->cc, &e->config);
        f->probe = true;
        f->ack_now = true;
        alive = ask_again(f) && alive;
    }
    return alive;
}
