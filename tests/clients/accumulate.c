/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accumulating operations of MPI's windows: every predefined operation on
 * every predefined type that admits it, alone and with several processes at one
 * target, contiguous and strided, one element to a megabyte; fetching ones and
 * compare-and-swap. Any number of processes from 2.
 *
 * What is due is computed by MPI_Reduce_local from the same operands; they are
 * such that no sum overflows, where Open MPI's vector code and its scalar code
 * differ for small integers.
 *
 * Not here, because Open MPI 4.1's osc/portals4 does not do them right over any
 * Portals: unsigned long long (refused), signed char (taken for unsigned), and
 * float complex (taken for double complex).
 */
#include "check.h"

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { UNSIGNED, SIGNED, REAL, COMPLEX };

struct type {
    const char *name;
    MPI_Datatype mpi;
    enum kind kind;
    int width; /* of what carries the value, bytes */
};

struct op {
    const char *name;
    MPI_Op mpi;
    enum kind most; /* the last kind of types that it takes */
};

static struct type types[32];
static struct op ops[16];
static int type_count, op_count;

/* Handles of Open MPI are addresses, so the tables are filled at run time. */
static void list_types(void)
{
    const struct type all[] = {
        {"unsigned char", MPI_UNSIGNED_CHAR, UNSIGNED, 1},
        {"short", MPI_SHORT, SIGNED, 2},
        {"unsigned short", MPI_UNSIGNED_SHORT, UNSIGNED, 2},
        {"int", MPI_INT, SIGNED, 4},
        {"unsigned", MPI_UNSIGNED, UNSIGNED, 4},
        {"long", MPI_LONG, SIGNED, 8},
        {"unsigned long", MPI_UNSIGNED_LONG, UNSIGNED, 8},
        {"long long", MPI_LONG_LONG, SIGNED, 8},
        {"int8", MPI_INT8_T, SIGNED, 1},
        {"uint8", MPI_UINT8_T, UNSIGNED, 1},
        {"int16", MPI_INT16_T, SIGNED, 2},
        {"uint16", MPI_UINT16_T, UNSIGNED, 2},
        {"int32", MPI_INT32_T, SIGNED, 4},
        {"uint32", MPI_UINT32_T, UNSIGNED, 4},
        {"int64", MPI_INT64_T, SIGNED, 8},
        {"uint64", MPI_UINT64_T, UNSIGNED, 8},
        {"float", MPI_FLOAT, REAL, sizeof(float)},
        {"double", MPI_DOUBLE, REAL, sizeof(double)},
        {"long double", MPI_LONG_DOUBLE, REAL, sizeof(long double)},
        {"double complex", MPI_C_DOUBLE_COMPLEX, COMPLEX, sizeof(double)},
        {"long double complex", MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, sizeof(long double)},
    };
    const struct op all_ops[] = {
        {"sum", MPI_SUM, COMPLEX},
        {"prod", MPI_PROD, COMPLEX},
        {"replace", MPI_REPLACE, COMPLEX},
        {"no_op", MPI_NO_OP, COMPLEX},
        {"min", MPI_MIN, REAL},
        {"max", MPI_MAX, REAL},
        {"land", MPI_LAND, SIGNED},
        {"lor", MPI_LOR, SIGNED},
        {"lxor", MPI_LXOR, SIGNED},
        {"band", MPI_BAND, SIGNED},
        {"bor", MPI_BOR, SIGNED},
        {"bxor", MPI_BXOR, SIGNED},
    };
    type_count = sizeof(all) / sizeof(all[0]);
    op_count = sizeof(all_ops) / sizeof(all_ops[0]);
    memcpy(types, all, sizeof(all));
    memcpy(ops, all_ops, sizeof(all_ops));
}

static size_t size_of(const struct type *type)
{
    return (size_t)type->width * (type->kind == COMPLEX ? 2 : 1);
}

/* Small values, exact in every type whatever the order of operations. */
static void operands(const struct type *type, void *data, int count, int seed)
{
    int numbers = count * (type->kind == COMPLEX ? 2 : 1);
    memset(data, 0, (size_t)count * size_of(type));
    for (int i = 0; i < numbers; i++) {
        int value = (i * 7 + seed * 3 + i / 5) % 4;
        char *at = (char *)data + (size_t)i * (size_t)type->width;
        float f = (float)value - 1;
        double d = value - 1;
        long double l = value - 1;
        int64_t n = value == 3 ? 0x1111111111111111 : type->kind == SIGNED ? value - 1 : value;
        const void *from = type->kind <= SIGNED ? (const void *)&n
                           : type->width == 4   ? (const void *)&f
                           : type->width == 8   ? (const void *)&d
                                                : (const void *)&l;
        memcpy(at, from, type->width == 16 ? 10 : (size_t)type->width);
    }
}

/* As numbers: the sign of a zero that comes out of several products depends on their order, and
 * arithmetic leaves what it likes in long double's padding. */
static bool same(const struct type *type, const void *a, const void *b, int count)
{
    if (type->kind <= SIGNED)
        return memcmp(a, b, (size_t)count * size_of(type)) == 0;
    int numbers = count * (type->kind == COMPLEX ? 2 : 1);
    for (int i = 0; i < numbers; i++) {
        bool equal = type->width == 4 ? ((const float *)a)[i] == ((const float *)b)[i]
                     : type->width == 8
                         ? ((const double *)a)[i] == ((const double *)b)[i]
                         : ((const long double *)a)[i] == ((const long double *)b)[i];
        if (!equal)
            return false;
    }
    return true;
}

/* due = due OP data */
static void apply(const struct op *op, const struct type *type, const void *data, void *due,
                  int count)
{
    if (op->mpi == MPI_REPLACE)
        memcpy(due, data, (size_t)count * size_of(type));
    else if (op->mpi != MPI_NO_OP)
        MPI_Reduce_local(data, due, count, type->mpi, op->mpi);
}

struct stage {
    MPI_Win window;
    char *memory, *data, *due, *result;
    int most; /* bytes of each */
};

static struct stage open_stage(int bytes)
{
    struct stage s = {.most = bytes};
    s.memory = check_alloc((size_t)bytes);
    s.data = check_alloc((size_t)bytes);
    s.due = check_alloc((size_t)bytes);
    s.result = check_alloc((size_t)bytes);
    list_types();
    MPI_Win_create(s.memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.window);
    return s;
}

static void close_stage(struct stage *s, const char *what)
{
    MPI_Win_free(&s->window);
    check_free(s->memory, what);
    check_free(s->data, what);
    check_free(s->due, what);
    check_free(s->result, what);
}

/* All processes accumulate to rank 0 in one epoch; what is order-dependent comes from one. */
static void at_one_target(struct stage *s, const struct type *type, const struct op *op, int count)
{
    bool alone = op->mpi == MPI_REPLACE;
    operands(type, s->memory, count, 50);
    memcpy(s->due, s->memory, (size_t)count * size_of(type));
    MPI_Win_fence(0, s->window);
    operands(type, s->data, count, world_rank);
    if (!alone || world_rank == 1)
        MPI_Accumulate(s->data, count, type->mpi, 0, 0, count, type->mpi, op->mpi, s->window);
    MPI_Win_fence(0, s->window);
    if (world_rank == 0) {
        for (int from = 0; from < world_size; from++) {
            operands(type, s->data, count, from);
            if (!alone || from == 1)
                apply(op, type, s->data, s->due, count);
        }
        expect(same(type, s->memory, s->due, count), "accumulate %s of %d %s", op->name, count,
               type->name);
    }
    MPI_Win_fence(0, s->window);
}

static void accumulate(void)
{
    static const int counts[] = {1, 3, 100, 5000};
    struct stage s = open_stage(5000 * 32);
    for (int t = 0; t < type_count; t++)
        for (int o = 0; o < op_count; o++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
                if (types[t].kind <= ops[o].most && ops[o].mpi != MPI_NO_OP)
                    at_one_target(&s, &types[t], &ops[o], counts[c]);
    close_stage(&s, "accumulate");
}

/* A megabyte, in pieces as large as the NIC takes. */
static void large(void)
{
    struct stage s = open_stage(1 << 20);
    for (int t = 0; t < type_count; t++)
        at_one_target(&s, &types[t],
                      &ops[t % 2                      ? 0
                           : types[t].kind == COMPLEX ? 1
                                                      : 5],
                      s.most / (int)size_of(&types[t]));
    close_stage(&s, "large");
}

/* Under an exclusive lock the fetched value must be what was there. Each process
 * takes its turn at its right neighbour. */
static void fetch_one(struct stage *s, const struct type *type, const struct op *op, int count)
{
    int right = (world_rank + 1) % world_size;
    size_t bytes = (size_t)count * size_of(type);
    operands(type, s->memory, count, world_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    operands(type, s->data, count, 9);
    unfill(s->result, bytes);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, s->window);
    if (count == 1)
        MPI_Fetch_and_op(s->data, s->result, type->mpi, right, 0, op->mpi, s->window);
    else
        MPI_Get_accumulate(s->data, count, type->mpi, s->result, count, type->mpi, right, 0, count,
                           type->mpi, op->mpi, s->window);
    MPI_Win_unlock(right, s->window);
    operands(type, s->due, count, right);
    expect(same(type, s->result, s->due, count), "fetching %s of %d %s: fetched a wrong value",
           op->name, count, type->name);
    MPI_Barrier(MPI_COMM_WORLD);
    operands(type, s->due, count, world_rank);
    apply(op, type, s->data, s->due, count);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, s->window);
    expect(same(type, s->memory, s->due, count), "fetching %s of %d %s: left a wrong value",
           op->name, count, type->name);
    MPI_Win_unlock(world_rank, s->window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fetching(void)
{
    static const int counts[] = {1, 2, 100, 4000};
    struct stage s = open_stage(4000 * 32);
    for (int t = 0; t < type_count; t++)
        for (int o = 0; o < op_count; o++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
                if (types[t].kind <= ops[o].most)
                    fetch_one(&s, &types[t], &ops[o], counts[c]);
    close_stage(&s, "fetching");
}

/* All processes swap for the same cell until each has won its turns: it counts
 * up by ones, so a lost or doubled swap shows. Integer types of every width. */
static void compare_swap(void)
{
    enum { WINS = 20 };
    struct stage s = open_stage(16);
    for (int t = 0; t < type_count; t++) {
        const struct type *type = &types[t];
        if (type->kind > SIGNED)
            continue;
        int64_t expected = 0, found = 0, wanted;
        memset(s.memory, 0, 16);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, s.window);
        for (int wins = 0; wins < WINS;) {
            wanted = expected + 1;
            found = 0;
            MPI_Compare_and_swap(&wanted, &expected, &found, type->mpi, 0, 0, s.window);
            MPI_Win_flush(0, s.window);
            wins += found == expected;
            expected = found == expected ? wanted : found;
        }
        MPI_Win_unlock_all(s.window);
        MPI_Barrier(MPI_COMM_WORLD);
        int64_t value = 0;
        memcpy(&value, s.memory, (size_t)type->width);
        expect(world_rank != 0 || value == WINS * world_size, "compare_swap of %s: %ld, not %d",
               type->name, (long)value, WINS * world_size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close_stage(&s, "compare_swap");
}

/* Tickets: every number is drawn once. */
static void tickets(void)
{
    enum { DRAWS = 500 };
    struct stage s = open_stage(16);
    memset(s.memory, 0, 16);
    long *drawn = calloc((size_t)world_size * DRAWS, sizeof(*drawn)), one = 1, previous = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, s.window);
    for (int i = 0; i < DRAWS; i++) {
        long number;
        MPI_Fetch_and_op(&one, &number, MPI_LONG, 0, 0, MPI_SUM, s.window);
        MPI_Win_flush(0, s.window);
        if (expect(number > previous && number < world_size * DRAWS, "tickets: %ld after %ld",
                   number, previous))
            drawn[number]++;
        previous = number;
    }
    MPI_Win_unlock_all(s.window);
    MPI_Allreduce(MPI_IN_PLACE, drawn, world_size * DRAWS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < world_size * DRAWS; i++)
        if (!expect(drawn[i] == 1, "tickets: %d was drawn %ld times", i, drawn[i]))
            break;
    free(drawn);
    close_stage(&s, "tickets");
}

/* Every third element at the target, every second here; the others must stay. */
static void strided(void)
{
    enum { COUNT = 300 };
    struct stage s = open_stage(3 * COUNT * 8);
    MPI_Datatype here, there;
    MPI_Type_vector(COUNT, 1, 2, MPI_LONG, &here);
    MPI_Type_vector(COUNT, 1, 3, MPI_LONG, &there);
    MPI_Type_commit(&here);
    MPI_Type_commit(&there);
    long *cells = (long *)(void *)s.memory, *data = (long *)(void *)s.data;
    for (int i = 0; i < 3 * COUNT; i++)
        cells[i] = 5;
    for (int i = 0; i < 2 * COUNT; i++)
        data[i] = i + 1000L * world_rank;
    MPI_Win_fence(0, s.window);
    MPI_Accumulate(s.data, 1, here, 0, 0, 1, there, MPI_SUM, s.window);
    MPI_Win_fence(0, s.window);
    long ranks = world_size * (world_size - 1) / 2;
    for (int i = 0; i < 3 * COUNT && world_rank == 0; i++) {
        long due = 5 + (i % 3 ? 0 : i / 3 * 2 * world_size + 1000 * ranks);
        if (!expect(cells[i] == due, "strided: element %d is %ld, not %ld", i, cells[i], due))
            break;
    }
    MPI_Type_free(&here);
    MPI_Type_free(&there);
    close_stage(&s, "strided");
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        {"accumulate", accumulate},     {"large", large},     {"fetching", fetching},
        {"compare_swap", compare_swap}, {"tickets", tickets}, {"strided", strided},
    };
    return check_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
