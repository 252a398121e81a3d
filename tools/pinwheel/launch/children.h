/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes that a launcher, or an agent, has started on this host: ranks, or the remote shells
 * to other hosts. Each leads a process group (groups.h). None is reaped before the end of the job,
 * and none outlives the launcher, however that ends.
 */
#ifndef PINWHEEL_CHILDREN_H
#define PINWHEEL_CHILDREN_H

#include "spawn.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct children {
    int count, started, running;
    pid_t *groups; /* by index: pid, which is also the id of the process group; 0: never started */
    bool *alive;
    int signals; /* signalfd: signals that end or stop the launcher, SIGUSR1, SIGUSR2, SIGCHLD */
    int keeper_fd;
    pid_t keeper;
};

enum {
    GRACE_MS = 2000, /* time from SIGTERM to SIGKILL */
    LEAVE_MS = 100,  /* time for processes that a rank has left behind to end by themselves */
    STUCK_MS = 5000, /* time after SIGKILL; a process that lives then is stuck in the kernel */
    SCAN_MS = 10,
};

int64_t now_ms(void);

/* children_limit() returns the limit of descriptors with which `free` descriptors would be free. */
int children_limit(int free);

/* children_open() makes room for `count` processes and prepares this process to be a launcher: it
 * reads signals from a descriptor, adopts orphans, and has a higher limit of descriptors. `spawn`
 * gets the signal mask and the limit from before, for the ranks. Returns 0, or -1 after a line on
 * stderr. */
int children_open(struct children *, int count, struct spawn *spawn);

/* children_start() starts the next process as `rank`. Returns 0, or -errno; *what then names the
 * step that failed. */
int children_start(struct children *, const struct spawn *, int rank, const struct spawn_ends *,
                   const char **what);

/* children_exited() returns the index of a process that has exited since the last call, and how;
 * -1: none has. */
int children_exited(struct children *, siginfo_t *how);

void children_signal(const struct children *, int signal);

/* children_took() is told of a signal that was read from `signals`; for SIGCHLD it reaps adopted
 * orphans. */
void children_took(const struct children *, int signal, pid_t from);

/* children_close() reaps all processes; the caller calls it when none runs any more. */
void children_close(struct children *);

#endif
