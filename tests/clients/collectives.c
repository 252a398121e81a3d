/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations, each with every process as root, one byte to megabytes,
 * several under way at once, on communicators that are parts of the world.
 * Any number of processes from 2.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const int counts[] = {0,   1,   2,   7,    8,    9,     63,    64,    100,
                             511, 512, 513, 1000, 4096, 12345, 65536, 262144};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]), MOST = 262144 };

/* MPI_Wtime begins at each process's own MPI_Init; this clock is one for all. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Nobody leaves before all have entered. */
static void barrier(void)
{
    for (int i = 0; i < 60; i++) {
        if (i % world_size == world_rank)
            pause_ms(i % 10);
        double entered = now(), last, left;
        MPI_Request request;
        if (i % 2) {
            MPI_Barrier(MPI_COMM_WORLD);
        } else {
            MPI_Ibarrier(MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        left = now();
        MPI_Allreduce(&entered, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        expect(left >= last, "barrier %d: left %g s before the last entered", i, last - left);
    }
    for (int i = 0; i < 2000; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(void)
{
    int *data = check_alloc(MOST * sizeof(*data));
    for (int root = 0; root < world_size; root++)
        for (int c = 0; c < COUNTS; c++) {
            size_t bytes = (size_t)counts[c] * sizeof(*data);
            uint64_t seed = (uint64_t)(root * 100 + c);
            if (world_rank == root)
                fill(data, bytes, seed);
            else
                unfill(data, bytes);
            if (c % 2) {
                MPI_Bcast(data, counts[c], MPI_INT, root, MPI_COMM_WORLD);
            } else {
                MPI_Request request;
                MPI_Ibcast(data, counts[c], MPI_INT, root, MPI_COMM_WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            filled(data, bytes, seed, "bcast");
        }
    check_free(data, "bcast");
}

/* Rank r brings i % 100 + r; sums and extremes of that are known. (Not of MPI_LONG:
 * Open MPI 4.1's coll/portals4 takes it for a type of eight bits.) */
static double due(MPI_Op op, int i)
{
    if (op == MPI_SUM)
        return i % 100 * world_size + world_size * (world_size - 1) / 2;
    return op == MPI_MIN ? i % 100 : i % 100 + world_size - 1;
}

static void set(void *data, MPI_Datatype type, int i, double value)
{
    if (type == MPI_INT)
        ((int *)data)[i] = (int)value;
    else if (type == MPI_INT64_T)
        ((long *)data)[i] = (long)value;
    else if (type == MPI_FLOAT)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

static double get(const void *data, MPI_Datatype type, int i)
{
    if (type == MPI_INT)
        return ((const int *)data)[i];
    if (type == MPI_INT64_T)
        return (double)((const long *)data)[i];
    if (type == MPI_FLOAT)
        return (double)((const float *)data)[i];
    return ((const double *)data)[i];
}

/* how: reduce to root, allreduce, both with requests, or in place. */
static void reduce_one(int how, MPI_Datatype type, MPI_Op op, int n, int root, void *out, void *in)
{
    MPI_Request request = MPI_REQUEST_NULL;
    bool mine = true;
    for (int i = 0; i < n; i++)
        set(out, type, i, i % 100 + world_rank);
    unfill(in, (size_t)n * 8);
    switch (how) {
    case 0:
        MPI_Reduce(out, in, n, type, op, root, MPI_COMM_WORLD);
        mine = world_rank == root;
        break;
    case 1:
        MPI_Allreduce(out, in, n, type, op, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Ireduce(out, in, n, type, op, root, MPI_COMM_WORLD, &request);
        mine = world_rank == root;
        break;
    case 3:
        MPI_Iallreduce(out, in, n, type, op, MPI_COMM_WORLD, &request);
        break;
    default:
        memcpy(in, out, (size_t)n * 8);
        MPI_Allreduce(MPI_IN_PLACE, in, n, type, op, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < n && mine; i++)
        if (!expect(get(in, type, i) == due(op, i), "reduce %d of %d: element %d is %g, not %g",
                    how, n, i, get(in, type, i), due(op, i)))
            break;
}

static void reduce(void)
{
    MPI_Datatype types[] = {MPI_INT, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE};
    MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX};
    void *out = check_alloc(MOST * 8), *in = check_alloc(MOST * 8);
    for (int how = 0; how < 5; how++)
        for (int t = 0; t < 4; t++)
            for (int o = 0; o < 3; o++)
                for (int c = 0; c < COUNTS; c += 1 + (t + o) % 3)
                    reduce_one(how, types[t], ops[o], counts[c], c % world_size, out, in);
    check_free(out, "reduce, out");
    check_free(in, "reduce, in");
}

/* Blocks of n ints; block b carries what (from, to) say, so a swapped one shows. */
static void block(int *data, int n, int from, int to)
{
    fill(data, (size_t)n * sizeof(*data), (uint64_t)(from * 1000 + to));
}

static bool is_block(const int *data, int n, int from, int to, const char *what)
{
    return filled(data, (size_t)n * sizeof(*data), (uint64_t)(from * 1000 + to), what);
}

static void gather_scatter(void)
{
    enum { EACH = 65536 };
    int *all = check_alloc((size_t)world_size * EACH * sizeof(int)),
        *one = check_alloc(EACH * sizeof(int));
    for (int root = 0; root < world_size; root++)
        for (int c = 0; c < COUNTS && counts[c] <= EACH; c++) {
            int n = counts[c];
            block(one, n, world_rank, root);
            MPI_Gather(one, n, MPI_INT, all, n, MPI_INT, root, MPI_COMM_WORLD);
            for (int from = 0; from < world_size && world_rank == root; from++)
                is_block(all + (size_t)from * (size_t)n, n, from, root, "gather");
            for (int to = 0; to < world_size && world_rank == root; to++)
                block(all + (size_t)to * (size_t)n, n, root, to);
            unfill(one, (size_t)n * sizeof(int));
            if (c % 2) {
                MPI_Scatter(all, n, MPI_INT, one, n, MPI_INT, root, MPI_COMM_WORLD);
            } else {
                MPI_Request request;
                MPI_Iscatter(all, n, MPI_INT, one, n, MPI_INT, root, MPI_COMM_WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            is_block(one, n, root, world_rank, "scatter");
        }
    check_free(all, "gather_scatter, all");
    check_free(one, "gather_scatter, one");
}

static void all_to_all(void)
{
    enum { EACH = 65536 };
    size_t bytes = (size_t)world_size * EACH * sizeof(int);
    int *out = check_alloc(bytes), *in = check_alloc(bytes);
    for (int c = 0; c < COUNTS && counts[c] <= EACH; c++) {
        int n = counts[c];
        for (int to = 0; to < world_size; to++)
            block(out + (size_t)to * (size_t)n, n, world_rank, to);
        MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < world_size; from++)
            is_block(in + (size_t)from * (size_t)n, n, from, world_rank, "all_to_all");
        block(out, n, world_rank, 0);
        MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < world_size; from++)
            is_block(in + (size_t)from * (size_t)n, n, from, 0, "allgather");
    }
    check_free(out, "all_to_all, out");
    check_free(in, "all_to_all, in");
}

/* Some processes run ahead into the next operations while others sleep. */
static void skewed(void)
{
    for (int i = 0; i < 100; i++) {
        if (i % 5 == 0 && i / 5 % world_size == world_rank)
            pause_ms(10);
        int value = world_rank == i % world_size ? i * 3 : -1;
        long mine = i + world_rank, sum;
        MPI_Bcast(&value, 1, MPI_INT, i % world_size, MPI_COMM_WORLD);
        expect(value == i * 3, "skewed: broadcast %d gave %d", i, value);
        MPI_Reduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, (i + 1) % world_size, MPI_COMM_WORLD);
        long all = (long)i * world_size + world_size * (world_size - 1) / 2;
        expect(world_rank != (i + 1) % world_size || sum == all, "skewed: sum %d is %ld", i, sum);
    }
}

/* Several at once, of different kinds, finished in the opposite order. */
static void overlapping(void)
{
    enum { AT_ONCE = 20 };
    for (int round = 0; round < 10; round++) {
        MPI_Request requests[AT_ONCE];
        int cast[AT_ONCE], mine[AT_ONCE], sum[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            cast[i] = world_rank == i % world_size ? i : -1;
            mine[i] = i + world_rank;
            if (i % 3 == 0)
                MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
            else if (i % 3 == 1)
                MPI_Ibcast(&cast[i], 1, MPI_INT, i % world_size, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Iallreduce(&mine[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                               &requests[i]);
        }
        for (int i = AT_ONCE - 1; i >= 0; i--) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            expect(i % 3 != 1 || cast[i] == i, "overlapping: broadcast %d gave %d", i, cast[i]);
            expect(i % 3 != 2 || sum[i] == i * world_size + world_size * (world_size - 1) / 2,
                   "overlapping: sum %d is %d", i, sum[i]);
        }
    }
}

/* Parts of the world, at the same time and in another order of ranks. */
static void parts(void)
{
    for (int i = 0; i < 20; i++) {
        MPI_Comm half;
        int size, sum, root = 0;
        MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
        MPI_Comm_size(half, &size);
        MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, half);
        int due_sum = 0, first = 0;
        for (int r = world_rank % 2; r < world_size; r += 2)
            due_sum += first = r;
        expect(sum == due_sum, "parts: sum of %d ranks is %d", size, sum);
        root = world_rank;
        MPI_Bcast(&root, 1, MPI_INT, 0, half);
        expect(root == first, "parts: rank 0 of the half is %d, not %d", root, first);
        MPI_Barrier(half);
        MPI_Comm_free(&half);
    }
}

int main(int argc, char **argv)
{
    static const struct part all[] = {
        {"barrier", barrier},         {"bcast", bcast},
        {"reduce", reduce},           {"gather_scatter", gather_scatter},
        {"all_to_all", all_to_all},   {"skewed", skewed},
        {"overlapping", overlapping}, {"parts", parts},
    };
    return check_main(argc, argv, all, sizeof(all) / sizeof(all[0]));
}
