/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conjugate gradients for A x = b, where A is the matrix of −u'' on a line (2 on its
 * diagonal, −1 beside it) and b is such that the solution is known.
 *
 * Each rank has a piece of the vectors. A product with A needs one number from
 * each neighbour (the sparse halo); a scalar product is an MPI_Allreduce.
 *
 *     cg [POINTS]     length of the vectors (256)
 *
 * Prints the iterations and the largest error, and fails if it is above 1e-8.
 * "expected" is what the program itself says it has sent.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct piece {
    int start, length;
    int left, right; /* neighbours, or MPI_PROC_NULL */
    long messages, bytes, allreduces;
};

static double solution(int i, int points)
{
    double t = (i + 1.0) / (points + 1);
    return t * (1 - t) * (1 + t * t);
}

static double *vector(const struct piece *p)
{
    double *v =
        calloc((size_t)p->length + 2, sizeof(double)); /* with one number of each neighbour */
    if (v == NULL) {
        fprintf(stderr, "cg: no memory for %d numbers\n", p->length);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    return v + 1;
}

static double dot(struct piece *p, const double *a, const double *b)
{
    double sum = 0, all;
    for (int i = 0; i < p->length; i++) {
        sum += a[i] * b[i];
    }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    p->allreduces++;
    return all;
}

static void multiply(struct piece *p, double *v, double *result)
{
    int n = p->length;
    MPI_Sendrecv(&v[0], 1, MPI_DOUBLE, p->left, 1, &v[n], 1, MPI_DOUBLE, p->right, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&v[n - 1], 1, MPI_DOUBLE, p->right, 2, &v[-1], 1, MPI_DOUBLE, p->left, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int sent = (p->left != MPI_PROC_NULL) + (p->right != MPI_PROC_NULL);
    p->messages += sent;
    p->bytes += sent * (long)sizeof(double);
    for (int i = 0; i < n; i++) {
        result[i] = 2 * v[i] - v[i - 1] - v[i + 1];
    }
}

static int solve(struct piece *p, const double *b, double *x, int most)
{
    double *r = vector(p), *d = vector(p), *ad = vector(p);
    for (int i = 0; i < p->length; i++) {
        r[i] = d[i] = b[i];
    }
    double rr = dot(p, r, r), limit = rr * 1e-26;
    int iterations = 0;
    while (rr > limit && iterations < most) {
        multiply(p, d, ad);
        double step = rr / dot(p, d, ad);
        for (int i = 0; i < p->length; i++) {
            x[i] += step * d[i];
            r[i] -= step * ad[i];
        }
        double before = rr;
        rr = dot(p, r, r);
        for (int i = 0; i < p->length; i++) {
            d[i] = r[i] + rr / before * d[i];
        }
        iterations++;
    }
    free(r - 1);
    free(d - 1);
    free(ad - 1);
    return iterations;
}

int main(int argc, char **argv)
{
    struct piece p = {0};
    int rank, ranks, points;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    points = argc > 1 ? atoi(argv[1]) : 256;
    if (points < ranks) {
        fprintf(stderr, "usage: cg [POINTS], at least as many as ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    p.start = (int)((long)points * rank / ranks);
    p.length = (int)((long)points * (rank + 1) / ranks) - p.start;
    p.left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    p.right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double *want = vector(&p), *b = vector(&p), *x = vector(&p);
    for (int i = 0; i < p.length; i++) {
        want[i] = solution(p.start + i, points);
    }
    multiply(&p, want, b);
    int iterations = solve(&p, b, x, 4 * points);
    double worst = 0, error;
    for (int i = 0; i < p.length; i++) {
        worst = fmax(worst, fabs(x[i] - want[i]));
    }
    MPI_Allreduce(&worst, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    p.allreduces++;
    long mine[2] = {p.messages, p.bytes}, all[2];
    MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("cg: %d unknowns, %d iterations, largest error %.3g\n", points, iterations, error);
        printf("expected messages %ld bytes %ld allreduce %ld reduce 1\n", all[0], all[1],
               p.allreduces);
    }
    free(want - 1);
    free(b - 1);
    free(x - 1);
    MPI_Finalize();
    return error < 1e-8 ? 0 : 1;
}
