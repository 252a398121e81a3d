/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A running job, for the files of the launcher: launch.c has its loop, judge.c its end, and
 * launch_away.c the parts that differ when its ranks are on other hosts.
 */
#ifndef PINWHEEL_JOB_H
#define PINWHEEL_JOB_H

#include "children.h"
#include "cores.h"
#include "hosts.h"
#include "launch.h"
#include "pump.h"
#include "relay.h"
#include "service.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum phase { RUNNING, ENDING, KILLING };

struct process {
    struct relay_source out, err;
    bool exited;
    /* ms: when the launcher learned that the rank exited with status 0; 0: it did not */
    int64_t ended_well;
    bool hung_up; /* its PMI connection ended long ago, but the rank has not exited */
};

/* How a rank has failed: si_code and si_status of waitid(). */
struct failure {
    int rank, code, status;
};

struct job {
    const struct launch *launch;
    struct service pmi;
    struct process *processes;
    struct cores cores;       /* of this host */
    struct children children; /* the ranks of this host; none if the job runs on other hosts */
    struct hosts hosts;       /* the other hosts, with all ranks */
    int shown;                /* ranks that have pipes or an unfinished line of output */
    enum phase phase;
    int status;   /* the launcher's exit status */
    bool judged;  /* `status` is final */
    bool holding; /* `held` is a failure that will be judged when no rank is in doubt */
    struct failure held;
    /* ms: until then the launcher waits to learn how ranks whose connection has ended did end;
     * INT64_MAX: it waits for none */
    int64_t doubt_until;
    bool draining;      /* only output is left to write */
    bool give_up;       /* and that output is no longer wanted */
    int64_t next_step;  /* ms: when the next phase begins by itself; INT64_MAX: it does not */
    int64_t time_limit; /* ms; INT64_MAX: none */
    struct relay out, err;
    struct pump pump;   /* copies input from a terminal to rank 0 */
    bool input_closed;  /* input for a rank 0 on another host has ended */
    struct pollfd *fds; /* the second half is for wait_some() */
};

static inline bool job_is_away(const struct job *j)
{
    return j->launch->hosts != NULL;
}

/* job_has_pipes() is true if the output of each rank comes by pipes. */
static inline bool job_has_pipes(const struct launch *l)
{
    return l->label || l->piped != NULL;
}

/* ---- judge.c ---- */

void job_signal(struct job *j, int signal);
/* job_end() begins the end of the job: it sends `signal` to all ranks now, and SIGKILL when the
 * grace period is over; job_kill() sends SIGKILL. */
void job_end(struct job *j, int signal);
void job_kill(struct job *j);
/* job_fail() reports the first failure: it prints why and ends the job with `status`. */
void job_fail(struct job *j, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* job_take_exit() notes how a rank has exited; job_judge() then judges. The caller first notes all
 * exits that are known. */
void job_take_exit(struct job *j, int rank, int code, int status);
void job_judge(struct job *j);
/* job_say_waiting() is called when the job is ended from outside. If some ranks have ended with
 * status 0 while others run, it prints which, since the latter may have waited for the former. */
void job_say_waiting(const struct job *j);
/* job_fail_start() reports why a rank could not be started: the step that failed, and errno. */
void job_fail_start(struct job *j, int rank, int error, const char *what);
/* job_say_left() prints that `rank` has left a process behind; if `rank` is GROUPS_LATER, that some
 * rank may have. */
void job_say_left(int rank, bool stays);

/* ---- launch_away.c ---- */

/* job_start_away() starts the agents on the hosts; 0, or -1 after a line on stderr. */
int job_start_away(struct job *j, const char *key, const char *id);
/* job_describe_hosts() writes which ranks share a host, in the form of pmi_job_create(), to `text`,
 * which has PMI_VALUE_MAX bytes. */
void job_describe_hosts(const struct host_list *l, char *text);

#endif
