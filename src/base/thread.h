/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that the library makes, and libc's services for the calling thread. A program with
 * user-level threads may define pthread_create() and its like: the NIC thread would then be a
 * user-level thread, and run only when a thread of the program calls the scheduler. So these
 * functions call those of libc.so.6, whatever the program defines. In a process with the run time
 * of a sanitizer, which must know each thread, they call those that the dynamic linker finds.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* thread_start() starts a thread on the processors `cpus` (NULL: those of the calling thread). All
 * signals are blocked in it, so that the program's threads get them; but not those of faults if
 * `may_fault`. Returns 0 or an error number. thread_join() waits until the thread has ended. */
int thread_start(pthread_t *thread, const cpu_set_t *cpus, bool may_fault,
                 void *(*function)(void *), void *arg);
void thread_join(pthread_t thread);

/* thread_key_create() makes a key under which each thread has a value of its own; at_end() is
 * called with that value when the thread ends. thread_key_set() sets the calling thread's value.
 * Both return 0 or an error number. */
int thread_key_create(pthread_key_t *key, void (*at_end)(void *value));
int thread_key_set(pthread_key_t key, const void *value);

/* thread_cancel_state() is libc's pthread_setcancelstate(). */
void thread_cancel_state(int state, int *before);

#endif
