/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts a rank, or a remote shell: fork, a process group of its own, descriptors, core,
 * environment, exec. The kernel sends it SIGKILL when the launcher dies before it.
 */
#ifndef PINWHEEL_SPAWN_H
#define PINWHEEL_SPAWN_H

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The settings that all ranks have in common. */
struct spawn {
    char **argv;
    char **environment; /* NAME=VALUE */
    int environment_count;
    char ***rank_environment; /* by rank of this host, ends with NULL; NULL: none */
    int size, first;          /* ranks of the job; first rank of this host */
    const char *job_key, *job_id;
    sigset_t signal_mask;      /* signal mask of the launcher before it changed its own */
    struct rlimit descriptors; /* its limit of descriptors before it changed that */
    const cpu_set_t *cores;    /* allowed cores for LAUNCH_BIND_CORE; NULL: no binding */
    const int *home;           /* by rank of this host: its core (cores.h); NULL: none */
    int keeper;                /* descriptor of the keeper (util/keeper.h) */
};

/* The descriptors that a rank gets; -1: it inherits the launcher's. Without `pmi` the process is no
 * rank, and its environment is the launcher's. */
struct spawn_ends {
    int in, out, err, pmi;
};

/* spawn_rank() starts rank `rank` and returns 0 with its pid when the program runs, or -errno;
 * *what then names the step that failed. The caller closes the ends. */
int spawn_rank(const struct spawn *spawn, int rank, const struct spawn_ends *ends, pid_t *pid,
               const char **what);

/* spawn_reserved() returns true if the launcher itself sets the variable of `assignment`
 * (NAME=VALUE) in each rank. */
int spawn_reserved(const char *assignment);

#endif
