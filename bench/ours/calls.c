/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a look at a counter and at an empty queue while nothing arrives. */
#include "link.h"

enum { CALLS = 64 };

static int counters(const struct turn_work *work, uint64_t iterations)
{
    static struct link_count count;
    ptl_ct_event_t value;
    if (turn_rank() != 0) {
        return 0;
    }
    if (count.ct == 0 && link_counter(&count) != 0) {
        return -1;
    }
    for (uint64_t i = 0; i < iterations * CALLS; i++) {
        if (PtlCTGet(count.ct, &value) != PTL_OK) {
            return turn_fail("PtlCTGet failed");
        }
    }
    return 0;
}

static int queues(const struct turn_work *work, uint64_t iterations)
{
    ptl_event_t event;
    for (uint64_t i = 0; turn_rank() == 0 && i < iterations * CALLS; i++) {
        if (PtlEQGet(self.eq, &event) != PTL_EQ_EMPTY) {
            return turn_fail("PtlEQGet found an event where none was");
        }
    }
    return 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_CTGET, .run = counters},
    {.bench = BENCH_EQGET, .run = queues},
};

const struct family family_calls = {NULL, duties, sizeof(duties) / sizeof(duties[0])};
