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

#include <pthread.h>
#include <signal.h>
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

/* OPENLY(call) calls a function of libc's whose system calls are not trapped (trap.c), though the
 * thread is in a simulation. */
#define OPENLY(call)                                                                               \
    ({                                                                                             \
        struct sim_task *shut_ = virtual_open();                                                   \
        __typeof__(call) result_ = call;                                                           \
        virtual_shut(shut_);                                                                       \
        result_;                                                                                   \
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

/* virtual_open() opens the gate of the calling thread (OPENLY()); its result is for
 * virtual_shut(). */
static inline struct sim_task *virtual_open(void)
{
    struct sim_task *me = virtual_self;
    if (me == NULL || me->gate == SIM_GATE_OPEN) {
        return NULL;
    }
    me->gate = SIM_GATE_OPEN;
    return me;
}
static inline void virtual_shut(struct sim_task *me)
{
    if (me != NULL) {
        me->gate = me->shut;
    }
}
/* virtual_trap() has the kernel trap system calls of the calling thread, which is in a simulation,
 * from now on; virtual_untrap() ends that. */
void virtual_trap(void);
void virtual_untrap(void);
/* virtual_trapped() is SIM_GATE_SHUT if the kernel traps calls, and SIM_GATE_OPEN otherwise. */
uint8_t virtual_trapped(void);

/* The kernel's own form of a signal's action. virtual_install() sets one, and gives the one before
 * if `before` is not NULL; of one that has only a handler it fills in the rest, so that the return
 * from it is not trapped. */
struct virtual_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};
bool virtual_install(int signal, const struct virtual_action *to, struct virtual_action *before);
/* virtual_trap_tsc() has rdtsc and rdtscp of the calling thread trapped (tsc.c). virtual_tsc_off()
 * ends that, for a thread, process or program in no simulation that begins then; virtual_tsc_on()
 * has it again if it `was` on. virtual_read_tsc() gives the thread what it is to read; false: it is
 * at no such instruction. virtual_tsc_action() is sigaction() for SIGSEGV; false: it is the
 * kernel's. */
void virtual_trap_tsc(void);
bool virtual_tsc_off(void);
void virtual_tsc_on(bool was);
bool virtual_read_tsc(void *context);
bool virtual_tsc_action(const struct virtual_action *asked, struct virtual_action *before);
/* virtual_is_open() says whether an instruction is this library's, or libportals'. */
bool virtual_is_open(uintptr_t pc);
/* CALLED_BY_PORTALS() says whether it is libportals that has called a function of this library: it
 * does so in builds with sanitizers only, and means libc's, in no virtual time. */
bool virtual_is_portals(uintptr_t pc);
#define CALLED_BY_PORTALS() virtual_is_portals((uintptr_t)__builtin_return_address(0))
/* virtual_listen() says that the coordinator may ask the process what it does (spins.c);
 * virtual_deaf(), that it may not. */
void virtual_listen(void);
void virtual_deaf(void);

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
/* virtual_await_again() is virtual_await(), which a signal ends only if its handler is to (no
 * SA_RESTART). */
enum virtual_end virtual_await_again(bool (*holds)(void *arg), void *arg, uint64_t end,
                                     const char *what);
/* virtual_stir() says that other threads or processes may go on; virtual_wake(), other threads. */
void virtual_stir(void);
void virtual_wake(void);

/* virtual_first_thread() is called by the thread that the process begins with.
 * virtual_forked_threads() has a forked child forget its parent's other threads, and
 * virtual_forked_timers() its timers. */
void virtual_first_thread(void);
void virtual_forked_threads(void);
void virtual_forked_timers(void);
/* virtual_thread() is pthread_create() of a thread of the simulation, by whoever has the clock. */
int virtual_thread(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *arg);
/* virtual_process() is the record of another process of the rank; NULL: it is none. */
struct sim_rank *virtual_process(pid_t pid);

/* ---- signals and timers ---- */

/* virtual_handle() and virtual_ring() are handle() and ring() of the clock (fabric/sim/rank.h). */
void virtual_handle(struct sim_clock *c);
void virtual_ring(struct sim_clock *c);
/* virtual_restarts() says whether the handlers that have run last leave a call to be made again,
 * once; virtual_has_handler() whether the program has one for a signal. */
bool virtual_restarts(void);
bool virtual_has_handler(int signal);
/* virtual_closed() says that a descriptor is about to be closed. */
void virtual_closed(int fd);

/* ---- system calls ---- */

/* virtual_fd() waits until a descriptor that blocks is ready; false: errno says why it never will.
 * virtual_done() is called with the result of what was done to it: others may go on for that. */
bool virtual_fd(int fd, short events);
ssize_t virtual_done(ssize_t n);
/* virtual_futex() is the system call, in virtual time: a value, or -errno. */
long virtual_futex(const long a[6]);
/* virtual_call() makes a system call for the program, if it may wait or tell the time: true, and
 * its value, or -errno. */
bool virtual_call(long number, const long a[6], long *value);

#endif
