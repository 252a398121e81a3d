/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Fourier transform of n = m·m numbers over the ranks, by transposes.
 *
 * The numbers are an m × m matrix of which each rank has m / ranks rows: transpose,
 * transform the rows, multiply by the twiddle factors, transpose, transform the rows,
 * transpose. A transpose is an MPI_Alltoall of square tiles. The input is a sum of
 * three waves, whose transform is known; the largest difference is printed, and
 * the program fails if it is above 1e-9.
 *
 *     fft_transpose [M]     rows and columns (32): a power of two, a multiple of the ranks
 *
 * "expected" is what the program itself says it has sent.
 */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

struct matrix {
    int m, rows; /* of this rank, from row `first` on */
    int first;
    int ranks;
    number *at, *out, *in; /* rows × m each */
    long alltoalls;
};

static const struct {
    int frequency;
    double amplitude;
} waves[] = {{3, 1.0}, {70, -0.5}, {1000, 0.25}};

enum { WAVES = sizeof(waves) / sizeof(waves[0]) };

static number turn(double part)
{
    return cexp(-2 * M_PI * I * part);
}

/* In place: bit reversal, then butterflies of growing length. */
static void transform(number *row, int m)
{
    for (int i = 1, j = 0; i < m; i++) {
        int bit = m / 2;
        for (; (j & bit) != 0; bit /= 2) {
            j ^= bit;
        }
        j |= bit;
        if (i < j) {
            number swap = row[i];
            row[i] = row[j];
            row[j] = swap;
        }
    }
    for (int length = 2; length <= m; length *= 2) {
        for (int start = 0; start < m; start += length) {
            for (int k = 0; k < length / 2; k++) {
                number *a = &row[start + k], *b = a + length / 2;
                number turned = turn((double)k / length) * *b;
                *b = *a - turned;
                *a += turned;
            }
        }
    }
}

static void transpose(struct matrix *x)
{
    int rows = x->rows, tile = rows * rows;
    for (int to = 0; to < x->ranks; to++) {
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < rows; c++) { /* transposed while it is packed */
                x->out[to * tile + c * rows + r] = x->at[r * x->m + to * rows + c];
            }
        }
    }
    MPI_Alltoall(x->out, 2 * tile, MPI_DOUBLE, x->in, 2 * tile, MPI_DOUBLE, MPI_COMM_WORLD);
    x->alltoalls++;
    for (int from = 0; from < x->ranks; from++) {
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < rows; c++) {
                x->at[r * x->m + from * rows + c] = x->in[from * tile + r * rows + c];
            }
        }
    }
}

static void fourier(struct matrix *x)
{
    double n = (double)x->m * x->m;
    transpose(x);
    for (int r = 0; r < x->rows; r++) {
        transform(&x->at[r * x->m], x->m);
        for (int c = 0; c < x->m; c++) {
            x->at[r * x->m + c] *= turn((double)(x->first + r) * c / n);
        }
    }
    transpose(x);
    for (int r = 0; r < x->rows; r++) {
        transform(&x->at[r * x->m], x->m);
    }
    transpose(x);
}

static number input(const struct matrix *x, int i)
{
    double n = (double)x->m * x->m;
    number sum = 0;
    for (int k = 0; k < WAVES; k++) {
        sum += waves[k].amplitude * conj(turn(waves[k].frequency % (x->m * x->m) * (double)i / n));
    }
    return sum;
}

static number output(const struct matrix *x, int i)
{
    double n = (double)x->m * x->m, sum = 0;
    for (int k = 0; k < WAVES; k++) {
        sum += waves[k].frequency % (x->m * x->m) == i ? waves[k].amplitude * n : 0;
    }
    return sum;
}

static double largest_error(const struct matrix *x)
{
    double worst = 0, all;
    for (int i = 0; i < x->rows * x->m; i++) {
        worst = fmax(worst, cabs(x->at[i] - output(x, x->first * x->m + i)));
    }
    MPI_Allreduce(&worst, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all / ((double)x->m * x->m);
}

int main(int argc, char **argv)
{
    struct matrix x = {0};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &x.ranks);
    x.m = argc > 1 ? atoi(argv[1]) : 32;
    if (x.m < 1 || x.m > 4096 || (x.m & (x.m - 1)) != 0 || x.m % x.ranks != 0) {
        fprintf(stderr, "usage: fft_transpose [M], a power of two and a multiple of the ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    x.rows = x.m / x.ranks;
    x.first = x.rows * rank;
    size_t size = (size_t)x.rows * (size_t)x.m * sizeof(number);
    x.at = malloc(size);
    x.out = malloc(size);
    x.in = malloc(size);
    if (x.at == NULL || x.out == NULL || x.in == NULL) {
        fprintf(stderr, "fft_transpose: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < x.rows * x.m; i++) {
        x.at[i] = input(&x, x.first * x.m + i);
    }
    fourier(&x);
    double error = largest_error(&x);
    if (rank == 0) {
        printf("fft_transpose: %d numbers, largest error %.3g\n", x.m * x.m, error);
        printf("expected messages 0 bytes 0 alltoall %ld allreduce 1\n", x.alltoalls);
    }
    free(x.at);
    free(x.out);
    free(x.in);
    MPI_Finalize();
    return error < 1e-9 ? 0 : 1;
}
