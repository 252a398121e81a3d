/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams: windows of messages, each window answered when all of it is in place, so
 * that its buffers are the sender's again; and gets.
 */
#include "link.h"

static struct link_count rate, bandwidth, rate_answers, bandwidth_answers, gets, replies;
static ptl_handle_md_t get_md;

struct window {
    unsigned messages; /* each has a buffer of its own */
    ptl_match_bits_t bits;
    struct link_count *count, *answers;
};

static inline __attribute__((always_inline)) int stream(const struct turn_work *work,
                                                        uint64_t iterations, struct window w)
{
    for (uint64_t n = 0; n < iterations; n++) {
        if (turn_rank() == 1) {
            if (link_wait(w.count, w.messages) != 0 ||
                !link_ok(link_answer(LINK_ANSWERS + w.bits), "PtlPut")) {
                return -1;
            }
            continue;
        }
        for (unsigned i = 0; i < w.messages; i++) {
            int code = link_put(work->size, i, LINK_COUNTED, w.bits);
            if (!link_ok(code, "PtlPut")) {
                return -1;
            }
        }
        if (link_wait(w.answers, 1) != 0) {
            return -1;
        }
    }
    return 0;
}

static int run_rate(const struct turn_work *work, uint64_t iterations)
{
    return stream(work, iterations,
                  (struct window){TURN_WINDOW_RATE, BENCH_RATE, &rate, &rate_answers});
}

static int run_bandwidth(const struct turn_work *work, uint64_t iterations)
{
    return stream(
        work, iterations,
        (struct window){TURN_WINDOW_BANDWIDTH, BENCH_BANDWIDTH, &bandwidth, &bandwidth_answers});
}

/* Rank 1 waits until it has been read from often enough. */
static int run_gets(const struct turn_work *work, uint64_t iterations)
{
    if (turn_rank() == 1) {
        return link_wait(&gets, iterations);
    }
    for (uint64_t n = 0; n < iterations; n++) {
        int code = PtlGet(get_md, 0, work->size, self.peer, LINK_COUNTED, BENCH_GET, 0, NULL);
        if (!link_ok(code, "PtlGet") || link_wait(&replies, 1) != 0) {
            return -1;
        }
    }
    return 0;
}

static int open_entries(void)
{
    if (link_entry(LINK_COUNTED, BENCH_RATE, 0, &rate, NULL) != 0 ||
        link_entry(LINK_COUNTED, LINK_ANSWERS + BENCH_RATE, 0, &rate_answers, NULL) != 0 ||
        link_entry(LINK_COUNTED, BENCH_BANDWIDTH, 0, &bandwidth, NULL) != 0 ||
        link_entry(LINK_COUNTED, LINK_ANSWERS + BENCH_BANDWIDTH, 0, &bandwidth_answers, NULL) !=
            0 ||
        link_entry(LINK_COUNTED, BENCH_GET, PTL_ME_OP_GET, &gets, NULL) != 0 ||
        link_counter(&replies) != 0) {
        return -1;
    }
    ptl_md_t md = {.start = self.in,
                   .length = TURN_SIZE_MAX,
                   .options = PTL_MD_EVENT_CT_REPLY,
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = replies.ct};
    return link_ok(PtlMDBind(self.ni, &md, &get_md), "PtlMDBind") ? 0 : -1;
}

static int begin_one(const struct turn_work *work)
{
    return link_prepare(work, 1);
}

static unsigned messages(const struct turn_work *work)
{
    return work->bench == BENCH_RATE ? TURN_WINDOW_RATE : TURN_WINDOW_BANDWIDTH;
}

static int begin_window(const struct turn_work *work)
{
    return link_prepare(work, messages(work));
}

static int end_one(const struct turn_work *work, struct turn_result *result)
{
    return turn_rank() == 0 ? link_verify(work, 1) : 0;
}

static int end_window(const struct turn_work *work, struct turn_result *result)
{
    return turn_rank() == 1 ? link_verify(work, messages(work)) : 0;
}

static bool fits_buffers(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES &&
           messages(work) * link_stride(work->size) <= LINK_BUFFERS;
}

static const struct turn_duty duties[] = {
    {BENCH_GET, NULL, begin_one, run_gets, end_one},
    {BENCH_RATE, fits_buffers, begin_window, run_rate, end_window},
    {BENCH_BANDWIDTH, fits_buffers, begin_window, run_bandwidth, end_window},
};

const struct family family_stream = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
