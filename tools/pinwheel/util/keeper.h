/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A keeper: a process that outlives its parent by a moment, should that be killed, and then kills
 * what it was told of: process groups of ranks, sessions of subjects.
 */
#ifndef PINWHEEL_KEEPER_H
#define PINWHEEL_KEEPER_H

#include <sys/types.h>

/* keeper_start() starts one, which will call `end` with what it was told of. It returns the
 * descriptor to talk to it, or -errno. */
int keeper_start(pid_t *keeper, void (*end)(const pid_t *ids, int count));

/* keeper_tell() tells the keeper of one more; a leader does so itself, so that the keeper knows
 * before it can start anything. */
void keeper_tell(int fd, pid_t id);

/* keeper_dismiss() ends the keeper, which then kills nobody, and reaps it. */
void keeper_dismiss(int fd, pid_t keeper);

#endif
