/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the benches of the handler library share. One program, bench_spin, is several
 * subjects: each does the same works in another way, so that they stand in one table.
 *
 *   handlers     the handlers of handlers/, run inline by whoever makes progress
 *   cpu          the same by rank 1's program over plain Portals: puts, events, replies
 *   plain        contiguous puts in the place of the job: what the way there costs
 *   hpus         handlers run by two HPUs that are threads
 *   hpu, one     by one
 *   fifo         by one, all in one queue
 *
 * Rank 0 asks, rank 1 is the target. Memory is private, at pages, touched before use:
 *
 *   from   what rank 0 sends                   to   where it arrives, or answers do
 */
#ifndef BENCH_SPIN_JOBS_H
#define BENCH_SPIN_JOBS_H

#include "link.h"

enum spin_way { WAY_HANDLERS, WAY_CPU, WAY_PLAIN, WAY_HPUS, WAY_HPU, WAY_ONE, WAY_FIFO, WAYS };

enum {
    SPIN_MESSAGE = 4 << 20, /* of a strided layout, packed; the largest of all works */
    SPIN_FROM = SPIN_MESSAGE,
    SPIN_TO = 3 * SPIN_MESSAGE,
    SPIN_BITS = 1,   /* match bits of the entry of a work, at rank 1 */
    SPIN_ANSWER = 2, /* of the entry at rank 0 for what comes back */
    SPIN_OVER = 3    /* of an entry without memory, at both: a count */
};

struct spin {
    enum spin_way way;
    uint8_t *from, *to;
    ptl_handle_md_t md;        /* over `from` */
    struct link_count arrived; /* at the entry of the work */
    struct link_count over;    /* at the entry SPIN_OVER */
    ptl_handle_me_t entry;     /* of the work, while a turn has one */
    ptl_handle_me_t answer;    /* likewise SPIN_ANSWER */
    struct link_count answered;
};
extern struct spin spin;

/* A family of works, and the ways in which it does them (a bit each). */
struct spin_family {
    const struct turn_duty *duties;
    int count;
    unsigned ways;
};
extern const struct spin_family spin_layout, spin_pingpong, spin_threads, spin_words, spin_requests,
    spin_match, spin_graph, spin_scan;

/* spin_open() opens the interface and what all works need: 0, or -1 after turn_fail(). */
int spin_open(enum spin_way way);

/* spin_pages() gives zeroed memory that begins at a page, or NULL. */
uint8_t *spin_pages(size_t length);

/* spin_hpus(), before spin_open(), has handlers run by that many threads: the first on rank 1's
 * core, the second on rank 0's. With `both_cores` all other threads of the process may use both,
 * so that they do not wait behind a handler. */
int spin_hpus(unsigned hpus, bool both_cores);

/* spin_entry() appends an entry for puts, spin_take_out() takes it out when its messages have
 * ended. */
int spin_entry(unsigned index, unsigned options, ptl_match_bits_t bits, ptl_match_bits_t ignore,
               void *start, ptl_size_t length, const struct link_count *count,
               const ptl_handlers_t *handlers, ptl_handle_me_t *handle);
int spin_take_out(ptl_handle_me_t *handle);

/* spin_append() appends the entry of a turn, over memory of the work's own; it counts what
 * has ended. spin_append_answer() does so at rank 0, over `to`, with PTL_ME_EVENT_CT_BYTES
 * or 0. spin_unlink() takes both out again and settles their counters: what has been counted up
 * to now is history. */
int spin_append(unsigned index, void *start, ptl_size_t length, const ptl_handlers_t *handlers);
int spin_append_answer(unsigned options);
int spin_unlink(void);
int spin_settle(struct link_count *count);

/* spin_flow() sends messages of the first `length` bytes of `from` one at a time; where rank 1
 * does the job itself, by_cpu() is called for each. */
int spin_flow(const struct turn_work *work, uint64_t iterations, uint64_t length,
              void (*by_cpu)(const struct turn_work *work));

/* The strided layout (layout.c): messages of `length` bytes into blocks with gaps as long.
 * spin_layout_begin() fills the message at rank 0 and has the entry at rank 1;
 * spin_layout_check() looks at what is there. */
int spin_layout_begin(uint64_t length, uint64_t block);
int spin_layout_check(uint64_t length, uint64_t block);

/* Requests (requests.c): spin_request() puts `length` bytes from slot `slot` of `from` into the
 * entry of the work, or where the CPU serves into its entry with events, at the same slot of
 * spin_landing(), which spin_append_for_cpu() has appended; spin_next_event() is the next one
 * there. */
enum { SPIN_SLOT = 4096 };
int spin_request(uint64_t slot, uint64_t length, ptl_match_bits_t bits);
uint8_t *spin_landing(void);
int spin_append_for_cpu(ptl_match_bits_t ignore);
int spin_next_event(ptl_event_t *event);

/* spin_ready() is passed by both ranks when both have come. */
static inline int spin_ready(void)
{
    return turn_gather(NULL, 0, NULL);
}

/* spin_send() puts the first bytes of `from` into the entry of the work. */
static inline int spin_send(uint64_t length)
{
    int code =
        PtlPut(spin.md, 0, length, PTL_NO_ACK_REQ, self.peer, LINK_COUNTED, SPIN_BITS, 0, NULL, 0);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

/* spin_say() counts one at the other rank, spin_hear() waits for that. */
static inline int spin_say(void)
{
    int code =
        PtlPut(spin.md, 0, 0, PTL_NO_ACK_REQ, self.peer, LINK_COUNTED, SPIN_OVER, 0, NULL, 0);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

static inline int spin_hear(void)
{
    return link_wait(&spin.over, 1);
}

/* spin_on() tells whether a work is one for two cores. */
static inline bool spin_on(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES;
}

#endif
