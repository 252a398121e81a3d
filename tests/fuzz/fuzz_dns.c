/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what the DNS cache (examples/raw) reads: queries of clients and answers of the server. The
 * input is a query, of as many bytes as its first byte says, and an answer. What is a question lies
 * in the query. What is learned is found again in any letters, when they are any, and only in the
 * seconds of its TTL.
 */
#include "fuzz.h"

#include "../../examples/raw/dns_cache_learn.h"

#include <stdlib.h>

enum { SETS = 2 };

static struct dns_cache *cache;

/* The same answer for the name in other letters makes it one for any. */
static void try_case(const uint8_t *q, unsigned length, unsigned end, uint32_t hash,
                     const struct dns_entry *answer, uint32_t ttl)
{
    struct dns_entry *found = dns_find(cache, q, length, hash), *room;
    uint8_t other[DNS_QUERY_MOST];
    memcpy(other, q, length);
    for (unsigned i = DNS_HEAD; i < end - 4; i++) {
        uint8_t low = dns_lower(other[i]);
        other[i] = other[i] != low ? low : low >= 'a' && low <= 'z' ? low - 32 : low;
    }
    MUST(dns_hash(cache, other, length, end) == hash);
    if (memcmp(other, q, length) == 0) {
        return;
    }
    MUST(dns_find(cache, other, length, hash) == NULL);
    if ((room = dns_room(cache, other, length, hash, false)) != NULL) {
        dns_put(cache, room, other, length, end, hash, DNS_TTL_SERVERS);
    }
    MUST(dns_keep(cache, other, length, hash, answer, 1000, ttl));
    MUST(dns_find(cache, other, length, hash) == found);
}

static void try_answer(const uint8_t *q, unsigned length, unsigned end, const uint8_t *m,
                       unsigned m_length)
{
    static struct dns_entry e;
    uint32_t hash = dns_hash(cache, q, length, end), ttl;
    memset(&e, 0, sizeof(e));
    e.question_end = (uint16_t)end;
    if (!dns_answers(q, end, m, m_length) || (ttl = dns_take(&e, m, m_length)) == 0) {
        return;
    }
    MUST(ttl <= DNS_TTL_MOST && e.answer_length == m_length && e.ttls > 0);
    for (unsigned i = 0; i < e.ttls; i++) {
        MUST(e.ttl_at[i] >= end && e.ttl_at[i] + 4u <= m_length);
        MUST(dns_32(m + e.ttl_at[i]) >= ttl);
        MUST(i == 0 || e.ttl_at[i] >= e.ttl_at[i - 1] + 4);
    }
    MUST(dns_same(&e, &e));
    cache->now = 1000;
    struct dns_entry *room = dns_room(cache, q, length, hash, false);
    if (room != NULL) {
        dns_put(cache, room, q, length, end, hash, DNS_TTL_SERVERS);
        MUST(dns_find(cache, q, length, hash) == room);
    }
    MUST(dns_keep(cache, q, length, hash, &e, 1000, ttl));
    struct dns_entry *found = dns_find(cache, q, length, hash);
    MUST(found != NULL && found->answer_length == m_length);
    MUST(memcmp(found->answer, m, m_length) == 0);
    try_case(q, length, end, hash, &e, ttl);
    cache->now = 1000 + ttl - 1;
    MUST(dns_find(cache, q, length, hash) == found);
    cache->now = 1000 + ttl;
    MUST(dns_find(cache, q, length, hash) != found);
}

/* A question for an address, and up to seven records. */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    static const uint8_t head[] = "\16\0\7\1\0\0\1\0\0\0\0\0\0\6aBcdef\3org\0\0\1\0\1";
    static const uint8_t record[] = "\xc0\x0c\0\x10\0\1\0\0\1\0\0\4\1\2\3\4";
    enum { QUERY = 28, RECORD = 16, MOST = 1 + 2 * QUERY + 7 * RECORD };
    unsigned records = 1 + (unsigned)(number % 7);
    if (max < MOST) {
        return 0;
    }
    memcpy(data, head, 1 + QUERY);
    uint8_t *answer = data + 1 + QUERY;
    memcpy(answer, data + 1, QUERY);
    answer[3] = 0x80;
    answer[7] = (uint8_t)records;
    for (unsigned i = 0; i < records; i++) {
        memcpy(answer + QUERY + (size_t)i * RECORD, record, RECORD);
    }
    return 1 + 2 * QUERY + (size_t)records * RECORD;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (cache == NULL) {
        cache = calloc(1, sizeof(*cache) + sizeof(cache->entry[0]) * SETS * DNS_WAYS);
        MUST(cache != NULL);
        cache->sets = SETS;
    }
    if (size < 2) {
        return 0;
    }
    memset(cache->entry, 0, sizeof(cache->entry[0]) * SETS * DNS_WAYS);
    size_t length = 2u * data[0] < size - 1 ? 2u * data[0] : size - 1;
    /* memory of its own, so that a byte beyond is seen */
    uint8_t *q = malloc(length + 1), *m = malloc(size);
    MUST(q != NULL && m != NULL);
    q = realloc(q, length > 0 ? length : 1);
    memcpy(q, data + 1, length);
    unsigned end = dns_question(q, (unsigned)length), m_length = (unsigned)(size - 1 - length);
    MUST(end <= length && (end == 0 || end >= DNS_HEAD + 5));
    if (end > 0) {
        /* an answer to it, if it is long enough */
        uint8_t *answer = realloc(m, m_length > 0 ? m_length : 1);
        m = answer;
        memcpy(m, data + 1 + length, m_length);
        if (m_length >= end && (data[0] & 1) == 0) {
            memcpy(m, q, 2);
            m[2] = 0x81;
            m[4] = 0;
            m[5] = 1;
            memcpy(m + DNS_HEAD, q + DNS_HEAD, end - DNS_HEAD);
        }
        try_answer(q, (unsigned)length, end, m, m_length);
    }
    free(q);
    free(m);
    return 0;
}
