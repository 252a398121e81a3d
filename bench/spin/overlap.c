/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computing while data comes: rank 1 multiplies matrices (OpenBLAS dgemm, one thread), while an
 * HPU, a thread on the same core, unpacks messages of work->size bytes into blocks of 256.
 *
 *      rank 1   ready ─┬─ dgemm ─ look ─ dgemm ─ look ─ ... ─ dgemm ─ look: it has arrived
 *      HPU             └───── packet, packet, packet ... ───────────────┘
 *      rank 0          └─ put
 *
 * An iteration does three things, one after the other: one message while rank 1 sleeps, so
 * many dgemm while nothing comes, and both together until the message is there. `extra`:
 *
 *   overlap        T_gemm / (T_gemm + T_poll) of RED-SEA D4.7, 4.5.4: the part of the time of a
 *                  message that went into dgemm, where T_poll is all else that this thread does;
 *                  both in CPU time, since the HPU takes the core from either
 *   overlap_cost   CPU time of this process together / the sum of what both needed alone
 *   overlap_gemm   the time of a dgemm meanwhile / alone: its slow-down
 *
 * The matrices are as large as makes a dgemm take as long as a message takes alone, about.
 */
#include "jobs.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 256, N_LEAST = 24, N_MOST = 512, N_STEP = 8, TRIES = 3 };

static double a[N_MOST * N_MOST], b[N_MOST * N_MOST], c[N_MOST * N_MOST];
static int n = N_LEAST;

/* Of a turn: seconds, and how many dgemm. */
static struct {
    double message_cpu; /* of messages alone */
    double gemm;        /* of dgemm alone, by the clock */
    double together_gemm, together_cpu;
    double own, own_while; /* of the thread of dgemm while messages came: all of it, in dgemm */
    double own_gemm;       /* of all dgemm */
    uint64_t gemms;        /* while messages came, and as many alone */
} sum;

static double thread_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double gemm(void)
{
    double start = turn_now(), own = thread_cpu();
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a, n, b, n, 0.0, c, n);
    sum.own_gemm += thread_cpu() - own;
    return turn_now() - start;
}

/* ---- An iteration ---- */

static int arrives(void)
{
    return spin_say() != 0 || link_wait(&spin.arrived, 1) != 0 ? -1 : 0;
}

/* The message while there is nothing else. */
static int message_alone(void)
{
    double before = turn_cpu();
    int rc = arrives();
    sum.message_cpu += turn_cpu() - before;
    return rc;
}

static int both(uint64_t *gemms)
{
    ptl_ct_event_t value;
    double cpu = turn_cpu(), own = thread_cpu(), own_before = sum.own_gemm;
    if (spin_say() != 0) {
        return -1;
    }
    spin.arrived.expected++;
    do {
        sum.together_gemm += gemm();
        ++*gemms;
        if (!link_ok(PtlCTGet(spin.arrived.ct, &value), "PtlCTGet")) {
            return -1;
        }
    } while (value.success < spin.arrived.expected && value.failure == 0);
    sum.own += thread_cpu() - own;
    sum.own_while += sum.own_gemm - own_before;
    sum.together_cpu += turn_cpu() - cpu;
    return value.failure == 0 ? 0 : turn_fail("a message failed");
}

static void gemm_alone(uint64_t gemms)
{
    for (uint64_t i = 0; i < gemms; i++) {
        sum.gemm += gemm();
    }
    sum.gemms += gemms;
}

static int compute(uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        uint64_t gemms = 0;
        if (message_alone() != 0 || both(&gemms) != 0) {
            return -1;
        }
        gemm_alone(gemms);
    }
    return 0;
}

static int feed(const struct turn_work *work, uint64_t messages)
{
    for (uint64_t i = 0; i < messages; i++) {
        if (spin_hear() != 0 || spin_send(work->size) != 0) {
            return -1;
        }
    }
    return 0;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    memset(&sum, 0, sizeof(sum));
    int rc = turn_rank() == 0 ? feed(work, 2 * iterations) : compute(iterations);
    return rc != 0 ? rc : spin_ready();
}

/* ---- A turn ---- */

static double message_time(void)
{
    double best = 1;
    for (int i = 0; i < TRIES; i++) {
        double start = turn_now();
        if (arrives() != 0) {
            return -1;
        }
        double took = turn_now() - start;
        best = took < best ? took : best;
    }
    return best;
}

static int choose_n(void)
{
    double wanted = message_time();
    if (wanted < 0) {
        return -1;
    }
    for (n = N_LEAST; n < N_MOST; n += N_STEP) {
        gemm();
        if (gemm() > wanted) {
            break;
        }
    }
    return 0;
}

static int begin(const struct turn_work *work)
{
    if (spin_layout_begin(work->size, BLOCK) != 0) {
        return -1;
    }
    for (int i = 0; i < N_MOST * N_MOST; i++) {
        a[i] = (double)(i % 7) - 3;
        b[i] = (double)(i % 5) - 2;
    }
    return turn_rank() == 0 ? feed(work, TRIES) : choose_n();
}

/* c = a b, entry by entry, in numbers that are exact. */
static int check_product(void)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double wanted = 0;
            for (int k = 0; k < n; k++) {
                wanted += a[i * n + k] * b[k * n + j];
            }
            if (c[i * n + j] != wanted) {
                return turn_fail("dgemm of %d: %g at %d, %d where %g should be", n, c[i * n + j], i,
                                 j, wanted);
            }
        }
    }
    return 0;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    int rc = 0;
    if (turn_rank() == 1) {
        result->extra = work->bench == BENCH_SPIN_OVERLAP ? sum.own_while / sum.own
                        : work->bench == BENCH_SPIN_OVERLAP_COST
                            ? sum.together_cpu / (sum.message_cpu + sum.own_gemm - sum.own_while)
                            : sum.together_gemm / sum.gemm;
        rc = work->check && (spin_layout_check(work->size, BLOCK) != 0 || check_product() != 0);
    }
    return spin_unlink() != 0 || rc != 0 ? -1 : 0;
}

static bool fits(const struct turn_work *work)
{
    return spin_on(work) && work->size > 0 && work->size <= SPIN_MESSAGE && work->size % BLOCK == 0;
}

static const struct turn_duty duties[] = {
    {BENCH_SPIN_OVERLAP, fits, begin, run, end},
    {BENCH_SPIN_OVERLAP_COST, fits, begin, run, end},
    {BENCH_SPIN_OVERLAP_GEMM, fits, begin, run, end},
};

/* A thread that waits at rank 1 sleeps, so that its CPU time is that of the message. */
static int sleep_at_once(void)
{
    return setenv("PINWHEEL_SPIN_US", "0", 1) == 0 && setenv("PINWHEEL_YIELD_US", "0", 1) == 0
               ? 0
               : turn_fail("no memory for its settings");
}

int main(void)
{
    int rank = turn_join(-1);
    if (rank < 0 || (rank == 1 && sleep_at_once() != 0) || spin_hpus(1, false) != 0 ||
        spin_open(WAY_HPU) != 0 || link_connect() != 0 || turn_serve(duties, 3) != 0) {
        return 1;
    }
    PtlNIFini(self.ni);
    PtlFini();
    return 0;
}
