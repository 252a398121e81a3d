/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of the library's own, and what it asks of libc about the thread that it runs in. A
 * program with user-level threads may define pthread_create() and its like for these: the NIC
 * thread would then run on the processor time of whoever calls its scheduler. So the functions are
 * those that libc.so.6 has, whatever the program defines. In a process with the run time of a
 * sanitizer, which must know each thread, they are those that the program's linker finds.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* thread_start() starts a thread on processors of `cpus` (NULL: those of its maker), with all
 * signals blocked, which are the program's; but for those of faults, if it is to run what may
 * fault. Returns 0 or an error number. thread_join() waits until it has ended. */
int thread_start(pthread_t *thread, const cpu_set_t *cpus, bool may_fault,
                 void *(*function)(void *), void *arg);
void thread_join(pthread_t thread);

/* thread_key_create() makes a key under which each thread has a value of its own; at_end() is
 * called with that value when the thread ends. thread_key_set() sets the calling thread's value.
 * Both return 0 or an error number. */
int thread_key_create(pthread_key_t *key, void (*at_end)(void *value));
int thread_key_set(pthread_key_t key, const void *value);

/* thread_cancel_state() is pthread_setcancelstate(). */
void thread_cancel_state(int state, int *before);

#endif
