/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The raw two-line ping-pong: each side spins on a cache line that only the other
 * writes, as in a pair of single-producer mailboxes. It is the least that a message
 * between two cores costs: the limit `raw`, and the bracket of every turn.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stdbool.h>
#include <stdint.h>

/* pingpong_raw() makes `trips` round trips numbered from *number on; the side that
 * is `first` begins. Both sides keep *number. */
static inline void pingpong_raw(volatile uint64_t *to, volatile uint64_t *from, bool first,
                                uint64_t trips, uint64_t *number)
{
    for (uint64_t i = 0; i < trips; i++) {
        uint64_t n = ++*number;
        if (first) {
            *to = n;
        }
        while (*from != n) {
        }
        if (!first) {
            *to = n;
        }
    }
}

#endif
