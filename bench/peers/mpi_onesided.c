/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided communication of peer_mpi; see mpi_onesided.h. */
#include "mpi_onesided.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_OVER = 3, FETCHED = 0, SWAPPED = 8, ADDED = 16, WORDS = 64 /* bytes */ };

static struct slots *memory;
static MPI_Win reads, writes, words;
static char *word_memory; /* of `words`, here */

static void make(bool allocated, size_t length, char **at, MPI_Win *window)
{
    if (allocated) {
        MPI_Win_allocate((MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, at, window);
    } else {
        MPI_Win_create(*at, (MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, window);
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, *window);
}

void onesided_open(struct slots *slots, bool allocated)
{
    static _Alignas(64) char own[WORDS];
    memory = slots;
    word_memory = own;
    if (allocated) {
        free(slots->from);
        free(slots->to);
    }
    make(allocated, SLOTS_SPACE, &slots->from, &reads);
    make(allocated, SLOTS_SPACE, &slots->to, &writes);
    make(allocated, WORDS, &word_memory, &words);
    for (int i = 0; i < WORDS; i++) {
        word_memory[i] = 0;
    }
    MPI_Win_sync(words);
    MPI_Barrier(MPI_COMM_WORLD);
}

void onesided_close(void)
{
    MPI_Win *const all[] = {&reads, &writes, &words};
    for (int i = 0; i < 3; i++) {
        MPI_Win_unlock_all(*all[i]);
        MPI_Win_free(all[i]);
    }
}

/* Rank 1 waits inside MPI, which is the progress that some one-sided paths need. */
static int stand_by(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}

static int say_over(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_OVER, MPI_COMM_WORLD);
    return 0;
}

/* ---- Reads and writes ---- */

int onesided_get(const struct turn_work *work, uint64_t iterations)
{
    int size = (int)work->size;
    if (turn_rank() == 1) {
        return stand_by();
    }
    for (uint64_t i = 0; i < iterations; i++) {
        MPI_Get(memory->to, size, MPI_BYTE, 1, 0, size, MPI_BYTE, reads);
        MPI_Win_flush(1, reads);
    }
    return say_over();
}

int onesided_put(const struct turn_work *work, uint64_t iterations)
{
    int size = (int)work->size;
    if (turn_rank() == 1) {
        int rc = stand_by();
        MPI_Win_sync(writes);
        return rc;
    }
    for (uint64_t i = 0; i < iterations; i++) {
        MPI_Put(memory->from, size, MPI_BYTE, 1, 0, size, MPI_BYTE, writes);
        MPI_Win_flush(1, writes);
    }
    return say_over();
}

bool onesided_doubles(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size > 0 && work->size <= TURN_SIZE_MAX &&
           work->size % sizeof(double) == 0;
}

static uint64_t accumulated; /* of this turn */

static double addend(uint64_t i)
{
    return (double)(i % 16);
}

int onesided_accumulate_begin(const struct turn_work *work)
{
    double *from = (double *)(void *)memory->from;
    char nothing;
    for (uint64_t i = 0; i < work->size / sizeof(*from); i++) {
        from[i] = addend(i);
    }
    memset(memory->to, 0, work->size);
    MPI_Win_sync(writes);
    accumulated = 0;
    return turn_exchange("", 0, &nothing, sizeof(nothing)) < 0 ? -1 : 0;
}

int onesided_accumulate(const struct turn_work *work, uint64_t iterations)
{
    int count = (int)(work->size / sizeof(double));
    accumulated += iterations;
    if (turn_rank() == 1) {
        return stand_by();
    }
    for (uint64_t i = 0; i < iterations; i++) {
        MPI_Accumulate(memory->from, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, MPI_SUM, writes);
        MPI_Win_flush(1, writes);
    }
    return say_over();
}

int onesided_accumulate_end(const struct turn_work *work, struct turn_result *result)
{
    const double *to = (const double *)(void *)memory->to;
    MPI_Win_sync(writes);
    for (uint64_t i = 0; turn_rank() == 1 && i < work->size / sizeof(*to); i++) {
        if (to[i] != addend(i) * (double)accumulated) {
            return turn_fail("MPI_Accumulate's target has %g at %lu", to[i], (unsigned long)i);
        }
    }
    return 0;
}

/* ---- Atomics ---- */

bool onesided_word(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size == 8;
}

static int unlike(const char *call, int64_t found, int64_t expected)
{
    return turn_fail("%s found %ld where %ld was", call, (long)found, (long)expected);
}

int onesided_fetch_add(const struct turn_work *work, uint64_t iterations)
{
    static int64_t expected;
    const int64_t one = 1;
    if (turn_rank() == 1) {
        return stand_by();
    }
    for (uint64_t i = 0; i < iterations; i++, expected++) {
        int64_t old = -1;
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, FETCHED, MPI_SUM, words);
        MPI_Win_flush(1, words);
        if (old != expected) {
            say_over();
            return unlike("MPI_Fetch_and_op", old, expected);
        }
    }
    return say_over();
}

int onesided_swap_if(const struct turn_work *work, uint64_t iterations)
{
    static int64_t expected;
    if (turn_rank() == 1) {
        return stand_by();
    }
    for (uint64_t i = 0; i < iterations; i++, expected++) {
        int64_t old = -1, next = expected + 1;
        MPI_Compare_and_swap(&next, &expected, &old, MPI_INT64_T, 1, SWAPPED, words);
        MPI_Win_flush(1, words);
        if (old != expected) {
            say_over();
            return unlike("MPI_Compare_and_swap", old, expected);
        }
    }
    return say_over();
}

static int64_t added; /* so far, by rank 0 */

int onesided_add(const struct turn_work *work, uint64_t iterations)
{
    const int64_t one = 1;
    added += (int64_t)iterations;
    if (turn_rank() == 1) {
        return stand_by();
    }
    for (uint64_t i = 0; i < iterations; i++) {
        MPI_Accumulate(&one, 1, MPI_INT64_T, 1, ADDED, 1, MPI_INT64_T, MPI_SUM, words);
        MPI_Win_flush(1, words);
    }
    return say_over();
}

int onesided_added(const struct turn_work *work, struct turn_result *result)
{
    MPI_Win_sync(words);
    int64_t seen = *(volatile int64_t *)(void *)(word_memory + ADDED);
    return turn_rank() == 0 || seen == added ? 0 : unlike("MPI_Accumulate's target", seen, added);
}
