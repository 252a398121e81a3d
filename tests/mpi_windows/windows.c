/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows as programs use them: kinds of windows, synchronisation, operations. */
#include "parts.h"

int rank, size;
long bad;

enum { WORDS = 64 };

/* ---- Synchronisation, on windows of both kinds ---- */

static void with_windows(void (*body)(MPI_Win, int *))
{
    int memory[WORDS] = {0}, *base;
    MPI_Win win;
    MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    body(win, memory);
    MPI_Win_free(&win);
    MPI_Win_allocate(sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    body(win, base);
    MPI_Win_free(&win);
}

static void fence_body(MPI_Win win, int *memory)
{
    int value = 100 + rank, got = -1;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(&value, 1, MPI_INT, next(), rank, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    BAD(memory[before()] != 100 + before(), "%d", memory[before()]);
    MPI_Get(&got, 1, MPI_INT, next(), rank, 1, MPI_INT, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    BAD(got != value, "%d", got);
    /* then a lock: no epoch is open */
    BAD(MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win) != MPI_SUCCESS, "lock");
    MPI_Win_unlock(next(), win);
}

static void part_fence(void)
{
    with_windows(fence_body);
}

static void locks_body(MPI_Win win, int *memory)
{
    enum { ROUNDS = 200 };
    int one = 1, seen;
    (void)memory;
    for (int i = 0; i < ROUNDS; i++) {
        /* not atomic: only an exclusive lock makes it right */
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&seen, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        seen++;
        MPI_Put(&seen, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Win_unlock(0, win);
        if (i % 10 == 0) {
            MPI_Win_lock_all(0, win);
            MPI_Accumulate(&one, 1, MPI_INT, i % size, 2, 1, MPI_INT, MPI_SUM, win);
            MPI_Win_flush_local_all(win);
            MPI_Win_unlock_all(win);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&seen, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    BAD(seen != ROUNDS * size, "%d of %d", seen, ROUNDS * size);
    int sum = 0;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int r = 0; r < size; r++) {
        MPI_Get(&seen, 1, MPI_INT, r, 2, 1, MPI_INT, win);
        MPI_Win_flush_all(win);
        sum += seen;
    }
    MPI_Win_unlock_all(win);
    BAD(sum != ROUNDS / 10 * size, "%d", sum);
}

static void part_locks(void)
{
    with_windows(locks_body);
}

static void pscw_body(MPI_Win win, int *memory)
{
    int of_next[] = {next()}, of_before[] = {before()}, flag;
    MPI_Group all, to, from;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, of_next, &to);
    MPI_Group_incl(all, 1, of_before, &from);
    for (int i = 1; i <= 100; i++) {
        int assert = i % 3 == 0 ? MPI_MODE_NOCHECK : 0;
        MPI_Win_post(from, assert, win);
        if (assert != 0) {
            MPI_Barrier(MPI_COMM_WORLD); /* that it was posted is known otherwise */
        }
        MPI_Win_start(to, assert, win);
        MPI_Put(&i, 1, MPI_INT, next(), 3, 1, MPI_INT, win);
        MPI_Win_complete(win);
        if (i % 2 == 0) {
            MPI_Win_wait(win);
        } else {
            do {
                MPI_Win_test(win, &flag);
            } while (!flag);
        }
        BAD(memory[3] != i, "%d, not %d", memory[3], i);
    }
    /* all to all, each in the post and in the start group, exposures ahead */
    MPI_Win_post(all, 0, win);
    MPI_Win_start(all, 0, win);
    for (int r = 0; r < size; r++) {
        int value = 7 + rank;
        MPI_Put(&value, 1, MPI_INT, r, 8 + rank, 1, MPI_INT, win);
    }
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    for (int r = 0; r < size; r++) {
        BAD(memory[8 + r] != 7 + r, "%d", memory[8 + r]);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

static void part_pscw(void)
{
    with_windows(pscw_body);
}

/* ---- Operations ---- */

static void part_atomics(void)
{
    int64_t *memory;
    MPI_Win win;
    MPI_Win_allocate(8 * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    MPI_Win_lock_all(0, win);
    int64_t one = 1, old, tickets = 0;
    for (int i = 0; i < 100; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        tickets += old;
        MPI_Accumulate(&one, 1, MPI_INT64_T, next(), 1, 1, MPI_INT64_T, MPI_SUM, win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, rank, 1, 1, MPI_INT64_T, MPI_SUM, win); /* oneself */
        int64_t expected = 0, mine = rank + 1;
        do { /* a lock of one's own */
            MPI_Compare_and_swap(&mine, &expected, &old, MPI_INT64_T, 0, 2, win);
            MPI_Win_flush(0, win);
        } while (old != 0);
        MPI_Get(&old, 1, MPI_INT64_T, 0, 3, 1, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        old++;
        MPI_Put(&old, 1, MPI_INT64_T, 0, 3, 1, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        old = 0;
        MPI_Accumulate(&old, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, MPI_REPLACE, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    int64_t all = 0, n = 100 * size;
    MPI_Allreduce(&tickets, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    BAD(all != n * (n - 1) / 2, "tickets %lld", (long long)all);
    BAD(memory[1] != 200, "%lld", (long long)memory[1]);
    BAD(rank == 0 && memory[3] != n, "%lld", (long long)memory[3]);
    MPI_Win_free(&win);
}

/* A pair's operations, by handlers. */
static void part_pairs(void)
{
    struct {
        double value;
        int index;
    } * memory, mine = {1.0 + (rank * 7) % size, rank}, old = {0, 0};
    MPI_Win win;
    MPI_Win_allocate(2 * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
    MPI_Win_fence(0, win);
    if (rank == 0) {
        double most = 0;
        for (int r = 0; r < size; r++) {
            most = 1.0 + (r * 7) % size > most ? 1.0 + (r * 7) % size : most;
        }
        BAD(memory[0].value != most, "%g", memory[0].value);
    }
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &old, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT,
                       MPI_NO_OP, win);
    MPI_Win_fence(0, win);
    BAD(old.value == 0, "read nothing");
    MPI_Win_free(&win);
}

/* A column into a row, a subarray, negative lower bounds. */
static void part_types(void)
{
    enum { N = 8 };
    int *memory, mine[N][N], got[N][N];
    MPI_Win win;
    MPI_Datatype column, cell, block, backward;
    int sizes[] = {N, N}, part[] = {3, 2}, from[] = {2, 5};
    MPI_Win_allocate(sizeof(mine), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < N * N; i++) {
        (&mine[0][0])[i] = 1000 * rank + i;
    }
    MPI_Type_vector(N, 1, N, MPI_INT, &cell);
    MPI_Type_create_resized(cell, 0, sizeof(int), &column);
    MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &block);
    MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){0, -(MPI_Aint)sizeof(int)}, MPI_INT,
                                   &backward);
    MPI_Type_commit(&column);
    MPI_Type_commit(&block);
    MPI_Type_commit(&backward);
    MPI_Type_free(&cell);
    MPI_Win_fence(0, win);
    MPI_Put(mine, N, column, next(), 0, N * N, MPI_INT, win); /* a transposition */
    MPI_Win_fence(0, win);
    for (int i = 0; i < N * N; i++) {
        BAD(memory[i] != 1000 * before() + i % N * N + i / N, "%d: %d", i, memory[i]);
    }
    memset(got, 0, sizeof(got));
    MPI_Get(got, 1, block, next(), 0, 1, block, win);
    MPI_Type_free(&block); /* right after the call */
    MPI_Win_fence(0, win);
    for (int i = 0; i < N * N; i++) {
        int in = i / N >= 2 && i / N < 5 && i % N >= 5 && i % N < 7;
        BAD((&got[0][0])[i] != (in ? 1000 * rank + i % N * N + i / N : 0), "%d", i);
    }
    int two[] = {11, 12}, ones[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    MPI_Put(two, 2, MPI_INT, next(), 1, 1, backward, win);
    MPI_Win_fence(0, win);
    BAD(memory[1] != 11 || memory[0] != 12, "%d %d", memory[0], memory[1]);
    MPI_Accumulate(ones, N, MPI_INT, next(), 3, 1, column, MPI_SUM, win);
    MPI_Type_free(&column);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++) {
        int was = 1000 * before() + 3 * N + i;
        BAD(memory[i * N + 3] != was + 1, "%d", memory[i * N + 3]);
    }
    MPI_Type_free(&backward);
    MPI_Win_free(&win);
}

static void part_requests(void)
{
    int *memory, value = rank + 5, got = -1, index, from = -1, old = -1, one = 1;
    MPI_Win win;
    MPI_Request r[4];
    MPI_Status status;
    MPI_Win_allocate(WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    MPI_Win_lock_all(0, win);
    MPI_Rput(&value, 1, MPI_INT, next(), rank, 1, MPI_INT, win, &r[0]);
    MPI_Wait(&r[0], &status);
    MPI_Win_flush(next(), win);
    MPI_Rget(&got, 1, MPI_INT, next(), rank, 1, MPI_INT, win, &r[0]);
    MPI_Irecv(&from, 1, MPI_INT, before(), 1, MPI_COMM_WORLD, &r[1]);
    MPI_Rget_accumulate(&one, 1, MPI_INT, &old, 1, MPI_INT, next(), 40, 1, MPI_INT, MPI_SUM, win,
                        &r[2]);
    MPI_Raccumulate(&one, 1, MPI_INT, MPI_PROC_NULL, 40, 1, MPI_INT, MPI_SUM, win, &r[3]);
    int ended = 0;
    for (int i = 0; i < 4;
         i++) { /* ours, and a receive that is answered when one of them is over */
        index = MPI_UNDEFINED;
        MPI_Waitany(4, r, &index, &status);
        ended |= index >= 0 && index < 4 ? 1 << index : 0;
        if (i == 0) {
            MPI_Send(&value, 1, MPI_INT, next(), 1, MPI_COMM_WORLD);
        }
    }
    BAD(ended != 15, "%d", ended);
    BAD(got != value, "%d", got);
    BAD(old != 0, "%d", old);
    BAD(from != before() + 5, "%d", from);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void part_dynamic(void)
{
    int memory[16] = {0}, more[16] = {0}, value = 3 + rank, got = 0;
    MPI_Win win;
    MPI_Aint mine, theirs, to;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int round = 0; round < 3; round++) { /* attached, detached and attached again */
        int *is = round == 1 ? more : memory;
        MPI_Win_attach(win, is, sizeof(memory));
        MPI_Get_address(is, &mine);
        MPI_Sendrecv(&mine, 1, MPI_AINT, before(), 0, &theirs, 1, MPI_AINT, next(), 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        to = MPI_Aint_add(theirs, 2 * sizeof(int));
        MPI_Win_lock_all(0, win);
        value = 3 + rank + 10 * round;
        MPI_Put(&value, 1, MPI_INT, next(), to, 1, MPI_INT, win);
        MPI_Win_flush(next(), win);
        MPI_Get(&got, 1, MPI_INT, next(), to, 1, MPI_INT, win);
        MPI_Win_unlock_all(win);
        BAD(got != value, "%d", got);
        MPI_Barrier(MPI_COMM_WORLD);
        BAD(is[2] != 3 + before() + 10 * round, "%d", is[2]);
        MPI_Win_detach(win, is);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win);
    int rc = MPI_Put(&value, 1, MPI_INT, next(), to, 1, MPI_INT, win);
    BAD(class_of(rc) != MPI_ERR_RMA_RANGE, "put to memory that is detached: %d", rc);
    MPI_Win_unlock(next(), win);
    MPI_Barrier(MPI_COMM_WORLD);
    BAD(class_of(MPI_Win_detach(win, memory)) == MPI_SUCCESS, "detached twice");
    MPI_Win_attach(win, memory, 32);
    MPI_Win_attach(win, memory + 8, 32); /* beside it: one operation may reach into both */
    int across[4] = {1, 2, 3, 4};
    MPI_Get_address(&memory[6], &mine);
    MPI_Sendrecv(&mine, 1, MPI_AINT, before(), 0, &theirs, 1, MPI_AINT, next(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, win);
    MPI_Put(across, 4, MPI_INT, next(), theirs, 4, MPI_INT, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    BAD(memory[7] != 2 || memory[8] != 3, "%d %d", memory[7], memory[8]);
    MPI_Win_detach(win, memory + 8);
    BAD(class_of(MPI_Win_attach(win, memory + 4, 32)) != MPI_ERR_RMA_ATTACH, "overlap");
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}

static void part_shared(void)
{
    int *mine, *theirs, unit, value = 40 + rank;
    MPI_Win win;
    MPI_Aint bytes;
    MPI_Info info;
    for (int noncontiguous = 0; noncontiguous < 2; noncontiguous++) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", noncontiguous ? "true" : "false");
        MPI_Win_allocate_shared(rank == 1 ? 0 : 4 * sizeof(int), sizeof(int), info, MPI_COMM_WORLD,
                                &mine, &win);
        MPI_Info_free(&info);
        MPI_Win_shared_query(win, next(), &bytes, &unit, &theirs);
        BAD(bytes != (next() == 1 ? 0 : 4 * (MPI_Aint)sizeof(int)) || unit != sizeof(int), "%d",
            (int)bytes);
        MPI_Win_lock_all(0, win);
        if (bytes > 0) {
            theirs[1] = value;
            MPI_Put(&value, 1, MPI_INT, next(), 2, 1, MPI_INT, win);
        }
        MPI_Win_flush_all(win);
        MPI_Win_sync(win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(win);
        if (rank != 1) {
            BAD(mine[1] != 40 + before() || mine[2] != 40 + before(), "%d %d", mine[1], mine[2]);
        }
        MPI_Win_unlock_all(win);
        MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs);
        BAD(bytes != 4 * (MPI_Aint)sizeof(int), "%d", (int)bytes);
        MPI_Win_free(&win);
    }
}

static const struct part parts[] = {
    {"fence", part_fence},       {"locks", part_locks},     {"pscw", part_pscw},
    {"atomics", part_atomics},   {"pairs", part_pairs},     {"types", part_types},
    {"requests", part_requests}, {"dynamic", part_dynamic}, {"shared", part_shared},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int status = parts_run(parts, sizeof(parts) / sizeof(parts[0]), argc, argv);
    MPI_Finalize();
    return status;
}
