/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes, as the engine hands it over: it is put aside in pieces, in the order of the
 * channel's bytes, for receive.c to take. A message begins when the one before is here
 * whole; until then the engine keeps it.
 *
 * Datagrams come into a buffer of the fabric; pieces point into it and keep it from being
 * used again. What the engine has kept meanwhile is its own, and is copied. One buffer is
 * always left for what comes next, since acknowledgements may be in it that others wait for.
 */
#include "fabric/udp/udp.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* Puts the payload of the first packet where receive.c can use it in place. */
enum { SKEW = UDP_ALIGN - (SLMP_OVERHEAD + UDP_HEAD) % UDP_ALIGN };

/* ---- memory ---- */

struct udp_memory *udp_memory_new(struct fabric *f, size_t bytes)
{
    struct udp_memory *m = malloc(sizeof(*m));
    uint8_t *at = m != NULL ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL;
    if (at == NULL) {
        free(m);
        return NULL;
    }
    *m = (struct udp_memory){.users = 1, .bytes = at};
    list_init(&m->link);
    return m;
}

static void free_memory(struct udp_memory *m)
{
    free(m->bytes);
    free(m);
}

void udp_memory_drop(struct fabric *f, struct udp_memory *m)
{
    if (--m->users != 0) {
        return;
    }
    if (m->pooled) {
        list_insert_after(&f->free_buffers, &m->link);
    } else {
        free_memory(m);
    }
}

/* A buffer for the next datagrams; NULL if memory is short. */
static struct udp_memory *take_buffer(struct fabric *f)
{
    struct list *l = list_pop_front(&f->free_buffers);
    if (l != NULL) {
        struct udp_memory *m = container_of(l, struct udp_memory, link);
        m->users = 1;
        return m;
    }
    struct udp_memory *m = udp_memory_new(f, UDP_BUFFER + SKEW);
    if (m != NULL) {
        m->pooled = true;
        f->buffers++;
    }
    return m;
}

void udp_memories_free(struct fabric *f)
{
    if (f->buffer != NULL) {
        udp_memory_drop(f, f->buffer);
    }
    for (struct list *l; (l = list_pop_front(&f->free_buffers)) != NULL;) {
        free_memory(container_of(l, struct udp_memory, link));
    }
}

/* ---- pieces ---- */

void udp_channel_init(struct udp_channel *c)
{
    list_init(&c->pieces);
    list_init(&c->kept);
}

void udp_piece_drop(struct fabric *f, struct udp_channel *c)
{
    struct udp_piece *piece = container_of(list_pop_front(&c->pieces), struct udp_piece, link);
    c->count--;
    c->used = 0;
    if (piece->memory != NULL) {
        udp_memory_drop(f, piece->memory);
    }
    free(piece);
}

void udp_channel_free(struct fabric *f, struct udp_channel *c)
{
    while (!list_empty(&c->pieces)) {
        udp_piece_drop(f, c);
    }
    for (struct list *l; (l = list_pop_front(&c->kept)) != NULL;) {
        struct udp_kept *k = container_of(l, struct udp_kept, link);
        udp_memory_drop(f, k->memory);
        free(k);
    }
    if (c->gather != NULL) {
        udp_memory_drop(f, c->gather);
    }
    free(c->keeper);
}

static struct udp_piece *add_piece(struct udp_channel *c)
{
    struct udp_piece *piece = calloc(1, sizeof(*piece));
    if (piece != NULL) {
        list_push_back(&c->pieces, &piece->link);
        c->count++;
    }
    return piece;
}

static bool in_buffer(const struct fabric *f, const void *bytes)
{
    uintptr_t at = (uintptr_t)bytes, begin = (uintptr_t)f->buffer->bytes;
    return at >= begin && at < begin + UDP_BUFFER + SKEW;
}

/* Whether the buffer may stay in use: another one must be left. */
static bool may_keep_buffer(const struct fabric *f)
{
    return f->buffers < BUFFERS_MOST || !list_empty(&f->free_buffers);
}

/* Memory that has these bytes, for a piece. */
static struct udp_memory *keep(struct fabric *f, const void **bytes, size_t length)
{
    if (f->buffer != NULL && in_buffer(f, *bytes) && may_keep_buffer(f)) {
        f->buffer->users++;
        return f->buffer;
    }
    struct udp_memory *m = udp_memory_new(f, length);
    if (m != NULL) {
        memcpy(m->bytes, *bytes, length);
        *bytes = m->bytes;
    }
    return m;
}

/* ---- upcalls of the engine ---- */

static struct fabric_peer *peer_of(const struct slmp_incoming *in)
{
    return slmp_peer_user(in->peer);
}

/* Whether the message is one that we send: the first packet has all of its head. */
static bool well_formed(const struct slmp_incoming *in, const uint8_t *first, size_t length)
{
    return length >= UDP_HEAD && in->length >= UDP_HEAD && first[0] == UDP_FORMAT && !in->blank;
}

enum slmp_step udp_begin(void *fabric, struct slmp_incoming *in, const void *first, size_t length)
{
    struct fabric *f = fabric;
    struct fabric_peer *p = peer_of(in);
    if (p == NULL) {
        return SLMP_GO; /* nobody wants it: udp_data() sees no channel */
    }
    struct udp_channel *c = &p->channel[in->channel];
    if (!well_formed(in, first, length)) {
        f->misshapen++;
        return SLMP_GO;
    }
    if (c->open != NULL) {
        c->next_refused = true;
        return SLMP_LATER;
    }
    c->open = in;
    c->fresh = true;
    return SLMP_GO;
}

enum slmp_step udp_data(void *fabric, struct slmp_incoming *in, uint64_t offset, const void *bytes,
                        size_t length)
{
    struct fabric *f = fabric;
    struct fabric_peer *p = peer_of(in);
    (void)offset; /* they come in order */
    if (p == NULL || p->channel[in->channel].open != in) {
        return SLMP_GO;
    }
    struct udp_channel *c = &p->channel[in->channel];
    if (c->count >= STAGED_MOST && !slmp_ending(in->peer)) {
        c->refused = true;
        return SLMP_LATER;
    }
    struct udp_memory *m = keep(f, &bytes, length);
    struct udp_piece *piece = m != NULL ? add_piece(c) : NULL;
    if (piece == NULL) {
        if (m != NULL) {
            udp_memory_drop(f, m);
        }
        c->refused = true;
        return SLMP_LATER;
    }
    piece->memory = m;
    piece->bytes = bytes;
    piece->length = (uint32_t)length;
    piece->blank = in->blank;
    piece->first = c->fresh;
    piece->total = in->length;
    c->fresh = false;
    udp_attend(p);
    return SLMP_GO;
}

void udp_done(void *fabric, struct slmp_incoming *in, enum slmp_status status)
{
    struct fabric_peer *p = peer_of(in);
    if (p == NULL || p->channel[in->channel].open != in) {
        return;
    }
    struct udp_channel *c = &p->channel[in->channel];
    c->open = NULL;
    if (status != SLMP_OK && !c->fresh) {
        struct udp_piece *piece = add_piece(c);
        if (piece != NULL) {
            piece->torn = true;
        } /* else the burial of the peer ends the message */
    }
    c->refused |= c->next_refused;
    c->next_refused = false;
    udp_attend(p);
}

/* ---- the socket ---- */

/* Whether a packet may be looked at: without leave, only those of this host are. */
static bool welcome(struct fabric *f, const struct slmp_address *from)
{
    if (f->open_to_all || udp_is_local(f, from->ip)) {
        return true;
    }
    if (f->foreign++ == 0) {
        struct in_addr a = {htonl(from->ip)};
        char name[INET_ADDRSTRLEN];
        log_line(LOG_WARN,
                 "packets from %s are dropped: peers beyond this host are let in with "
                 "PINWHEEL_JOB_KEY_FILE or PINWHEEL_UDP_OPEN=1 only",
                 inet_ntop(AF_INET, &a, name, sizeof(name)));
    }
    return false;
}

bool udp_receive(struct fabric *f, bool *more)
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
        int64_t now = udp_socket_now(&f->socket);
        size_t at = 0;
        do {
            size_t n = (size_t)length - at < each ? (size_t)length - at : each;
            slmp_input(f->engine, now, &from, to + at, n);
            at += n;
        } while (at < (size_t)length);
        struct slmp_peer *session = slmp_known(f->engine, &from);
        struct fabric_peer *p = session != NULL ? slmp_peer_user(session) : NULL;
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
