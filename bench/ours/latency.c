/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong by puts, received in all the ways that Portals offers. The sender's MD
 * has no events and asks for no ack, as a message library would send small
 * messages; the next message is sent when the last has been answered.
 */
#include "empty.h"
#include "link.h"

enum { AHEAD = 16 /* triggered answers that are set up before their pings */ };

static struct link_count counted, triggered, handled;

/* ---- Ways to receive ---- */

static inline int take_counted(void)
{
    return link_wait(&counted, 1);
}

static inline int take_handled(void)
{
    return link_wait(&handled, 1);
}

static inline int take_event(int code, const ptl_event_t *event, const char *call)
{
    if (code == PTL_OK && event->type == PTL_EVENT_PUT && event->ni_fail_type == PTL_NI_OK) {
        return 0;
    }
    return link_ok(code, call) ? turn_fail("%s: an event of type %d, failure %d", call,
                                           (int)event->type, (int)event->ni_fail_type)
                               : -1;
}

static inline int take_polled(void)
{
    ptl_event_t event;
    int code;
    do {
        code = PtlEQGet(self.eq, &event);
    } while (code == PTL_EQ_EMPTY);
    return take_event(code, &event, "PtlEQGet");
}

static inline int take_awaited(void)
{
    ptl_event_t event;
    int code = PtlEQWait(self.eq, &event);
    return take_event(code, &event, "PtlEQWait");
}

/* ---- The ping-pong ---- */

static inline __attribute__((always_inline)) int trips(const struct turn_work *work,
                                                       uint64_t iterations, unsigned index,
                                                       ptl_match_bits_t bits, int (*take)(void))
{
    int rank = turn_rank();
    for (uint64_t i = 0; i < iterations; i++) {
        if (rank == 0 && !link_ok(link_put(work->size, 0, index, bits), "PtlPut")) {
            return -1;
        }
        if (take() != 0) {
            return -1;
        }
        if (rank == 1 && !link_ok(link_put(work->size, 0, index, bits), "PtlPut")) {
            return -1;
        }
    }
    return 0;
}

static int by_counter(const struct turn_work *work, uint64_t iterations)
{
    return trips(work, iterations, LINK_COUNTED, BENCH_LATENCY, take_counted);
}

static int by_handler(const struct turn_work *work, uint64_t iterations)
{
    return trips(work, iterations, LINK_COUNTED, BENCH_LATENCY_HANDLER, take_handled);
}

static int by_polling(const struct turn_work *work, uint64_t iterations)
{
    return trips(work, iterations, LINK_EVENTS, BENCH_LATENCY_EQGET, take_polled);
}

static int by_waiting(const struct turn_work *work, uint64_t iterations)
{
    return trips(work, iterations, LINK_EVENTS, BENCH_LATENCY_EQGET, take_awaited);
}

/* Rank 1 has its answers set up ahead; they leave when the pings are counted. */
static int answer_ahead(const struct turn_work *work, uint64_t iterations)
{
    ptl_size_t base = triggered.expected;
    for (uint64_t armed = 0, seen = 0; seen < iterations; seen++) {
        for (; armed < iterations && armed < seen + AHEAD; armed++) {
            int code = PtlTriggeredPut(self.md, 0, work->size, PTL_NO_ACK_REQ, self.peer,
                                       LINK_COUNTED, BENCH_LATENCY_TRIGGERED, 0, NULL, 0,
                                       triggered.ct, base + armed + 1);
            if (!link_ok(code, "PtlTriggeredPut")) {
                return -1;
            }
        }
        if (link_wait(&triggered, 1) != 0) {
            return -1;
        }
    }
    return 0;
}

static int by_trigger(const struct turn_work *work, uint64_t iterations)
{
    if (turn_rank() == 1) {
        return answer_ahead(work, iterations);
    }
    for (uint64_t i = 0; i < iterations; i++) {
        if (!link_ok(link_put(work->size, 0, LINK_COUNTED, BENCH_LATENCY_TRIGGERED), "PtlPut") ||
            link_wait(&triggered, 1) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- Family ---- */

static int open_entries(void)
{
    const ptl_handlers_t handlers = {
        .header_handler = empty_header, .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = 64};
    return link_entry(LINK_COUNTED, BENCH_LATENCY, 0, &counted, NULL) != 0 ||
                   link_entry(LINK_COUNTED, BENCH_LATENCY_TRIGGERED, 0, &triggered, NULL) != 0 ||
                   link_entry(LINK_COUNTED, BENCH_LATENCY_HANDLER, 0, &handled, &handlers) != 0 ||
                   link_entry(LINK_EVENTS, BENCH_LATENCY_EQGET, 0, NULL, NULL) != 0
               ? -1
               : 0;
}

static bool any_cores(const struct turn_work *work)
{
    return work->size <= TURN_SIZE_MAX;
}

static int begin(const struct turn_work *work)
{
    return link_prepare(work, 1);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return link_verify(work, 1);
}

static const struct turn_duty duties[] = {
    {BENCH_LATENCY, any_cores, begin, by_counter, end},
    {BENCH_LATENCY_EQGET, NULL, begin, by_polling, end},
    {BENCH_LATENCY_EQWAIT, any_cores, begin, by_waiting, end},
    {BENCH_LATENCY_TRIGGERED, NULL, begin, by_trigger, end},
    {BENCH_LATENCY_HANDLER, NULL, begin, by_handler, end},
};

const struct family family_latency = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
