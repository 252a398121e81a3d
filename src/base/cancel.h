/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancellation of threads. A thread that is cancelled, as pthread_cancel() does it, ends inside
 * the next system call that it makes by libc, and a lock that it holds then is held for ever.
 * So no function of the library is a cancellation point: what program threads may call of these
 * stands between cancel_off() and cancel_back(), and a cancelled thread ends in code of its own.
 * Futexes need none of this: syscall() is no cancellation point.
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <pthread.h>

/* Returns what cancel_back() is to be given. */
static inline int cancel_off(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_back(int before)
{
    pthread_setcancelstate(before, NULL);
}

#endif
