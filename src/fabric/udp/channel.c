/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the streams of a channel go on: which of them do (receive.c takes their messages), when the
 * engine is asked to offer again the packets that it was told to keep, and what a channel waits
 * for.
 *
 * The NIC may release its lock while it works on a message. `busy` keeps other threads away from
 * the channel meanwhile; they may only add pieces, and streams behind the others.
 */
#include "fabric/udp/channel.h"

#include "fabric/udp/receive.h"
#include "fabric/udp/stage.h"
#include "fabric/udp/stream.h"

static bool nothing_here(const struct udp_channel *c)
{
    const struct udp_stream *l = udp_stream_first(c);
    return udp_stream_alone(c) && l->m.phase == RX_IDLE && list_empty(&l->pieces);
}

/* Goes on with all streams that can, in their order. */
static bool take_streams(struct udp_peer *p, struct udp_channel *c)
{
    struct udp_stream *l = udp_stream_first(c);
    bool moved = udp_stream_take_first(p, l);
    while (!nothing_here(c)) {
        if (l == udp_stream_first(c) && udp_stream_retire(p->fabric, c)) {
            l = udp_stream_first(c);
            moved |= udp_stream_take_first(p, l);
            continue;
        }
        if (l->m.phase == RX_IDLE || !udp_stream_split(c, l) || !l->m.rx->matched ||
            (l = udp_stream_behind(c, l)) == NULL) {
            return moved;
        }
        moved |= udp_stream_take_behind(p, l);
    }
    return moved;
}

static void cut_channel(struct udp_peer *p, struct udp_channel *c)
{
    if (c->busy) {
        return;
    }
    c->busy = true;
    do {
        struct udp_stream *l = udp_stream_first(c);
        if (l->m.phase != RX_IDLE && !rx_machine_cut(&l->m)) {
            break; /* the NIC still works on it */
        }
        udp_stream_clear(p->fabric, l);
    } while (udp_stream_retire(p->fabric, c));
    c->busy = false;
}

void udp_cut(struct udp_peer *p)
{
    cut_channel(p, &p->channel[FABRIC_RESPONSE]);
    cut_channel(p, &p->channel[FABRIC_ASK]);
    cut_channel(p, &p->channel[FABRIC_REQUEST]);
}

/* Whether the engine was told to keep packets for which there is room now. */
static bool may_offer(const struct udp_channel *c)
{
    LIST_EACH(const struct udp_stream, l, &c->streams, link) {
        if (l->in.refused && l->count < udp_stream_most(c, l) / 2) {
            return true;
        }
    }
    return c->next_refused && (udp_stream_last(c)->in.open == NULL || !list_empty(&c->spare));
}

/* Has the engine offer all packets that it keeps for a channel. */
static void ask_again(struct udp_peer *p, struct udp_channel *c, unsigned class)
{
    c->refused = c->next_refused = false;
    LIST_EACH(struct udp_stream, l, &c->streams, link) {
        l->in.refused = false;
    }
    /* The engine ignores a time before its own: work that becomes due is left to the poll that is
     * running. */
    slmp_resume(p->fabric->engine, 0, p->session, class);
}

static bool take_channel(struct udp_peer *p, unsigned class)
{
    struct udp_channel *c = &p->channel[class];
    if (c->busy || (nothing_here(c) && !c->refused)) {
        return false;
    }
    c->busy = true;
    bool moved = take_streams(p, c);
    c->busy = false;
    if (c->refused && p->session != NULL && may_offer(c)) {
        ask_again(p, c, class);
        moved = true;
    }
    return moved;
}

static __attribute__((noinline)) bool take_asks(struct udp_peer *p)
{
    const struct udp_channel *c = &p->channel[FABRIC_ASK];
    bool moved = take_channel(p, FABRIC_ASK);
    p->asks = c->busy || c->refused || !nothing_here(c) || udp_stream_first(c)->in.open != NULL;
    return moved;
}

bool udp_take(struct udp_peer *p)
{
    bool moved = take_channel(p, FABRIC_RESPONSE);
    if (unlikely(p->asks)) {
        moved |= take_asks(p);
    }
    return take_channel(p, FABRIC_REQUEST) || moved;
}

static bool is_stuck(const struct udp_stream *l)
{
    return l->m.waiting || rx_machine_keeps(&l->m);
}

/* Whether the pieces of a stream can be taken now: it does not wait for messages before it. */
static bool has_its_turn(const struct udp_channel *c, const struct udp_stream *l)
{
    return l == udp_stream_first(c) ||
           ((l->m.phase == RX_HEADER || l->m.phase == RX_PAYLOAD) && !l->m.turn);
}

static unsigned channel_state(const struct udp_channel *c)
{
    const struct udp_stream *first = udp_stream_first(c);
    unsigned state = c->busy ? RX_BUSY | RX_BLOCKED | RX_OURS : nothing_here(c) ? 0 : RX_BUSY;
    state |=
        first->in.open != NULL || first->m.phase != RX_IDLE || !udp_stream_alone(c) ? RX_AWAITS : 0;
    LIST_EACH(const struct udp_stream, l, &c->streams, link) {
        state |= is_stuck(l) ? RX_BLOCKED : 0;
        state |= l->m.waiting && !l->m.rx->elsewhere ? RX_OURS : 0;
    }
    return state;
}

unsigned udp_state(const struct udp_peer *p)
{
    unsigned asks = p->asks ? channel_state(&p->channel[FABRIC_ASK]) : 0;
    return asks | channel_state(&p->channel[FABRIC_REQUEST]) |
           channel_state(&p->channel[FABRIC_RESPONSE]);
}

static bool channel_wants_poll(const struct udp_channel *c)
{
    if (c->busy || (nothing_here(c) && !c->refused)) {
        return false;
    }
    LIST_EACH(const struct udp_stream, l, &c->streams, link) {
        if (is_stuck(l) || (!list_empty(&l->pieces) && has_its_turn(c, l))) {
            return true;
        }
    }
    return c->refused && may_offer(c);
}

bool udp_wants_poll(const struct udp_peer *p)
{
    return channel_wants_poll(&p->channel[FABRIC_REQUEST]) ||
           (p->asks && channel_wants_poll(&p->channel[FABRIC_ASK])) ||
           channel_wants_poll(&p->channel[FABRIC_RESPONSE]);
}
