/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication: put and get in every kind of epoch, windows of every
 * kind that can be remote, derived types, sizes to 4 MiB. Accumulates are in
 * accumulate.c. Any number of processes from 2.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int right(void)
{
    return (world_rank + 1) % world_size;
}

static int left(void)
{
    return (world_rank + world_size - 1) % world_size;
}

/* How a window came to be. */
static MPI_Win make_window(size_t bytes, int unit, char **memory)
{
    MPI_Win window;
    *memory = check_alloc(bytes);
    unfill(*memory, bytes);
    MPI_Win_create(*memory, (MPI_Aint)bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    return window;
}

static void free_window(MPI_Win *window, char *memory, const char *what)
{
    MPI_Win_free(window);
    check_free(memory, what);
}

/* Everybody puts to the right, then gets from the left what was put there. */
static void fence(void)
{
    char *memory, *out = check_alloc(LARGEST), *in = check_alloc(LARGEST);
    MPI_Win window = make_window(LARGEST + 8, 1, &memory);
    for (int i = 0; all_sizes[i] != SIZE_MAX; i++) {
        int n = (int)all_sizes[i], at = i % 8;
        fill(out, (size_t)n, (uint64_t)(world_rank * 1000 + i));
        unfill(in, (size_t)n);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
        MPI_Put(out, n, MPI_BYTE, right(), at, n, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        filled(memory + at, (size_t)n, (uint64_t)(left() * 1000 + i), "fence, put");
        MPI_Get(in, n, MPI_BYTE, right(), at, n, MPI_BYTE, window);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
        filled(in, (size_t)n, (uint64_t)(world_rank * 1000 + i), "fence, get");
    }
    free_window(&window, memory, "fence, window");
    check_free(out, "fence, put");
    check_free(in, "fence, get");
}

/* Each process opens its window to its left neighbour and writes to its right. */
static void pscw(void)
{
    char *memory, *out = check_alloc(LARGEST);
    MPI_Win window = make_window(LARGEST, 1, &memory);
    MPI_Group world, to, from;
    int r = right(), l = left();
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &r, &to);
    MPI_Group_incl(world, 1, &l, &from);
    for (int i = 0; all_sizes[i] != SIZE_MAX; i++) {
        int n = (int)all_sizes[i];
        fill(out, (size_t)n, (uint64_t)(world_rank * 1000 + i));
        MPI_Win_post(from, 0, window);
        MPI_Win_start(to, 0, window);
        MPI_Put(out, n, MPI_BYTE, r, 0, n, MPI_BYTE, window);
        MPI_Win_complete(window);
        if (i % 2) {
            MPI_Win_wait(window);
        } else {
            for (int flag = 0; !flag;)
                MPI_Win_test(window, &flag);
        }
        filled(memory, (size_t)n, (uint64_t)(l * 1000 + i), "pscw");
    }
    MPI_Group_free(&world);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    free_window(&window, memory, "pscw, window");
    check_free(out, "pscw");
}

/* A counter that all increment under an exclusive lock: no increment may be lost. */
static void lock(void)
{
    enum { TIMES = 200 };
    char *memory;
    MPI_Win window = make_window(2 * sizeof(long), sizeof(long), &memory);
    long *cell = (long *)(void *)memory;
    memset(cell, 0, 2 * sizeof(long));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TIMES; i++) {
        int target = i % world_size;
        long value[2];
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
        MPI_Get(value, 2, MPI_LONG, target, 0, 2, MPI_LONG, window);
        MPI_Win_flush(target, window);
        expect(value[1] == -value[0], "lock: found %ld and %ld, the lock did not hold", value[0],
               value[1]);
        value[0]++;
        value[1]--;
        MPI_Put(value, 1, MPI_LONG, target, 0, 1, MPI_LONG, window);
        MPI_Put(value + 1, 1, MPI_LONG, target, 1, 1, MPI_LONG, window);
        MPI_Win_unlock(target, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    long due = 0;
    for (int i = 0; i < TIMES; i++)
        due += i % world_size == world_rank ? world_size : 0;
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window);
    expect(cell[0] == due, "lock: the counter is %ld, not %ld", cell[0], due);
    MPI_Win_unlock(world_rank, window);
    free_window(&window, memory, "lock, window");
}

/* One epoch to all; every process has a place of its own at every other. */
static void lock_all(void)
{
    enum { MOST = 100003, ROUNDS = 12 };
    static const int sizes[ROUNDS] = {1,    8,     64,    100,   2047,  2048,
                                      4096, 10000, 32768, 65536, 70001, MOST};
    char *memory, *out = check_alloc(MOST), *in = check_alloc((size_t)world_size * MOST);
    MPI_Win window = make_window((size_t)world_size * MOST, 1, &memory);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < ROUNDS; i++) {
        int n = sizes[i];
        fill(out, (size_t)n, (uint64_t)(world_rank * 100 + i));
        for (int to = 0; to < world_size; to++)
            MPI_Put(out, n, MPI_BYTE, to, world_rank * MOST, n, MPI_BYTE, window);
        if (i % 3 == 0)
            MPI_Win_flush_all(window);
        else
            for (int to = 0; to < world_size; to++)
                MPI_Win_flush(to, window);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(window);
        for (int from = 0; from < world_size; from++)
            filled(memory + from * MOST, (size_t)n, (uint64_t)(from * 100 + i), "lock_all, put");
        for (int from = 0; from < world_size; from++)
            MPI_Get(in + from * MOST, n, MPI_BYTE, from, world_rank * MOST, n, MPI_BYTE, window);
        if (i % 2)
            MPI_Win_flush_local_all(window);
        else
            for (int from = 0; from < world_size; from++)
                MPI_Win_flush_local(from, window);
        for (int from = 0; from < world_size; from++)
            filled(in + from * MOST, (size_t)n, (uint64_t)(world_rank * 100 + i), "lock_all, get");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window);
    free_window(&window, memory, "lock_all, window");
    check_free(out, "lock_all, put");
    check_free(in, "lock_all, get");
}

/* Operations with requests of their own; Open MPI's osc/portals4 has eight of them
 * and waits for ever for a ninth. */
static void requests(void)
{
    enum { PARTS = 8, PART = 50000 };
    char *memory, *out = check_alloc(PARTS * PART), *in = check_alloc(PARTS * PART);
    MPI_Win window = make_window(PARTS * PART, 1, &memory);
    MPI_Request all[PARTS];
    fill(out, PARTS * PART, (uint64_t)world_rank);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < PARTS; i++)
        MPI_Rput(out + i * PART, PART, MPI_BYTE, right(), i * PART, PART, MPI_BYTE, window,
                 &all[i]);
    MPI_Waitall(PARTS, all, MPI_STATUSES_IGNORE);
    MPI_Win_flush_all(window);
    for (int i = PARTS - 1; i >= 0; i--)
        MPI_Rget(in + i * PART, PART, MPI_BYTE, right(), i * PART, PART, MPI_BYTE, window, &all[i]);
    MPI_Waitall(PARTS, all, MPI_STATUSES_IGNORE);
    filled(in, PARTS * PART, (uint64_t)world_rank, "requests, got back");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    filled(memory, PARTS * PART, (uint64_t)left(), "requests, put");
    MPI_Win_unlock_all(window);
    free_window(&window, memory, "requests, window");
    check_free(out, "requests, put");
    check_free(in, "requests, got");
}

/* Strided on either side or both; what lies between must stay. */
static void derived(void)
{
    enum { BLOCKS = 500, STRIDE = 3 };
    MPI_Datatype comb;
    MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &comb);
    MPI_Type_commit(&comb);
    int out[BLOCKS * STRIDE], in[BLOCKS * STRIDE];
    char *memory;
    MPI_Win window = make_window(sizeof(out), sizeof(int), &memory);
    int *cells = (int *)(void *)memory;
    for (int way = 1; way < 4; way++) {
        bool comb_here = way & 1, comb_there = way & 2;
        for (int i = 0; i < BLOCKS * STRIDE; i++) {
            out[i] = world_rank * 10000 + i;
            in[i] = cells[i] = -1;
        }
        MPI_Win_fence(0, window);
        MPI_Put(out, comb_here ? 1 : BLOCKS, comb_here ? comb : MPI_INT, right(), 0,
                comb_there ? 1 : BLOCKS, comb_there ? comb : MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < BLOCKS * STRIDE; i++) {
            int block = comb_there ? i / STRIDE : i;
            bool hit = comb_there ? i % STRIDE == 0 : i < BLOCKS;
            int due = hit ? left() * 10000 + (comb_here ? block * STRIDE : block) : -1;
            if (!expect(cells[i] == due, "derived %d: int %d is %d, not %d", way, i, cells[i], due))
                break;
        }
        MPI_Get(in, comb_here ? 1 : BLOCKS, comb_here ? comb : MPI_INT, right(), 0,
                comb_there ? 1 : BLOCKS, comb_there ? comb : MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < BLOCKS * STRIDE; i++) {
            bool hit = comb_here ? i % STRIDE == 0 : i < BLOCKS;
            int due = hit ? out[i] : -1;
            if (!expect(in[i] == due, "derived %d: got int %d as %d, not %d", way, i, in[i], due))
                break;
        }
        MPI_Win_fence(0, window);
    }
    MPI_Type_free(&comb);
    free_window(&window, memory, "derived, window");
}

/* Memory of MPI's own, and memory attached after the window was made. */
static void kinds(void)
{
    enum { BYTES = 30000 };
    char *out = check_alloc(BYTES), *memory;
    MPI_Win window;
    fill(out, BYTES, (uint64_t)world_rank);
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, BYTES, MPI_BYTE, right(), 0, BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    filled(memory, BYTES, (uint64_t)left(), "kinds, allocated");
    MPI_Win_free(&window);

    memory = check_alloc(BYTES);
    MPI_Aint mine, theirs;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, BYTES);
    MPI_Get_address(memory, &mine);
    MPI_Sendrecv(&mine, 1, MPI_AINT, left(), 0, &theirs, 1, MPI_AINT, right(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window);
    MPI_Put(out, BYTES, MPI_BYTE, right(), theirs, BYTES, MPI_BYTE, window);
    MPI_Win_unlock(right(), window);
    MPI_Barrier(MPI_COMM_WORLD);
    filled(memory, BYTES, (uint64_t)left(), "kinds, dynamic");
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
    check_free(memory, "kinds, dynamic");
    check_free(out, "kinds");
}

/* Thousands of small operations in one epoch, more than queues hold. */
static void many(void)
{
    enum { OPERATIONS = 20000 };
    char *memory;
    long *out = malloc(OPERATIONS * sizeof(*out)), *in = malloc(OPERATIONS * sizeof(*in));
    MPI_Win window = make_window(OPERATIONS * sizeof(long), sizeof(long), &memory);
    const long *cells = (const long *)(const void *)memory;
    MPI_Win_fence(0, window);
    for (int i = 0; i < OPERATIONS; i++) {
        out[i] = world_rank * 1000000L + i;
        MPI_Put(&out[i], 1, MPI_LONG, right(), i, 1, MPI_LONG, window);
    }
    MPI_Win_fence(0, window);
    for (int i = 0; i < OPERATIONS; i++)
        if (!expect(cells[i] == left() * 1000000L + i, "many: put %d is %ld", i, cells[i]))
            break;
    for (int i = 0; i < OPERATIONS; i++)
        MPI_Get(&in[i], 1, MPI_LONG, right(), i, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < OPERATIONS; i++)
        if (!expect(in[i] == out[i], "many: got %d as %ld", i, in[i]))
            break;
    free(out);
    free(in);
    free_window(&window, memory, "many, window");
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        {"fence", fence},       {"pscw", pscw},       {"lock", lock},   {"lock_all", lock_all},
        {"requests", requests}, {"derived", derived}, {"kinds", kinds}, {"many", many},
    };
    return check_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
