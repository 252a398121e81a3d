/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancellation of threads. A thread that is cancelled, as pthread_cancel() does it, ends inside
 * the next system call that it makes by libc, and a lock that it holds then is held for ever.
 * So no function of the library is a cancellation point: what program threads may call of these
 * stands between cancel_off() and cancel_back(), and a cancelled thread ends in code of its own.
 * Calls of sys.h are no cancellation points but where a sanitizer has libc make them; futexes
 * never are.
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include "base/thread.h"

/* Returns what cancel_back() is to be given. */
static inline int cancel_off(void)
{
    int before;
    thread_cancel_state(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_back(int before)
{
    thread_cancel_state(before, NULL);
}

/* NOT_CANCELLED in front of a function's declarations: the two for all of the function. */
static inline void cancel_back_to(const int *before)
{
    cancel_back(*before);
}
#define NOT_CANCELLED                                                                              \
    __attribute__((cleanup(cancel_back_to), unused)) const int cancel_before = cancel_off()

#endif
