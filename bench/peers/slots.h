/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a peer's messages: private, from malloc's relatives, touched before
 * it is used, page-aligned at its start as most benchmarks' is.
 *
 *   from  | slot 0 | slot 1 | ... | slot 63 |      what this rank sends or exposes
 *   to    | slot 0 | slot 1 | ... | slot 63 |      where messages for it land
 *
 * Message i of an iteration goes from slot i of its sender to slot i of its receiver.
 * Slots follow each other without gaps but for alignment: to 8 bytes for messages
 * of less than a cache line, to a line for the rest.
 *
 * When a turn is checked, slots_begin() fills what a rank sends with a pattern of
 * its own and clears what it receives; slots_end() compares.
 */
#ifndef BENCH_PEERS_SLOTS_H
#define BENCH_PEERS_SLOTS_H

#include "harness/turn.h"

#define SLOTS_SPACE ((size_t)TURN_WINDOW_BANDWIDTH * TURN_SIZE_MAX) /* bytes of `from`, of `to` */

struct slots {
    char *from, *to;
    size_t stride;  /* from one slot to the next; of the turn under way */
    size_t touched; /* so many bytes of both have been written once */
};

/* slots_new() allocates `from` and `to`: 0, or -1 after turn_fail(). */
int slots_new(struct slots *slots);

/* slots_fit() tells whether the messages of one iteration fit, on two cores. */
bool slots_fit(const struct turn_work *work);

/* slots_begin() prepares memory for a turn and, if it is checked, waits until the
 * other rank has done so too. */
int slots_begin(struct slots *slots, const struct turn_work *work);

/* slots_end() compares what this rank has received, if the turn is checked. */
int slots_end(const struct slots *slots, const struct turn_work *work);

static inline char *slots_from(const struct slots *slots, uint64_t i)
{
    return slots->from + i * slots->stride;
}

static inline char *slots_to(const struct slots *slots, uint64_t i)
{
    return slots->to + i * slots->stride;
}

#endif
