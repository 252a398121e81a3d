/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on their way out. Small payloads are copied, and then nobody waits for them;
 * larger ones are lent until the peer has them, and leave from where they lie: the kernel
 * copies them into its packets. Memory in parts, and all memory once some was found
 * unreadable, or when checksums cover it, is copied through nic_copy() first.
 */
#include "fabric/udp/udp.h"

#include "base/log.h"
#include "base/nic_copy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies that may be under way at once, five packets of the greatest length: a batch, the
 * packet behind it, what alignment takes, and what is left unused where the area begins anew. */
#define OUTGOING (5 * (size_t)UDP_BUFFER)

/* ---- the messages ---- */

static struct udp_message *new_message(struct fabric *f, size_t length)
{
    struct udp_message *m;
    if (length <= f->inline_max && !list_empty(&f->spare)) {
        return container_of(list_pop_front(&f->spare), struct udp_message, link);
    }
    size_t room = length <= f->inline_max ? f->inline_max : length;
    m = malloc(sizeof(*m) + room);
    if (m != NULL) {
        list_init(&m->link);
        m->room = room;
    }
    return m;
}

static void free_message(struct fabric *f, struct udp_message *m)
{
    if (m->room == f->inline_max) {
        list_insert_after(&f->spare, &m->link); /* the one that is still in a cache */
    } else {
        free(m);
    }
}

void udp_spare_free(struct fabric *f)
{
    for (struct list *l; (l = list_pop_front(&f->spare)) != NULL;) {
        free(container_of(l, struct udp_message, link));
    }
    free(f->outgoing);
}

static void set_head(struct udp_message *m, const void *header, enum fabric_status status)
{
    memset(m->head, 0, UDP_PREFIX);
    m->head[0] = UDP_FORMAT;
    m->head[1] = (uint8_t)status;
    memcpy(m->head + UDP_PREFIX, header, FABRIC_HEADER);
}

/* Gives a message to the engine; false if that has no memory. */
static bool post(struct fabric_peer *p, enum fabric_class class, struct udp_message *m,
                 struct fabric_tx *tx, uint64_t length)
{
    struct fabric *f = p->fabric;
    struct udp_channel *c = &p->channel[class];
    m->peer = p;
    m->tx = tx;
    m->m = (struct slmp_message){.to = p->at,
                                 .channel = (uint8_t) class,
                                 .head = m->head,
                                 .head_length = UDP_HEAD,
                                 .body = m->copy,
                                 .body_length = length};
    if (slmp_send(f->engine, udp_socket_now(&f->socket), &m->m) != 0) {
        free_message(f, m);
        c->starved = true;
        return false;
    }
    c->queued++;
    c->copied += tx == NULL ? length : 0;
    return true;
}

static bool has_room(struct udp_channel *c, uint64_t copied)
{
    bool room = c->queued < QUEUED_MOST && (copied == 0 || c->copied + copied <= COPIED_MOST);
    c->starved |= !room;
    return room;
}

/* ---- payload that is lent ---- */

/* Room for n bytes that stay until the packets that are made now have left. */
static uint8_t *outgoing(struct fabric *f, size_t n)
{
    if (f->outgoing == NULL && (f->outgoing = malloc(OUTGOING)) == NULL) {
        return NULL;
    }
    f->outgoing_at = f->outgoing_at + n > OUTGOING ? 0 : f->outgoing_at;
    uint8_t *at = f->outgoing + f->outgoing_at;
    f->outgoing_at += (n + 63) & ~(size_t)63;
    return at;
}

/* Finds n bytes of the payload, those at `from`; false: they cannot be read. */
static bool find_payload(struct fabric *f, struct fabric_tx *tx, uint64_t from, uint32_t n,
                         struct iovec *part)
{
    if (tx->fault != FABRIC_OK) {
        return false;
    }
    if (tx->vector == NULL && !f->careful) {
        *part = (struct iovec){(void *)((uintptr_t)tx->base + from), n};
        return true;
    }
    uint8_t *copy = outgoing(f, n);
    int rc = copy == NULL         ? 0
             : tx->vector != NULL ? vector_gather(copy, tx->vector, &tx->cursor, tx->skip + from, n)
                                  : nic_copy(copy, (void *)((uintptr_t)tx->base + from), n);
    *part = (struct iovec){copy, n};
    tx->fault = rc != 0 || copy == NULL ? FABRIC_SEGV : tx->fault;
    return tx->fault == FABRIC_OK;
}

static bool fill(struct slmp_message *message, uint64_t offset, uint32_t length,
                 struct slmp_packet *packet)
{
    static const uint8_t zeros[SLMP_PACKET_MAX];
    struct udp_message *m = container_of(message, struct udp_message, m);
    uint32_t head = offset == 0 ? UDP_HEAD : 0;
    struct iovec payload;
    bool found = true;
    packet->parts = 0;
    if (length > head) {
        uint64_t from = offset == 0 ? 0 : offset - UDP_HEAD;
        found = find_payload(m->peer->fabric, m->tx, from, length - head, &payload);
    }
    if (offset != 0 && !found) {
        return false;
    }
    if (offset == 0) {
        m->head[1] = (uint8_t)m->tx->fault;
        packet->part[packet->parts++] = (struct iovec){m->head, UDP_HEAD};
    }
    if (length > head) {
        packet->part[packet->parts++] =
            found ? payload : (struct iovec){(void *)(uintptr_t)zeros, length - head};
    }
    return true;
}

/* ---- the operations ---- */

static enum fabric_short send_copy(struct fabric_peer *p, enum fabric_class class,
                                   const void *header, const void *payload, struct fabric_tx *tx,
                                   size_t length, enum fabric_status status)
{
    struct fabric *f = p->fabric;
    struct udp_message *m = has_room(&p->channel[class], length) ? new_message(f, length) : NULL;
    if (m == NULL) {
        return SHORT_FULL;
    }
    int rc = length == 0 ? 0
             : tx == NULL || tx->vector == NULL
                 ? nic_copy(m->copy, payload, length)
                 : vector_gather(m->copy, tx->vector, &tx->cursor, tx->skip, length);
    if (rc != 0) {
        status = FABRIC_SEGV;
        length = 0;
    }
    set_head(m, header, status);
    if (!post(p, class, m, NULL, length)) {
        return SHORT_FULL;
    }
    udp_flush(f);
    return status == FABRIC_OK ? SHORT_SENT : SHORT_UNREADABLE;
}

enum fabric_short udp_send_short(struct fabric_peer *p, enum fabric_class class, const void *header,
                                 const void *payload, size_t length)
{
    if (p->dying) {
        return class == FABRIC_RESPONSE ? SHORT_SENT : SHORT_FULL;
    }
    if (length > p->fabric->inline_max) {
        return SHORT_FULL;
    }
    return send_copy(p, class, header, payload, NULL, length, FABRIC_OK);
}

static enum fabric_send send_lent(struct fabric_peer *p, enum fabric_class class,
                                  struct fabric_tx *tx)
{
    struct fabric *f = p->fabric;
    struct udp_message *m = has_room(&p->channel[class], 0) ? new_message(f, 0) : NULL;
    if (m == NULL) {
        return FABRIC_FULL;
    }
    set_head(m, tx->header, FABRIC_OK);
    if (!post(p, class, m, tx, tx->length)) {
        return FABRIC_FULL;
    }
    m->m.fill = fill;
    udp_flush(f);
    return FABRIC_QUEUED;
}

enum fabric_send udp_send(struct fabric_peer *p, enum fabric_class class, struct fabric_tx *tx)
{
    if (p->dying) {
        return class == FABRIC_RESPONSE ? FABRIC_SENT : FABRIC_FULL;
    }
    tx->cursor = (struct vector_cursor){0};
    uint64_t length = tx->fault == FABRIC_OK ? tx->length : 0;
    if (length > p->fabric->inline_max && !tx->at_once) {
        return send_lent(p, class, tx);
    }
    if (length > COPIED_MOST) {
        return FABRIC_FULL;
    }
    switch (send_copy(p, class, tx->header, tx->base, tx, length, tx->fault)) {
    case SHORT_FULL:
        return FABRIC_FULL;
    case SHORT_UNREADABLE:
        tx->fault = FABRIC_SEGV;
        break;
    case SHORT_SENT:
        break;
    }
    return FABRIC_SENT;
}

bool udp_unsent(struct fabric_peer *p)
{
    return !p->dying &&
           (p->channel[FABRIC_REQUEST].queued != 0 || p->channel[FABRIC_RESPONSE].queued != 0);
}

void udp_sent(void *fabric, struct slmp_message *message, enum slmp_status status)
{
    struct fabric *f = fabric;
    struct udp_message *m = container_of(message, struct udp_message, m);
    struct fabric_peer *p = m->peer;
    struct udp_channel *c = &p->channel[message->channel];
    struct fabric_tx *tx = m->tx;
    c->queued--;
    c->copied -= tx == NULL ? message->body_length : 0;
    f->moved |= c->starved || tx != NULL;
    c->starved = false;
    free_message(f, m);
    if (tx != NULL) {
        f->up->sent(p->np, tx, status == SLMP_OK ? tx->fault : FABRIC_UNDELIVERABLE);
    }
}

/* What cannot work is said once; memory that cannot be read is found by copying it. */
static void note_failure(struct fabric *f, int rc, const struct udp_failure *failure)
{
    if (rc == -EFAULT) {
        f->careful = true;
        return;
    }
    struct in_addr a = {htonl(failure->to.ip)};
    char name[INET_ADDRSTRLEN];
    log_line(LOG_INFO, "cannot send packets of %u bytes to %s port %u: %s", failure->length,
             inet_ntop(AF_INET, &a, name, sizeof(name)), failure->to.port, strerror(-rc));
}

void udp_flush(struct fabric *f)
{
    struct udp_failure failure;
    bool any;
    int rc = udp_socket_output(&f->socket, f->engine, udp_socket_now(&f->socket), &any, &failure);
    if (rc != 0) {
        note_failure(f, rc, &failure);
    }
    f->deadline = slmp_deadline(f->engine);
}
