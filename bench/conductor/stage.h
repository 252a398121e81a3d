/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subject on the stage: its processes, its page, its turns. Every wait has a
 * limit; a subject that misses it is killed with all that it started.
 *
 *   OFF ── stage_start ──► WAITING ◄──► turn ── stage_end ──► OFF
 *                             └── too late, gone, error ──► stage_kill ──► OFF, `why`
 *
 * The processes are found again by their sessions (sessions.h).
 */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/page.h"
#include "subjects.h"

enum { STAGE_WHY = 400 };

struct stage {
    const struct subject *subject;
    struct page *page;
    int page_fd, output_fd;   /* memfds: the page; what the processes print */
    pid_t leader[TURN_RANKS]; /* of the sessions; 0: none */
    bool on;
    uint32_t number;     /* of the last turn */
    char why[STAGE_WHY]; /* the last failure, one line */
};

/* The state that all stages of the runner share. */
struct stage_settings {
    int core[2];
    double start_limit, turn_limit; /* seconds */
    int keeper;                     /* sessions.h */
    bool prefer;                    /* put the sessions before all other work */
};

/* stage_start() starts the processes and waits until all ranks are ready; 0, or -1
 * with `why`. */
int stage_start(struct stage *s, const struct stage_settings *settings);

/* stage_ask() tells whether all ranks can do a work: 1 or 0, or -1 with `why`. */
int stage_ask(struct stage *s, const struct stage_settings *settings, const struct turn_work *work);

/* stage_turn() gives the turn to the subject; 0 with the results of ranks 0 and 1, or -1 with
 * `why`; the subject is then off the stage. `limit` in seconds comes on top of the
 * setting. */
int stage_turn(struct stage *s, const struct stage_settings *settings, const struct turn_work *work,
               double limit, struct turn_result result[2]);

/* stage_end() ends the plan and the processes. */
void stage_end(struct stage *s);

#endif
