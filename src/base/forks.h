/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sections that a fork() does not cut, and resources that its child does not keep. A forked child
 * has the memory of its parent and of its threads the one that forked: what another one was in the
 * midst of stays half done there, and locked.
 *
 *   forks_hold() ... forks_release()   a fork() of another thread waits until the section has ended
 *
 * So a lock that is taken within such sections only is free in a child, and what they make is there
 * whole or not at all. Sections are short, may be nested, and wait for no thread that may fork: no
 * handler, no peer. The thread takes no signals in them but those of faults: a signal handler of
 * the program that forks there would wait for its own thread. What may wait for a handler or a
 * peer, as the last PtlFini() does, is cut, and the child forgets it (nic/process.c).
 *
 *   forks_open(call)                   a descriptor that the call opens, and the child closes
 *   forks_close(fd)                    its end
 *
 * A child closes each of them before fork() returns there, whoever of the parent's threads used it
 * and had it stored already or not.
 */
#ifndef BASE_FORKS_H
#define BASE_FORKS_H

#include "base/mutex.h"

enum fork_phase { FORK_PREPARE, FORK_PARENT, FORK_CHILD };

void forks_hold(void);
void forks_release(void);

/* forks_take() and forks_give() are a section with a mutex that is taken in no other way. */
void forks_take(struct mutex *);
void forks_give(struct mutex *);

/* forks_open() returns what the call does: a descriptor, or a negative number; also where the
 * descriptor is larger than any that can be noted: then it is closed, and the number is -EMFILE,
 * as errno says, too. */
#define forks_open(call) (forks_hold(), forks_opened(call))
int forks_opened(int fd);
/* forks_close() does nothing with a number that is negative. */
void forks_close(int fd);

/* forks_gate() is for the atfork handlers: FORK_PREPARE comes before those of any lock that is
 * taken within a section, since it waits for who may be about to take it. */
void forks_gate(enum fork_phase phase);

#endif
