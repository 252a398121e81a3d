/* SPDX-License-Identifier: BSD-3-Clause */
/* memcpy by one core, between the rotating buffers that messages go between. */
#include "limits.h"

#include <stdlib.h>
#include <string.h>

static struct {
    uint8_t *from[TURN_WINDOW_BANDWIDTH], *to[TURN_WINDOW_BANDWIDTH];
    uint64_t size;
} buffers;

static int begin(const struct turn_work *work)
{
    if (buffers.size == work->size) {
        return 0;
    }
    buffers.size = work->size;
    for (int i = 0; i < TURN_WINDOW_BANDWIDTH; i++) {
        free(buffers.from[i]);
        free(buffers.to[i]);
        buffers.from[i] = malloc(work->size);
        buffers.to[i] = malloc(work->size);
        if (buffers.from[i] == NULL || buffers.to[i] == NULL) {
            return turn_fail("no memory for buffers of %lu bytes", (unsigned long)work->size);
        }
        turn_fill(buffers.from[i], work->size, (uint64_t)i);
    }
    return 0;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    if (turn_rank() != 0) {
        return 0;
    }
    for (uint64_t n = 0; n < iterations; n++) {
        for (int i = 0; i < TURN_WINDOW_BANDWIDTH; i++) {
            memcpy(buffers.to[i], buffers.from[i], work->size);
            __asm__ volatile("" ::: "memory"); /* every copy is wanted */
        }
    }
    return 0;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    for (int i = 0; work->check && turn_rank() == 0 && i < TURN_WINDOW_BANDWIDTH; i++) {
        if (turn_check(buffers.to[i], work->size, (uint64_t)i) != 0) {
            return -1;
        }
    }
    return 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_BANDWIDTH, .begin = begin, .run = run, .end = end},
};

const struct limit limit_memcpy = {"memcpy", NULL, duties, 1};
