/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library that `pinwheel sim` preloads into its programs: clocks, sleeps, time-outs and what
 * blocks, in virtual time. Each function has the name of one of libc's, and calls that where the
 * process is in no simulation, or where time cannot pass: in a handler of a signal, in a NIC's
 * handler, in a thread that libc's pthread_create() has not made.
 *
 * Invariants:
 *   - A thread of the simulation that runs has the clock (fabric/sim/tasks.c). It never blocks in
 *     the kernel: it asks without waiting, and waits in virtual time until others have done
 *     something.
 *   - What others may wait for ends with virtual_stir(): the end of a process, bytes for a pipe.
 */
#ifndef VIRTUAL_VIRTUAL_H
#define VIRTUAL_VIRTUAL_H

#include "fabric/sim/rank.h"

#include <stdbool.h>
#include <time.h>

/* Functions that take the place of libc's are seen by all others. */
#define SHOWN __attribute__((visibility("default")))

/* REAL(NAME) is libc's function. */
void *virtual_real(void **slot, const char *name);
#define REAL(name)                                                                                 \
    ({                                                                                             \
        static void *slot_;                                                                        \
        (__typeof__(&(name)))virtual_real(&slot_, #name);                                          \
    })

#define PS_PER_NS 1000u
/* Virtual time 0 on the clocks of a program. */
#define VIRTUAL_MONOTONIC_S 1000
#define VIRTUAL_REALTIME_S 1577836800 /* 2020-01-01 */

extern struct sim_clock *virtual_clock; /* NULL: no simulation */
extern __thread struct sim_task *virtual_self __attribute__((tls_model("initial-exec")));

/* virtual_in() says whether the calling thread is in a simulation and may let time pass. */
static inline bool virtual_in(void)
{
    const struct sim_clock *c = virtual_clock;
    return c != NULL && virtual_self != NULL && c->running == virtual_self && !c->passing;
}

/* virtual_step_out() has the calling thread call libc as outside of a simulation, with its turn
 * held, until virtual_step_in() with what it returned. Threads that it makes meanwhile are in no
 * simulation; `virtual_strangers` says that there are such, or processes: what is waited for may
 * come from them. */
struct sim_task *virtual_step_out(void);
void virtual_step_in(struct sim_task *self);
extern bool virtual_strangers;

/* virtual_now() is the time in ps. virtual_sleep() lets it pass until `end`; false: a signal came.
 * virtual_look() lets the time of one look at nothing pass. */
uint64_t virtual_now(void);
bool virtual_sleep(uint64_t end);
void virtual_look(void);
/* virtual_after() is the time after a number of nanoseconds (negative: never); virtual_at() that of
 * a clock of the program's. */
uint64_t virtual_after(int64_t ns);
uint64_t virtual_at(clockid_t clock, const struct timespec *t);
static inline int64_t virtual_ns(const struct timespec *t)
{
    return t != NULL ? t->tv_sec * 1000000000ll + t->tv_nsec : -1;
}

/* How a wait has ended. */
enum virtual_end { VIRTUAL_HOLDS, VIRTUAL_LATE, VIRTUAL_SIGNAL };
/* virtual_await() waits until holds() returns true; it may be called again and again. `what` names
 * what is waited for where it may come from outside of the simulation; NULL: it cannot. */
enum virtual_end virtual_await(bool (*holds)(void *arg), void *arg, uint64_t end, const char *what);
/* virtual_stir() says that other threads or processes may go on; virtual_wake(), other threads. */
void virtual_stir(void);
void virtual_wake(void);

/* virtual_forked_threads() has a forked child forget its parent's other threads. */
void virtual_forked_threads(void);

#endif
