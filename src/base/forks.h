/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a fork() does not cut. A forked child has the memory of its parent and of its threads the
 * one that forked: what another one was in the midst of stays half done there, and locked.
 *
 *   forks_hold() ... forks_release()   a fork() of another thread waits until the section has ended
 *
 * So a lock that is taken within such sections only is free in a child, and what they make is there
 * whole or not at all. Sections are short, may be nested, and wait for no thread that may fork: no
 * handler, no peer. What may wait for these, as the last PtlFini() does, is cut, and the child
 * forgets it (nic/process.c).
 */
#ifndef BASE_FORKS_H
#define BASE_FORKS_H

enum fork_phase { FORK_PREPARE, FORK_PARENT, FORK_CHILD };

void forks_hold(void);
void forks_release(void);

/* forks_gate() is for the atfork handlers: FORK_PREPARE comes before those of any lock that is
 * taken within a section, since it waits for who may be about to take it. */
void forks_gate(enum fork_phase phase);

#endif
