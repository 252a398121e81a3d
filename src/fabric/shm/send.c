/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's side of a channel: records, the short messages that they hold, and the signal.
 *
 * Most records have one line, and follow others of one line. After the first one the sender
 * computes how many more may leave in the same way (`run`): into lines that are free and not stale,
 * and that have one tag. These then leave without these checks. A change of one of the conditions
 * sets the run to 0: a record of another kind, a ring without room, a peer that dies. A peer that
 * takes lines out meanwhile only makes more room.
 */
#include "fabric/shm/send.h"

#include "base/cancel.h"
#include "base/log.h"
#include "base/paths.h"
#include "fabric/shm/asks.h"
#include "fabric/shm/teardown.h"
#include "fabric/shm/tx.h"
#include "fabric/shm/tx_payload.h"

#include <stdlib.h>
#include <string.h>

/* a sender that has sent so many records without an answer is taken to send more */
#define SENT_ON 3
/* it then prefetches the line so many records ahead, where the receiver does not look yet */
#define AHEAD 2

bool tx_allocate(struct shm_peer *p, const struct segment_info *g)
{
    bool done = true;
    for (struct tx_channel *t = p->tx; t < p->tx + FABRIC_CLASSES; t++) {
        t->stale = calloc(tx_stale_words(class_lines((unsigned)(t - p->tx), g->ring_lines)),
                          sizeof(*t->stale));
        done &= t->stale != NULL;
    }
    return done;
}

void tx_free(struct shm_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        free(p->tx[c].stale);
        p->tx[c].stale = NULL;
    }
}

void tx_attach(struct shm_peer *p, struct slot *slot)
{
    const struct segment_info *g = &p->remote->info;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct tx_channel *t = &p->tx[c];
        t->ring = slot_ring(slot, c, g->ring_lines);
        cells_attach(&t->cells, slot, c, g);
        t->all_cells = t->cells.count == class_cells(c, g);
        t->draining = true;
        t->index = &slot->channel[c];
        t->line_mask = class_lines(c, g->ring_lines) - 1;
        t->inline_max = inline_most(p->fabric->setup.options, class_lines(c, g->ring_lines));
        t->at = tx_line(t, 0);
    }
    p->out = slot;
    p->doorbell = &p->remote->header->doorbell;
    p->bits = &p->remote->header->bitmap[p->out_index / 64];
    p->bit = 1ull << (p->out_index % 64);
}

void tx_stop(struct shm_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        p->tx[c].run = 0; /* a thread that sends then checks, and sees that the peer is dying */
    }
}

/* Wakes the owner of a segment: a thread that sleeps on the futex, or its NIC thread by its socket.
 * A full queue of the socket wakes it, too; without a listener it is dead. Other errors may pass: a
 * sender that expects something of a sleeping peer rings again when it probes that. */
bool shm_ring(struct shm_fabric *f, struct segment *s, uint32_t doorbell)
{
    atomic_fetch_or(&s->header->doorbell, DOORBELL_RUNG);
    KILL_POINT("rung");
    if ((doorbell & DOORBELL_STATE) == DOORBELL_ASLEEP_FUTEX) {
        futex_wake(&s->header->doorbell);
        return true;
    }
    NOT_CANCELLED;
    struct sockaddr_un to;
    socklen_t length = doorbell_address(&to, &s->info);
    int rc = (int)sys_sendto(f->ring_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
                             length);
    if (rc >= 0 || rc == -EAGAIN || rc == -ECONNREFUSED || rc == -ENOENT) {
        return true;
    }
    char note[LOG_NOTE];
    if (log_again((uintptr_t)shm_ring, clock_ns(), note)) {
        log_line(LOG_WARN, "cannot wake PID %u, which sleeps (sendto: %s); it is tried again%s%s",
                 s->info.pid, strerror(-rc), log_remedy(-rc), note);
    }
    return false;
}

/* Not inlined, so that a sender whose peer is awake saves no registers for it. */
static __attribute__((noinline)) void wake_peer(struct shm_peer *p, uint32_t doorbell)
{
    p->rung = shm_ring(p->fabric, p->remote, doorbell) ? doorbell | DOORBELL_RUNG : 0;
}

static inline void signal_peer(struct shm_peer *p)
{
    light_barrier(p);
    if (unlikely((atomic_load_explicit(p->bits, memory_order_relaxed) & p->bit) == 0)) {
        atomic_fetch_or(p->bits, p->bit);
        KILL_POINT("bit-set");
    }
    uint32_t doorbell = atomic_load_explicit(p->doorbell, memory_order_relaxed);
    if (unlikely(doorbell_asleep(doorbell)) && (doorbell | DOORBELL_RUNG) != p->rung) {
        wake_peer(p, doorbell);
    }
}

void shm_signal(struct shm_peer *p)
{
    signal_peer(p);
}

/* Reads how far the peer has taken records out. A head that is impossible ends the connection. The
 * lines before it may be written again, so the results of references that are in them are read
 * now. */
void tx_refresh_head(struct shm_peer *p, struct tx_channel *t)
{
    uint64_t head = atomic_load_explicit(&t->index->head, memory_order_acquire);
    if (head == t->head_seen) {
        return;
    }
    if (head - t->head_seen > t->tail - t->head_seen) {
        peer_lost(p, "its ring index is damaged");
        return;
    }
    LIST_EACH(struct fabric_tx, tx, &t->referred, link) {
        if (tx->record_end > head) {
            break;
        }
        if (tx->record_end > t->head_seen &&
            atomic_load_explicit(&tx_line(t, tx->record)->status, memory_order_relaxed) != 0) {
            tx->fault = FABRIC_SEGV;
        }
    }
    t->head_seen = head;
}

/* Computes how many one-line records may leave from `tail` on: as long as the lines are free, by
 * the head read last, and neither they nor the line behind them are stale. A run ends with a word
 * of `stale`, and so at the end of a lap: the line after that has another tag. */
static void find_run(struct shm_peer *p, struct tx_channel *t)
{
    uint64_t line = t->tail & t->line_mask;
    uint64_t stale = t->stale[line / 64] >> line % 64;
    uint64_t to_end = t->line_mask + 1 - line;
    uint64_t clean = 64 - line % 64;
    clean = stale != 0 ? (uint64_t)__builtin_ctzll(stale) : clean;
    clean = clean < to_end ? clean : to_end;
    uint64_t room = t->line_mask - (t->tail - t->head_seen);
    bool may = !p->dying && t->inline_max >= FABRIC_LINE_PAYLOAD &&
               options_fastpath(p->fabric->setup.options);
    uint64_t run = clean == 0 || !may ? 0 : clean - 1;
    t->run = (uint32_t)(run < room ? run : room);
    t->word = record_word(RECORD_INLINE, 0, 1, record_tag(t->tail, t->line_mask));
}

/* Has polls watch whether the peer makes room. */
void tx_watch(struct shm_peer *p, struct tx_channel *t)
{
    atomic_store_explicit(&t->index->want, 1, memory_order_relaxed);
    shm_attend(p->fabric);
    if (list_empty(&p->active)) {
        list_push_back(&p->fabric->active, &p->active);
    }
}

bool tx_make_room(struct shm_peer *p, struct tx_channel *t, uint64_t lines)
{
    tx_refresh_head(p, t);
    if (tx_crowded(t, lines)) {
        tx_watch(p, t);
        t->starved = true;
        t->run = 0; /* the next message must check for room */
        return false;
    }
    return true;
}

/* Called when a record has left. If the sender has sent SENT_ON of them without an answer,
 * prefetches the line of one to come. */
static inline void send_on(struct shm_peer *p, const struct tx_channel *t)
{
    if (++p->sent_on >= SENT_ON) {
        prefetch_write(tx_line(t, t->tail + AHEAD));
    }
}

/* Sends a message whose payload fits the record: the bytes at `payload` or, if tx is not NULL,
 * those of the tx. */
static inline __attribute__((always_inline)) enum fabric_short
send_inline(struct shm_peer *p, struct tx_channel *t, const void *header, const void *payload,
            struct fabric_tx *tx, size_t bytes, enum fabric_status status)
{
    struct record *r = tx_reserve(p, t, inline_lines(bytes));
    if (r == NULL) {
        return SHORT_FULL;
    }
    int rc = unlikely(bytes == 0) ? 0
             : tx == NULL         ? nic_copy(r->data, payload, bytes)
                                  : tx_take_payload(r->data, tx, 0, bytes);
    if (unlikely(rc != 0)) {
        status = FABRIC_SEGV;
        bytes = 0;
        /* A part of the payload may have been written into the lines ahead. */
        memset(t->stale, 0xff, tx_stale_words(t->line_mask + 1) * sizeof(*t->stale));
    }
    tx_set_record(r, header, status);
    tx_publish(t, RECORD_INLINE, bytes, inline_lines(bytes));
    send_on(p, t);
    signal_peer(p);
    return status == FABRIC_OK ? SHORT_SENT : SHORT_UNREADABLE;
}

static __attribute__((noinline)) enum fabric_short
send_lines(struct shm_peer *p, struct tx_channel *t, const void *header, const void *payload,
           size_t bytes, enum fabric_status status)
{
    return send_inline(p, t, header, payload, NULL, bytes, status);
}

static __attribute__((noinline)) enum fabric_short
send_parts(struct shm_peer *p, struct tx_channel *t, struct fabric_tx *tx)
{
    tx->cursor = (struct vector_cursor){0};
    return send_inline(p, t, tx->header, NULL, tx, tx->length, FABRIC_OK);
}

void shm_foresend(struct fabric_peer *peer)
{
    struct shm_peer *p = shm_peer_of(peer);
    prefetch_write(p->tx[FABRIC_REQUEST].at); /* NULL, if there is no connection yet */
}

/* Flags to the peer that an ask has left: its polls do not look at that ring before. */
static __attribute__((noinline)) void tell_ask(struct shm_peer *p, bool left)
{
    if (left) {
        asks_tell(p);
    }
}

/* Sends a short message that is not part of a run; it may begin one. */
static __attribute__((noinline)) enum fabric_short send_alone(struct shm_peer *p,
                                                              enum fabric_class class,
                                                              const void *header,
                                                              const void *payload, size_t length)
{
    struct tx_channel *t = &p->tx[class];
    if (tx_no_way(p, t)) {
        return class == FABRIC_RESPONSE ? SHORT_SENT : SHORT_FULL;
    }
    if (length > t->inline_max) {
        return SHORT_FULL;
    }
    enum fabric_short sent = send_lines(p, t, header, payload, length, FABRIC_OK);
    if (unlikely(class == FABRIC_ASK)) {
        tell_ask(p, sent != SHORT_FULL);
    } else if (length <= FABRIC_LINE_PAYLOAD) {
        find_run(p, t);
    }
    return sent;
}

/* Sends a record of a run: send_inline() and tx_publish(), with all conditions known. */
static inline __attribute__((always_inline)) enum fabric_short
send_run(struct shm_peer *p, struct tx_channel *t, const void *header, const uint64_t *payload,
         size_t length)
{
    COUNT_PATH(shm_run);
    struct record *r = t->at;
    tx_set_record(r, header, FABRIC_OK);
    if (likely(length != 0)) {
        r->length = *payload; /* the same eight bytes as data[] */
    }
    t->at = (struct record *)((uint8_t *)r + RECORD_LINE);
    t->run--;
    t->tail++;
    KILL_POINT("record-written");
    atomic_store_explicit(&r->word, t->word + record_word(0, length, 0, 0), memory_order_release);
    KILL_POINT("record-published");
    send_on(p, t);
    signal_peer(p);
    return SHORT_SENT;
}

enum fabric_short shm_send_line(struct fabric_peer *peer, enum fabric_class class,
                                const struct fabric_line *line, size_t length)
{
    struct shm_peer *p = shm_peer_of(peer);
    struct tx_channel *t =
        class == FABRIC_REQUEST ? &p->tx[FABRIC_REQUEST] : &p->tx[FABRIC_RESPONSE];
    return likely(t->run != 0) ? send_run(p, t, line->header, &line->payload, length)
                               : send_alone(p, class, line->header, &line->payload, length);
}

static __attribute__((noinline)) enum fabric_short send_word(struct shm_peer *p,
                                                             enum fabric_class class,
                                                             const void *header,
                                                             const void *payload, size_t length)
{
    uint64_t word = 0;
    return nic_copy(&word, payload, length) == 0 ? send_run(p, &p->tx[class], header, &word, length)
                                                 : send_alone(p, class, header, payload, length);
}

enum fabric_short shm_send_short(struct fabric_peer *peer, enum fabric_class class,
                                 const void *header, const void *payload, size_t length)
{
    struct shm_peer *p = shm_peer_of(peer);
    struct tx_channel *t = &p->tx[class];
    if (unlikely(t->run == 0 || length > FABRIC_LINE_PAYLOAD)) {
        return send_alone(p, class, header, payload, length);
    }
    return length == 0 ? send_run(p, t, header, NULL, 0)
                       : send_word(p, class, header, payload, length);
}

static inline enum fabric_send send_any(struct shm_peer *p, struct tx_channel *t,
                                        struct fabric_tx *tx)
{
    if (tx->fault != FABRIC_OK || tx->length <= t->inline_max) {
        size_t bytes = tx->fault == FABRIC_OK ? tx->length : 0;
        return fabric_sent_short(tx,
                                 bytes != 0 && tx->vector != NULL
                                     ? send_parts(p, t, tx)
                                     : send_lines(p, t, tx->header, tx->base, bytes, tx->fault));
    }
    return tx_send_long(p, t, tx);
}

enum fabric_send shm_send(struct fabric_peer *peer, enum fabric_class class, struct fabric_tx *tx)
{
    struct shm_peer *p = shm_peer_of(peer);
    struct tx_channel *t = &p->tx[class];
    if (tx_no_way(p, t)) {
        return class == FABRIC_RESPONSE ? FABRIC_SENT : FABRIC_FULL;
    }
    if (unlikely(class == FABRIC_ASK)) {
        enum fabric_send sent = send_any(p, t, tx);
        tell_ask(p, sent != FABRIC_FULL);
        return sent;
    }
    return send_any(p, t, tx);
}
