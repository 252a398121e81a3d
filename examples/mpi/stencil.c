/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jacobi iterations on a square: Laplace's equation, whose solution is known.
 *
 * The ranks form a grid (MPI_Cart_create), each has a block of the square and a
 * border of one point round it, which it exchanges with its four neighbours in
 * every iteration while it computes nothing. The border of the square holds
 * u(x, y) = x² − y², which the iterations bring into the inside.
 *
 *     stencil [POINTS [ITERATIONS]]     points of a side (32), iterations (4000)
 *
 * Prints the largest error and fails if it is above 1e-6. "expected" is what the program
 * itself says it has sent: messages and bytes from rank to rank, and collectives.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEFT, RIGHT, DOWN, UP };

struct block {
    MPI_Comm grid;
    int neighbour[4];
    int x0, y0, width, height; /* its points of the square, the border left out */
    double step;
    double *now, *next; /* (width + 2) × (height + 2) */
    MPI_Datatype column;
    long messages, bytes;
};

static double solution(double x, double y)
{
    return x * x - y * y;
}

static double *point(const struct block *b, double *values, int x, int y)
{
    return &values[(size_t)(y + 1) * (size_t)(b->width + 2) + (size_t)(x + 1)];
}

/* The part-th of `parts` parts of `points` points. */
static int part_start(int points, int parts, int part)
{
    return (int)((long)points * part / parts);
}

static void make_block(struct block *b, int points)
{
    int ranks, rank, extent[2] = {0, 0}, at[2];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, extent);
    MPI_Cart_create(MPI_COMM_WORLD, 2, extent, (int[]){0, 0}, 1, &b->grid);
    MPI_Comm_rank(b->grid, &rank);
    MPI_Cart_coords(b->grid, rank, 2, at);
    MPI_Cart_shift(b->grid, 0, 1, &b->neighbour[LEFT], &b->neighbour[RIGHT]);
    MPI_Cart_shift(b->grid, 1, 1, &b->neighbour[DOWN], &b->neighbour[UP]);
    b->x0 = part_start(points, extent[0], at[0]);
    b->y0 = part_start(points, extent[1], at[1]);
    b->width = part_start(points, extent[0], at[0] + 1) - b->x0;
    b->height = part_start(points, extent[1], at[1] + 1) - b->y0;
    b->step = 1.0 / (points + 1);
    MPI_Type_vector(b->height, 1, b->width + 2, MPI_DOUBLE, &b->column);
    MPI_Type_commit(&b->column);
    size_t size = (size_t)(b->width + 2) * (size_t)(b->height + 2);
    b->now = calloc(size, sizeof(double));
    b->next = calloc(size, sizeof(double));
    if (b->now == NULL || b->next == NULL) {
        fprintf(stderr, "stencil: no memory for %d points\n", points);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void fill_border(const struct block *b, double *values)
{
    for (int y = -1; y <= b->height; y++) {
        for (int x = -1; x <= b->width; x++) {
            if (x == -1 || y == -1 || x == b->width || y == b->height) {
                *point(b, values, x, y) =
                    solution((b->x0 + x + 1) * b->step, (b->y0 + y + 1) * b->step);
            }
        }
    }
}

static void exchange(struct block *b)
{
    int w = b->width, h = b->height;
    MPI_Request requests[8];
    const struct {
        double *out, *in;
        int count;
        MPI_Datatype type;
    } sides[4] = {
        [LEFT] = {point(b, b->now, 0, 0), point(b, b->now, -1, 0), 1, b->column},
        [RIGHT] = {point(b, b->now, w - 1, 0), point(b, b->now, w, 0), 1, b->column},
        [DOWN] = {point(b, b->now, 0, 0), point(b, b->now, 0, -1), w, MPI_DOUBLE},
        [UP] = {point(b, b->now, 0, h - 1), point(b, b->now, 0, h), w, MPI_DOUBLE},
    };
    for (int i = 0; i < 4; i++) { /* a message's tag is the side it comes from */
        MPI_Irecv(sides[i].in, sides[i].count, sides[i].type, b->neighbour[i], i, b->grid,
                  &requests[i]);
    }
    for (int i = 0; i < 4; i++) {
        MPI_Isend(sides[i].out, sides[i].count, sides[i].type, b->neighbour[i], i ^ 1, b->grid,
                  &requests[4 + i]);
        if (b->neighbour[i] != MPI_PROC_NULL) {
            b->messages++;
            b->bytes += (long)sizeof(double) * (i < DOWN ? h : w);
        }
    }
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
}

static void relax(struct block *b)
{
    for (int y = 0; y < b->height; y++) {
        for (int x = 0; x < b->width; x++) {
            *point(b, b->next, x, y) =
                0.25 * (*point(b, b->now, x - 1, y) + *point(b, b->now, x + 1, y) +
                        *point(b, b->now, x, y - 1) + *point(b, b->now, x, y + 1));
        }
    }
    double *swap = b->now;
    b->now = b->next;
    b->next = swap;
}

static double largest_error(const struct block *b)
{
    double worst = 0, all;
    for (int y = 0; y < b->height; y++) {
        for (int x = 0; x < b->width; x++) {
            double want = solution((b->x0 + x + 1) * b->step, (b->y0 + y + 1) * b->step);
            worst = fmax(worst, fabs(*point(b, b->now, x, y) - want));
        }
    }
    MPI_Allreduce(&worst, &all, 1, MPI_DOUBLE, MPI_MAX, b->grid);
    return all;
}

int main(int argc, char **argv)
{
    struct block b = {0};
    int rank, points, iterations;
    long mine[2], all[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    points = argc > 1 ? atoi(argv[1]) : 32;
    iterations = argc > 2 ? atoi(argv[2]) : 4000;
    if (points < 1 || points > 10000 || iterations < 1) {
        fprintf(stderr, "usage: stencil [POINTS [ITERATIONS]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    make_block(&b, points);
    fill_border(&b, b.now);
    fill_border(&b, b.next);
    for (int i = 0; i < iterations; i++) {
        exchange(&b);
        relax(&b);
    }
    double error = largest_error(&b);
    mine[0] = b.messages;
    mine[1] = b.bytes;
    MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, b.grid);
    MPI_Comm_rank(b.grid, &rank);
    if (rank == 0) {
        printf("stencil: %d x %d points, %d iterations, largest error %.3g\n", points, points,
               iterations, error);
        printf("expected messages %ld bytes %ld allreduce 1 reduce 1\n", all[0], all[1]);
    }
    MPI_Type_free(&b.column);
    MPI_Comm_free(&b.grid);
    free(b.now);
    free(b.next);
    MPI_Finalize();
    return error < 1e-6 ? 0 : 1;
}
