/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's side of a ring, as its two files see it: send.c, which fills records with short
 * messages, and tx_payload.c, which does the same for longer ones. A record is reserved, filled and
 * published.
 *
 *     head ──► | taken out, free | records ...          | 0 | free ...
 *                                                  tail ──┘
 *
 * The first word of a record publishes it, and is stored last. The line behind it holds 0, or the
 * word of a record of the last lap, with another tag. Lines that held other bytes are noted in
 * `stale`, and zeroed before the consumer looks at them; so one line always stays free. A stream of
 * short records zeroes nothing, and each of its lines moves between the cores once. A record never
 * wraps: a pad fills the end of the ring.
 * Invariant: tail - head < lines.
 */
#ifndef FABRIC_SHM_TX_H
#define FABRIC_SHM_TX_H

#include "base/killpoint.h"
#include "base/nic_copy.h"
#include "fabric/shm/send.h"

/* ---- lines ---- */

/* True if nothing can be sent on the channel: the fabric tears the peer down, or the peer was dead
 * when it was met, so that there is no ring to it. The caller then drops a response, since the
 * initiator that it is for is gone, and reports a request as FULL. */
static inline bool tx_no_way(const struct shm_peer *p, const struct tx_channel *t)
{
    return p->dying || t->index == NULL;
}

static inline struct record *tx_line(const struct tx_channel *t, uint64_t line)
{
    return (struct record *)(t->ring + (line & t->line_mask) * RECORD_LINE);
}

/* Returns the number of words for one bit for each line. */
static inline size_t tx_stale_words(uint64_t lines)
{
    return (lines + 63) / 64;
}

static inline bool tx_is_stale(const struct tx_channel *t, uint64_t line)
{
    line &= t->line_mask;
    return (t->stale[line / 64] >> line % 64 & 1) != 0;
}

static inline void tx_set_stale(struct tx_channel *t, uint64_t line, bool stale)
{
    line &= t->line_mask;
    uint64_t bit = 1ull << line % 64;
    t->stale[line / 64] = stale ? t->stale[line / 64] | bit : t->stale[line / 64] & ~bit;
}

/* ---- records ---- */

/* Publishes the record at tail. The line behind it, at which the consumer will look, holds a word
 * of an earlier lap or 0, or is zeroed now. */
static inline void tx_publish(struct tx_channel *t, enum record_mode mode, size_t bytes,
                              size_t lines)
{
    struct record *r = tx_line(t, t->tail);
    uint32_t tag = record_tag(t->tail, t->line_mask);
    tx_set_stale(t, t->tail, false);
    for (size_t i = 1; i < lines; i++) {
        tx_set_stale(t, t->tail + i, true);
    }
    t->tail += lines;
    t->at = tx_line(t, t->tail);
    t->run = 0;
    if (unlikely(tx_is_stale(t, t->tail))) {
        tx_set_stale(t, t->tail, false);
        atomic_store_explicit(&tx_line(t, t->tail)->word, 0, memory_order_relaxed);
    }
    KILL_POINT("record-written");
    atomic_store_explicit(&r->word, record_word(mode, bytes, lines, tag), memory_order_release);
    KILL_POINT("record-published");
}

/* Whether the ring has no room for a record of `lines` at tail, with the pad that it may need, by
 * the head that the sender has read last. */
static inline bool tx_crowded(const struct tx_channel *t, uint64_t lines)
{
    return t->tail - t->head_seen + lines > t->line_mask;
}

/* Returns a record of `lines` at tail, or NULL if there is no room. */
static inline struct record *tx_reserve(struct shm_peer *p, struct tx_channel *t, uint64_t lines)
{
    uint64_t to_end = t->line_mask + 1 - (t->tail & t->line_mask);
    uint64_t pad = lines > to_end ? to_end : 0;
    if (unlikely(tx_crowded(t, pad + lines)) && !tx_make_room(p, t, pad + lines)) {
        return NULL;
    }
    t->starved = false;
    if (pad != 0) {
        tx_publish(t, RECORD_PAD, 0, pad);
    }
    return tx_line(t, t->tail);
}

static inline void tx_set_record(struct record *r, const void *header, enum fabric_status status)
{
    /* Word by word, as the NIC has just written it: a wider load would wait until those stores, and
     * all before them, are in the cache. */
    const uint64_t *from = header;
#pragma GCC unroll 6
    for (unsigned i = 0; i < FABRIC_HEADER / 8; i++) {
        atomic_store_explicit(&r->words[i], from[i], memory_order_relaxed);
    }
    atomic_store_explicit(&r->status, status, memory_order_relaxed);
}

/* Copies n bytes of a payload, from `offset` on. */
static inline int tx_take_payload(void *to, struct fabric_tx *tx, uint64_t offset, size_t n)
{
    if (tx->vector != NULL) {
        return vector_gather(to, tx->vector, &tx->cursor, tx->skip + offset, n);
    }
    return nic_copy(to, (const void *)((uintptr_t)tx->base + offset), n);
}

#endif
