/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the host of the DNS cache fills its table (dns_cache.h): which answers are for a table, and
 * which entry makes room.
 *
 * The server is asked twice, and only what it answers twice with the same bytes, but for the TTLs,
 * is for the table: a server may answer otherwise when it has had to ask another one. Several
 * addresses of a kind stay the server's, which may let them take turns.
 */
#ifndef DNS_CACHE_LEARN_H
#define DNS_CACHE_LEARN_H

#include <string.h>

#include "dns_cache.h"

enum { DNS_TTL_MOST = 86400, DNS_TTL_SERVERS = 5 };

/* Returns where the name that begins at `at` ends; 0: beyond the message. */
static inline unsigned dns_name_end(const uint8_t *m, unsigned length, unsigned at)
{
    while (at < length && m[at] != 0) {
        if (m[at] >= 0xc0) {
            return at + 2 <= length ? at + 2 : 0;
        }
        at += 1u + m[at];
    }
    return at < length ? at + 1 : 0;
}

/* Stores where the records behind the question have their TTLs, and returns the lowest; 0: there is
 * none, one is 0, there are several addresses, or the message is no whole one. */
static inline uint32_t dns_ttls(struct dns_entry *e, const uint8_t *m, unsigned length)
{
    enum { FIXED = 10, TYPE_A = 1, TYPE_AAAA = 28, TYPE_EDNS = 41 };
    unsigned records = dns_16(m + 6) + dns_16(m + 8) + dns_16(m + 10), at = e->question_end;
    unsigned addresses[2] = {0, 0};
    uint32_t lowest = DNS_TTL_MOST;
    e->ttls = 0;
    for (unsigned i = 0; i < records; i++) {
        at = dns_name_end(m, length, at);
        if (at == 0 || length - at < FIXED || length - at - FIXED < dns_16(m + at + 8)) {
            return 0;
        }
        unsigned type = dns_16(m + at);
        if (type != TYPE_EDNS) {
            uint32_t ttl = dns_32(m + at + 4);
            if (e->ttls == DNS_TTLS || ttl > INT32_MAX) {
                return 0;
            }
            lowest = ttl < lowest ? ttl : lowest;
            e->ttl_at[e->ttls++] = (uint16_t)(at + 4);
            addresses[0] += type == TYPE_A;
            addresses[1] += type == TYPE_AAAA;
        }
        at += FIXED + dns_16(m + at + 8);
    }
    bool whole = at == length && e->ttls > 0;
    return whole && addresses[0] < 2 && addresses[1] < 2 ? lowest : 0;
}

/* Whether a message is an answer to a query with an id. */
static inline bool dns_answers(const uint8_t *query, unsigned question_end, const uint8_t *m,
                               unsigned length)
{
    enum { QR = 0x80, OPCODE = 0x78 };
    return length >= question_end && (m[2] & (QR | OPCODE)) == QR && memcmp(m, query, 2) == 0 &&
           dns_16(m + 4) == 1 &&
           memcmp(m + DNS_HEAD, query + DNS_HEAD, question_end - DNS_HEAD) == 0;
}

/* Takes such an answer into an entry that has its question_end, and returns for how many seconds;
 * 0: it is not for the table. */
static inline uint32_t dns_take(struct dns_entry *e, const uint8_t *m, unsigned length)
{
    enum { TC = 2, RCODE = 15, NXDOMAIN = 3 };
    if (length > DNS_ANSWER_MOST || (m[2] & TC) != 0 ||
        ((m[3] & RCODE) != 0 && (m[3] & RCODE) != NXDOMAIN)) {
        return 0;
    }
    uint32_t ttl = dns_ttls(e, m, length);
    if (ttl > 0) {
        memcpy(e->answer, m, length);
        e->answer_length = (uint16_t)length;
    }
    return ttl;
}

/* Whether two answers that were taken are the same, but for the question, the id and the TTLs. */
static inline bool dns_same(const struct dns_entry *a, const struct dns_entry *b)
{
    unsigned ttl = 0;
    if (a->answer_length != b->answer_length || a->ttls != b->ttls ||
        a->question_end != b->question_end || memcmp(a->answer + 2, b->answer + 2, DNS_HEAD - 2) ||
        memcmp(a->ttl_at, b->ttl_at, sizeof(a->ttl_at[0]) * a->ttls) != 0) {
        return false;
    }
    for (unsigned i = a->question_end; i < a->answer_length; i++) {
        if (ttl < a->ttls && i == a->ttl_at[ttl]) {
            i += 3;
            ttl++;
        } else if (a->answer[i] != b->answer[i]) {
            return false;
        }
    }
    return true;
}

/* Returns the entry that a question may have: its own, or one that makes room. First go those that
 * do not live, then those without an answer, and for an answer the one that was not used for
 * longest. So what the server keeps to itself drives no answer out. NULL: there is no room. */
static inline struct dns_entry *dns_room(struct dns_cache *c, const uint8_t *m, unsigned length,
                                         uint32_t hash, bool answer)
{
    struct dns_entry *set = dns_set(c, hash), *best = NULL;
    uint32_t best_rank = 0, best_age = 0;
    for (unsigned i = 0; i < DNS_WAYS; i++) {
        struct dns_entry *e = &set[i];
        bool lives = dns_lives(c, e);
        uint32_t age = c->now - e->used, rank = !lives ? 3 : e->answer_length == 0 ? 2 : 1;
        if (lives && e->hash == hash && dns_equal(e, m, length, e->any_case)) {
            return e;
        }
        if ((rank > 1 || answer) &&
            (best == NULL || rank > best_rank || (rank == best_rank && age > best_age))) {
            best = e;
            best_rank = rank;
            best_age = age;
        }
    }
    return best;
}

/* Puts a question into an entry, without an answer: it is the server's for `ttl` seconds. */
static inline void dns_put(struct dns_cache *c, struct dns_entry *e, const uint8_t *m,
                           unsigned length, unsigned question_end, uint32_t hash, uint32_t ttl)
{
    *e = (struct dns_entry){.hash = hash,
                            .begun = c->now,
                            .used = c->now,
                            .ttl = ttl,
                            .query_length = (uint16_t)length,
                            .question_end = (uint16_t)question_end};
    memcpy(e->query + 2, m + 2, length - 2);
}

/* Ends the entry of a set that is a question's own. */
static inline void dns_forget(struct dns_entry *set, const uint8_t *m, unsigned length)
{
    for (unsigned i = 0; i < DNS_WAYS; i++) {
        if (dns_equal(&set[i], m, length, false)) {
            set[i].ttl = 0;
        }
    }
}

/* Puts a question and what the server has answered in the second `begun` into the table. If the
 * same answer is there for the name in other letters, it holds for all from now on. False: the
 * table has no room. */
static inline bool dns_keep(struct dns_cache *c, const uint8_t *m, unsigned length, uint32_t hash,
                            const struct dns_entry *answer, uint32_t begun, uint32_t ttl)
{
    struct dns_entry *e = dns_set(c, hash);
    for (unsigned i = 0; i < DNS_WAYS; i++) {
        if (e[i].hash == hash && dns_lives(c, &e[i]) && !dns_equal(&e[i], m, length, false) &&
            dns_equal(&e[i], m, length, true) && dns_same(&e[i], answer)) {
            e[i].any_case = true;
            dns_forget(e, m, length);
            return true;
        }
    }
    e = dns_room(c, m, length, hash, true);
    if (e != NULL) {
        dns_put(c, e, m, length, answer->question_end, hash, ttl);
        e->begun = begun;
        e->ttls = answer->ttls;
        memcpy(e->ttl_at, answer->ttl_at, sizeof(e->ttl_at));
        memcpy(e->answer, answer->answer, answer->answer_length);
        e->answer_length = answer->answer_length;
    }
    return e != NULL;
}

#endif
