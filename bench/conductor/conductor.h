/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conductor: what is measured, and how the parts fit together.
 *
 *   plan       benches × sizes ──► cases (a line of the report) and works (what
 *              subjects are asked for; several cases may compare with one work)
 *   rounds     every round, every work, every subject that can do it: one turn
 *   report     tables, the targets, JSON, the picture
 *
 * A sample is at  work × subject × round.
 */
#ifndef BENCH_CONDUCTOR_H
#define BENCH_CONDUCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "harness/turn.h"
#include "stage.h"
#include "stats.h"
#include "subjects.h"

enum {
    SUBJECTS_MAX = 48,
    WORKS_MAX = 256,
    CASES_MAX = 256,
    SIZES_MAX = 24,
    COMPLAINTS_MAX = 320,
    ROUNDS_MAX = 1000,
    EXTRA_MAX = 8 /* subjects of the command line */
};

/* ---- What can be measured (plan.c) ---- */

enum value_kind {
    VALUE_TIME, /* the result of the turn, times scale */
    VALUE_RATE, /* how often that goes into a second, times scale */
    VALUE_BYTES /* GB/s of `scale` messages in that time */
};

enum size_kind {
    SIZE_NONE,
    SIZE_MESSAGE,
    SIZE_SMALL,
    SIZE_WINDOW,
    SIZE_LARGE,
    SIZE_ENTRIES,
    SIZE_DEPTH,   /* entries */
    SIZE_WAITING, /* unexpected messages */
    SIZE_MPI,
    SIZE_MPI_LARGE,
    SIZE_PACKET,
    SIZE_PACKET_FULL,
    SIZE_BLOCK,  /* bytes of a block of a strided layout */
    SIZE_STREAM, /* bytes of a message, above one packet */
    SIZE_TEXT,   /* bytes of a message that is worked on */
    SIZE_VECTOR,
    SIZE_UNIT,  /* bytes of a write */
    SIZE_FIRST, /* bytes of a message, above what a record holds */
    SIZE_OVERLAP,
    SIZE_HANDLER, /* microseconds of a handler */
    SIZE_SLOW     /* likewise, 0: there is none */
};

struct bench {
    const char *name, *title;
    const char *metric, *unit;
    const char *subject; /* of ours, or a client */
    enum turn_bench ours, theirs;
    enum turn_cores cores;
    enum size_kind sizes;
    enum value_kind value;
    double scale;
    double seconds; /* that a turn measures; 0: the default */
    bool compared;  /* with limits and peers that can do `theirs` */
};

/* Benches and subjects of this folder are of the network: they have no comparison with others. */
#define BENCH_NETWORK "udp/"

static inline bool bench_networks(const char *name)
{
    return strncmp(name, BENCH_NETWORK, sizeof(BENCH_NETWORK) - 1) == 0;
}

/* bench_compares() tells whether a subject stands beside ours in a bench. */
static inline bool bench_compares(const struct bench *b, const struct subject *s)
{
    return bench_networks(b->name) == bench_networks(s->name) &&
           (s->kind == SUBJECT_LIMIT || s->kind == SUBJECT_BASE || s->kind == SUBJECT_PEER);
}

extern const struct bench bench_table[];
extern const int bench_table_size;

/* ---- One run ---- */

struct options_bench {
    long rounds;
    long limit;          /* seconds that a subject may take to start, a tenth for a turn */
    double turn_seconds; /* that a turn measures */
    const char *benches, *peers, *out;
    uint64_t sizes[SIZES_MAX];
    int size_count; /* 0: the default ones */
    bool json, quick, list;
    bool prefer;                  /* root: before all other work of the machine */
    const char *extra[EXTRA_MAX]; /* NAME=COMMAND */
    int extra_count;
};

struct work_item {
    struct turn_work work;
    double seconds;
    double each[SUBJECTS_MAX]; /* seconds of an iteration when last measured; 0: not yet */
    bool wanted[SUBJECTS_MAX]; /* and can be done */
    struct stats_sample *samples[SUBJECTS_MAX]; /* one a round */
    bool checked[SUBJECTS_MAX];                 /* its data was compared */
};

struct bench_case {
    const struct bench *bench;
    uint64_t size;
    int ours, theirs; /* works; theirs -1: not compared */
    int subject;      /* of ours, or a client */
};

struct complaint {
    const struct subject *subject;
    bool unsettled; /* the machine's doing, not the subject's */
    char work[80];  /* "" : the subject as a whole */
    char why[STAGE_WHY];
};

struct run {
    const struct options_bench *options;
    struct stage_settings settings;
    bool two_cores;
    struct subject extra[EXTRA_MAX];
    struct stage stages[SUBJECTS_MAX];
    int subjects;
    struct work_item works[WORKS_MAX];
    int work_count;
    struct bench_case cases[CASES_MAX];
    int case_count;
    struct complaint complaints[COMPLAINTS_MAX];
    int complaint_count;
    int restarts[SUBJECTS_MAX];
    int rounds_done;
    double fastest; /* bracket, ns */
    double slowest;
    int turns, unsettled; /* that stood in brackets; given up because they never agreed */
    int repeated;
    char machine[256];
    char svg[512];
};

/* plan_make() chooses subjects, cases and works; 0, or the exit status after a line
 * on stderr. */
int plan_make(struct run *r);
void plan_free(struct run *r);

/* plan_listed() tells whether a name is in a list with commas, or its folder is: "spin" stands
 * for "spin/strided" and all other benches of that. */
bool plan_listed(const char *list, const char *name);

/* rounds_run() starts the subjects, measures and ends them. */
void rounds_run(struct run *r);

/* run_complain() keeps what went wrong with a subject. */
void run_complain(struct run *r, const struct subject *subject, const char *work, const char *why);

/* ---- Results (results.c) ---- */

/* results_of() is ours in one mode, of all rounds; results_against() compares it with
 * a subject over the rounds that both have. Values are in the unit of the bench; a
 * count of 0 says that there are none. */
struct stats_summary results_of(const struct run *r, const struct bench_case *c,
                                enum stats_mode mode);
struct stats_pair results_against(const struct run *r, const struct bench_case *c, int subject,
                                  enum stats_mode mode);

/* One target: what is compared, and whether it is met. */
struct target_result {
    char text[160];
    const char *unit;
    double ours, theirs; /* theirs: 0 if the target is a value */
    double value, limit; /* to be compared: the ratio, or ours */
    bool at_most;        /* else at least */
    bool known, met;
    enum stats_mode mode;
    int rounds;      /* that it rests on */
    const char *why; /* a subject of it was left out, as far as is known; or NULL */
};
enum { TARGETS_MAX = 64 };

/* results_targets() fills `results` and gives their number. */
int results_targets(const struct run *r, struct target_result results[TARGETS_MAX]);

/* ---- Reports (report.c, report_json.c, plot.c) ---- */

int report_text(const struct run *r);
int report_json(const struct run *r);
int report_svg(const struct run *r);

/* conductor_run() does all of it and gives the exit status: 0, or 1 if Pinwheel's own
 * subject failed or a file could not be written, 2 for a bad option. */
int conductor_run(const struct options_bench *o);

#endif
