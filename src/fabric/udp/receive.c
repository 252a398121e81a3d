/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer's side of a channel: in each lane (lane.c) one message at a time, as a state
 * machine.
 *
 *   IDLE ──first piece──► HEADER ──rx_header──► PAYLOAD ──all moved──► DONE ──rx_done──► IDLE
 *                           │ RX_WAIT, RX_FIRST,   │ no piece, RX_WAIT     │ RX_WAIT, not in
 *                           │ RX_TURN: stays       │ stays                 │ the first lane: stays
 *
 * Of a channel one message begins after the other, and one ends after the other; what comes
 * between, each does when its packets come. What follows one that was cut ends with it: a channel
 * has no gaps.
 *
 * A deposit goes from the pieces to its place. Packets for the NIC are cut by its own packet
 * size: one that lies in a piece is used there, another is gathered from several. Packets
 * that the NIC keeps hold on to the memory that they lie in.
 *
 * The NIC's lock may be let go of inside the upcalls; nobody else is with the channel then
 * (channel.c).
 */
#include "fabric/udp/udp.h"

#include "base/nic_copy.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 32 /* messages of one channel before the next has its turn */

static struct udp_piece *front(const struct udp_lane *l)
{
    return list_empty(&l->pieces) ? NULL : container_of(l->pieces.next, struct udp_piece, link);
}

/* The first piece of the message in hand that has bytes left; NULL if it is not here. What
 * is behind a byte that its sender could not read, or a torn end, does not come. */
static struct udp_piece *next_piece(struct fabric_peer *p, struct udp_lane *l)
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
        l->status = FABRIC_UNDELIVERABLE;
        return NULL;
    }
    if (piece->blank && l->status == FABRIC_OK) {
        l->status = FABRIC_SEGV;
    }
    return piece;
}

/* ---- packets ---- */

static size_t packet_length(const struct fabric_peer *p, const struct udp_lane *l)
{
    uint64_t rest = l->rx->length - l->moved;
    size_t packet = p->fabric->packet_size;
    return rest < packet ? rest : packet;
}

/* Puts a packet together from pieces, as far as they have come; NULL if not all is here. */
static uint8_t *gather(struct fabric_peer *p, struct udp_lane *l, size_t n)
{
    struct udp_piece *piece;
    if (l->gather == NULL &&
        (l->gather = udp_memory_new(p->fabric, p->fabric->packet_size)) == NULL) {
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

/* The packet of n bytes at l->moved; NULL if it is not here yet. Packets begin at multiples of
 * UDP_ALIGN in memory: how the NIC cuts them must not depend on how they travelled. */
static uint8_t *packet(struct fabric_peer *p, struct udp_lane *l, size_t n)
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

/* Counts n bytes as taken: of the packet that was gathered, or of the first piece. */
static void consume(struct udp_lane *l, size_t n)
{
    l->moved += n;
    if (l->gathered != 0) {
        l->gathered = 0;
    } else {
        l->used += (uint32_t)n;
    }
}

/* The packet that is consumed next stays in use. */
static void keep(struct udp_lane *l, size_t n)
{
    struct udp_kept *k = l->keeper;
    l->keeper = NULL;
    k->end = l->moved + n;
    if (l->gathered != 0) {
        k->memory = l->gather;
        l->gather = NULL;
    } else {
        k->memory = front(l)->memory;
        k->memory->users++;
    }
    list_push_back(&l->kept, &k->link);
}

/* Lets go of what the NIC needs no more; true if that was anything. */
static bool let_go(struct fabric_peer *p, struct udp_lane *l)
{
    bool any = false;
    while (!list_empty(&l->kept)) {
        struct udp_kept *k = container_of(l->kept.next, struct udp_kept, link);
        if (k->end > l->rx->held) {
            break;
        }
        list_remove(&k->link);
        udp_memory_drop(p->fabric, k->memory);
        free(k);
        any = true;
    }
    return any;
}

/* ---- the phases ---- */

static void begin_payload(struct udp_lane *l)
{
    l->moved = 0;
    l->gathered = 0;
    l->rx->held = FABRIC_HELD_NOTHING;
    l->rx->elsewhere = false;
    l->cursor = (struct vector_cursor){0};
    l->phase = UDP_PAYLOAD;
}

static void begin_message(struct udp_lane *l)
{
    begin_payload(l);
    l->rx->first = NULL;
    l->rx->first_length = 0;
    l->rx->sink = RX_DISCARD;
    l->rx->vector = NULL;
    l->rx->matched = false;
    l->phase = UDP_HEADER;
}

static struct fabric_rx *lend_rx(struct fabric_peer *p, struct udp_channel *c,
                                 enum fabric_class class)
{
    if (c->lent) {
        return p->fabric->up->rx_new(p->np, class);
    }
    c->lent = true;
    return c->rx;
}

static void give_rx_back(struct fabric_peer *p, struct udp_lane *l)
{
    struct udp_channel *c = &p->channel[l->class];
    if (l->rx == c->rx) {
        c->lent = false;
    } else {
        p->fabric->up->rx_free(p->np, l->rx);
    }
    l->rx = NULL;
    l->phase = UDP_IDLE;
}

/* Takes the head of the next message; false if none is here, or memory is short. */
static bool take_head(struct fabric_peer *p, struct udp_lane *l)
{
    struct udp_channel *c = &p->channel[l->class];
    struct udp_piece *piece;
    while ((piece = front(l)) != NULL && !piece->first) {
        udp_piece_drop(p->fabric, l); /* the rest of one that ended before its bytes */
    }
    if (piece == NULL || (l->rx = lend_rx(p, c, (enum fabric_class)l->class)) == NULL) {
        return false;
    }
    struct fabric_rx *rx = l->rx;
    rx->number = c->messages++;
    rx->behind = l != udp_lane_first(c);
    memcpy(rx->header, piece->bytes + UDP_PREFIX, FABRIC_HEADER);
    rx->torn = false;
    l->status = piece->bytes[1] == FABRIC_OK ? FABRIC_OK : FABRIC_SEGV;
    rx->length = l->status == FABRIC_OK ? piece->total - UDP_HEAD : 0;
    l->used = UDP_HEAD;
    l->gathered = 0;
    piece->first = false;
    return true;
}

/* A message that is here whole, in a piece, may be over in one step; true if it is. */
static bool step_short(struct fabric_peer *p, struct udp_lane *l)
{
    struct fabric_rx *rx = l->rx;
    struct udp_piece *piece = front(l);
    if (l->status != FABRIC_OK || rx->length > p->fabric->packet_size ||
        piece->length - UDP_HEAD != rx->length || piece->blank) {
        begin_message(l);
        return false;
    }
    l->moved = 0;
    const uint8_t *payload = piece->bytes + UDP_HEAD;
    if (rx->length != 0 && (payload = packet(p, l, rx->length)) == NULL) {
        begin_message(l);
        return false;
    }
    size_t gathered = l->gathered;
    enum rx_step step = p->fabric->up->rx_short(p->np, rx, payload);
    switch (step) {
    case RX_GO:
        l->gathered = 0;
        udp_piece_drop(p->fabric, l);
        give_rx_back(p, l);
        return true;
    case RX_HEADED:
        begin_payload(l);
        rx->matched = true;
        break;
    case RX_WAIT:
        begin_message(l);
        rx->matched = true;
        l->moved = rx->length;
        l->used = front(l)->length;
        l->phase = UDP_DONE;
        return false;
    default:
        begin_message(l);
    }
    l->gathered = gathered;
    return false;
}

static bool step_header(struct fabric_peer *p, struct udp_lane *l)
{
    const struct fabric_upcalls *up = p->fabric->up;
    struct fabric_rx *rx = l->rx;
    enum rx_step step = up->rx_header(p->np, rx);
    l->waiting = l->turn = false; /* what it asks for may be its sender's to give */
    if (step == RX_FIRST && rx->first == NULL) {
        bool any = rx->length != 0; /* a sender that cannot read it sends the header alone */
        size_t n = packet_length(p, l);
        uint8_t *data = any && l->status == FABRIC_OK ? packet(p, l, n) : NULL;
        if (any && data == NULL && l->status == FABRIC_OK) {
            return false;
        }
        static const uint8_t nothing[8];
        rx->first = data != NULL ? data : nothing;
        rx->first_length = data != NULL ? n : 0;
        rx->torn = !any || l->status != FABRIC_OK;
        step = up->rx_header(p->np, rx);
    }
    l->waiting = step == RX_WAIT;
    l->turn = step == RX_TURN;
    if (step != RX_GO) {
        return false;
    }
    rx->matched = true;
    l->phase = UDP_PAYLOAD;
    return true;
}

static int deposit(struct udp_lane *l, const uint8_t *data, size_t n)
{
    const struct fabric_rx *rx = l->rx;
    if (rx->vector != NULL) {
        return vector_scatter(rx->vector, &l->cursor, rx->skip + l->moved, data, n);
    }
    return nic_copy((void *)((uintptr_t)rx->base + l->moved), data, n);
}

/* Takes bytes that need not come in packets; false if none are here. */
static bool move_bytes(struct fabric_peer *p, struct udp_lane *l)
{
    struct fabric_rx *rx = l->rx;
    const uint8_t *data;
    size_t n;
    if (l->gathered != 0) {
        data = l->gather->bytes;
        n = l->gathered;
    } else {
        struct udp_piece *piece = next_piece(p, l);
        if (piece == NULL) {
            return false;
        }
        data = piece->bytes + l->used;
        n = piece->length - l->used;
    }
    uint64_t rest = rx->length - l->moved;
    n = n < rest ? n : rest;
    if (l->status == FABRIC_OK && rx->sink == RX_DEPOSIT && l->moved < rx->room) {
        uint64_t room = rx->room - l->moved;
        if (deposit(l, data, n < room ? n : room) != 0) {
            l->status = FABRIC_SEGV;
        }
    }
    consume(l, n);
    return true;
}

/* Gives the NIC a packet; false if none is here or it is to wait. */
static bool move_packet(struct fabric_peer *p, struct udp_lane *l)
{
    size_t n = packet_length(p, l);
    uint8_t *data = packet(p, l, n);
    if (data == NULL || l->status != FABRIC_OK) {
        return false; /* in the second case the bytes are discarded from now on */
    }
    /* Afterwards it is too late to find that memory is short. */
    if (l->keeper == NULL && (l->keeper = calloc(1, sizeof(*l->keeper))) == NULL) {
        l->waiting = true;
        return false;
    }
    enum rx_step step = p->fabric->up->rx_packet(p->np, l->rx, data, l->moved, n);
    l->waiting = step == RX_WAIT;
    if (step == RX_WAIT) {
        return false;
    }
    if (step == RX_KEPT && l->rx->held < l->moved + n) {
        keep(l, n);
    }
    consume(l, n);
    return true;
}

static bool move_payload(struct fabric_peer *p, struct udp_lane *l)
{
    bool moved = false;
    while (l->moved < l->rx->length && l->status != FABRIC_UNDELIVERABLE) {
        bool packets = l->rx->sink == RX_PACKETS && l->status == FABRIC_OK;
        if (packets ? move_packet(p, l) : move_bytes(p, l)) {
            moved = true;
        } else if (!packets || l->status == FABRIC_OK) {
            break;
        }
    }
    return moved;
}

/* The message in hand of the first lane was cut: what is behind it ends, too, and what has not
 * begun never will. */
static void cut_behind(struct fabric_peer *p, struct udp_lane *l)
{
    const struct udp_channel *c = &p->channel[l->class];
    udp_lane_clear(p->fabric, l);
    while ((l = udp_lane_behind(c, l)) != NULL) {
        if (l->phase == UDP_IDLE) {
            udp_lane_clear(p->fabric, l);
            continue;
        }
        l->status = FABRIC_UNDELIVERABLE;
        l->rx->torn = l->phase == UDP_HEADER && !l->waiting;
    }
}

/* Ends the message in hand of the first lane; false: not yet. */
static bool step_done(struct fabric_peer *p, struct udp_lane *l)
{
    struct udp_channel *c = &p->channel[l->class];
    l->waiting = p->fabric->up->rx_done(p->np, l->rx, l->status) == RX_WAIT;
    if (l->waiting) {
        return false;
    }
    l->rx->held = FABRIC_HELD_NOTHING;
    let_go(p, l);
    l->gathered = 0;
    give_rx_back(p, l);
    if (l->status == FABRIC_UNDELIVERABLE) {
        cut_behind(p, l);
    }
    while ((l = udp_lane_behind(c, l)) != NULL) {
        l->turn = false;
    }
    return true;
}

/* Takes the message in hand as far as it goes; true if it went on. */
static bool step_message(struct fabric_peer *p, struct udp_lane *l)
{
    bool moved = let_go(p, l);
    l->rx->behind = l != udp_lane_first(&p->channel[l->class]);
    if (l->phase == UDP_HEADER) {
        if (!step_header(p, l)) {
            return moved;
        }
        moved = true;
    }
    if (l->phase == UDP_PAYLOAD) {
        moved |= move_payload(p, l);
        if (l->moved < l->rx->length && l->status != FABRIC_UNDELIVERABLE) {
            return moved;
        }
        l->phase = UDP_DONE;
        moved = true;
    }
    return (!l->rx->behind && step_done(p, l)) || moved;
}

bool udp_lane_take_first(struct fabric_peer *p, struct udp_lane *l)
{
    bool moved = false;
    for (unsigned n = 0; n < BATCH; n++) {
        if (l->phase == UDP_IDLE) {
            if (list_empty(&l->pieces) || !take_head(p, l)) {
                break;
            }
            moved = true;
            if (step_short(p, l)) {
                continue;
            }
        }
        if (!step_message(p, l)) {
            break;
        }
        moved = true;
        if (l->phase != UDP_IDLE) {
            break;
        }
    }
    return moved;
}

bool udp_lane_take_behind(struct fabric_peer *p, struct udp_lane *l)
{
    bool moved = false;
    if (l->phase == UDP_IDLE) {
        if (!take_head(p, l)) {
            return false;
        }
        begin_message(l);
        moved = true;
    }
    return (!l->turn && l->phase != UDP_DONE && step_message(p, l)) || moved;
}

bool udp_lane_cut(struct fabric_peer *p, struct udp_lane *l)
{
    if (l->waiting) {
        return false;
    }
    l->status = FABRIC_UNDELIVERABLE;
    l->rx->behind = false;
    if (l->phase == UDP_HEADER) {
        l->rx->torn = true;
        p->fabric->up->rx_header(p->np, l->rx);
    }
    l->phase = UDP_DONE;
    return step_done(p, l);
}
