/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancellation of threads. A thread that pthread_cancel() has cancelled ends inside the next system
 * call that it makes through libc, and a lock that it holds then is held for ever. So no function
 * of the library is a cancellation point: where a thread of the program could reach one, the
 * library calls cancel_off() before it and cancel_back() after it, and a cancelled thread ends in
 * the program's own code. The calls of sys.h are no cancellation points, except in a build with a
 * sanitizer, where libc makes them; futex calls never are.
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include "base/thread.h"

/* cancel_off() keeps the calling thread from being cancelled and returns its state before, which
 * cancel_back() sets again. */
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

/* NOT_CANCELLED, as the first declaration of a function, calls cancel_off(), and cancel_back() when
 * the function returns. */
static inline void cancel_back_to(const int *before)
{
    cancel_back(*before);
}
#define NOT_CANCELLED                                                                              \
    __attribute__((cleanup(cancel_back_to), unused)) const int cancel_before = cancel_off()

#endif
