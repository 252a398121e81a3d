/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the HPUs' own: signals are the program's, so that they block all but faults. */
#ifndef HPU_THREAD_H
#define HPU_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base/fault.h"

/* hpu_thread_start() starts one on processors of `cpus`; NULL: on those of its maker. Returns 0 or
 * an error number. */
static inline int hpu_thread_start(pthread_t *thread, const cpu_set_t *cpus,
                                   void *(*function)(void *), void *arg)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0) {
        return rc;
    }
    if (cpus != NULL) {
        rc = pthread_attr_setaffinity_np(&attributes, sizeof(*cpus), cpus);
    }
    sigset_t others, before;
    sigfillset(&others);
    fault_keep(&others);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    rc = rc != 0 ? rc : pthread_create(thread, &attributes, function, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

#endif
