/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of the samples: values, comparisons, and the targets of the project. */
#include "conductor.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The samples of a work and subject in the unit of a bench. */
static void convert(const struct run *r, const struct bench *b, uint64_t size, int work,
                    int subject, struct stats_sample *to)
{
    const struct stats_sample *from =
        work >= 0 && subject >= 0 ? r->works[work].samples[subject] : NULL;
    for (int i = 0; i < r->rounds_done; i++) {
        to[i] = from != NULL ? from[i] : (struct stats_sample){.good = false};
        to[i].value = plan_value(b, size, to[i].value);
    }
}

struct stats_summary results_of(const struct run *r, const struct bench_case *c,
                                enum stats_mode mode)
{
    struct stats_sample samples[ROUNDS_MAX];
    convert(r, c->bench, c->size, c->ours, c->subject, samples);
    return stats_of(samples, r->rounds_done, mode);
}

struct stats_pair results_against(const struct run *r, const struct bench_case *c, int subject,
                                  enum stats_mode mode)
{
    struct stats_sample ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    convert(r, c->bench, c->size, c->ours, c->subject, ours);
    convert(r, c->bench, c->size, c->theirs, subject, theirs);
    return stats_compare(ours, theirs, r->rounds_done, mode);
}

/* ---- Targets ---- */

/* Ours is the better of two benches (the second may be NULL); it is compared with a
 * subject, with another case of ours, or with the limit itself. */
struct target {
    const char *bench, *or_bench;
    uint64_t size;
    const char *subject; /* that it is compared with, or NULL */
    const char *base;    /* bench of ours that it is compared with, or NULL */
    uint64_t base_size;
    bool at_most;
    double limit;
    const char *text;
    bool rise; /* the value is ours less theirs, else the ratio */
};

#define KIB UINT64_C(1024)
#define ROUNDS_ENOUGH 3

static const struct target targets[] = {
    {"put_latency", "put_latency_eqget", 8, "raw", NULL, 0, true, 2.2,
     "8 B put, half round trip / raw ping-pong of two cache lines", false},
    {"put_latency", "put_latency_eqget", 8, "ucx-posix", NULL, 0, true, 1.0,
     "8 B put, half round trip / UCX tag messages", false},
    {"put_latency", "put_latency_eqget", 8, "openmpi", NULL, 0, true, 0.9,
     "8 B put, half round trip / Open MPI", false},
    {"put_latency", "put_latency_eqget", 8, "openmpi-ucx", NULL, 0, true, 0.9,
     "8 B put, half round trip / Open MPI over UCX", false},
    {"put_latency", "put_latency_eqget", 8, "mpich", NULL, 0, true, 0.9,
     "8 B put, half round trip / MPICH", false},
    {"message_rate", NULL, 8, "ucx-posix", NULL, 0, false, 0.7, "8 B message rate / UCX tag",
     false},
    {"bandwidth", NULL, 1024 * KIB, "ucx-posix", NULL, 0, false, 1.0,
     "1 MiB bandwidth / UCX tag over posix", false},
    {"bandwidth", NULL, 1024 * KIB, "ucx-cma", NULL, 0, false, 1.0,
     "1 MiB bandwidth / UCX tag over cma", false},
    {"same_core", NULL, 8, "futex", NULL, 0, true, 1.3,
     "round trip on one core / futex ping-pong there", false},
    {"wake", NULL, 8, "futex", NULL, 0, true, 1.5, "wake of a sleeping target / futex wake", false},
    {"match", NULL, 4096, NULL, "match", 1, true, 1.5, "search among 4096 entries / one entry",
     false},
    {"match_masks", NULL, 4096, NULL, "match", 1, true, 3.0,
     "search among 4096 entries of 8 masks / one entry", false},
    {"handler_message", NULL, 8, NULL, NULL, 0, true, 60, "an empty handler, more a message",
     false},
    {"handler_packet", NULL, 64, NULL, NULL, 0, true, 30, "an empty handler, more a packet", false},
    {"rv32_message", NULL, 8, NULL, NULL, 0, true, 80,
     "an empty handler on an RV32 core, more a message", false},
    {"fetch_atomic", NULL, 8, NULL, "put_latency", 8, true, 2.4,
     "8 B PtlFetchAtomic until fetched / 8 B put, half round trip", false},
    {"atomic_local", NULL, 8, NULL, NULL, 0, true, 60, "8 B PtlAtomic on oneself", false},
    {"chain_ctinc", NULL, 0, NULL, NULL, 0, true, 40, "a link of a chain of PtlTriggeredCTInc",
     false},
    {"chain_put", NULL, 0, NULL, NULL, 0, true, 40, "a link of a chain of PtlTriggeredPut", false},
    {"chain_atomic", NULL, 0, NULL, NULL, 0, true, 40, "a link of a chain of PtlTriggeredAtomic",
     false},
    {"first_ratio", NULL, KIB + 1, NULL, NULL, 0, true, 3,
     "the first 1,000 messages of 1,025 B / later ones", false},
    {"first_ratio", NULL, 4 * KIB, NULL, NULL, 0, true, 3, "the same, 4 KiB", false},
    {"first_ratio", NULL, 64 * KIB, NULL, NULL, 0, true, 3, "the same, 64 KiB", false},
    {"mpi_latency", NULL, 8, "openmpi", NULL, 0, true, 2.0,
     "MPI over Pinwheel, 8 B latency / Open MPI", false},
    {"mpi_message_rate", NULL, 8, "openmpi", NULL, 0, false, 0.4,
     "MPI over Pinwheel, 8 B message rate / Open MPI", false},
    {"mpi_bandwidth", NULL, 1024 * KIB, "openmpi", NULL, 0, false, 1.5,
     "MPI over Pinwheel, 1 MiB bandwidth / Open MPI", false},
    {"mpi_put", NULL, 8, "mpich", NULL, 0, true, 1.0, "MPI_Put and flush over Pinwheel / MPICH",
     false},
    {"mpi_get", NULL, 8, "mpich", NULL, 0, true, 1.0, "MPI_Get and flush over Pinwheel / MPICH",
     false},
    {"mpi_fetch_and_op", NULL, 8, "mpich", NULL, 0, true, 0.8,
     "MPI_Fetch_and_op over Pinwheel / MPICH", false},
    {"mpi_compare_and_swap", NULL, 8, "mpich", NULL, 0, true, 0.8,
     "MPI_Compare_and_swap over Pinwheel / MPICH", false},
    {"mpi_accumulate", NULL, 8, "mpich", NULL, 0, true, 0.8,
     "MPI_Accumulate and flush over Pinwheel / MPICH", false},
    {"udp/latency", NULL, 8, "udp/raw", NULL, 0, true, 1.4,
     "8 B put over UDP, half round trip / raw UDP ping-pong", false},
    {"udp/latency", NULL, 8, "udp/ucx-tcp", NULL, 0, true, 1.0, "the same / UCX over tcp", false},
    {"udp/latency", NULL, 8, "udp/tcp-rxm", NULL, 0, true, 0.5, "the same / libfabric tcp;ofi_rxm",
     false},
    {"udp/rate", NULL, 8, NULL, NULL, 0, false, 2.0, "8 B message rate over UDP", false},
    {"udp/rate", NULL, 8, "udp/ucx-tcp", NULL, 0, false, 10.0, "the same / UCX over tcp", false},
    {"udp/bandwidth", NULL, 1024 * KIB, "udp/raw", NULL, 0, false, 0.5,
     "1 MiB bandwidth over UDP / raw UDP stream (GSO, GRO)", false},
    {"udp/bandwidth", NULL, 1024 * KIB, "udp/openmpi-tcp", NULL, 0, false, 1.0,
     "the same / Open MPI over tcp", false},
    {"udp/bandwidth", NULL, 1024 * KIB, "udp/ucx-tcp", NULL, 0, false, 1.0,
     "the same / UCX over tcp", false},
    {"udp/bandwidth", NULL, 1024 * KIB, "udp/tcp-rxm", NULL, 0, false, 1.0,
     "the same / libfabric tcp;ofi_rxm", false},
    {"spin/strided", NULL, 256, "openmpi", NULL, 0, false, 1.0,
     "4 MiB into blocks of 256 B / Open MPI's vector datatype", false},
    {"spin/strided", NULL, 256, "mpich", NULL, 0, false, 1.0,
     "4 MiB into blocks of 256 B / MPICH's vector datatype", false},
    {"spin/strided", NULL, 4 * KIB, "contiguous", NULL, 0, false, 0.8,
     "4 MiB into blocks of 4 KiB / a contiguous put", false},
    {"spin/pingpong", NULL, 8 * KIB, "cpu", NULL, 0, true, 1.0,
     "8 KiB ping-pong, streamed by handlers / answered by the CPU", false},
    {"spin/pingpong", NULL, 16 * KIB, "cpu", NULL, 0, true, 1.0, "the same, 16 KiB", false},
    {"spin/pingpong", NULL, 64 * KIB, "cpu", NULL, 0, true, 1.0, "the same, 64 KiB", false},
    {"spin/pingpong", NULL, 256 * KIB, "cpu", NULL, 0, true, 1.0, "the same, 256 KiB", false},
    {"spin/pingpong", NULL, 1024 * KIB, "cpu", NULL, 0, true, 1.0, "the same, 1 MiB", false},
    {"spin/pingpong", NULL, 4096 * KIB, "cpu", NULL, 0, true, 1.0, "the same, 4 MiB", false},
    {"spin/broadcast", NULL, 64 * KIB, "openmpi-crew", NULL, 0, true, 1.0,
     "64 KiB broadcast to 7 ranks that compute / Open MPI", false},
    {"spin/broadcast", NULL, 64 * KIB, "mpich-crew", NULL, 0, true, 1.0, "the same / MPICH", false},
    {"spin/invoke", NULL, 20, "one-hpu", NULL, 0, false, 1.7,
     "two HPUs, two contexts, 20 us a handler / one HPU", false},
    {"spin/fair", NULL, 100, NULL, "spin/fair", 0, true, 100,
     "a message beside handlers of 100 us / without, us more", true},
    {"spin/overlap", NULL, 512 * KIB, NULL, NULL, 0, false, 0.9,
     "overlap ratio (RED-SEA), messages of 512 KiB", false},
    {"spin/overlap", NULL, 1024 * KIB, NULL, NULL, 0, false, 0.9, "the same, 1 MiB", false},
    {"spin/overlap", NULL, 4096 * KIB, NULL, NULL, 0, false, 0.9, "the same, 4 MiB", false},
    {"spin/overlap_cost", NULL, 512 * KIB, NULL, NULL, 0, true, 1.1,
     "dgemm and unpacking of 512 KiB together / each alone, CPU time", false},
    {"spin/overlap_cost", NULL, 1024 * KIB, NULL, NULL, 0, true, 1.1, "the same, 1 MiB", false},
    {"spin/overlap_cost", NULL, 4096 * KIB, NULL, NULL, 0, true, 1.1, "the same, 4 MiB", false},
};

_Static_assert(sizeof(targets) / sizeof(targets[0]) <= TARGETS_MAX, "they fit");

static const struct bench_case *find_case(const struct run *r, const char *bench, uint64_t size)
{
    for (int i = 0; bench != NULL && i < r->case_count; i++) {
        if (strcmp(r->cases[i].bench->name, bench) == 0 && r->cases[i].size == size) {
            return &r->cases[i];
        }
    }
    return NULL;
}

static int find_subject(const struct run *r, const char *name)
{
    for (int i = 0; i < r->subjects; i++) {
        if (strcmp(r->stages[i].subject->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static struct stats_pair compare_cases(const struct run *r, const struct bench_case *c,
                                       const struct bench_case *base, enum stats_mode mode)
{
    struct stats_sample ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    convert(r, c->bench, c->size, c->ours, c->subject, ours);
    convert(r, base->bench, base->size, base->ours, base->subject, theirs);
    return stats_compare(ours, theirs, r->rounds_done, mode);
}

static void judge(const struct run *r, const struct target *t, const struct bench_case *c,
                  enum stats_mode mode, struct target_result *result)
{
    const struct bench_case *base = find_case(r, t->base, t->base_size);
    struct stats_pair p = {.ratio = 0};
    int subject = t->subject != NULL ? find_subject(r, t->subject) : -1;
    bool absolute = t->subject == NULL && t->base == NULL;
    if (subject >= 0) {
        p = results_against(r, c, subject, mode);
    } else if (base != NULL) {
        p = compare_cases(r, c, base, mode);
    } else if (absolute) {
        p.ours = results_of(r, c, mode);
    }
    if (p.ours.count == 0 || (!absolute && p.theirs.count == 0)) {
        return;
    }
    double value = absolute ? p.ours.median : t->rise ? p.ours.median - p.theirs.median : p.ratio;
    if (!result->known || (t->at_most ? value < result->value : value > result->value)) {
        result->ours = p.ours.median;
        result->theirs = p.theirs.median;
        result->value = value;
        result->unit = c->bench->unit;
        result->mode = mode;
        result->met = t->at_most ? value <= t->limit : value >= t->limit;
        result->rounds = p.ours.count;
        result->known = true;
    }
}

/* The reason that was given when a subject of the target, either side of it, was left out, wholly
 * or at this bench. */
static const char *left_out(const struct run *r, const struct target *t)
{
    const char *names[] = {t->subject, NULL};
    for (int i = 0; i < bench_table_size; i++) {
        if (strcmp(bench_table[i].name, t->bench) == 0) {
            names[1] = bench_table[i].subject;
        }
    }
    for (int i = r->complaint_count - 1; i >= 0; i--) {
        const struct complaint *c = &r->complaints[i];
        size_t length = strlen(t->bench);
        bool here =
            *c->work == '\0' || (strncmp(c->work, t->bench, length) == 0 && c->work[length] == ',');
        for (int n = 0; here && n < 2; n++) {
            if (names[n] != NULL && strcmp(c->subject->name, names[n]) == 0) {
                return c->why;
            }
        }
    }
    return NULL;
}

static struct target_result judge_in(const struct run *r, const struct target *t,
                                     enum stats_mode mode)
{
    const char *benches[] = {t->bench, t->or_bench};
    struct target_result result = {.limit = t->limit, .at_most = t->at_most};
    snprintf(result.text, sizeof(result.text), "%s", t->text);
    for (int b = 0; b < 2; b++) {
        const struct bench_case *c = find_case(r, benches[b], t->size);
        if (c != NULL) {
            judge(r, t, c, mode, &result);
        }
    }
    return result;
}

/* More than two ranks need cores for a target to be one; two have them, or are not measured. */
static bool crowded(const struct subject *s)
{
    return s->ranks > 2 && sysconf(_SC_NPROCESSORS_ONLN) < s->ranks;
}

/* Near counts, unless it was too rare to say much. */
int results_targets(const struct run *r, struct target_result results[TARGETS_MAX])
{
    int count = (int)(sizeof(targets) / sizeof(targets[0]));
    for (int i = 0; i < count; i++) {
        struct target_result near = judge_in(r, &targets[i], MODE_NEAR);
        struct target_result far = judge_in(r, &targets[i], MODE_FAR);
        bool rare = near.rounds < ROUNDS_ENOUGH && far.rounds > near.rounds;
        results[i] = rare ? far : near;
        results[i].why = results[i].known ? NULL : left_out(r, &targets[i]);
        const struct bench_case *c = find_case(r, targets[i].bench, targets[i].size);
        if (c != NULL && crowded(r->stages[c->subject].subject)) {
            results[i].known = false;
            results[i].why = "this machine has fewer cores than it has ranks";
        }
    }
    return count;
}
