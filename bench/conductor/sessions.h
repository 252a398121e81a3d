/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of subjects. A process that the conductor starts leads a session of its
 * own, and all that it starts belongs to that, whatever process groups a launcher
 * makes. The kernel gives the number of a session to nobody else while it has a
 * member or its leader has not been reaped.
 */
#ifndef BENCH_SESSIONS_H
#define BENCH_SESSIONS_H

#include <sys/types.h>

/* sessions_signal() sends `signal` (0: nothing) to every live member of `count`
 * sessions and returns how many there are; numbers below 2 are skipped. */
int sessions_signal(const pid_t *sessions, int count, int signal);

/* The keeper is a process that outlives the conductor by a moment, should that be
 * killed, and kills the sessions that it was told. sessions_keeper() starts it and
 * returns the descriptor to talk to it, or -errno. */
int sessions_keeper(pid_t *keeper);

/* sessions_keep() tells the keeper one more session; its leader does so itself, before
 * it can start anything. */
void sessions_keep(int keeper_fd, pid_t session);

/* sessions_dismiss() ends the keeper, which then kills nobody, and reaps it. */
void sessions_dismiss(int keeper_fd, pid_t keeper);

#endif
