/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the handlers of telemetry_nic.c keep in their memory, and telemetry.c reads there.
 *
 *      frame ──► totals
 *            ──► flow table      frames and bytes of each flow, exactly, as far as there is room
 *            ──► sketch          bytes of each flow, at most a little too many (count-min)
 *                   └──► top     the flows with the largest estimates
 *            ──► requests ──► answers: histograms of the time between
 *
 * Invariants:
 *  - All frames are in exactly one of `other`, a flow of the table, `ended` and `no_room`.
 *  - An estimate of the sketch is never too small. It exceeds the flow's bytes by more than
 *    e / WIDTH of all bytes with a probability of e^-ROWS at most (Cormode and Muthukrishnan,
 * 2005).
 *  - A flow that is not in `top` has no more bytes than the least estimate there.
 *  - A time is in a bucket whose ends differ by an eighth.
 */
#ifndef TELEMETRY_H
#define TELEMETRY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LINES = 1024,
    WAYS = 4, /* of the flow table */
    ROWS = 4,
    WIDTH = 2048, /* of the sketch */
    TOP = 32,
    ASKED = 1024,
    ASKED_WAYS = 4, /* requests without an answer */
    SPLIT = 8,
    BUCKETS = 62 * SPLIT,
    KEY = 10, /* words of a flow */
};

/* Addresses (of IPv4 in the first word of four, the rest 0), ports, and protocol | version << 8. */
struct flow {
    uint32_t key[KEY];
    uint64_t frames, bytes, first, last; /* frames 0: free; times in ns */
};

struct amount {
    uint64_t frames, bytes;
};

struct top {
    uint32_t key[KEY], hash;
    uint64_t estimate; /* 0: free */
};

struct asked {
    uint64_t tag, time; /* tag 0: free */
};

enum latency_kind { TCP_HANDSHAKE, ICMP_ECHO, DNS, LATENCIES };

struct latency {
    uint64_t count, most, given_up; /* given_up: requests whose place another needed */
    uint64_t bucket[BUCKETS];
};

struct telemetry {
    struct amount all, tcp, udp, icmp, other; /* other: no whole header of IP */
    struct amount ended, no_room;
    uint64_t flows_ended;
    uint64_t first, last; /* times of frames */
    struct flow flow[LINES][WAYS];
    uint64_t sketch[ROWS][WIDTH];
    struct top top[TOP];
    struct asked asked[ASKED][ASKED_WAYS];
    struct latency latency[LATENCIES];
};

/* One of the hash functions of a flow. */
static inline uint32_t telemetry_hash(const uint32_t key[KEY], uint32_t seed)
{
    uint32_t h = seed;
    for (unsigned i = 0; i < KEY;
         i++) { /* the steps of MurmurHash3, which is in the public domain */
        uint32_t k = key[i] * 0xcc9e2d51u;
        k = (k << 15 | k >> 17) * 0x1b873593u;
        h ^= k;
        h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
    }
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

/* The cell of a flow in a row. */
static inline unsigned telemetry_cell(const uint32_t key[KEY], unsigned row)
{
    return telemetry_hash(key, 0x9e3779b9u * (row + 1)) % WIDTH;
}

static inline uint64_t telemetry_estimate(const struct telemetry *t, const uint32_t key[KEY])
{
    uint64_t least = UINT64_MAX;
    for (unsigned row = 0; row < ROWS; row++) {
        uint64_t n = t->sketch[row][telemetry_cell(key, row)];
        least = n < least ? n : least;
    }
    return least;
}

/* The bucket of a time: its highest bit, and the SPLIT parts of what is above that. */
static inline unsigned telemetry_bucket(uint64_t ns)
{
    unsigned high = 3;
    if (ns < SPLIT) {
        return (unsigned)ns;
    }
    while (ns >> (high + 1) != 0) {
        high++;
    }
    return (high - 2) * SPLIT + (unsigned)(ns >> (high - 3) & (SPLIT - 1));
}

/* The least time of a bucket. */
static inline uint64_t telemetry_least(unsigned bucket)
{
    if (bucket < SPLIT) {
        return bucket;
    }
    return (uint64_t)(SPLIT + bucket % SPLIT) << (bucket / SPLIT - 1);
}

#endif
