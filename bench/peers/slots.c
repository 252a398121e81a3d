/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a peer's messages; see slots.h. */
#include "slots.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, LINE = 64 };

static uint64_t slots_of(const struct turn_work *work)
{
    switch (work->bench) {
    case BENCH_RATE:
        return TURN_WINDOW_RATE;
    case BENCH_BANDWIDTH:
        return TURN_WINDOW_BANDWIDTH;
    default:
        return 1;
    }
}

static size_t stride_of(const struct turn_work *work)
{
    size_t unit = work->size < LINE ? sizeof(uint64_t) : LINE;
    return (work->size + unit - 1) / unit * unit;
}

int slots_new(struct slots *slots)
{
    *slots = (struct slots){.from = aligned_alloc(PAGE, SLOTS_SPACE),
                            .to = aligned_alloc(PAGE, SLOTS_SPACE)};
    if (slots->from == NULL || slots->to == NULL) {
        return turn_fail("no memory for messages: 2 times %zu bytes", SLOTS_SPACE);
    }
    return 0;
}

bool slots_fit(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size > 0 && work->size <= TURN_SIZE_MAX &&
           slots_of(work) * stride_of(work) <= SLOTS_SPACE;
}

/* Each message has a pattern of its own: by sender, size and slot. */
static uint64_t seed(const struct turn_work *work, int sender, uint64_t slot)
{
    return (work->size * 2 + (uint64_t)sender) * TURN_WINDOW_RATE + slot;
}

static bool receives(const struct turn_work *work, int rank)
{
    return work->bench == BENCH_LATENCY || rank == (work->bench == BENCH_GET ? 0 : 1);
}

int slots_begin(struct slots *slots, const struct turn_work *work)
{
    slots->stride = stride_of(work);
    size_t used = slots_of(work) * slots->stride;
    if (used > slots->touched) {
        memset(slots->from + slots->touched, 0, used - slots->touched);
        memset(slots->to + slots->touched, 0, used - slots->touched);
        slots->touched = used;
    }
    if (!work->check) {
        return 0;
    }
    for (uint64_t i = 0; i < slots_of(work); i++) {
        turn_fill(slots_from(slots, i), work->size, seed(work, turn_rank(), i));
    }
    memset(slots->to, 0, used);
    char nothing;
    return turn_exchange("", 0, &nothing, sizeof(nothing)) < 0 ? -1 : 0;
}

int slots_end(const struct slots *slots, const struct turn_work *work)
{
    if (!work->check || !receives(work, turn_rank())) {
        return 0;
    }
    for (uint64_t i = 0; i < slots_of(work); i++) {
        if (turn_check(slots_to(slots, i), work->size, seed(work, 1 - turn_rank(), i)) != 0) {
            return -1;
        }
    }
    return 0;
}
