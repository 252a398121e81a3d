/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conjugate gradients on a four-dimensional lattice with three complex numbers a site, as lattice
 * QCD has it: each step exchanges the eight faces of every rank's part.
 *
 * The operator is (8 + m²) x − the sum of the eight neighbours, on a torus. By windows a rank posts
 * to its neighbours, puts its faces into their windows and completes; the inner sites are computed
 * before it waits. By messages it is the same with non-blocking ones.
 *
 *     lattice [--two-sided] [SIZE [ROUNDS]]     points of a side (8), times it is solved (3)
 *
 * The right side is that of a solution which is known, so the result is checked against it.
 */
#include <complex.h>
#include <math.h>

#include "windows.h"

enum { DIMENSIONS = 4, FACES = 8, COLOURS = 3, STEPS_MAX = 500 };

static const double mass = 1.0;

struct site {
    double complex colour[COLOURS];
};

struct lattice {
    struct job *job;
    MPI_Comm torus;
    long side;
    int extent[DIMENSIONS], at[DIMENSIONS]; /* ranks in each dimension, this one's place */
    long part[DIMENSIONS], sites;           /* of this rank */
    int neighbour[FACES];                   /* 2d below, 2d + 1 above */
    long face_sites[FACES], face_begin[FACES], faces_sites;
    struct site *out, *in; /* faces to send; those that have come, in the window */
    struct site *solution, *rest, *direction, *image;
    MPI_Win win;
    MPI_Group group; /* the neighbours, each once */
};

static long index_of(const struct lattice *l, const long *x)
{
    return ((x[3] * l->part[2] + x[2]) * l->part[1] + x[1]) * l->part[0] + x[0];
}

static void place_of(const struct lattice *l, long index, long *x)
{
    for (int d = 0; d < DIMENSIONS; d++) {
        x[d] = index % l->part[d];
        index /= l->part[d];
    }
}

/* Where a site of the face of dimension d is in that face: its place without d. */
static long in_face(const struct lattice *l, const long *x, int d)
{
    long index = 0;
    for (int e = DIMENSIONS - 1; e >= 0; e--) {
        index = e == d ? index : index * l->part[e] + x[e];
    }
    return index;
}

static void set_neighbours(struct lattice *l)
{
    int unique[FACES], count = 0;
    MPI_Group all;
    for (int f = 0; f < FACES; f++) {
        int seen = 0;
        for (int i = 0; i < count; i++) {
            seen |= unique[i] == l->neighbour[f];
        }
        if (!seen) {
            unique[count++] = l->neighbour[f];
        }
    }
    MPI_Comm_group(l->torus, &all);
    MPI_Group_incl(all, count, unique, &l->group);
    MPI_Group_free(&all);
}

static void make_lattice(struct lattice *l)
{
    struct job *job = l->job;
    const int around[DIMENSIONS] = {1, 1, 1, 1};
    MPI_Dims_create(job->ranks, DIMENSIONS, l->extent);
    MPI_Cart_create(MPI_COMM_WORLD, DIMENSIONS, l->extent, around, 0, &l->torus);
    MPI_Cart_coords(l->torus, job->rank, DIMENSIONS, l->at);
    l->sites = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        if (l->side % l->extent[d] != 0) {
            job_usage(job, "the size must be a multiple of the ranks of a dimension", "SIZE");
        }
        l->part[d] = l->side / l->extent[d];
        l->sites *= l->part[d];
        MPI_Cart_shift(l->torus, d, 1, &l->neighbour[2 * d], &l->neighbour[2 * d + 1]);
    }
    for (int f = 0; f < FACES; f++) {
        l->face_sites[f] = l->sites / l->part[f / 2];
        l->face_begin[f] = l->faces_sites;
        l->faces_sites += l->face_sites[f];
    }
    set_neighbours(l);
    size_t size = (size_t)l->sites * sizeof(struct site);
    l->solution = job_alloc(job, size);
    l->rest = job_alloc(job, size);
    l->direction = job_alloc(job, size);
    l->image = job_alloc(job, size);
    l->out = job_alloc(job, (size_t)l->faces_sites * sizeof(struct site));
}

static void pack_faces(struct lattice *l, const struct site *from)
{
    for (long i = 0; i < l->sites; i++) {
        long x[DIMENSIONS];
        place_of(l, i, x);
        for (int d = 0; d < DIMENSIONS; d++) {
            if (x[d] == 0) {
                l->out[l->face_begin[2 * d] + in_face(l, x, d)] = from[i];
            }
            if (x[d] == l->part[d] - 1) {
                l->out[l->face_begin[2 * d + 1] + in_face(l, x, d)] = from[i];
            }
        }
    }
}

/* The face that goes below comes there as the one from above, and the other way round. */
static void exchange_begin(struct lattice *l, MPI_Request *request)
{
    if (!l->job->two_sided) {
        MPI_Win_post(l->group, 0, l->win);
        MPI_Win_start(l->group, 0, l->win);
    }
    for (int f = 0; f < FACES; f++) {
        int doubles = (int)(l->face_sites[f] * COLOURS * 2);
        if (l->job->two_sided) {
            MPI_Irecv(&l->in[l->face_begin[f]], doubles, MPI_DOUBLE, l->neighbour[f], f, l->torus,
                      &request[f]);
            MPI_Isend(&l->out[l->face_begin[f]], doubles, MPI_DOUBLE, l->neighbour[f], f ^ 1,
                      l->torus, &request[FACES + f]);
        } else {
            MPI_Put(&l->out[l->face_begin[f]], doubles, MPI_DOUBLE, l->neighbour[f],
                    l->face_begin[f ^ 1], doubles, MPI_DOUBLE, l->win);
        }
    }
    if (!l->job->two_sided) {
        MPI_Win_complete(l->win);
    }
}

static void exchange_end(struct lattice *l, MPI_Request *request)
{
    if (l->job->two_sided) {
        MPI_Waitall(2 * FACES, request, MPI_STATUSES_IGNORE);
    } else {
        MPI_Win_wait(l->win);
    }
}

/* The neighbour of a site across face f; NULL: it came, or will come, from the neighbouring rank.
 */
static const struct site *beside(const struct lattice *l, const struct site *of, const long *x,
                                 int f)
{
    long y[DIMENSIONS];
    int d = f / 2;
    memcpy(y, x, sizeof(y));
    y[d] += f % 2 == 0 ? -1 : 1;
    return y[d] < 0 || y[d] >= l->part[d] ? NULL : &of[index_of(l, y)];
}

static void apply_at(struct lattice *l, const struct site *of, long i, const long *x)
{
    for (int c = 0; c < COLOURS; c++) {
        l->image[i].colour[c] = (FACES + mass * mass) * of[i].colour[c];
    }
    for (int f = 0; f < FACES; f++) {
        const struct site *s = beside(l, of, x, f);
        s = s != NULL ? s : &l->in[l->face_begin[f] + in_face(l, x, f / 2)];
        for (int c = 0; c < COLOURS; c++) {
            l->image[i].colour[c] -= s->colour[c];
        }
    }
}

static bool is_inner(const struct lattice *l, const long *x)
{
    for (int d = 0; d < DIMENSIONS; d++) {
        if (x[d] == 0 || x[d] == l->part[d] - 1) {
            return false;
        }
    }
    return true;
}

/* image = operator of direction; inner sites while the faces are under way. */
static void apply(struct lattice *l, const struct site *of)
{
    MPI_Request request[2 * FACES];
    pack_faces(l, of);
    exchange_begin(l, request);
    for (int inner = 1; inner >= 0; inner--) {
        for (long i = 0; i < l->sites; i++) {
            long x[DIMENSIONS];
            place_of(l, i, x);
            if (is_inner(l, x) == (inner != 0)) {
                apply_at(l, of, i, x);
            }
        }
        if (inner) {
            exchange_end(l, request);
        }
    }
}

static double product(const struct lattice *l, const struct site *a, const struct site *b)
{
    double sum = 0, all;
    for (long i = 0; i < l->sites; i++) {
        for (int c = 0; c < COLOURS; c++) {
            sum += creal(conj(a[i].colour[c]) * b[i].colour[c]);
        }
    }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, l->torus);
    return all;
}

/* A number of a place of the whole lattice that looks like chance: the solution. */
static double complex known(const struct lattice *l, const long *x, int c)
{
    uint64_t place = (uint64_t)c;
    for (int d = 0; d < DIMENSIONS; d++) {
        long global = ((x[d] + l->at[d] * l->part[d]) % l->side + l->side) % l->side;
        place = place * (uint64_t)l->side + (uint64_t)global;
    }
    return (double)(mix(place + 1) >> 40) * 0x1p-24 + I * (double)(mix(place + 2) >> 40) * 0x1p-24;
}

/* rest = the right side, direction = rest, solution = 0. */
static double prepare(struct lattice *l)
{
    for (long i = 0; i < l->sites; i++) {
        long x[DIMENSIONS];
        place_of(l, i, x);
        for (int c = 0; c < COLOURS; c++) {
            double complex sum = (FACES + mass * mass) * known(l, x, c);
            for (int f = 0; f < FACES; f++) {
                x[f / 2] += f % 2 == 0 ? -1 : 1;
                sum -= known(l, x, c);
                x[f / 2] -= f % 2 == 0 ? -1 : 1;
            }
            l->rest[i].colour[c] = l->direction[i].colour[c] = sum;
            l->solution[i].colour[c] = 0;
        }
    }
    return product(l, l->rest, l->rest);
}

/* a += factor * b */
static void add(const struct lattice *l, struct site *a, double factor, const struct site *b)
{
    for (long i = 0; i < l->sites; i++) {
        for (int c = 0; c < COLOURS; c++) {
            a[i].colour[c] += factor * b[i].colour[c];
        }
    }
}

static void solve(struct lattice *l, double left)
{
    const double enough = left * 1e-24;
    for (int step = 0; step < STEPS_MAX && left > enough; step++) {
        apply(l, l->direction);
        double length = left / product(l, l->direction, l->image);
        add(l, l->solution, length, l->direction);
        add(l, l->rest, -length, l->image);
        double now = product(l, l->rest, l->rest);
        for (long i = 0; i < l->sites; i++) {
            for (int c = 0; c < COLOURS; c++) {
                l->direction[i].colour[c] =
                    l->rest[i].colour[c] + now / left * l->direction[i].colour[c];
            }
        }
        left = now;
    }
}

static void check(struct lattice *l)
{
    double most = 0;
    for (long i = 0; i < l->sites; i++) {
        long x[DIMENSIONS];
        place_of(l, i, x);
        for (int c = 0; c < COLOURS; c++) {
            double off = cabs(l->solution[i].colour[c] - known(l, x, c));
            most = isnan(off) || off > most ? off : most;
        }
    }
    if (!(most < 1e-9)) {
        fprintf(stderr, "lattice: rank %d: a value is off by %g\n", l->job->rank, most);
        l->job->wrong = true;
    }
}

int main(int argc, char **argv)
{
    struct job job;
    job_begin(&job, argc, argv, "lattice", "SIZE", 8, 3);
    struct lattice l = {.job = &job, .side = job.size};
    if (job.size < 2 || job.size > 128) {
        job_usage(&job, "the size must be from 2 to 128", argv[argc - 1]);
    }
    make_lattice(&l);
    size_t size = (size_t)l.faces_sites * sizeof(struct site);
    if (job.two_sided) {
        l.in = job_alloc(&job, size);
    } else {
        MPI_Win_allocate((MPI_Aint)size, sizeof(struct site), MPI_INFO_NULL, l.torus, &l.in,
                         &l.win);
    }
    for (int round = 0; round < job.rounds; round++) {
        double left = prepare(&l);
        job_round(&job);
        solve(&l, left);
        job_round_over(&job);
        check(&l);
    }
    if (job.two_sided) {
        free(l.in);
    } else {
        MPI_Win_free(&l.win);
    }
    MPI_Group_free(&l.group);
    MPI_Comm_free(&l.torus);
    free(l.solution);
    free(l.rest);
    free(l.direction);
    free(l.image);
    free(l.out);
    return job_end(&job);
}
