/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the handler of the DNS cache (dns_cache.c) and its host (dns_cache_host.c) share: the table,
 * which is their context's HPU memory, and which questions are the cache's at all.
 *
 *      client ──question──► handler ──in the table──► answer, from the NIC
 *                              │
 *                              └─not there──► kernel ──► server, which answers
 *                                    and to the host, by the queue of requests: it asks the server
 *                                    by a socket of its own, and puts the answer into the table
 *
 * An answer is one of the server's, to the same question: equal in every byte but the id. So flags,
 * EDNS, its size and DO are part of the question, and the case of the letters is, until clients
 * have put it in two and the server has answered both the same. Its TTLs are less by the seconds
 * that have gone by since the server was asked; when one of them has come to 0 the entry is none
 * any more.
 *
 * The host writes the table between two turns, in the thread in which natively handlers run; so
 * neither sees it half-written.
 */
#ifndef DNS_CACHE_H
#define DNS_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include <spin_queue.h>

enum { DNS_ETH = 14, DNS_IP = 20, DNS_UDP = 8, DNS_FRAME = DNS_ETH + DNS_IP + DNS_UDP };
enum { DNS_HEAD = 12, DNS_QUERY_MOST = 288, DNS_ANSWER_MOST = 1232, DNS_TTLS = 48, DNS_WAYS = 4 };

/* A question, and its answer if answer_length is not 0; without, the question is the server's: it
 * is being asked, or the answer is not for a table. `ttl` seconds from `begun` on; 0: no entry. */
struct dns_entry {
    uint32_t hash, begun, ttl, used;
    uint16_t query_length, question_end, answer_length, ttls;
    uint16_t ttl_at[DNS_TTLS]; /* where the answer has TTLs */
    bool any_case;             /* of the letters of the name */
    uint8_t query[DNS_QUERY_MOST];
    uint8_t answer[DNS_ANSWER_MOST];
};

struct dns_cache {
    struct spin_queue_end host; /* first: pinwheel_raw.h puts it there */
    uint32_t now;               /* seconds; the host sets it before each turn */
    uint32_t seed;              /* of the hash */
    uint32_t sets;              /* a power of two; each has DNS_WAYS entries */
    uint64_t answered, passed, not_there;
    uint8_t frame[DNS_FRAME + DNS_ANSWER_MOST];
    struct dns_entry entry[];
};

static inline unsigned dns_16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static inline uint32_t dns_32(const uint8_t *at)
{
    return (uint32_t)dns_16(at) << 16 | dns_16(at + 2);
}

static inline void dns_put_16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void dns_put_32(uint8_t *at, uint32_t value)
{
    dns_put_16(at, value >> 16);
    dns_put_16(at + 2, value & 0xffff);
}

static inline uint8_t dns_lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
}

/* Returns where the record of EDNS ends that begins at `at`; 0: it is none, or has options, as
 * cookies, which are for the server. */
static inline unsigned dns_edns(const uint8_t *m, unsigned length, unsigned at)
{
    enum { SIZE = 11, DO = 0x80 };
    if (length - at < SIZE) {
        return 0;
    }
    const uint8_t *r = m + at;
    bool plain = r[0] == 0 && dns_16(r + 1) == 41 && r[5] == 0 && r[6] == 0 && (r[7] & ~DO) == 0 &&
                 r[8] == 0 && dns_16(r + 9) == 0;
    return plain ? at + SIZE : 0;
}

/* Returns where the question of a query ends. 0: the message is nothing for a cache, but the
 * server's: no query, or not for one plain record of the Internet. */
static inline unsigned dns_question(const uint8_t *m, unsigned length)
{
    enum {
        RD = 1,
        AD_CD = 0x30,
        NAME_MOST = 255,
        LABEL_MOST = 63,
        TYPE_MOST = 248,
        TYPE_EDNS = 41
    };
    if (length < DNS_HEAD + 5 || length > DNS_QUERY_MOST || (m[2] & ~RD) != 0 ||
        (m[3] & ~AD_CD) != 0 || dns_16(m + 4) != 1 || dns_32(m + 6) != 0 || dns_16(m + 10) > 1) {
        return 0;
    }
    unsigned at = DNS_HEAD;
    while (m[at] != 0) {
        /* also what points elsewhere is longer than a label may be */
        if (m[at] > LABEL_MOST) {
            return 0;
        }
        at += 1u + m[at];
        if (at + 5 > length || at - DNS_HEAD >= NAME_MOST) {
            return 0;
        }
    }
    unsigned type = dns_16(m + at + 1), end = at + 5;
    if (type == 0 || type == TYPE_EDNS || type > TYPE_MOST || dns_16(m + at + 3) != 1) {
        return 0;
    }
    unsigned whole = dns_16(m + 10) == 1 ? dns_edns(m, length, end) : end;
    return whole == length ? end : 0;
}

/* The hash of a query, whatever the case of its letters. */
static inline uint32_t dns_hash(const struct dns_cache *c, const uint8_t *m, unsigned length,
                                unsigned question_end)
{
    uint32_t h = c->seed;
    for (unsigned i = 2; i < length; i++) {
        h = (h ^ (i >= DNS_HEAD && i < question_end - 4 ? dns_lower(m[i]) : m[i])) * 16777619u;
    }
    return h ^ h >> 15;
}

/* Whether an entry is that of a query, of whose name the letters may be in any case, or not. */
static inline bool dns_equal(const struct dns_entry *e, const uint8_t *m, unsigned length,
                             bool any_case)
{
    if (e->query_length != length) {
        return false;
    }
    for (unsigned i = 2; i < length; i++) {
        bool name = any_case && i >= DNS_HEAD && i < e->question_end - 4u;
        if (e->query[i] != m[i] && (!name || dns_lower(e->query[i]) != dns_lower(m[i]))) {
            return false;
        }
    }
    return true;
}

static inline bool dns_lives(const struct dns_cache *c, const struct dns_entry *e)
{
    return c->now - e->begun < e->ttl;
}

static inline struct dns_entry *dns_set(struct dns_cache *c, uint32_t hash)
{
    return &c->entry[(hash & (c->sets - 1)) * DNS_WAYS];
}

/* Returns the living entry of a query; NULL: there is none. */
static inline struct dns_entry *dns_find(struct dns_cache *c, const uint8_t *m, unsigned length,
                                         uint32_t hash)
{
    struct dns_entry *e = dns_set(c, hash);
    for (unsigned i = 0; i < DNS_WAYS; i++, e++) {
        if (e->hash == hash && dns_lives(c, e) && dns_equal(e, m, length, e->any_case)) {
            return e;
        }
    }
    return NULL;
}

#endif
