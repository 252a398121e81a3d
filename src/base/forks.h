/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sections that a fork() does not cut, and resources that its child does not keep. A forked child
 * has a copy of its parent's memory, but only the thread that called fork(): what another thread
 * was doing stays half done in the child, and its locks stay taken.
 *
 *   forks_hold() ... forks_release()   a fork() of another thread waits until the section has ended
 *
 * So a lock that is only taken inside sections is free in a child, and what a section makes is in
 * the child whole or not at all. Sections are short, may be nested, and never wait for a thread
 * that may fork, as one that runs a handler may. Inside a section a thread has all signals blocked
 * but those of faults: a signal handler of the program that forks would wait for the section that
 * it interrupted. Code that may wait for a handler or a peer, as the last PtlFini() does, is in no
 * section; a fork() may cut it, and the child forgets what it was about (nic/process.c).
 *
 *   forks_open(call)                   a descriptor that the call opens, and the child closes
 *   forks_close(fd)                    its end
 *
 * The child closes each of these descriptors before fork() returns in it, also one that a thread of
 * the parent had opened but not stored yet.
 */
#ifndef BASE_FORKS_H
#define BASE_FORKS_H

#include "base/mutex.h"

enum fork_phase { FORK_PREPARE, FORK_PARENT, FORK_CHILD };

void forks_hold(void);
void forks_release(void);

/* forks_take() begins a section and takes a mutex, forks_give() gives the mutex and ends the
 * section. Such a mutex is never taken outside a section. */
void forks_take(struct mutex *);
void forks_give(struct mutex *);

/* forks_open() returns the result of `call`: a descriptor, or a negative number. A descriptor
 * beyond the largest one that the table of descriptors can note is closed, and the result is
 * -EMFILE, with errno set. */
#define forks_open(call) (forks_hold(), forks_opened(call))
int forks_opened(int fd);
/* forks_close() closes a descriptor that forks_open() returned; it ignores a negative number. */
void forks_close(int fd);

/* forks_gate() is called by the atfork handlers. In FORK_PREPARE it waits until no section is under
 * way, and holds new ones off; it must run before the atfork handler takes a lock that sections
 * take, too. */
void forks_gate(enum fork_phase phase);

#endif
