/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Fourier transform of a cube in slabs: what a plane has is sent while the next one is computed.
 *
 * Rank r has SIZE / ranks planes of constant z. It transforms each along x and y, and sends each
 * other rank its rows of it as soon as they are there; then each has all z of some y, and
 * transforms along z. By windows a piece is a put; by messages a non-blocking send, whose receive
 * was begun before.
 *
 *     fft_slabs [--two-sided] [SIZE [ROUNDS]]     points of a side (32), rounds (5)
 *
 * SIZE is a power of two, and a multiple of the number of ranks. The input is a sum of plane waves,
 * so the transform is known: as many points as waves, all others 0.
 */
#include <complex.h>
#include <math.h>

#include "windows.h"

struct cube {
    struct job *job;
    long n, planes;         /* of a side; of a rank */
    double complex *slab;   /* [planes][n][n]: z of this rank, y, x */
    double complex *turned; /* [n][planes][n]: z, y of this rank, x */
    double complex *line, *root;
    MPI_Request *requests; /* ranks × planes, to send, and as many to receive */
    MPI_Win win;
};

static const struct {
    long x, y, z;
    double height;
} wave[] = {{1, 2, 3, 1.0}, {0, 5, 1, 0.5}, {7, 0, 6, 0.25}};

enum { WAVES = sizeof(wave) / sizeof(wave[0]) };

/* In place, of n numbers that are `stride` apart. */
static void transform(const struct cube *c, double complex *values, long stride)
{
    long n = c->n;
    for (long i = 0, j = 0; i < n; i++) { /* j: i with its bits turned round */
        c->line[j] = values[i * stride];
        long bit = n >> 1;
        for (; bit != 0 && (j & bit); bit >>= 1) {
            j ^= bit;
        }
        j |= bit;
    }
    for (long half = 1; half < n; half *= 2) {
        for (long begin = 0; begin < n; begin += 2 * half) {
            for (long i = begin; i < begin + half; i++) {
                double complex low = c->line[i];
                double complex high = c->line[i + half] * c->root[(i - begin) * (n / 2 / half)];
                c->line[i] = low + high;
                c->line[i + half] = low - high;
            }
        }
    }
    for (long i = 0; i < n; i++) {
        values[i * stride] = c->line[i];
    }
}

static void fill(struct cube *c)
{
    long n = c->n, first = c->job->rank * c->planes;
    for (long z = 0; z < c->planes; z++) {
        for (long y = 0; y < n; y++) {
            for (long x = 0; x < n; x++) {
                double complex sum = 0;
                for (int w = 0; w < WAVES; w++) {
                    long phase = wave[w].x * x + wave[w].y * y + wave[w].z * (z + first);
                    sum += wave[w].height * cexp(2 * M_PI * I * (double)(phase % n) / (double)n);
                }
                c->slab[(z * n + y) * n + x] = sum;
            }
        }
    }
    memset(c->turned, 0, (size_t)(n * n * c->planes) * sizeof(*c->turned));
}

static void transform_plane(const struct cube *c, double complex *plane)
{
    for (long y = 0; y < c->n; y++) {
        transform(c, &plane[y * c->n], 1);
    }
    for (long x = 0; x < c->n; x++) {
        transform(c, &plane[x], c->n);
    }
}

/* A piece: the rows of a plane that one rank gets. */
static int piece_size(const struct cube *c)
{
    return (int)(c->planes * c->n);
}

static void expect_pieces(struct cube *c)
{
    struct job *job = c->job;
    MPI_Request *request = &c->requests[job->ranks * c->planes];
    for (int rank = 0; rank < job->ranks; rank++) {
        for (long z = 0; z < c->planes; z++) {
            MPI_Irecv(&c->turned[(rank * c->planes + z) * piece_size(c)], piece_size(c),
                      MPI_C_DOUBLE_COMPLEX, rank, (int)z, MPI_COMM_WORLD, request++);
        }
    }
}

static void send_plane(struct cube *c, long z, const double complex *plane)
{
    struct job *job = c->job;
    for (int i = 0; i < job->ranks; i++) {
        int rank = (job->rank + i) % job->ranks; /* not all to one at once */
        const double complex *piece = &plane[rank * c->planes * c->n];
        if (job->two_sided) {
            MPI_Isend(piece, piece_size(c), MPI_C_DOUBLE_COMPLEX, rank, (int)z, MPI_COMM_WORLD,
                      &c->requests[z * job->ranks + i]);
        } else {
            MPI_Put(piece, piece_size(c), MPI_C_DOUBLE_COMPLEX, rank,
                    (job->rank * c->planes + z) * piece_size(c), piece_size(c),
                    MPI_C_DOUBLE_COMPLEX, c->win);
        }
    }
}

static void transform_cube(struct cube *c)
{
    long n = c->n;
    if (c->job->two_sided) {
        expect_pieces(c);
    } else {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, c->win);
    }
    for (long z = 0; z < c->planes; z++) {
        double complex *plane = &c->slab[z * n * n];
        transform_plane(c, plane);
        send_plane(c, z, plane);
    }
    if (c->job->two_sided) {
        MPI_Waitall((int)(2 * c->planes) * c->job->ranks, c->requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, c->win);
    }
    for (long i = 0; i < piece_size(c); i++) {
        transform(c, &c->turned[i], piece_size(c));
    }
}

static double expected(const struct cube *c, long x, long y, long z)
{
    for (int w = 0; w < WAVES; w++) {
        if (wave[w].x % c->n == x && wave[w].y % c->n == y && wave[w].z % c->n == z) {
            return wave[w].height * (double)(c->n * c->n * c->n);
        }
    }
    return 0;
}

static void check(struct cube *c)
{
    long n = c->n, first = c->job->rank * c->planes;
    double most = 0;
    for (long z = 0; z < n; z++) {
        for (long y = 0; y < c->planes; y++) {
            for (long x = 0; x < n; x++) {
                double off =
                    cabs(c->turned[(z * c->planes + y) * n + x] - expected(c, x, y + first, z));
                most = isnan(off) || off > most ? off : most;
            }
        }
    }
    if (!(most < 1e-9 * (double)(n * n * n))) {
        fprintf(stderr, "fft_slabs: rank %d: a value is off by %g\n", c->job->rank, most);
        c->job->wrong = true;
    }
}

int main(int argc, char **argv)
{
    struct job job;
    job_begin(&job, argc, argv, "fft_slabs", "SIZE", 32, 5);
    struct cube c = {.job = &job, .n = job.size, .planes = job.size / job.ranks};
    size_t size = (size_t)(c.n * c.n * c.planes) * sizeof(double complex);
    if ((c.n & (c.n - 1)) != 0 || c.n < 8 || c.n > 1024 || c.n % job.ranks != 0) {
        job_usage(&job,
                  "the size must be a power of two from 8 to 1024, and a multiple of the ranks",
                  argv[argc - 1]);
    }
    c.slab = job_alloc(&job, size);
    c.line = job_alloc(&job, (size_t)c.n * sizeof(double complex));
    c.root = job_alloc(&job, (size_t)c.n * sizeof(double complex));
    c.requests = job_alloc(&job, (size_t)(2 * job.ranks * c.planes) * sizeof(MPI_Request));
    for (long i = 0; i < c.n / 2; i++) {
        c.root[i] = cexp(-2 * M_PI * I * (double)i / (double)c.n);
    }
    if (job.two_sided) {
        c.turned = job_alloc(&job, size);
    } else {
        MPI_Win_allocate((MPI_Aint)size, sizeof(double complex), MPI_INFO_NULL, MPI_COMM_WORLD,
                         &c.turned, &c.win);
    }
    for (int round = 0; round < job.rounds; round++) {
        fill(&c);
        job_round(&job);
        transform_cube(&c);
        job_round_over(&job);
        check(&c);
    }
    if (job.two_sided) {
        free(c.turned);
    } else {
        MPI_Win_free(&c.win);
    }
    free(c.slab);
    free(c.line);
    free(c.root);
    free(c.requests);
    return job_end(&job);
}
