/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all benches of Pinwheel share: a matching interface with physical ids, the
 * other rank, buffers of private memory, and short ways to make entries. The
 * entries of a bench carry its number as match bits.
 *
 *   out  64 buffers to send from    one after another, for the size of the work
 *   in   64 buffers to receive in   the same
 */
#ifndef BENCH_OURS_LINK_H
#define BENCH_OURS_LINK_H

#include "harness/turn.h"
#include "portals4.h"
#include "spin.h"

enum {
    LINK_COUNTED, /* portal table index without events: counters only */
    LINK_EVENTS,  /* events go to self.eq */
    LINK_OWN,     /* the first of the indices that a family allocates itself */
    LINK_DEPTH = LINK_OWN,
    LINK_ACK,
    LINK_APPEND,
    LINK_MTL,
    LINK_ATOMIC,
    LINK_CHAIN,
    LINK_UNEXPECTED,
    LINK_ANSWERS = 1000, /* match bits of answers to BENCH_... : LINK_ANSWERS + bench */
    LINK_HANDLED = 2000, /* of the entry with a handler */
    LINK_BUFFERS = TURN_WINDOW_BANDWIDTH * TURN_SIZE_MAX /* bytes of `out`, of `in` */
};

struct link {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_process_t me, peer;
    ptl_size_t packet; /* payload of one */
    uint8_t *out, *in;
    ptl_handle_md_t md; /* all of `out`; no events */
    double memory;      /* bytes that the connection took in this process */
};
extern struct link self;

/* A counter at an entry or an MD, and how far it must have come. */
struct link_count {
    ptl_handle_ct_t ct;
    ptl_size_t expected;
};

/* link_open() opens the interface; each family then makes its entries, and
 * link_connect() makes the first contact. 0, or -1 after turn_fail(). */
int link_open(void);
int link_connect(void);

/* link_ok() is true for PTL_OK; else it says which call gave what. */
bool link_ok(int code, const char *call);

/* link_counter() makes a counter; link_entry() appends an entry over all of `in` for
 * puts (or gets from `out`) that counts in it. `handlers` may be NULL. */
int link_counter(struct link_count *count);
int link_entry(unsigned index, ptl_match_bits_t bits, unsigned options, struct link_count *count,
               const ptl_handlers_t *handlers);

/* link_memory() appends an entry over memory of the family's own, with all options
 * but the counter's as given, which any process may use. */
int link_memory(unsigned index, ptl_match_bits_t bits, unsigned options, void *start,
                ptl_size_t length, const struct link_count *count);

/* link_index() allocates a portal table index; `eq` may be PTL_EQ_NONE. */
int link_index(unsigned index, ptl_handle_eq_t eq);

static inline uint64_t link_stride(uint64_t size)
{
    return size < 64 ? (size + 7) & ~(uint64_t)7 : (size + 63) & ~(uint64_t)63;
}

/* link_put() puts buffer `i` of `out` into buffer `i` of the other's `in`. */
static inline int link_put(uint64_t size, unsigned i, unsigned index, ptl_match_bits_t bits)
{
    uint64_t at = i * link_stride(size);
    return PtlPut(self.md, at, size, PTL_NO_ACK_REQ, self.peer, index, bits, at, NULL, 0);
}

/* link_answer() puts nothing but the news. */
static inline int link_answer(ptl_match_bits_t bits)
{
    return PtlPut(self.md, 0, 0, PTL_NO_ACK_REQ, self.peer, LINK_COUNTED, bits, 0, NULL, 0);
}

/* link_wait() waits until `more` have been counted. */
static inline int link_wait(struct link_count *count, uint64_t more)
{
    ptl_ct_event_t value;
    count->expected += more;
    int code = PtlCTWait(count->ct, count->expected, &value);
    if (code != PTL_OK || value.failure != 0) {
        return link_ok(code, "PtlCTWait") ? turn_fail("PtlCTWait: an operation failed") : -1;
    }
    return 0;
}

/* link_prepare() fills the first `buffers` of `out` and wipes those of `in`, if the
 * work's data is to be checked; link_verify() checks what came. */
int link_prepare(const struct turn_work *work, unsigned buffers);
int link_verify(const struct turn_work *work, unsigned buffers);

/* The families: open_..() makes the entries. */
struct family {
    int (*open)(void);
    const struct turn_duty *duties;
    int count;
};
extern const struct family family_latency, family_stream, family_calls, family_match,
    family_handler, family_rest, family_atomic, family_chain, family_unexpected, family_mtl,
    family_depth;

#endif
