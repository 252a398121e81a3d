/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rounds: every subject has one turn a round and work, in an order that rotates,
 * so that what is compared was measured within milliseconds. The iterations of a
 * turn come from what the last one of the same kind took.
 *
 * A subject that fails loses the work that it failed at and is started again, two
 * times; then it is left out.
 */
#include "bracket.h"
#include "conductor.h"
#include "values.h"

#include <string.h>
#include <unistd.h>

enum { ATTEMPTS = 5, RESTARTS = 2, CALIBRATIONS = 24 };

#define WARM_PART 0.2     /* of the measured time, spent on warming up before */
#define ENOUGH 0.2        /* of the measured time, that a calibrating turn must take */
#define GROW_MOST 16.     /* from one calibrating turn to the next */
#define PATIENCE 20.      /* times the time that a turn should take */
#define REPORT_EVERY 0.25 /* seconds between lines of progress */

/* ---- Failures ---- */

static void note(struct run *r, struct complaint c, const char *work, const char *why)
{
    if (r->complaint_count < COMPLAINTS_MAX) {
        snprintf(c.work, sizeof(c.work), "%s", work);
        memcpy(c.why, why, strnlen(why, sizeof(c.why) - 1)); /* zeroed before */
        r->complaints[r->complaint_count++] = c;
    }
}

void run_complain(struct run *r, const struct subject *subject, const char *work, const char *why)
{
    note(r, (struct complaint){.subject = subject}, work, why);
}

static void leave_out(struct run *r, int subject)
{
    for (int w = 0; w < r->work_count; w++) {
        r->works[w].wanted[subject] = false;
    }
}

static void start(struct run *r, int subject)
{
    struct stage *s = &r->stages[subject];
    if (stage_start(s, &r->settings) != 0) {
        run_complain(r, s->subject, "", s->why);
        leave_out(r, subject);
    }
}

static void failed(struct run *r, int work, int subject)
{
    char name[80];
    struct stage *s = &r->stages[subject];
    run_complain(r, s->subject, plan_work_name(r, work, name), s->why);
    r->works[work].wanted[subject] = false;
    if (r->restarts[subject]++ < RESTARTS) {
        start(r, subject);
        return;
    }
    run_complain(r, s->subject, "", "left out from then on: it has failed too often");
    leave_out(r, subject);
}

/* ---- A turn ---- */

/* One turn of `count` iterations; what an iteration took, or -1. */
static double take(struct run *r, int work, int subject, uint64_t warm, uint64_t count, bool check,
                   double *stored)
{
    struct work_item *w = &r->works[work];
    struct turn_result result[2];
    struct turn_work t = w->work;
    t.warm = warm;
    t.count = count;
    t.check = check;
    if (stage_turn(&r->stages[subject], &r->settings, &t, PATIENCE * w->seconds, result) != 0) {
        failed(r, work, subject);
        return -1;
    }
    *stored = plan_stored(&t, result);
    w->each[subject] = result[0].seconds / (double)count;
    return w->each[subject];
}

/* Finds out what an iteration takes, by turns that grow; the first compares data. */
static int calibrate(struct run *r, int work, int subject)
{
    struct work_item *w = &r->works[work];
    double stored, each;
    uint64_t count = 1;
    for (int i = 0; i < CALIBRATIONS; i++) {
        each = take(r, work, subject, 0, count, i == 0, &stored);
        if (each < 0) {
            return -1;
        }
        w->checked[subject] = true;
        double took = each * (double)count;
        if (took >= ENOUGH * w->seconds) {
            break;
        }
        double more = took > 0 ? ENOUGH * w->seconds / took * 1.2 : GROW_MOST;
        count = (uint64_t)((double)count * (more > GROW_MOST ? GROW_MOST : more < 2 ? 2 : more));
    }
    return 0;
}

static double bracket(struct run *r)
{
    if (!r->two_cores) {
        return 0;
    }
    double raw = bracket_measure();
    r->fastest = r->fastest == 0 || raw < r->fastest ? raw : r->fastest;
    r->slowest = raw > r->slowest ? raw : r->slowest;
    return raw;
}

static void measure(struct run *r, int work, int subject, int round)
{
    struct work_item *w = &r->works[work];
    struct stats_sample *sample = &w->samples[subject][round];
    if (w->each[subject] == 0 && calibrate(r, work, subject) != 0) {
        return;
    }
    for (int i = 0; i < ATTEMPTS && !sample->good; i++) {
        double each = w->each[subject], before = bracket(r);
        uint64_t warm = stats_iterations(WARM_PART * w->seconds, each);
        if (take(r, work, subject, warm, stats_iterations(w->seconds, each), false,
                 &sample->value) < 0) {
            return;
        }
        double after = bracket(r);
        bool settled = stats_agree(before, after) && !stats_shared((before + after) / 2);
        /* A check has no modes: each of its turns counts, and as if in one. */
        sample->raw = r->options->quick ? 0 : (before + after) / 2;
        sample->good = !r->two_cores || r->options->quick || settled;
        r->repeated += !sample->good;
    }
    r->turns++;
    r->unsettled += !sample->good;
}

static bool any_counts(const struct run *r, int work, int subject)
{
    for (int i = 0; i < r->rounds_done; i++) {
        if (r->works[work].samples[subject][i].good) {
            return true;
        }
    }
    return false;
}

/* The report names a work that was measured and has no turn that counts: it is in no table. */
static void tell_unsettled(struct run *r)
{
    char name[80];
    for (int w = 0; w < r->work_count; w++) {
        for (int s = 0; s < r->subjects; s++) {
            if (r->works[w].wanted[s] && !any_counts(r, w, s)) {
                note(r, (struct complaint){.subject = r->stages[s].subject, .unsettled = true},
                     plan_work_name(r, w, name),
                     "no turn counts: the latency between the cores changed during each, or they "
                     "were threads of one core; run it again");
            }
        }
    }
}

/* ---- Progress ---- */

struct progress {
    bool shown;
    double began, last;
    long turns, done;
};

static struct progress expect(const struct run *r)
{
    struct progress p = {.shown = isatty(STDERR_FILENO) != 0, .began = turn_now()};
    for (int w = 0; w < r->work_count; w++) {
        for (int s = 0; s < r->subjects; s++) {
            p.turns += r->works[w].wanted[s] ? r->options->rounds : 0;
        }
    }
    return p;
}

static void show(struct progress *p, int round, long rounds)
{
    double now = turn_now(), spent = now - p->began;
    if (!p->shown || now - p->last < REPORT_EVERY || p->done == 0) {
        return;
    }
    p->last = now;
    fprintf(stderr, "\rround %d of %ld, %ld of %ld turns, %.0f a second, %.0f s left \033[K",
            round + 1, rounds, p->done, p->turns, (double)p->done / spent,
            spent / (double)p->done * (double)(p->turns - p->done));
    fflush(stderr);
}

/* ---- All of it ---- */

static bool has_work(const struct run *r, int subject)
{
    for (int w = 0; w < r->work_count; w++) {
        if (r->works[w].wanted[subject]) {
            return true;
        }
    }
    return false;
}

static void start_all(struct run *r)
{
    bool shown = isatty(STDERR_FILENO) != 0;
    for (int s = 0; s < r->subjects; s++) {
        if (has_work(r, s)) {
            if (shown) {
                fprintf(stderr, "\rstarting %s \033[K", r->stages[s].subject->name);
            }
            start(r, s);
        }
    }
}

/* A subject is asked for every work of the plan whether it can do that. */
static void ask_all(struct run *r)
{
    for (int s = 0; s < r->subjects; s++) {
        for (int w = 0; w < r->work_count && r->stages[s].on; w++) {
            if (!r->works[w].wanted[s]) {
                continue;
            }
            int can = stage_ask(&r->stages[s], &r->settings, &r->works[w].work);
            r->works[w].wanted[s] = can > 0;
            if (can < 0) {
                run_complain(r, r->stages[s].subject, "", r->stages[s].why);
                leave_out(r, s);
            }
        }
        if (!has_work(r, s)) {
            stage_end(&r->stages[s]);
        }
    }
}

static void run_round(struct run *r, int round, struct progress *p)
{
    for (int w = 0; w < r->work_count; w++) {
        for (int i = 0; i < r->subjects; i++) {
            int s = (i + round + w) % r->subjects;
            if (r->works[w].wanted[s]) {
                measure(r, w, s, round);
                p->done++;
                show(p, round, r->options->rounds);
            }
        }
    }
}

void rounds_run(struct run *r)
{
    start_all(r);
    ask_all(r);
    struct progress p = expect(r);
    for (; r->rounds_done < r->options->rounds; r->rounds_done++) {
        run_round(r, r->rounds_done, &p);
    }
    for (int s = 0; s < r->subjects; s++) {
        stage_end(&r->stages[s]);
    }
    tell_unsettled(r);
    if (p.shown) {
        fprintf(stderr, "\r\033[K");
    }
}
