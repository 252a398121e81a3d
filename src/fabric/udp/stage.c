/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receipt from the engine. The upcalls put the bytes of messages aside as pieces, in the order of a
 * stream, and receive.c takes them from there. A message that begins before the one before it has
 * come whole gets a stream of its own; if none is free, the engine keeps the message.
 *
 * Datagrams are received into a buffer of the fabric; pieces point into it, and keep it from being
 * used again. Packets that the engine has held are in its memory, and are copied. The fabric always
 * keeps one buffer for the next datagrams, as these may carry acknowledgements that others wait
 * for.
 */
#include "fabric/udp/stage.h"

#include "base/ip.h"
#include "base/log.h"
#include "fabric/udp/stream.h"
#include "fabric/udp/trust.h"

#include <stdlib.h>
#include <string.h>

/* Places a datagram so that receive.c can use the payload of a message's first packet in place. */
enum { SKEW = UDP_ALIGN - (SLMP_OVERHEAD + UDP_HEAD) % UDP_ALIGN };

/* ---- memory ---- */

struct udp_memory *udp_memory_new(size_t bytes)
{
    struct udp_memory *m = aligned_alloc(64, (sizeof(*m) + bytes + 63) & ~(size_t)63);
    if (m != NULL) {
        *m = (struct udp_memory){.users = 1};
        list_init(&m->link);
    }
    return m;
}

void udp_memory_drop(struct udp_fabric *f, struct udp_memory *m)
{
    if (--m->users != 0) {
        return;
    }
    if (m->pooled) {
        list_insert_after(&f->free_buffers, &m->link);
    } else {
        free(m);
    }
}

/* Takes a buffer for the next datagrams; NULL: memory is short. */
static struct udp_memory *take_buffer(struct udp_fabric *f)
{
    struct udp_memory *m = LIST_POP(struct udp_memory, &f->free_buffers, link);
    if (m != NULL) {
        m->users = 1;
    } else if ((m = udp_memory_new(UDP_BUFFER + SKEW)) != NULL) {
        m->pooled = true;
        f->buffers++;
    }
    return m;
}

void udp_memories_free(struct udp_fabric *f)
{
    if (f->buffer != NULL) {
        udp_memory_drop(f, f->buffer);
    }
    for (struct udp_memory *m; (m = LIST_POP(struct udp_memory, &f->free_buffers, link)) != NULL;) {
        free(m);
    }
    for (struct udp_piece *p; (p = LIST_POP(struct udp_piece, &f->free_pieces, link)) != NULL;) {
        free(p);
    }
}

/* ---- pieces ---- */

static struct udp_piece *new_piece(struct udp_fabric *f)
{
    struct udp_piece *piece = LIST_POP(struct udp_piece, &f->free_pieces, link);
    f->spare_pieces -= piece != NULL;
    if (piece == NULL && (piece = malloc(sizeof(*piece))) == NULL) {
        return NULL;
    }
    *piece = (struct udp_piece){0};
    list_init(&piece->link);
    return piece;
}

static void free_piece(struct udp_fabric *f, struct udp_piece *piece)
{
    if (f->spare_pieces == UDP_PIECES) {
        free(piece);
        return;
    }
    f->spare_pieces++;
    /* at the front, since it is still in a cache */
    list_insert_after(&f->free_pieces, &piece->link);
}

void udp_piece_drop(struct udp_fabric *f, struct udp_stream *l)
{
    struct udp_piece *piece = container_of(list_pop_front(&l->pieces), struct udp_piece, link);
    l->count--;
    l->used = 0;
    if (piece->memory != NULL) {
        udp_memory_drop(f, piece->memory);
    }
    free_piece(f, piece);
}

static void drop_row(struct udp_fabric *f, struct udp_stream *l)
{
    if (l->in.row != NULL) {
        udp_memory_drop(f, l->in.row);
        l->in.row = NULL;
    }
}

void udp_stream_clear(struct udp_fabric *f, struct udp_stream *l)
{
    while (!list_empty(&l->pieces)) {
        udp_piece_drop(f, l);
    }
    drop_row(f, l);
}

static struct udp_piece *add_piece(struct udp_fabric *f, struct udp_stream *l)
{
    struct udp_piece *piece = new_piece(f);
    if (piece != NULL) {
        list_push_back(&l->pieces, &piece->link);
        l->count++;
    }
    return piece;
}

/* Returns memory with these bytes, for a piece: the datagram's buffer, if another buffer is left,
 * or else a copy. */
static struct udp_memory *keep(struct udp_fabric *f, const void **bytes, size_t length)
{
    bool left = f->buffers < BUFFERS_MOST || !list_empty(&f->free_buffers);
    if (f->buffer != NULL && left &&
        (uintptr_t)*bytes - (uintptr_t)f->buffer->bytes < UDP_BUFFER + SKEW) {
        f->buffer->users++;
        return f->buffer;
    }
    struct udp_memory *m = udp_memory_new(length);
    if (m != NULL) {
        memcpy(m->bytes, *bytes, length);
        *bytes = m->bytes;
    }
    return m;
}

/* ---- upcalls of the engine ---- */

static struct udp_peer *peer_of(const struct slmp_incoming *in)
{
    return slmp_peer_user(in->peer);
}

enum slmp_step udp_begin(void *fabric, struct slmp_incoming *in, const void *first, size_t length)
{
    struct udp_fabric *f = fabric;
    struct udp_peer *p = peer_of(in);
    if (p == NULL) {
        /* the fabric has no such peer: udp_data() finds no stream, and drops the bytes */
        return SLMP_GO;
    }
    struct udp_channel *c = &p->channel[in->channel];
    p->asks |= in->channel == FABRIC_ASK;
    /* The first packet of any message that this fabric sends contains the whole head. */
    if (length < UDP_HEAD || in->length < UDP_HEAD || *(const uint8_t *)first != UDP_FORMAT ||
        in->blank) {
        f->misshapen++;
        return SLMP_GO;
    }
    struct udp_stream *l = udp_stream_begin(c);
    if (l == NULL) {
        c->refused = c->next_refused = true;
        return SLMP_LATER;
    }
    l->in.open = in;
    l->in.fresh = true;
    in->user = l;
    return SLMP_GO;
}

static bool take_bytes(struct udp_fabric *f, struct udp_stream *l, const struct slmp_incoming *in,
                       const void *bytes, size_t length)
{
    struct udp_memory *m = keep(f, &bytes, length);
    struct udp_piece *piece = m != NULL ? add_piece(f, l) : NULL;
    if (piece == NULL) {
        if (m != NULL) {
            udp_memory_drop(f, m);
        }
        return false;
    }
    piece->memory = m;
    piece->bytes = bytes;
    piece->length = (uint32_t)length;
    piece->blank = in->blank;
    piece->first = l->in.fresh;
    piece->total = in->length;
    return true;
}

/* Whether bytes belong to a row, by its first packet. */
static bool in_row(const struct udp_stream *l, const uint8_t *bytes)
{
    return l->in.fresh ? bytes[UDP_AT_MORE] != 0 : l->in.row != NULL;
}

/* Finds the message at the beginning of `rest` bytes of a row: its length with the prefix, and the
 * distance to the next one. False: it is malformed. */
struct span {
    uint32_t length, step;
};
static bool next_of_row(const uint8_t *bytes, size_t rest, struct span *s)
{
    uint32_t payload;
    if (rest < UDP_HEAD || bytes[0] != UDP_FORMAT) {
        return false;
    }
    if (bytes[UDP_AT_MORE] == 0) {
        *s = (struct span){(uint32_t)rest, (uint32_t)rest};
        return true;
    }
    memcpy(&payload, bytes + UDP_AT_LENGTH, sizeof(payload));
    s->length = UDP_HEAD + ntohl(payload);
    s->step = (s->length + UDP_ALIGN - 1) / UDP_ALIGN * UDP_ALIGN;
    return ntohl(payload) < rest && s->step < rest;
}

/* Makes pieces of all messages of a row. False: memory is short, and nothing was changed. */
static bool add_row(struct udp_fabric *f, struct udp_stream *l, struct udp_memory *m,
                    const uint8_t *bytes, size_t length)
{
    struct list made;
    struct span s;
    unsigned count = 0;
    list_init(&made);
    for (size_t at = 0; at < length; at += s.step, count++) {
        if (!next_of_row(bytes + at, length - at, &s)) {
            f->misshapen++;
            break;
        }
        struct udp_piece *piece = new_piece(f);
        if (piece == NULL) {
            for (struct udp_piece *i; (i = LIST_POP(struct udp_piece, &made, link)) != NULL;) {
                free_piece(f, i);
            }
            return false;
        }
        piece->memory = m;
        piece->bytes = bytes + at;
        piece->length = s.length;
        piece->first = true;
        piece->total = s.length;
        list_push_back(&made, &piece->link);
    }
    list_move_all(&l->pieces, &made);
    l->count += count;
    m->users += count;
    return true;
}

/* Takes a row (udp.h): short messages that the sender has joined. A row is in one packet, unless
 * the path has become shorter since: then its packets are first put together. */
static bool take_row(struct udp_fabric *f, struct udp_stream *l, const struct slmp_incoming *in,
                     const void *bytes, size_t length)
{
    if (in->length > UDP_ROW_MOST || in->blank) {
        f->misshapen++;
        drop_row(f, l);
        l->in.open = NULL; /* the rest of the row is dropped when it comes */
        return true;
    }
    bool whole = l->in.fresh && length == in->length;
    if (l->in.fresh && !whole && (l->in.row = udp_memory_new(UDP_ROW_MOST)) == NULL) {
        return false;
    }
    l->in.row_have = l->in.fresh ? 0 : l->in.row_have;
    if (!whole) {
        memcpy(l->in.row->bytes + l->in.row_have, bytes, length);
        l->in.row_have += length;
        if (l->in.row_have < in->length) {
            return true;
        }
    }
    struct udp_memory *m = whole ? keep(f, &bytes, length) : l->in.row;
    if (m == NULL) {
        return false;
    }
    bool added = add_row(f, l, m, whole ? bytes : l->in.row->bytes, in->length);
    if (!whole && !added) {
        l->in.row_have -= length; /* the engine will offer these bytes again */
        return false;
    }
    l->in.row = NULL;
    udp_memory_drop(f, m); /* the pieces have references of their own */
    return added;
}

enum slmp_step udp_data(void *fabric, struct slmp_incoming *in, uint64_t offset, const void *bytes,
                        size_t length)
{
    struct udp_fabric *f = fabric;
    struct udp_peer *p = peer_of(in);
    (void)offset; /* the engine delivers them in order */
    struct udp_stream *l = in->user;
    if (p == NULL || l == NULL || l->in.open != in) {
        return SLMP_GO;
    }
    struct udp_channel *c = &p->channel[in->channel];
    bool taken = l->count < udp_stream_most(c, l) || slmp_ending(in->peer);
    if (taken && in_row(l, bytes)) {
        taken = take_row(f, l, in, bytes, length);
    } else if (taken) {
        taken = take_bytes(f, l, in, bytes, length);
    }
    if (!taken) {
        c->refused = l->in.refused = true;
        return SLMP_LATER;
    }
    l->in.fresh = false;
    udp_attend(p);
    return SLMP_GO;
}

void udp_done(void *fabric, struct slmp_incoming *in, enum slmp_status status)
{
    struct udp_peer *p = peer_of(in);
    struct udp_stream *l = in->user;
    if (p == NULL || l == NULL || l->in.open != in) {
        return;
    }
    struct udp_fabric *f = fabric;
    l->in.open = NULL;
    if (l->in.row != NULL) {
        drop_row(f, l); /* no message of it was taken */
    } else if (status != SLMP_OK && !l->in.fresh) {
        struct udp_piece *piece = add_piece(f, l);
        if (piece != NULL) {
            piece->torn = true;
        } /* else: the teardown of the peer ends the message */
    }
    udp_attend(p);
}

/* ---- the socket ---- */

/* Whether a packet may be taken: unless the option allows others, only one of this host. */
static bool welcome(struct udp_fabric *f, const struct slmp_address *from)
{
    if (f->open_to_all || udp_is_local(f, from->ip)) {
        return true;
    }
    if (f->foreign++ == 0) {
        log_line(LOG_WARN,
                 "packets from %s are dropped: peers beyond this host are let in with "
                 "PINWHEEL_JOB_KEY_FILE or PINWHEEL_UDP_OPEN=1 only",
                 ip_text(from->ip).text);
    }
    return false;
}

bool udp_receive(struct udp_fabric *f, int64_t now, bool *more)
{
    struct slmp_address from;
    size_t each;
    if (f->buffer == NULL && (f->buffer = take_buffer(f)) == NULL) {
        return false;
    }
    uint8_t *to = f->buffer->bytes + SKEW;
    ssize_t length = udp_socket_receive(&f->socket, to, &from, &each);
    if (length < 0) {
        return false;
    }
    if (welcome(f, &from)) {
        size_t at = 0;
        bool proved = false;
        do {
            size_t n = (size_t)length - at < each ? (size_t)length - at : each;
            proved |= slmp_input(f->engine, now, &from, to + at, n);
            at += n;
        } while (at < (size_t)length);
        if (!proved) {
            udp_unproved(f, &from);
        }
        struct slmp_peer *session = proved ? slmp_known(f->engine, &from) : NULL;
        struct udp_peer *p = session != NULL ? slmp_peer_user(session) : NULL;
        if (p != NULL) {
            p->heard = now;
        }
    }
    if (f->buffer->users > 1) {
        udp_memory_drop(f, f->buffer);
        f->buffer = NULL;
    }
    *more = (size_t)length > each;
    return true;
}
