/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job while it runs, as the files of the launcher see it: launch.c has its loop, judge.c its
 * end, launch_away.c what is different when its ranks are on other hosts.
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
    int64_t ended_well; /* ms: when the launcher heard that it exited with 0; 0: it did not */
    bool hung_up;       /* its PMI connection has ended long ago, and it has not */
};

/* How a rank failed, as waitid() says it. */
struct failure {
    int rank, code, status;
};

struct job {
    const struct launch *launch;
    struct service pmi;
    struct process *processes;
    struct cores cores;       /* of this host */
    struct children children; /* the ranks of this host, or nobody: */
    struct hosts hosts;       /* then all ranks are there */
    int shown;                /* ranks that have pipes or a line under way */
    enum phase phase;
    int status;   /* for the launcher to exit with */
    bool judged;  /* status is final */
    bool holding; /* there is a failure to judge once no rank is in doubt: */
    struct failure held;
    int64_t doubt_until; /* ms: ranks whose connection ended may tell until then how they did;
                          * INT64_MAX: none is in doubt */
    bool draining;       /* nothing is left but output to write */
    bool give_up;        /* and nobody wants it any more */
    int64_t next_step;   /* ms: when the phase goes on by itself; INT64_MAX: not */
    int64_t time_limit;  /* ms; INT64_MAX: none */
    struct relay out, err;
    struct pump pump;   /* from a terminal to rank 0 */
    bool input_closed;  /* and to another host, whatever it is */
    struct pollfd *fds; /* with as many again for wait_some() */
};

static inline bool job_is_away(const struct job *j)
{
    return j->launch->hosts != NULL;
}

/* ---- judge.c ---- */

void job_signal(struct job *j, int signal);
/* job_end() begins the end: `signal` now, SIGKILL after the grace; job_kill() is that. */
void job_end(struct job *j, int signal);
void job_kill(struct job *j);
/* job_fail() is the first failure: says why and ends the job with `status`. */
void job_fail(struct job *j, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* job_take_exit() hears how a rank exited, as waitid() says it, and job_judge() judges what has
 * been heard: first all that is known, then judge. */
void job_take_exit(struct job *j, int rank, int code, int status);
void job_judge(struct job *j);
/* job_say_waiting() is for a job that somebody else ends: if some ranks have ended with status 0
 * and others run, the launcher says which, as these may have waited for those. */
void job_say_waiting(const struct job *j);
/* Why a rank could not be started: what failed, and with which errno. */
void job_fail_start(struct job *j, int rank, int error, const char *what);
/* job_say_left(): a process of `rank` is left, or, with GROUPS_LATER, perhaps of some rank. */
void job_say_left(int rank, bool stays);

/* ---- launch_away.c ---- */

/* job_start_away() starts agents on the hosts; 0, or -1 after a line on stderr. */
int job_start_away(struct job *j, const char *key, const char *id);
/* job_describe_hosts() writes which ranks share a host, for pmi_job_create(), in PMI_VALUE_MAX
 * bytes. */
void job_describe_hosts(const struct host_list *l, char *text);

#endif
