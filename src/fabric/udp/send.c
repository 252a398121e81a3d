/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending messages. Small payloads are copied, so that no sender waits for them. Larger ones are
 * lent until the peer has them, and the kernel copies them from their place into its packets.
 * Payload in parts is first copied by nic_copy(); so is all payload once some of it was unreadable,
 * or if checksums cover it.
 */
#include "fabric/udp/send.h"

#include "base/ip.h"
#include "base/log.h"
#include "base/nic_copy.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of copies that are in use at once, five packets of the greatest length: those of a batch,
 * the packet behind it, alignment, and the unused rest where the area begins anew. */
#define OUTGOING (5 * (size_t)UDP_BUFFER)

#define SPARE_MOST 512 /* unused messages that are kept, of each size */
#define SPARE_LARGE_MOST 64

/* messages: the receiver works on one batch while the sender makes the next */
#define BATCH_MOST 32
#define AHEAD_NS 8000   /* about the time of two system calls */
#define TOOK_MOST 50000 /* a flush that took longer was interrupted by other threads */

/* ---- the messages ---- */

/* Returns a message with room for a copy of `length` bytes; there are two sizes. */
static struct udp_message *new_message(struct udp_fabric *f, size_t length)
{
    bool large = length > f->inline_max;
    size_t room = large ? UDP_COPY_MOST : f->inline_max;
    struct list *l = list_pop_front(&f->spare[large]);
    if (l != NULL) {
        f->spares[large]--;
        return container_of(l, struct udp_message, link);
    }
    struct udp_message *m = malloc(sizeof(*m) + room);
    if (m != NULL) {
        list_init(&m->link);
        m->large = large;
    }
    return m;
}

static void free_message(struct udp_fabric *f, struct udp_message *m)
{
    static const unsigned most[2] = {SPARE_MOST, SPARE_LARGE_MOST};
    if (f->spares[m->large] == most[m->large]) {
        free(m);
        return;
    }
    f->spares[m->large]++;
    /* at the front, since it is still in a cache */
    list_insert_after(&f->spare[m->large], &m->link);
}

void udp_spare_free(struct udp_fabric *f)
{
    for (unsigned i = 0; i < 2; i++) {
        for (struct udp_message *m;
             (m = LIST_POP(struct udp_message, &f->spare[i], link)) != NULL;) {
            free(m);
        }
    }
    free(f->outgoing);
}

static void set_head(uint8_t *head, const void *header, enum fabric_status status)
{
    memset(head, 0, UDP_PREFIX);
    head[0] = UDP_FORMAT;
    head[1] = (uint8_t)status;
    memcpy(head + UDP_PREFIX, header, FABRIC_HEADER);
}

static bool has_room(struct udp_channel *c, uint64_t copied)
{
    bool room = c->queued < QUEUED_MOST && (copied == 0 || c->copied + copied <= COPIED_MOST);
    c->starved |= !room;
    return room;
}

/* ---- payload that is lent ---- */

/* Returns n bytes that stay until the packets that are being made have left. */
static uint8_t *outgoing(struct udp_fabric *f, size_t n)
{
    if (f->outgoing == NULL && (f->outgoing = malloc(OUTGOING)) == NULL) {
        return NULL;
    }
    f->outgoing_at = f->outgoing_at + n > OUTGOING ? 0 : f->outgoing_at;
    uint8_t *at = f->outgoing + f->outgoing_at;
    f->outgoing_at += (n + 63) & ~(size_t)63;
    return at;
}

/* Sets a part to n bytes of the payload, from `from` on; false: they cannot be read. */
static bool find_payload(struct udp_fabric *f, struct fabric_tx *tx, uint64_t from, uint32_t n,
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

/* ---- batches ----
 *
 * With a system call for each message a sender reaches 0.3 million a second; with a packet for each
 * message of a shared call about half of what rows reach. So a message waits for others, but only
 * where that costs its receiver no time: while one that has just left is on its way to the same
 * peer; and only until the batch is large enough, the time of another call has passed, or the
 * program polls the NIC, if it has polled soon after each of the last messages. When a program
 * stops polling, the NIC thread sends its last messages, and no further ones wait. */

void udp_habit_end(struct udp_habit *h, int64_t now)
{
    if (h->since != 0) {
        h->times = now - h->since < UDP_BACK_NS ? h->times + 1 : 0;
        h->since = 0;
    }
}

/* Whether the channel's sender makes messages faster than system calls send them; `under_way` of
 * its messages are not acknowledged. */
static bool is_ahead(const struct udp_fabric *f, unsigned under_way, int64_t now)
{
    return udp_is_habit(&f->returns) && under_way > 1 &&
           now - f->flushed < AHEAD_NS + f->flush_took && f->posted < BATCH_MOST &&
           f->posted_bytes < UDP_BATCH_BYTES;
}

/* Notes that the engine has a message of `bytes` bytes. It leaves now, or waits for others. */
static void posted(struct udp_fabric *f, const struct udp_channel *c, uint64_t bytes, int64_t now)
{
    f->posted++;
    f->posted_bytes += bytes;
    f->returns.since = now;
    if (is_ahead(f, c->queued, now)) {
        atomic_store_explicit(&f->attention, true, memory_order_relaxed);
    } else {
        udp_flush(f, now);
    }
}

/* Gives a message to the engine; false: memory is short. */
static bool post(struct udp_peer *p, enum fabric_class class, struct udp_message *m,
                 struct fabric_tx *tx, uint64_t length, int64_t now)
{
    struct udp_fabric *f = p->fabric;
    struct udp_channel *c = &p->channel[class];
    m->peer = p;
    m->tx = tx;
    m->m = (struct slmp_message){.to = p->at,
                                 .channel = (uint8_t) class,
                                 .head = m->head,
                                 .head_length = UDP_HEAD,
                                 .body = m->copy,
                                 .body_length = length,
                                 .fill = tx != NULL ? fill : NULL};
    if (slmp_send(f->engine, now, &m->m) != 0) {
        free_message(f, m);
        c->starved = true;
        return false;
    }
    f->expected += length <= f->inline_max ? 1 : UDP_BATCH;
    c->queued++;
    c->copied += tx == NULL ? length : 0;
    f->row = m->row_most != 0 ? m : NULL;
    posted(f, c, UDP_HEAD + length, now);
    return true;
}

/* ---- rows ---- */

/* Returns how many bytes a row that begins with a message of `length` bytes may have: those of one
 * packet. 0: the message leaves at once, or is so long that it goes alone. */
static uint32_t row_room(struct udp_peer *p, enum fabric_class class, size_t length, int64_t now)
{
    struct udp_fabric *f = p->fabric;
    if (length > f->inline_max || !is_ahead(f, p->channel[class].queued + 1, now)) {
        return 0;
    }
    uint32_t most = slmp_peer_info(f->engine, &p->at).segment;
    return most < UDP_ROW_MOST ? most : UDP_ROW_MOST;
}

static uint8_t *row_at(struct udp_message *m, uint64_t offset)
{
    return offset < UDP_HEAD ? m->head + offset : m->copy + (offset - UDP_HEAD);
}

/* The contents of a message. */
struct content {
    const void *header, *payload;
    const struct fabric_tx *tx; /* or NULL */
    size_t length;
    enum fabric_status status;
};

/* Copies the payload; one that cannot be read becomes empty, with status FABRIC_SEGV. */
static void copy_payload(uint8_t *to, struct content *what)
{
    const struct fabric_tx *tx = what->tx;
    struct vector_cursor cursor = {0};
    if (what->status == FABRIC_OK && what->length != 0) {
        int rc = tx == NULL || tx->vector == NULL
                     ? nic_copy(to, what->payload, what->length)
                     : vector_gather(to, tx->vector, &cursor, tx->skip, what->length);
        what->status = rc == 0 ? FABRIC_OK : FABRIC_SEGV;
    }
    what->length = what->status == FABRIC_OK ? what->length : 0;
}

/* Adds a message to the last row; false: it must go by itself. */
static bool join_row(struct udp_peer *p, enum fabric_class class, struct content *what, int64_t now)
{
    struct udp_fabric *f = p->fabric;
    struct udp_channel *c = &p->channel[class];
    struct udp_message *m = f->row;
    if (m == NULL || m->peer != p || m->m.channel != class) {
        return false;
    }
    uint64_t end = UDP_HEAD + m->m.body_length;
    uint64_t at = (end + UDP_ALIGN - 1) / UDP_ALIGN * UDP_ALIGN;
    if (at + UDP_HEAD + what->length > m->row_most) {
        return false;
    }
    uint8_t *head = row_at(m, at), *before = row_at(m, m->last);
    copy_payload(head + UDP_HEAD, what);
    uint64_t more = at + UDP_HEAD + what->length - end;
    if (!slmp_lengthen(&m->m, more)) {
        return false;
    }
    memset(row_at(m, end), 0, at - end);
    set_head(head, what->header, what->status);
    uint32_t length = htonl((uint32_t)(end - UDP_HEAD - m->last));
    memcpy(before + UDP_AT_LENGTH, &length, sizeof(length));
    before[UDP_AT_MORE] = 1;
    m->last = (uint32_t)at;
    c->copied += more;
    posted(f, c, more, now);
    return true;
}

/* ---- the operations ---- */

static enum fabric_short send_copy(struct udp_peer *p, enum fabric_class class, struct content what)
{
    struct udp_fabric *f = p->fabric;
    struct udp_channel *c = &p->channel[class];
    if (!has_room(c, what.length)) {
        return SHORT_FULL;
    }
    int64_t now = udp_socket_now(&f->socket);
    if (!join_row(p, class, &what, now)) {
        uint32_t row = row_room(p, class, what.length, now);
        struct udp_message *m = new_message(f, row != 0 ? UDP_COPY_MOST : what.length);
        if (m == NULL) {
            return SHORT_FULL;
        }
        copy_payload(m->copy, &what);
        set_head(m->head, what.header, what.status);
        m->row_most = row;
        m->last = 0;
        if (!post(p, class, m, NULL, what.length, now)) {
            return SHORT_FULL;
        }
    }
    return what.status == FABRIC_OK ? SHORT_SENT : SHORT_UNREADABLE;
}

enum fabric_short udp_send_short(struct fabric_peer *peer, enum fabric_class class,
                                 const void *header, const void *payload, size_t length)
{
    struct udp_peer *p = udp_peer_of(peer);
    if (p->dying) {
        return class == FABRIC_RESPONSE ? SHORT_SENT : SHORT_FULL;
    }
    if (length > p->fabric->inline_max) {
        return SHORT_FULL;
    }
    return send_copy(p, class, (struct content){header, payload, NULL, length, FABRIC_OK});
}

enum fabric_short udp_send_line(struct fabric_peer *peer, enum fabric_class class,
                                const struct fabric_line *line, size_t length)
{
    return udp_send_short(peer, class, line->header, &line->payload, length);
}

static enum fabric_send send_lent(struct udp_peer *p, enum fabric_class class, struct fabric_tx *tx)
{
    struct udp_fabric *f = p->fabric;
    struct udp_message *m = has_room(&p->channel[class], 0) ? new_message(f, 0) : NULL;
    if (m == NULL) {
        return FABRIC_FULL;
    }
    set_head(m->head, tx->header, FABRIC_OK);
    m->row_most = 0;
    if (!post(p, class, m, tx, tx->length, udp_socket_now(&f->socket))) {
        return FABRIC_FULL;
    }
    return FABRIC_QUEUED;
}

enum fabric_send udp_send(struct fabric_peer *peer, enum fabric_class class, struct fabric_tx *tx)
{
    struct udp_peer *p = udp_peer_of(peer);
    if (p->dying) {
        return class == FABRIC_RESPONSE ? FABRIC_SENT : FABRIC_FULL;
    }
    tx->cursor = (struct vector_cursor){0};
    uint64_t length = tx->fault == FABRIC_OK ? tx->length : 0;
    if (length > p->fabric->inline_max && !tx->at_once) {
        return send_lent(p, class, tx);
    }
    if (length > UDP_COPY_MOST) {
        return FABRIC_FULL; /* a copy would take longer than the wait for an acknowledgement */
    }
    struct content what = {tx->header, tx->base, tx, length, tx->fault};
    return fabric_sent_short(tx, send_copy(p, class, what));
}

bool udp_unsent(struct fabric_peer *peer)
{
    struct udp_peer *p = udp_peer_of(peer);
    return !p->dying && udp_unacknowledged(p);
}

void udp_sent(void *fabric, struct slmp_message *message, enum slmp_status status)
{
    struct udp_fabric *f = fabric;
    struct udp_message *m = container_of(message, struct udp_message, m);
    struct udp_peer *p = m->peer;
    struct udp_channel *c = &p->channel[message->channel];
    struct fabric_tx *tx = m->tx;
    c->queued--;
    c->copied -= tx == NULL ? message->body_length : 0;
    f->moved |= c->starved || tx != NULL;
    c->starved = false;
    f->row = f->row == m ? NULL : f->row;
    free_message(f, m);
    if (tx != NULL) {
        f->setup.up->sent(p->np, tx, status == SLMP_OK ? tx->fault : FABRIC_UNDELIVERABLE);
    }
}

/* Notes that packets could not be sent. If the kernel could not read some memory, payload is copied
 * from now on, which finds that memory; any other reason is logged, once. */
static void note_failure(struct udp_fabric *f, int rc, const struct udp_failure *failure)
{
    if (rc == -EFAULT) {
        f->careful = true;
        return;
    }
    log_line(LOG_INFO, "cannot send packets of %u bytes to %s port %u: %s", failure->length,
             ip_text(failure->to.ip).text, failure->to.port, strerror(-rc));
}

void udp_flush(struct udp_fabric *f, int64_t now)
{
    struct udp_failure failure;
    bool any = false;
    int rc = udp_socket_output(&f->socket, f->engine, now, f->expected, &any, &failure);
    if (rc != 0) {
        note_failure(f, rc, &failure);
    }
    f->deadline = slmp_deadline(f->engine);
    if (any) {
        f->flushed = udp_socket_now(&f->socket);
        f->flush_took = f->flushed - now < TOOK_MOST ? f->flushed - now : TOOK_MOST;
    }
    f->row = NULL;
    f->posted = 0;
    f->posted_bytes = 0;
    f->expected = 0;
}
