/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer's side of a channel: one message at a time, as a state machine.
 *
 *   IDLE ──first piece──► HEADER ──rx_header──► PAYLOAD ──all moved──► DONE ──rx_done──► IDLE
 *                           │ RX_WAIT, RX_FIRST    │ no piece, RX_WAIT     │ RX_WAIT
 *                           └── stays              └── stays               └── stays
 *
 * A deposit goes from the pieces to its place. Packets for the NIC are cut by its own packet
 * size: one that lies in a piece is used there, another is gathered from several. Packets
 * that the NIC keeps hold on to the memory that they lie in.
 *
 * The NIC's lock may be let go of inside the upcalls; `busy` keeps other threads off the
 * channel meanwhile.
 */
#include "fabric/udp/udp.h"

#include "base/nic_copy.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 32 /* messages of one channel before the next has its turn */

static struct udp_piece *front(const struct udp_channel *c)
{
    return list_empty(&c->pieces) ? NULL : container_of(c->pieces.next, struct udp_piece, link);
}

/* The first piece of the message in hand that has bytes left; NULL if it is not here. What
 * is behind a byte that its sender could not read, or a torn end, does not come. */
static struct udp_piece *next_piece(struct fabric_peer *p, struct udp_channel *c)
{
    struct udp_piece *piece;
    while ((piece = front(c)) != NULL && !piece->first && !piece->torn &&
           c->used == piece->length) {
        udp_piece_drop(p->fabric, c);
    }
    if (piece == NULL || piece->first) {
        return NULL;
    }
    if (piece->torn) {
        c->status = FABRIC_UNDELIVERABLE;
        return NULL;
    }
    if (piece->blank && c->status == FABRIC_OK) {
        c->status = FABRIC_SEGV;
    }
    return piece;
}

/* ---- packets ---- */

static size_t packet_length(const struct fabric_peer *p, const struct udp_channel *c)
{
    uint64_t rest = c->rx->length - c->moved;
    size_t packet = p->fabric->packet_size;
    return rest < packet ? rest : packet;
}

/* Puts a packet together from pieces, as far as they have come; NULL if not all is here. */
static uint8_t *gather(struct fabric_peer *p, struct udp_channel *c, size_t n)
{
    struct udp_piece *piece;
    if (c->gather == NULL &&
        (c->gather = udp_memory_new(p->fabric, p->fabric->packet_size)) == NULL) {
        return NULL;
    }
    while (c->gathered < n && (piece = next_piece(p, c)) != NULL) {
        size_t have = piece->length - c->used, missing = n - c->gathered;
        size_t take = have < missing ? have : missing;
        memcpy(c->gather->bytes + c->gathered, piece->bytes + c->used, take);
        c->gathered += take;
        c->used += (uint32_t)take;
    }
    return c->gathered == n ? c->gather->bytes : NULL;
}

/* The packet of n bytes at c->moved; NULL if it is not here yet. Packets begin at multiples of
 * UDP_ALIGN in memory: how the NIC cuts them must not depend on how they travelled. */
static uint8_t *packet(struct fabric_peer *p, struct udp_channel *c, size_t n)
{
    if (c->gathered == 0) {
        struct udp_piece *piece = next_piece(p, c);
        const uint8_t *at = piece != NULL ? piece->bytes + c->used : NULL;
        if (at != NULL && piece->length - c->used >= n && (uintptr_t)at % UDP_ALIGN == 0) {
            return (uint8_t *)(uintptr_t)at;
        }
    }
    return gather(p, c, n);
}

/* Counts n bytes as taken: of the packet that was gathered, or of the first piece. */
static void consume(struct udp_channel *c, size_t n)
{
    c->moved += n;
    if (c->gathered != 0) {
        c->gathered = 0;
    } else {
        c->used += (uint32_t)n;
    }
}

/* The packet that is consumed next stays in use. */
static void keep(struct udp_channel *c, size_t n)
{
    struct udp_kept *k = c->keeper;
    c->keeper = NULL;
    k->end = c->moved + n;
    if (c->gathered != 0) {
        k->memory = c->gather;
        c->gather = NULL;
    } else {
        k->memory = front(c)->memory;
        k->memory->users++;
    }
    list_push_back(&c->kept, &k->link);
}

/* Lets go of what the NIC needs no more; true if that was anything. */
static bool let_go(struct fabric_peer *p, struct udp_channel *c)
{
    bool any = false;
    while (!list_empty(&c->kept)) {
        struct udp_kept *k = container_of(c->kept.next, struct udp_kept, link);
        if (k->end > c->rx->held) {
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

static void begin_payload(struct udp_channel *c)
{
    c->moved = 0;
    c->gathered = 0;
    c->rx->held = FABRIC_HELD_NOTHING;
    c->rx->elsewhere = false;
    c->cursor = (struct vector_cursor){0};
    c->phase = UDP_PAYLOAD;
}

static void begin_message(struct udp_channel *c)
{
    begin_payload(c);
    c->rx->first = NULL;
    c->rx->first_length = 0;
    c->rx->sink = RX_DISCARD;
    c->rx->vector = NULL;
    c->phase = UDP_HEADER;
}

/* Takes the head of the next message; false if none is here. */
static bool take_head(struct fabric_peer *p, struct udp_channel *c)
{
    struct udp_piece *piece;
    while ((piece = front(c)) != NULL && !piece->first) {
        udp_piece_drop(p->fabric, c); /* the rest of one that ended before its bytes */
    }
    if (piece == NULL) {
        return false;
    }
    struct fabric_rx *rx = c->rx;
    memcpy(rx->header, piece->bytes + UDP_PREFIX, FABRIC_HEADER);
    rx->torn = false;
    c->status = piece->bytes[1] == FABRIC_OK ? FABRIC_OK : FABRIC_SEGV;
    rx->length = c->status == FABRIC_OK ? piece->total - UDP_HEAD : 0;
    c->used = UDP_HEAD;
    c->gathered = 0;
    piece->first = false;
    return true;
}

/* A message that is here whole, in a piece, may be over in one step; true if it is. */
static bool step_short(struct fabric_peer *p, struct udp_channel *c)
{
    struct fabric_rx *rx = c->rx;
    struct udp_piece *piece = front(c);
    if (c->status != FABRIC_OK || rx->length > p->fabric->packet_size ||
        piece->length - UDP_HEAD != rx->length || piece->blank) {
        begin_message(c);
        return false;
    }
    c->moved = 0;
    const uint8_t *payload = piece->bytes + UDP_HEAD;
    if (rx->length != 0 && (payload = packet(p, c, rx->length)) == NULL) {
        begin_message(c);
        return false;
    }
    size_t gathered = c->gathered;
    enum rx_step step = p->fabric->up->rx_short(p->np, rx, payload);
    switch (step) {
    case RX_GO:
        c->gathered = 0;
        udp_piece_drop(p->fabric, c);
        return true;
    case RX_HEADED:
        begin_payload(c);
        break;
    case RX_WAIT:
        begin_message(c);
        c->moved = rx->length;
        c->used = front(c)->length;
        c->phase = UDP_DONE;
        return false;
    default:
        begin_message(c);
    }
    c->gathered = gathered;
    return false;
}

static bool step_header(struct fabric_peer *p, struct udp_channel *c)
{
    const struct fabric_upcalls *up = p->fabric->up;
    struct fabric_rx *rx = c->rx;
    enum rx_step step = up->rx_header(p->np, rx);
    if (step == RX_FIRST && rx->first == NULL && rx->length != 0) {
        size_t n = packet_length(p, c);
        uint8_t *data = c->status == FABRIC_OK ? packet(p, c, n) : NULL;
        if (data == NULL && c->status == FABRIC_OK) {
            return false;
        }
        static const uint8_t nothing[8];
        rx->first = data != NULL ? data : nothing;
        rx->first_length = data != NULL ? n : 0;
        rx->torn = c->status != FABRIC_OK;
        step = up->rx_header(p->np, rx);
    }
    c->waiting = step == RX_WAIT;
    if (step != RX_GO) {
        return false;
    }
    c->phase = UDP_PAYLOAD;
    return true;
}

static int deposit(struct udp_channel *c, const uint8_t *data, size_t n)
{
    const struct fabric_rx *rx = c->rx;
    if (rx->vector != NULL) {
        return vector_scatter(rx->vector, &c->cursor, rx->skip + c->moved, data, n);
    }
    return nic_copy((void *)((uintptr_t)rx->base + c->moved), data, n);
}

/* Takes bytes that need not come in packets; false if none are here. */
static bool move_bytes(struct fabric_peer *p, struct udp_channel *c)
{
    struct fabric_rx *rx = c->rx;
    const uint8_t *data;
    size_t n;
    if (c->gathered != 0) {
        data = c->gather->bytes;
        n = c->gathered;
    } else {
        struct udp_piece *piece = next_piece(p, c);
        if (piece == NULL) {
            return false;
        }
        data = piece->bytes + c->used;
        n = piece->length - c->used;
    }
    uint64_t rest = rx->length - c->moved;
    n = n < rest ? n : rest;
    if (c->status == FABRIC_OK && rx->sink == RX_DEPOSIT && c->moved < rx->room) {
        uint64_t room = rx->room - c->moved;
        if (deposit(c, data, n < room ? n : room) != 0) {
            c->status = FABRIC_SEGV;
        }
    }
    consume(c, n);
    return true;
}

/* Gives the NIC a packet; false if none is here or it is to wait. */
static bool move_packet(struct fabric_peer *p, struct udp_channel *c)
{
    size_t n = packet_length(p, c);
    uint8_t *data = packet(p, c, n);
    if (data == NULL || c->status != FABRIC_OK) {
        return false; /* in the second case the bytes are discarded from now on */
    }
    /* Afterwards it is too late to find that memory is short. */
    if (c->keeper == NULL && (c->keeper = calloc(1, sizeof(*c->keeper))) == NULL) {
        c->waiting = true;
        return false;
    }
    enum rx_step step = p->fabric->up->rx_packet(p->np, c->rx, data, c->moved, n);
    c->waiting = step == RX_WAIT;
    if (step == RX_WAIT) {
        return false;
    }
    if (step == RX_KEPT && c->rx->held < c->moved + n) {
        keep(c, n);
    }
    consume(c, n);
    return true;
}

static bool move_payload(struct fabric_peer *p, struct udp_channel *c)
{
    bool moved = false;
    while (c->moved < c->rx->length && c->status != FABRIC_UNDELIVERABLE) {
        bool packets = c->rx->sink == RX_PACKETS && c->status == FABRIC_OK;
        if (packets ? move_packet(p, c) : move_bytes(p, c)) {
            moved = true;
        } else if (!packets || c->status == FABRIC_OK) {
            break;
        }
    }
    return moved;
}

static bool step_done(struct fabric_peer *p, struct udp_channel *c)
{
    c->waiting = p->fabric->up->rx_done(p->np, c->rx, c->status) == RX_WAIT;
    if (c->waiting) {
        return false;
    }
    c->rx->held = FABRIC_HELD_NOTHING;
    let_go(p, c);
    c->gathered = 0;
    c->phase = UDP_IDLE;
    return true;
}

/* Takes the message in hand as far as it goes; true if it went on. */
static bool step_message(struct fabric_peer *p, struct udp_channel *c)
{
    bool moved = let_go(p, c);
    if (c->phase == UDP_HEADER) {
        if (!step_header(p, c)) {
            return moved;
        }
        moved = true;
    }
    if (c->phase == UDP_PAYLOAD) {
        moved |= move_payload(p, c);
        if (c->moved < c->rx->length && c->status != FABRIC_UNDELIVERABLE) {
            return moved;
        }
        c->phase = UDP_DONE;
    }
    return step_done(p, c) || moved;
}

static bool take_messages(struct fabric_peer *p, struct udp_channel *c)
{
    bool moved = false;
    for (unsigned n = 0; n < BATCH; n++) {
        if (c->phase == UDP_IDLE) {
            if (!take_head(p, c)) {
                break;
            }
            moved = true;
            if (step_short(p, c)) {
                continue;
            }
        }
        if (!step_message(p, c)) {
            break;
        }
        moved = true;
        if (c->phase != UDP_IDLE) {
            break;
        }
    }
    return moved;
}

static void cut_channel(struct fabric_peer *p, struct udp_channel *c)
{
    if (c->busy || c->waiting || c->phase == UDP_IDLE) {
        return;
    }
    c->busy = true;
    c->status = FABRIC_UNDELIVERABLE;
    if (c->phase == UDP_HEADER) {
        c->rx->torn = true;
        p->fabric->up->rx_header(p->np, c->rx);
    }
    c->phase = UDP_DONE;
    step_done(p, c);
    c->busy = false;
}

void udp_cut(struct fabric_peer *p)
{
    cut_channel(p, &p->channel[FABRIC_RESPONSE]);
    cut_channel(p, &p->channel[FABRIC_REQUEST]);
}

static bool take_channel(struct fabric_peer *p, unsigned class)
{
    struct udp_channel *c = &p->channel[class];
    if (c->busy || (c->phase == UDP_IDLE && list_empty(&c->pieces) && !c->refused)) {
        return false;
    }
    c->busy = true;
    bool moved = take_messages(p, c);
    c->busy = false;
    if (c->refused && c->count < STAGED_MOST / 2 && p->session != NULL) {
        c->refused = false;
        /* The engine's clock stands still: what is due then is due for the poll that we are in. */
        slmp_resume(p->fabric->engine, 0, p->session, class);
        moved = true;
    }
    return moved;
}

bool udp_take(struct fabric_peer *p)
{
    bool moved = take_channel(p, FABRIC_RESPONSE);
    return take_channel(p, FABRIC_REQUEST) || moved;
}

static bool is_kept(const struct udp_channel *c)
{
    return c->phase != UDP_IDLE && c->rx->held != FABRIC_HELD_NOTHING;
}

bool udp_blocked(const struct fabric_peer *p)
{
    for (unsigned i = 0; i < FABRIC_CLASSES; i++) {
        const struct udp_channel *c = &p->channel[i];
        if (c->busy || c->waiting || is_kept(c)) {
            return true;
        }
    }
    return false;
}

bool udp_elsewhere(const struct fabric_peer *p)
{
    for (unsigned i = 0; i < FABRIC_CLASSES; i++) {
        const struct udp_channel *c = &p->channel[i];
        bool alone = c->waiting ? c->rx->elsewhere : is_kept(c);
        if (c->busy || ((c->waiting || is_kept(c)) && !alone)) {
            return false;
        }
    }
    return true;
}

bool udp_awaits(const struct fabric_peer *p)
{
    for (unsigned i = 0; i < FABRIC_CLASSES; i++) {
        if (p->channel[i].open != NULL || p->channel[i].phase != UDP_IDLE) {
            return true;
        }
    }
    return false;
}

bool udp_wants_poll(const struct fabric_peer *p)
{
    for (unsigned i = 0; i < FABRIC_CLASSES; i++) {
        const struct udp_channel *c = &p->channel[i];
        if (!c->busy && (!list_empty(&c->pieces) || c->waiting || c->refused || is_kept(c))) {
            return true;
        }
    }
    return false;
}

bool udp_idle(const struct fabric_peer *p)
{
    for (unsigned i = 0; i < FABRIC_CLASSES; i++) {
        const struct udp_channel *c = &p->channel[i];
        if (c->phase != UDP_IDLE || c->busy || !list_empty(&c->pieces)) {
            return false;
        }
    }
    return true;
}
