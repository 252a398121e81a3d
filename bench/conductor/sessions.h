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

/* sessions_kill() is what a keeper (util/keeper.h) does to the sessions of subjects. */
void sessions_kill(const pid_t *sessions, int count);

#endif
