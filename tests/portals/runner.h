/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the files of the harness, not for cases: what the processes of a
 * crew share, and the calls of a crew's life.
 *
 *   suite.c   registers cases, and chooses which to run
 *   crew.c    forks crews, hands out cases, reports
 *   scene.c   what a crew's process does: the interface, fresh objects per case
 *   check.c   the checks
 *   twin.c    what makes a program a module for TWIN
 */
#ifndef RUNNER_H
#define RUNNER_H

#include "suite.h"

#include <stdatomic.h>

enum { CREW = 2, MESSAGE = 1500 };

/* How a process leaves, or what it answers after a case. LATE: it does not. */
enum {
    ANSWER_OK = 0,
    ANSWER_FAILED = 1,
    ANSWER_LATE = 2,
    ANSWER_REFUSED = 3, /* TWIN: it has called what acts on its whole process */
    ANSWER_SKIPPED = 77
};

/* One page or so, shared by the processes of a crew and the program above them. */
struct crew_page {
    atomic_int arrived, generation;
    struct {
        _Atomic(const char *) file; /* where it was seen last */
        atomic_int line;
        char message[MESSAGE]; /* why it failed, or skipped */
        _Atomic uint64_t word[SUITE_WORDS];
    } process[CREW];
};

/* Of this process, set before a body runs. */
extern struct crew_page *suite_page;
extern int suite_rank;

/* scene_open() opens the interface of a crew; scene_begin() and scene_end() make and free what
 * a case has; scene_close() closes it. Each fails as a check does. */
void scene_open(struct scene *s, const struct suite_case *c, int rank, int size);
void scene_begin(struct scene *s, const struct suite_case *c);
void scene_end(struct scene *s);
void scene_close(struct scene *s);

/* A life of a crew: what each rank does. */
struct crew_life {
    const struct suite_case *first;
    struct crew_page *page;
    int size;
    bool twin; /* ranks are threads, each with a copy of the cases */
    int order[CREW], answer[CREW];
};
void suite_life(const struct crew_life *life, int rank);

/* The counts of a run so far. */
struct suite_count {
    int ok, failed, skipped;
};
extern struct suite_count suite_count;
int suite_numbered(void);

/* suite_spread() calls suite_life() of each rank on a thread; null where ranks are processes. */
extern void (*suite_spread)(int ranks, void *life);

/* suite_run_case() runs a case and reports it; suite_close_crews() ends all crews. suite_first() is
 * the first case registered. */
void suite_run_case(const struct suite_case *c);
void suite_close_crews(void);
const struct suite_case *suite_first(void);

/* suite_run() is the program. With `spread`, for suite_spread, it runs pairs only, in TWIN. */
int suite_run(int argc, char **argv, void (*spread)(int ranks, void *life));

/* suite_limit_ms() is the time that a case has. */
uint64_t suite_limit_ms(void);

#endif
