/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Process groups of ranks. The id of a rank's group is the pid of the rank, its leader. The
 * launcher does not reap a leader before the job ends: until then the kernel cannot give the number
 * to another process, so a signal to the group never reaches a process of another program.
 */
#ifndef PINWHEEL_GROUPS_H
#define PINWHEEL_GROUPS_H

#include <sys/types.h>

/* groups_signal() sends `signal` to `count` groups; ids below 2 are skipped. */
void groups_signal(const pid_t *groups, int count, int signal);

/* Other results of groups_alive(): no group has a live member; there is no /proc, so it cannot
 * tell; it cannot tell now, for want of a descriptor or of memory. */
enum { GROUPS_NONE = -1, GROUPS_UNTOLD = -2, GROUPS_LATER = -3 };

#define GROUPS_LATER_TEXT                                                                          \
    "cannot look for processes that ranks have left behind, for want of descriptors or memory "    \
    "(see ulimit -n)"

/* groups_alive() returns the index of a group that has a live member (not a zombie), or one of the
 * results above. */
int groups_alive(const pid_t *groups, int count);

/* groups_kill() kills groups of ranks, for the keeper (util/keeper.h). */
void groups_kill(const pid_t *groups, int count);

#endif
