/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics of 8 bytes: until the old value is back, in a stream, on the rank's own
 * memory, and by both ranks on one word. Every turn adds up what the words must have
 * become, and looks.
 *
 *   fetch, swap_if   rank 0 waits for each reply; a wrong old value fails the turn
 *   local            PtlAtomic to oneself without acknowledgement
 *   stream           64 under way at a time
 *   shared           the same by both ranks on rank 1's word; rank 1 goes on until
 *                    rank 0 is done, and says how often
 *
 * Their portal table index has no entry with a handler: where one is, operations on
 * oneself take the way of all others.
 */
#include "link.h"

enum { WORDS = 64, LINE_DONE = 3 /* turn_line(): runs of `shared` that rank 0 has done */ };

/* The memory that others change, and that from which operations of this rank take and to which they
 * give. */
static struct {
    _Alignas(64) int64_t fetched_from[2]; /* fetch, swap_if */
    _Alignas(64) int64_t streamed;
    _Alignas(64) int64_t local;
    _Alignas(64) int64_t shared;
    _Alignas(64) int64_t operand;
    _Alignas(64) int64_t fetched[WORDS];
} words;

static struct link_count targeted, streamed, local, replies;
static ptl_handle_md_t operand_md, fetched_md;
static int64_t stream_sum;   /* the value that words.streamed must have */
static uint64_t shared_sum;  /* the value that words.shared of rank 1 must have */
static uint64_t shared_runs; /* of both ranks */
static double shared_iterations;

static int fetch_add(ptl_process_t whose, ptl_match_bits_t bits, unsigned i)
{
    int code = PtlFetchAtomic(fetched_md, i * 8, operand_md, 0, 8, whose, LINK_ATOMIC, bits, 0,
                              NULL, 0, PTL_SUM, PTL_INT64_T);
    return link_ok(code, "PtlFetchAtomic") ? 0 : -1;
}

/* ---- One at a time ---- */

static int fetch(const struct turn_work *work, uint64_t iterations)
{
    static int64_t expected;
    if (turn_rank() == 1) {
        return link_wait(&targeted, iterations);
    }
    words.operand = 1;
    for (uint64_t i = 0; i < iterations; i++, expected++) {
        if (fetch_add(self.peer, BENCH_FETCH_ADD, 0) != 0 || link_wait(&replies, 1) != 0) {
            return -1;
        }
        if (words.fetched[0] != expected) {
            return turn_fail("PtlFetchAtomic fetched %ld where %ld was", (long)words.fetched[0],
                             (long)expected);
        }
    }
    return 0;
}

static int swap_if(const struct turn_work *work, uint64_t iterations)
{
    static int64_t expected;
    if (turn_rank() == 1) {
        return link_wait(&targeted, iterations);
    }
    for (uint64_t i = 0; i < iterations; i++, expected++) {
        words.operand = expected + 1;
        int code = PtlSwap(fetched_md, 0, operand_md, 0, 8, self.peer, LINK_ATOMIC, BENCH_FETCH_ADD,
                           8, NULL, 0, &expected, PTL_CSWAP, PTL_INT64_T);
        if (!link_ok(code, "PtlSwap") || link_wait(&replies, 1) != 0) {
            return -1;
        }
        if (words.fetched[0] != expected) {
            return turn_fail("PtlSwap found %ld where %ld was", (long)words.fetched[0],
                             (long)expected);
        }
    }
    return 0;
}

/* ---- Streams ---- */

static int on_oneself(const struct turn_work *work, uint64_t iterations)
{
    static int64_t sum;
    if (turn_rank() == 1) {
        return 0;
    }
    words.operand = 1;
    for (uint64_t i = 0; i < iterations * WORDS; i++) {
        int code = PtlAtomic(operand_md, 0, 8, PTL_NO_ACK_REQ, self.me, LINK_ATOMIC,
                             BENCH_ATOMIC_LOCAL, 0, NULL, 0, PTL_SUM, PTL_INT64_T);
        if (!link_ok(code, "PtlAtomic")) {
            return -1;
        }
    }
    sum += (int64_t)(iterations * WORDS);
    if (link_wait(&local, iterations * WORDS) != 0) {
        return -1;
    }
    return words.local == sum
               ? 0
               : turn_fail("atomics on oneself made %ld, not %ld", (long)words.local, (long)sum);
}

static int add_window(ptl_process_t whose, ptl_match_bits_t bits)
{
    for (unsigned i = 0; i < WORDS; i++) {
        if (fetch_add(whose, bits, i) != 0) {
            return -1;
        }
    }
    return link_wait(&replies, WORDS);
}

static int stream(const struct turn_work *work, uint64_t iterations)
{
    if (turn_rank() == 1) {
        stream_sum += (int64_t)(iterations * WORDS);
        return link_wait(&streamed, iterations * WORDS);
    }
    words.operand = 1;
    for (uint64_t i = 0; i < iterations; i++) {
        if (add_window(self.peer, BENCH_ATOMIC_RATE) != 0) {
            return -1;
        }
    }
    return 0;
}

static int end_stream(const struct turn_work *work, struct turn_result *result)
{
    return words.streamed == stream_sum ? 0
                                        : turn_fail("a stream of atomics made %ld, not %ld",
                                                    (long)words.streamed, (long)stream_sum);
}

static int shared(const struct turn_work *work, uint64_t iterations)
{
    volatile uint64_t *done = turn_line(LINE_DONE);
    uint64_t windows = 0;
    shared_runs++;
    words.operand = 1;
    while (turn_rank() == 0 ? windows < iterations : *done != shared_runs) {
        if (add_window(turn_rank() == 0 ? self.peer : self.me, BENCH_ATOMIC_SHARED) != 0) {
            return -1;
        }
        windows++;
    }
    if (turn_rank() == 0) {
        *done = shared_runs;
    }
    shared_iterations = (double)windows;
    shared_sum += (windows + iterations) * WORDS;
    return 0;
}

static int end_shared(const struct turn_work *work, struct turn_result *result)
{
    result->extra = shared_iterations;
    if (turn_rank() == 1 && (uint64_t)words.shared != shared_sum) {
        return turn_fail("the word of both ranks is %ld, not %ld", (long)words.shared,
                         (long)shared_sum);
    }
    return 0;
}

/* ---- Family ---- */

static int bind(void *memory, size_t length, const struct link_count *count, ptl_handle_md_t *md)
{
    ptl_md_t m = {.start = memory,
                  .length = length,
                  .options = count != NULL ? PTL_MD_EVENT_CT_REPLY : 0,
                  .eq_handle = PTL_EQ_NONE,
                  .ct_handle = count != NULL ? count->ct : PTL_CT_NONE};
    return link_ok(PtlMDBind(self.ni, &m, md), "PtlMDBind") ? 0 : -1;
}

static int open_entries(void)
{
    const unsigned both = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
    if (link_index(LINK_ATOMIC, PTL_EQ_NONE) != 0 || link_counter(&targeted) != 0 ||
        link_counter(&streamed) != 0 || link_counter(&local) != 0 || link_counter(&replies) != 0) {
        return -1;
    }
    return link_memory(LINK_ATOMIC, BENCH_FETCH_ADD, both, words.fetched_from, 16, &targeted) !=
                       0 ||
                   link_memory(LINK_ATOMIC, BENCH_ATOMIC_RATE, both, &words.streamed, 8,
                               &streamed) != 0 ||
                   link_memory(LINK_ATOMIC, BENCH_ATOMIC_LOCAL, both, &words.local, 8, &local) !=
                       0 ||
                   link_memory(LINK_ATOMIC, BENCH_ATOMIC_SHARED, both, &words.shared, 8, NULL) !=
                       0 ||
                   bind(&words.operand, 8, NULL, &operand_md) != 0 ||
                   bind(words.fetched, sizeof(words.fetched), &replies, &fetched_md) != 0
               ? -1
               : 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_FETCH_ADD, .run = fetch},
    {.bench = BENCH_SWAP_IF, .run = swap_if},
    {.bench = BENCH_ATOMIC_LOCAL, .run = on_oneself},
    {.bench = BENCH_ATOMIC_RATE, .run = stream, .end = end_stream},
    {.bench = BENCH_ATOMIC_SHARED, .run = shared, .end = end_shared},
};

const struct family family_atomic = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
