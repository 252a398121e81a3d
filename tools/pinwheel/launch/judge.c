/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides how a job ends, and reports it; see job.h. The first cause decides the exit status; its
 * consequences are not judged.
 *
 * The failure that the launcher sees first need not be the cause. The kernel closes the descriptors
 * of a process before it reports that and how it has ended. So other ranks may notice that a rank
 * is gone, and fail because of it, while the launcher does not know yet how that rank has ended. It
 * judges nothing until it knows, or until so much time has passed that the rank must have closed
 * its connection and live.
 */
#include "job.h"

#include "base/log.h"
#include "boot/pmi_server.h"
#include "groups.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void job_signal(struct job *j, int signal)
{
    if (job_is_away(j)) {
        hosts_signal(&j->hosts, signal);
    } else {
        children_signal(&j->children, signal);
    }
}

/* Begins the end of the job: sends `signal` now, and SIGKILL when the grace period is over. */
void job_end(struct job *j, int signal)
{
    if (j->phase == RUNNING) {
        j->phase = ENDING;
        j->next_step = now_ms() + GRACE_MS;
        job_signal(j, signal);
        job_signal(j, SIGCONT); /* a stopped process does not act on signals */
    }
}

void job_kill(struct job *j)
{
    j->phase = KILLING;
    j->next_step = now_ms() + STUCK_MS;
    job_signal(j, SIGKILL);
}

/* Reports the first failure: prints why and ends the job with `status`. */
void job_fail(struct job *j, int status, const char *format, ...)
{
    if (j->judged) {
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "pinwheel run: %s\n", text);
    j->judged = true;
    j->status = status;
    job_end(j, SIGTERM);
}

/* True if the connection of a rank has ended and the launcher does not know yet how the rank
 * ends. */
static bool in_doubt(struct job *j)
{
    bool any = false, over = now_ms() >= j->doubt_until;
    for (int r = 0; r < j->launch->size; r++) {
        struct process *p = &j->processes[r];
        if (!p->exited && !p->hung_up && pmi_torn(j->pmi.server, r)) {
            p->hung_up = over;
            any |= !over;
        }
    }
    if (!any) {
        j->doubt_until = INT64_MAX;
    } else if (j->doubt_until == INT64_MAX) {
        j->doubt_until = now_ms() + GRACE_MS;
    }
    return any;
}

static void describe(const struct failure *f, char *text, size_t size)
{
    if (f->code == CLD_EXITED) {
        snprintf(text, size, "rank %d exited with status %d", f->rank, f->status);
        return;
    }
    const char *name = sigabbrev_np(f->status), *meaning = sigdescr_np(f->status);
    snprintf(text, size, "rank %d was ended by signal %d (SIG%s, %s)%s", f->rank, f->status,
             name != NULL ? name : "?", meaning != NULL ? meaning : "?",
             f->code == CLD_DUMPED ? ", core dumped" : "");
}

static int status_of(const struct failure *f)
{
    return f->code == CLD_EXITED ? f->status : LAUNCH_SIGNAL + f->status;
}

/* True if failure `f` is more likely the cause than `other`: one by a signal is never the
 * consequence of another rank's exit. */
static bool precedes(const struct failure *f, const struct failure *other)
{
    return f->code != CLD_EXITED && other->code == CLD_EXITED;
}

void job_take_exit(struct job *j, int rank, int code, int status)
{
    struct failure f = {rank, code, status};
    char text[160];
    j->processes[rank].exited = true;
    if (j->launch->exited != NULL) {
        j->launch->exited(j->launch->context, rank, code == CLD_EXITED && status == 0);
    }
    if (code == CLD_EXITED && status == 0) {
        j->processes[rank].ended_well = now_ms();
        return;
    }
    bool excused = j->launch->excused != NULL && j->launch->excused(j->launch->context, rank);
    if (j->judged || excused) {
        return;
    }
    if (j->launch->keep_going && j->phase == RUNNING) {
        describe(&f, text, sizeof(text));
        fprintf(stderr, "pinwheel run: %s; the others go on\n", text);
        j->status = j->status == 0 ? status_of(&f) : j->status;
    } else if (!j->holding || precedes(&f, &j->held)) {
        j->holding = true;
        j->held = f;
    }
}

/* ---- Ranks that have ended while others run ---- */

/* how many ranges of ranks a line names; of the others it has the number only */
enum { RANGES_MAX = 8 };

/* True if a rank has ended well or, with `ended` false, if it still runs. */
static bool among(const struct process *p, bool ended)
{
    return ended ? p->ended_well != 0 : !p->exited;
}

/* Writes the ranks that have ended well, or that run, as "rank 3" or "ranks 0, 4-6 and 12 more";
 * returns their number. */
static int list_ranks(const struct job *j, bool ended, char *text, size_t size)
{
    int count = 0, named = 0, ranges = 0;
    char list[RANGES_MAX * 24] = "", *end = list;
    for (int r = 0, n; r < j->shown; r += n) {
        for (n = 0; r + n < j->shown && among(&j->processes[r + n], ended); n++) {
        }
        count += n;
        if (n > 0 && ranges < RANGES_MAX) {
            size_t room = sizeof(list) - (size_t)(end - list);
            const char *comma = ranges++ > 0 ? ", " : "";
            named += n;
            end += n == 1 ? snprintf(end, room, "%s%d", comma, r)
                          : snprintf(end, room, "%s%d-%d", comma, r, r + n - 1);
        }
        n += n == 0;
    }
    int length = snprintf(text, size, "rank%s %s", count == 1 ? "" : "s", list);
    if (count > named) {
        snprintf(text + length, size - (size_t)length, " and %d more", count - named);
    }
    return count;
}

void job_say_waiting(const struct job *j)
{
    char ended[256], run[256];
    int64_t last = 0;
    int gone = list_ranks(j, true, ended, sizeof(ended));
    int here = list_ranks(j, false, run, sizeof(run));
    for (int r = 0; r < j->shown; r++) {
        int64_t then = j->processes[r].ended_well;
        last = then > last ? then : last;
    }
    if (j->phase == RUNNING && gone > 0 && here > 0) {
        fprintf(stderr, "pinwheel run: %s ended with status 0%s %lld s ago; %s still run%s\n",
                ended, gone == 1 ? "" : ", the last", (long long)(now_ms() - last) / 1000, run,
                here == 1 ? "s" : "");
    }
}

void job_judge(struct job *j)
{
    const struct launch *l = j->launch;
    char text[256];
    int rank, waiting, code;
    int verdict = l->verdict != NULL ? l->verdict(l->context, text, sizeof(text)) : -1;
    if (pmi_aborted(j->pmi.server, &rank, &code)) {
        int status = code & 255;
        job_fail(j, status == 0 && code != 0 ? 1 : status, "rank %d aborted the job with code %d",
                 rank, code);
    } else if (j->judged) {
        j->doubt_until = INT64_MAX;
    } else if (verdict >= 0) {
        job_fail(j, verdict, "%s", text);
    } else if (j->holding && !in_doubt(j)) {
        describe(&j->held, text, sizeof(text));
        job_fail(j, status_of(&j->held), "%s", text);
    } else if (!j->holding && pmi_stuck(j->pmi.server, &rank, &waiting) && !in_doubt(j)) {
        job_fail(j, 1,
                 "rank %d left the job while rank %d waits for it in a barrier; all ranks must "
                 "make the same collective calls",
                 rank, waiting);
    }
}

/* Reports why a rank could not be started: the step that failed, and errno. */
void job_fail_start(struct job *j, int rank, int error, const char *what)
{
    const char *program = j->launch->argv[0];
    if (strcmp(what, "chdir") == 0) {
        job_fail(j, 1, "rank %d has no folder like ours on its host: %s; start where all have one",
                 rank, strerror(error));
    } else if (strcmp(what, "exec") != 0) {
        job_fail(j, 1, "cannot start rank %d: %s: %s%s", rank, what, strerror(error),
                 error == EAGAIN ? " (see ulimit -u)" : log_remedy(error));
    } else if (error == ENOENT || error == ENOTDIR) {
        const char *where = strchr(program, '/') != NULL
                                ? " (or its interpreter is missing)"
                                : " in the folders of PATH; ./ names one of this folder";
        job_fail(j, LAUNCH_NOT_FOUND, "%s: no such program%s", program, where);
    } else {
        job_fail(j, LAUNCH_CANNOT_EXECUTE, "%s: cannot be executed: %s", program, strerror(error));
    }
}

void job_say_left(int rank, bool stays)
{
    if (rank < 0) {
        fprintf(stderr, "pinwheel run: " GROUPS_LATER_TEXT "%s\n",
                stays ? ", giving up" : "; ending what there is");
    } else if (stays) {
        fprintf(stderr,
                "pinwheel run: a process of rank %d does not end even after SIGKILL, giving up\n",
                rank);
    } else {
        fprintf(stderr, "pinwheel run: rank %d has left processes behind, ending them\n", rank);
    }
}
