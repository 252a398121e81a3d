/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting one rank, or a remote shell: fork, a process group of its own, descriptors, core,
 * environment, exec. The rank gets SIGKILL from the kernel when the launcher
 * dies before it.
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
    int size, first; /* ranks of the job; the first of this host */
    const char *job_key, *job_id;
    sigset_t signal_mask;      /* as the launcher found it */
    struct rlimit descriptors; /* likewise */
    const cpu_set_t *cores;    /* NULL: no binding */
    const int *home;           /* of each rank of this host (cores.h); NULL: none */
    int keeper;                /* groups.h */
};

/* The ends that one rank gets; -1: it inherits the launcher's. Without `pmi` it is no rank:
 * its environment is the launcher's. */
struct spawn_ends {
    int in, out, err, pmi;
};

/* spawn_rank() starts rank `rank` and returns 0 with its pid once the program
 * runs, or -errno of what failed; *what then names that step. The ends stay the
 * caller's to close. */
int spawn_rank(const struct spawn *spawn, int rank, const struct spawn_ends *ends, pid_t *pid,
               const char **what);

/* spawn_reserved() tells whether the launcher itself sets the variable that
 * begins `assignment` (NAME=VALUE) in each rank. */
int spawn_reserved(const char *assignment);

#endif
