/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes that a launcher has started on this host: ranks, or the remote shells to
 * other hosts. Each leads a process group (groups.h), none is reaped before the end, and
 * none outlives the launcher, however that one ends.
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
    pid_t *groups; /* pid and process group of each; 0: never started */
    bool *alive;
    int signals; /* signalfd: what ends or stops us, SIGUSR1, SIGUSR2, SIGCHLD */
    int keeper_fd;
    pid_t keeper;
};

enum {
    GRACE_MS = 2000, /* from SIGTERM to SIGKILL */
    LEAVE_MS = 100,  /* for what a rank left behind to end by itself */
    STUCK_MS = 5000, /* after SIGKILL; then the kernel does not let a process die */
    SCAN_MS = 10,
};

int64_t now_ms(void);

/* children_limit() returns the limit of descriptors below which so many are free. */
int children_limit(int free);

/* children_open() makes room for `count`, and a launcher of this process: signals come
 * through a descriptor, orphans are adopted, the limit of descriptors is raised. What the
 * program is to find as it was goes to `spawn`. 0, or -1 after a line on stderr. */
int children_open(struct children *, int count, struct spawn *spawn);

/* children_start() starts the next one as `rank`: 0, or -errno of the step *what. */
int children_start(struct children *, const struct spawn *, int rank, const struct spawn_ends *,
                   const char **what);

/* children_exited() returns the index of one that has exited since, and how; -1: none has. */
int children_exited(struct children *, siginfo_t *how);

void children_signal(const struct children *, int signal);

/* children_took() notes a signal that was read from `signals`: adopted orphans are reaped. */
void children_took(const struct children *, int signal, pid_t from);

/* children_close() reaps all; call it when none runs any more. */
void children_close(struct children *);

#endif
