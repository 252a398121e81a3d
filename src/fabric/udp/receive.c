/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer's side of a channel: in each stream (stream.c) one message at a time, as a source of
 * the receive machine (fabric/rx_machine.h).
 *
 * The messages of a channel begin one after the other, and end one after the other; in between,
 * each goes on when its packets come. Messages behind one that was cut are cut as well: a channel
 * has no gaps.
 *
 * A deposit is copied from the pieces to its place. Packets for the NIC have the NIC's packet size:
 * one that lies within a piece is used there; another one is gathered from several pieces. A packet
 * that the NIC keeps has a reference to its memory.
 *
 * While the NIC's lock is released, no other thread works on the channel (channel.c).
 */
#include "fabric/udp/receive.h"

#include "fabric/udp/stage.h"
#include "fabric/udp/stream.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 32 /* messages of one channel before the next channel has its turn */

static struct udp_stream *stream_of(struct rx_machine *m)
{
    return container_of(m, struct udp_stream, m);
}

static struct udp_peer *peer_of(const struct rx_machine *m)
{
    return container_of(m->source, struct udp_peer, source);
}

static struct udp_piece *front(const struct udp_stream *l)
{
    return LIST_FIRST(struct udp_piece, &l->pieces, link);
}

/* Returns the first piece of the message in progress that has bytes left; NULL if none has come.
 * Sets m.status if the sender could not read the bytes, or if no more will come. */
static struct udp_piece *next_piece(struct udp_peer *p, struct udp_stream *l)
{
    struct udp_piece *piece;
    while ((piece = front(l)) != NULL && !piece->first && !piece->torn &&
           l->used == piece->length) {
        udp_piece_drop(p->fabric, l);
    }
    if (piece == NULL || piece->first) {
        return NULL;
    }
    if (piece->torn) {
        l->m.status = FABRIC_UNDELIVERABLE;
        return NULL;
    }
    if (piece->blank && l->m.status == FABRIC_OK) {
        l->m.status = FABRIC_SEGV;
    }
    return piece;
}

/* ---- packets ---- */

/* Puts a packet together from pieces, as far as they have come; NULL if bytes are missing. */
static uint8_t *gather(struct udp_peer *p, struct udp_stream *l, size_t n)
{
    struct udp_piece *piece;
    if (l->gather == NULL && (l->gather = udp_memory_new(p->fabric->setup.packet_size)) == NULL) {
        return NULL;
    }
    while (l->gathered < n && (piece = next_piece(p, l)) != NULL) {
        size_t have = piece->length - l->used, missing = n - l->gathered;
        size_t take = have < missing ? have : missing;
        memcpy(l->gather->bytes + l->gathered, piece->bytes + l->used, take);
        l->gathered += take;
        l->used += (uint32_t)take;
    }
    return l->gathered == n ? l->gather->bytes : NULL;
}

/* Returns the packet of n bytes at l->moved; NULL if it has not come whole. Packets begin at
 * multiples of UDP_ALIGN in memory, so that the NIC cuts them for handlers in the same way, however
 * they have travelled. */
static uint8_t *packet(struct udp_peer *p, struct udp_stream *l, size_t n)
{
    if (l->gathered == 0) {
        struct udp_piece *piece = next_piece(p, l);
        const uint8_t *at = piece != NULL ? piece->bytes + l->used : NULL;
        if (at != NULL && piece->length - l->used >= n && (uintptr_t)at % UDP_ALIGN == 0) {
            return (uint8_t *)(uintptr_t)at;
        }
    }
    return gather(p, l, n);
}

/* Keeps the memory of the packet that ends at l->m.moved in use. */
static void keep(struct udp_stream *l)
{
    struct udp_kept *k = l->keeper;
    l->keeper = NULL;
    k->end = l->m.moved;
    if (l->gathered != 0) {
        k->memory = l->gather;
        l->gather = NULL;
    } else {
        k->memory = front(l)->memory;
        k->memory->users++;
    }
    list_push_back(&l->kept, &k->link);
}

/* Releases the memory of packets that the NIC no longer keeps; true if there were any. */
static bool let_go(struct rx_machine *m)
{
    struct udp_peer *p = peer_of(m);
    struct udp_stream *l = stream_of(m);
    bool any = false;
    struct udp_kept *k;
    while ((k = LIST_FIRST(struct udp_kept, &l->kept, link)) != NULL && k->end <= m->rx->held) {
        list_remove(&k->link);
        udp_memory_drop(p->fabric, k->memory);
        free(k);
        any = true;
    }
    return any;
}

/* Returns the next packet. It allocates the note of a kept packet first: when the NIC keeps the
 * packet, it would be too late to find that memory is short. */
static struct rx_span packet_here(struct udp_peer *p, struct udp_stream *l, uint64_t rest)
{
    size_t packet_size = p->fabric->setup.packet_size, n = rest < packet_size ? rest : packet_size;
    if (l->m.phase == RX_PAYLOAD && l->keeper == NULL &&
        (l->keeper = calloc(1, sizeof(*l->keeper))) == NULL) {
        l->m.waiting = true;
        return (struct rx_span){NULL, 0};
    }
    uint8_t *data = packet(p, l, n);
    return (struct rx_span){data, data != NULL ? n : 0};
}

/* Returns bytes that need not come in packets. */
static struct rx_span bytes_here(struct udp_peer *p, struct udp_stream *l, uint64_t rest)
{
    if (l->gathered != 0) {
        return (struct rx_span){l->gather->bytes, l->gathered};
    }
    struct udp_piece *piece = next_piece(p, l);
    if (piece == NULL) {
        return (struct rx_span){NULL, 0};
    }
    uint64_t n = piece->length - l->used;
    return (struct rx_span){(uint8_t *)(uintptr_t)piece->bytes + l->used, n < rest ? n : rest};
}

static struct rx_span stream_here(struct rx_machine *m, bool packets)
{
    uint64_t rest = m->rx->length - m->moved;
    return packets ? packet_here(peer_of(m), stream_of(m), rest)
                   : bytes_here(peer_of(m), stream_of(m), rest);
}

/* Counts bytes as taken: of the packet that was gathered, or of the first piece. */
static void stream_pass(struct rx_machine *m, uint64_t n, bool kept)
{
    struct udp_stream *l = stream_of(m);
    if (kept && m->rx->held < m->moved) {
        keep(l);
    }
    if (l->gathered != 0) {
        l->gathered = 0;
    } else {
        l->used += (uint32_t)n;
    }
}

/* ---- messages ---- */

static struct fabric_rx *lend_rx(struct udp_peer *p, struct udp_channel *c, enum fabric_class class)
{
    if (c->lent) {
        return p->fabric->setup.up->rx_new(p->np, class);
    }
    c->lent = true;
    return c->rx;
}

static void give_rx_back(struct udp_peer *p, struct udp_stream *l)
{
    struct udp_channel *c = &p->channel[l->class];
    if (l->m.rx == c->rx) {
        c->lent = false;
    } else {
        p->fabric->setup.up->rx_free(p->np, l->m.rx);
    }
    l->m.rx = NULL;
}

/* Takes the head of the next message; false: none has come, or memory is short. */
static bool take_head(struct udp_peer *p, struct udp_stream *l)
{
    struct udp_channel *c = &p->channel[l->class];
    struct udp_piece *piece;
    while ((piece = front(l)) != NULL && !piece->first) {
        /* the rest of a message that has ended before its last byte */
        udp_piece_drop(p->fabric, l);
    }
    if (piece == NULL || (l->m.rx = lend_rx(p, c, (enum fabric_class)l->class)) == NULL) {
        return false;
    }
    struct fabric_rx *rx = l->m.rx;
    rx->number = c->messages++;
    rx->behind = l != udp_stream_first(c);
    memcpy(rx->header, piece->bytes + UDP_PREFIX, FABRIC_HEADER);
    l->m.status = piece->bytes[1] == FABRIC_OK ? FABRIC_OK : FABRIC_SEGV;
    rx->length = l->m.status == FABRIC_OK ? piece->total - UDP_HEAD : 0;
    l->used = UDP_HEAD;
    l->gathered = 0;
    piece->first = false;
    return true;
}

/* Takes a message that has come whole in one piece, in one step if possible; returns whether it has
 * ended. */
static bool step_short(struct udp_peer *p, struct udp_stream *l)
{
    struct fabric_rx *rx = l->m.rx;
    struct udp_piece *piece = front(l);
    const uint8_t *payload = piece->bytes + UDP_HEAD;
    bool whole = l->m.status == FABRIC_OK && rx->length <= p->fabric->setup.packet_size &&
                 piece->length - UDP_HEAD == rx->length && !piece->blank;
    if (!whole || (rx->length != 0 && (payload = packet(p, l, rx->length)) == NULL)) {
        rx_machine_begin(&l->m);
        return false;
    }
    if (rx_machine_short(&l->m, p->fabric->setup.up->rx_short(p->np, rx, payload))) {
        return false;
    }
    l->gathered = 0;
    udp_piece_drop(p->fabric, l);
    give_rx_back(p, l);
    return true;
}

/* Called when the message of the first stream was cut: severs the messages of the streams behind
 * it, and drops the pieces of those that the NIC has not begun. */
static void cut_behind(struct udp_peer *p, struct udp_stream *l)
{
    const struct udp_channel *c = &p->channel[l->class];
    udp_stream_clear(p->fabric, l);
    while ((l = udp_stream_behind(c, l)) != NULL) {
        rx_machine_sever(&l->m);
        if (l->m.phase == RX_IDLE) {
            udp_stream_clear(p->fabric, l);
        }
    }
}

/* Ends the message in progress of the first stream. */
static void stream_over(struct rx_machine *m)
{
    struct udp_peer *p = peer_of(m);
    struct udp_stream *l = stream_of(m);
    (void)let_go(m);
    l->gathered = 0;
    give_rx_back(p, l);
    if (m->status == FABRIC_UNDELIVERABLE) {
        cut_behind(p, l);
    }
    while ((l = udp_stream_behind(&p->channel[stream_of(m)->class], l)) != NULL) {
        l->m.turn = false;
    }
}

const struct rx_source_ops udp_source = {stream_here, stream_pass, let_go, stream_over};

static bool go_on(struct udp_peer *p, struct udp_stream *l)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a message in progress has its rx */
    l->m.rx->behind = l != udp_stream_first(&p->channel[l->class]);
    return rx_machine_go_on(&l->m);
}

bool udp_stream_take_first(struct udp_peer *p, struct udp_stream *l)
{
    bool moved = false;
    for (unsigned n = 0; n < BATCH; n++) {
        if (l->m.phase == RX_IDLE) {
            if (list_empty(&l->pieces) || !take_head(p, l)) {
                break;
            }
            moved = true;
            if (step_short(p, l)) {
                continue;
            }
        }
        if (!go_on(p, l)) {
            break;
        }
        moved = true;
        if (l->m.phase != RX_IDLE) {
            break;
        }
    }
    return moved;
}

bool udp_stream_take_behind(struct udp_peer *p, struct udp_stream *l)
{
    bool moved = false;
    if (l->m.phase == RX_IDLE) {
        if (!take_head(p, l)) {
            return false;
        }
        rx_machine_begin(&l->m);
        moved = true;
    }
    return (!l->m.turn && l->m.phase != RX_DONE && go_on(p, l)) || moved;
}
