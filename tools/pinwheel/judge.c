/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a job ends, and what is said of it; see job.h. The first cause decides the exit status;
 * what follows from it is not judged.
 */
#include "job.h"

#include "boot/pmi_server.h"
#include "groups.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void job_signal(struct job *j, int signal)
{
    if (job_is_away(j)) {
        hosts_signal(&j->hosts, signal);
    } else {
        children_signal(&j->children, signal);
    }
}

/* Begins the end: `signal` now, SIGKILL after the grace. */
void job_end(struct job *j, int signal)
{
    if (j->phase == RUNNING) {
        j->phase = ENDING;
        j->next_step = now_ms() + GRACE_MS;
        job_signal(j, signal);
        job_signal(j, SIGCONT); /* a stopped process acts on no signal */
    }
}

void job_kill(struct job *j)
{
    j->phase = KILLING;
    j->next_step = now_ms() + STUCK_MS;
    job_signal(j, SIGKILL);
}

/* The first failure: says why and ends the job with `status`. */
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

void job_judge_pmi(struct job *j)
{
    int rank, waiting, code;
    if (pmi_aborted(j->pmi.server, &rank, &code)) {
        int status = code & 255;
        job_fail(j, status == 0 && code != 0 ? 1 : status, "rank %d aborted the job with code %d",
                 rank, code);
    } else if (pmi_stuck(j->pmi.server, &rank, &waiting)) {
        job_fail(j, 1,
                 "rank %d left the job while rank %d waits for it in a barrier; all ranks must "
                 "make the same collective calls",
                 rank, waiting);
    }
}

/* As waitid() says it. */
void job_judge_exit(struct job *j, int rank, int code, int status)
{
    if (code == CLD_EXITED) {
        if (status != 0) {
            job_fail(j, status, "rank %d exited with status %d", rank, status);
        }
        return;
    }
    const char *name = sigabbrev_np(status), *meaning = sigdescr_np(status);
    job_fail(j, LAUNCH_SIGNAL + status, "rank %d was ended by signal %d (SIG%s, %s)%s", rank,
             status, name != NULL ? name : "?", meaning != NULL ? meaning : "?",
             code == CLD_DUMPED ? ", core dumped" : "");
}

/* Says why a rank could not be started: what failed, and with which errno. */
void job_fail_start(struct job *j, int rank, int error, const char *what)
{
    const char *program = j->launch->argv[0];
    if (strcmp(what, "chdir") == 0) {
        job_fail(j, 1, "rank %d has no folder like ours on its host: %s; start where all have one",
                 rank, strerror(error));
    } else if (strcmp(what, "exec") != 0) {
        job_fail(j, 1, "cannot start rank %d: %s: %s%s", rank, what, strerror(error),
                 error == EMFILE   ? " (see ulimit -n)"
                 : error == EAGAIN ? " (see ulimit -u)"
                                   : "");
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
    if (stays) {
        fprintf(stderr,
                "pinwheel run: a process of rank %d does not end even after SIGKILL, giving up\n",
                rank);
    } else {
        fprintf(stderr, "pinwheel run: rank %d has left processes behind, ending them\n", rank);
    }
}
