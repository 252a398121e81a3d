/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detection of lost packets of a channel, and of a dead peer. A packet is lost
 *
 *  - when three packets that were sent after it have been acknowledged (each transmission
 *    has a number of its own, so that this holds for one that was sent again as well),
 *  - when one that was sent after it has been acknowledged, and the time that this took, and a
 *    quarter more, is over for it, too (the reordering timer of RACK, RFC 8985), or
 *  - when nothing was acknowledged for a retransmission timeout; at the first, only the oldest one
 *    is. Long before that, after the probe timeout (PTO, RFC 8985), the sender sends the last one
 *    again, once.
 */
#include "lost.h"

#include "cc.h"
#include "peer.h"

enum { REORDER = 3, UNANSWERED_LEAST = 3, RACK_LEAST = 20000, PTO_LEAST = 500000 };

/* ---- What acknowledgements tell ---- */

/* Whether it left in packets about as long as they may be now. */
static bool is_full(const struct slmp_flow *f, const struct slmp_segment *s)
{
    return s->most <= f->peer->segment && s->most + SLMP_OVERHEAD >= f->peer->segment;
}

/* How long the acknowledgement of a packet takes, by the last that was sent once: of one that was
 * sent again nobody knows which time it came. */
void slmp_tx_heard(struct slmp_flow *f, const struct slmp_segment *s)
{
    f->in_vain = is_full(f, s) ? 0 : f->in_vain;
    if (s->order > f->acked_order) {
        f->acked_order = s->order;
        f->acked_took = s->again ? f->acked_took : f->peer->engine->now - s->sent_at;
    }
}

/* Lost packets leave again in the order of their numbers: the first one that is missing is what a
 * receiver without memory for those behind it can take. Most are lost in that order. */
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

/* Since when nothing was heard that a packet has been waiting for. */
static int64_t quiet_since(const struct slmp_flow *f, const struct slmp_segment *s)
{
    return s->sent_at > f->progress ? s->sent_at : f->progress;
}

/* When the oldest packet under way counts as lost. */
static int64_t timeout_at(const struct slmp_flow *f)
{
    const struct slmp_segment *s = LIST_FIRST(struct slmp_segment, &f->flight, link);
    if (s == NULL) {
        return SLMP_NEVER;
    }
    return quiet_since(f, s) + slmp_cc_rto(&f->cc, slmp_flow_config(f));
}

/* The probe timeout: when the last packet under way is sent again, long before a retransmission
 * timeout. Its acknowledgement tells what is missing; behind it nothing has left that could tell.
 */
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

/* False when the peer has been silent for too long. That takes several questions. */
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

/* Long packets were waited for in vain again and again, from a peer that may be there:
 * perhaps a place on the path drops what is long and does not say so. Shorter ones are
 * tried, of lengths that paths have, and after a while longer ones again. */
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

/* The first timeout asks with the oldest packet only: a receiver that was not given a
 * processor for a while has lost nothing, and its answer tells what else is missing (RFC
 * 8985 has the same thought). The next one takes all that is old for lost. */
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
