/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A keeper: a process that kills process groups of ranks, or sessions of the benchmark's subjects,
 * if its parent is killed.
 */
#ifndef PINWHEEL_KEEPER_H
#define PINWHEEL_KEEPER_H

#include <sys/types.h>

/* keeper_start() starts a keeper, which will call end() with all ids that it was told. It returns
 * the descriptor by which to talk to the keeper, or -errno. */
int keeper_start(pid_t *keeper, void (*end)(const pid_t *ids, int count));

/* keeper_tell() tells the keeper one more id. The leader of a group calls it for itself before
 * exec, so that the keeper knows the group before the group can have more processes. */
void keeper_tell(int fd, pid_t id);

/* keeper_dismiss() ends the keeper without killing anything, and reaps it. */
void keeper_dismiss(int fd, pid_t keeper);

#endif
