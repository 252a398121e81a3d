/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random epochs against a sequential model. All ranks draw the same numbers, so each knows what all
 * of them do, and what each word of each window must be after each epoch.
 *
 *      random [ROUNDS [SEED]]
 *
 * A window has a part for each kind of operation: in one, whose words belong to one origin each,
 * puts; in others sums of integers of 8 and 4 bytes and of reals, and largest pairs, by anybody,
 * whose order does not matter; gets read a part that nobody changes in the epoch.
 */
#include "../splitmix.h"
#include "parts.h"

int rank, size;
long bad;

enum { WORDS = 96, PART = 24, MOST = 8, OPS = 12 };
/* in words: puts, then what sums are in; what gets read is put's, of an epoch without puts there */
enum { PUTS = 0, SUMS64 = PART, SUMS32 = 2 * PART, PAIRS = 3 * PART };

struct pair {
    double value;
    int index;
};

union words {
    int64_t whole[WORDS];
    int32_t half[2 * WORDS];
    struct pair pairs[WORDS / 2];
};

static union words model[64];
static uint64_t numbers;

static int below(int bound)
{
    return (int)splitmix_below(&numbers, (uint64_t)bound);
}

/* ---- One operation, by one rank; all ranks change the model ---- */

static int64_t sources[OPS][MOST], results[OPS][MOST], expected[OPS][MOST];
static struct pair pair_source[OPS];
static int got[OPS];

/* `count` words of the putter's own, 1 or 2 apart. */
static void put(MPI_Win win, int op, int origin, int target)
{
    int apart = 1 + below(2), count = 1 + below(MOST), per = PART / size;
    MPI_Datatype type;
    count = count * apart > per ? per / apart : count;
    for (int i = 0; i < count; i++) {
        int64_t value = (int64_t)below(1 << 30) << 8 | op;
        model[target].whole[PUTS + origin * per + i * apart] = value;
        sources[op][i] = origin == rank ? value : sources[op][i];
    }
    if (origin != rank || count == 0) {
        return;
    }
    MPI_Type_vector(count, 1, apart, MPI_INT64_T, &type);
    MPI_Type_commit(&type);
    MPI_Put(sources[op], count, MPI_INT64_T, target, PUTS + origin * per, 1, type, win);
    MPI_Type_free(&type);
}

static void get(MPI_Win win, int op, int origin, int target)
{
    int count = 1 + below(MOST), at = PUTS + below(PART - MOST);
    if (origin != rank) {
        return;
    }
    memcpy(expected[op], &model[target].whole[at], (size_t)count * sizeof(int64_t));
    got[op] = count;
    MPI_Get(results[op], count, MPI_INT64_T, target, at, count, MPI_INT64_T, win);
}

static void sum(MPI_Win win, int op, int origin, int target)
{
    int wide = below(2), count = 1 + below(MOST), at = below(PART - MOST), by = below(3);
    for (int i = 0; i < count; i++) {
        int value = below(1000);
        if (wide) {
            model[target].whole[SUMS64 + at + i] += value;
            sources[op][i] = origin == rank ? value : sources[op][i];
        } else {
            model[target].half[2 * SUMS32 + at + i] += value;
            ((int32_t *)sources[op])[i] = origin == rank ? value : ((int32_t *)sources[op])[i];
        }
    }
    if (origin != rank) {
        return;
    }
    MPI_Datatype type = wide ? MPI_INT64_T : MPI_INT32_T;
    MPI_Aint disp = wide ? SUMS64 + at : 0;
    MPI_Datatype there = type;
    int there_count = count;
    if (!wide) { /* displacements are whole words: the type has the rest */
        MPI_Type_create_indexed_block(1, count, (int[]){2 * SUMS32 + at}, type, &there);
        MPI_Type_commit(&there);
        there_count = 1;
    }
    if (by == 0) {
        MPI_Get_accumulate(sources[op], count, type, results[op], count, type, target, disp,
                           there_count, there, MPI_SUM, win);
    } else {
        MPI_Accumulate(sources[op], count, type, target, disp, there_count, there, MPI_SUM, win);
    }
    if (!wide) {
        MPI_Type_free(&there);
    }
}

static void most(MPI_Win win, int op, int origin, int target)
{
    int at = PAIRS / 2 + below(PART / 2);
    struct pair is = {below(1000), below(1000)}, *old = &model[target].pairs[at];
    if (is.value > old->value || (is.value == old->value && is.index < old->index)) {
        old->value = is.value;
        old->index = is.index;
    }
    if (origin == rank) {
        pair_source[op] = is;
        MPI_Accumulate(&pair_source[op], 1, MPI_DOUBLE_INT, target, 2 * at, 1, MPI_DOUBLE_INT,
                       MPI_MAXLOC, win);
    }
}

static void operations(MPI_Win win)
{
    int reads = below(2), count = 1 + below(OPS);
    memset(got, 0, sizeof(got));
    for (int op = 0; op < count; op++) {
        int origin = below(size), target = below(size);
        switch (below(4)) {
        case 0:
            (reads ? get : put)(win, op, origin, target);
            break;
        case 1:
            most(win, op, origin, target);
            break;
        default:
            sum(win, op, origin, target);
        }
    }
}

/* ---- Epochs ---- */

static void epoch(MPI_Win win, MPI_Group all)
{
    switch (below(4)) {
    case 0:
        MPI_Win_fence(0, win);
        operations(win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        break;
    case 1:
        MPI_Win_post(all, 0, win);
        MPI_Win_start(all, 0, win);
        operations(win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        break;
    case 2:
        MPI_Win_lock_all(0, win);
        operations(win);
        MPI_Win_flush_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_unlock_all(win);
        break;
    default:
        for (int r = 0; r < size; r++) {
            MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win);
        }
        operations(win);
        for (int r = 0; r < size; r++) {
            MPI_Win_unlock(r, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void check(const union words *memory, int round)
{
    for (int i = 0; i < PAIRS; i++) {
        BAD(memory->whole[i] != model[rank].whole[i], "round %d: word %d is %lld, not %lld", round,
            i, (long long)memory->whole[i], (long long)model[rank].whole[i]);
    }
    for (int i = PAIRS / 2; i < WORDS / 2; i++) {
        const struct pair *is = &memory->pairs[i], *must = &model[rank].pairs[i];
        BAD(is->value != must->value || is->index != must->index,
            "round %d: pair %d is %g, %d, not %g, %d", round, i, is->value, is->index, must->value,
            must->index);
    }
    for (int op = 0; op < OPS; op++) {
        BAD(got[op] > 0 && memcmp(results[op], expected[op], (size_t)got[op] * 8) != 0,
            "round %d: operation %d got something else", round, op);
    }
}

int main(int argc, char **argv)
{
    static union words own;
    union words *allocated;
    MPI_Win win[2];
    MPI_Group all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    numbers = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
    MPI_Win_create(&own, sizeof(own), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win[0]);
    MPI_Win_allocate(sizeof(own), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win[1]);
    MPI_Win_get_group(win[0], &all);
    for (int kind = 0; kind < 2 && bad == 0; kind++) {
        memset(model, 0, sizeof(model));
        for (int round = 0; round < rounds && bad == 0; round++) {
            epoch(win[kind], all);
            MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win[kind]);
            check(kind == 0 ? &own : allocated, round);
            MPI_Win_unlock(rank, win[kind]);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    MPI_Group_free(&all);
    MPI_Win_free(&win[0]);
    MPI_Win_free(&win[1]);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
