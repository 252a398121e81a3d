/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults: SIGSEGV, SIGBUS, SIGFPE and SIGILL of this process, sorted; and FAULT_OVERDUE, a signal
 * by which another thread (the watchdog) ends guarded code whose time is over. Guarded code is what
 * a thread runs with a fault guard that is armed: a handler.
 *
 *      in nic_copy() or an atomic of nic_copy.h ─► resumed there, gives -EFAULT
 *      in code that may be given up ─────────────► resumed at the guard's landing
 *      any other, and signals sent by kill() ────► the handler installed before ours
 *
 * Only a fault of the instruction that is executed is handled as in the first two lines. For the
 * third the action that was installed before is carried out as if our handler was not there: the
 * default one kills at the faulting instruction, so that a core file shows the right place; a
 * handler gets its own mask, SA_NODEFER and SA_RESETHAND, but runs on the alternate stack of the
 * thread even if it did not ask for it.
 *
 * A program that installs a handler after fault_install() has put it above ours, and its handler
 * may or may not call ours. fault_refresh() puts ours above the program's again, once:
 *
 *      kernel ─► ours ─► the program's later one ─► (ours, if it calls what it found) ─► the first
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The signal that fault_end() sends. One that comes too late does no harm: by default SIGURG is
 * ignored. */
#define FAULT_OVERDUE SIGURG

/* What a thread that runs code which may be given up (a handler) sets before it, and where it goes
 * on when that code has faulted or its time is over. */
struct fault_guard {
    /* true while the thread runs code that may be given up */
    volatile sig_atomic_t armed;
    /* called on `stack` after a fault; does not return */
    void (*landing)(struct fault_guard *guard);
    /* top of the stack that landing() runs on, a multiple of 16 */
    void *stack;
    pid_t thread; /* the thread that runs the guarded code */
    /* counts up: odd while guarded code runs, so that each run has a number of its own */
    _Atomic uint64_t turn;
    _Atomic uint64_t overdue; /* the number of the run whose time is over */
    /* signal that the fault raised; the signal handler writes this and the next four fields */
    int signal;
    int code;                /* si_code of the signal; SI_KERNEL: `address` is not known */
    uintptr_t address;       /* address that the fault touched (SIGSEGV, SIGBUS) */
    uintptr_t instruction;   /* address of the faulting instruction */
    uintptr_t stack_pointer; /* the stack pointer at the fault */
};

/* fault_install() installs the signal handlers and counts its callers; it returns 0 or -errno.
 * fault_remove() takes a caller off the count; the last one puts back the actions that were
 * installed before, but for signals for which the program has installed another handler since. */
int fault_install(void);
void fault_remove(void);

/* fault_fork() is called in a forked child: the count of fault_install() begins at 0 again there,
 * since its callers are the parent's. The handlers stay installed, and the child's own last
 * fault_remove() puts back what was before them. */
void fault_fork(void);

/* fault_set_guard() makes `guard` the guard of the calling thread, NULL for none, and returns the
 * guard before. A fault disarms the guard and calls its landing(). */
struct fault_guard *fault_set_guard(struct fault_guard *guard);

/* fault_guard_turn() begins a turn, which is one run of guarded code on the calling thread, or ends
 * it; fault_guard_next() ends one turn and begins the next. fault_guard_overdue() tells code inside
 * a turn whether the turn's time is over. */
static inline void fault_guard_turn(struct fault_guard *guard)
{
    uint64_t turn = atomic_load_explicit(&guard->turn, memory_order_relaxed);
    atomic_store_explicit(&guard->turn, turn + 1, memory_order_release);
}
static inline void fault_guard_next(struct fault_guard *guard)
{
    uint64_t turn = atomic_load_explicit(&guard->turn, memory_order_relaxed);
    atomic_store_explicit(&guard->turn, turn + 2, memory_order_release);
}
static inline bool fault_guard_overdue(const struct fault_guard *guard)
{
    return atomic_load_explicit(&guard->overdue, memory_order_relaxed) ==
           atomic_load_explicit(&guard->turn, memory_order_relaxed);
}

/* fault_end() is called by another thread and ends the turn with the number `turn`: at once if the
 * guard is armed, else fault_guard_overdue() is true from then on and the code ends by itself. A
 * turn that is over already is left alone. */
void fault_end(struct fault_guard *guard, uint64_t turn);

/* fault_refresh() finds signals for which the program has installed a handler since
 * fault_install(), and puts a handler of ours above it. */
void fault_refresh(void);

/* fault_keep() removes the signals of this file from a set of signals that the caller is about to
 * block. */
void fault_keep(sigset_t *blocked);

/* fault_thread_id() returns the kernel's thread ID of the calling thread, which it asks for
 * once. */
extern __thread pid_t fault_thread __attribute__((tls_model("initial-exec")));
pid_t fault_ask_thread_id(void);
static inline pid_t fault_thread_id(void)
{
    pid_t id = fault_thread;
    return id != 0 ? id : fault_ask_thread_id();
}

/* fault_thread_stack() gives the calling thread an alternate signal stack unless it has one: a
 * signal handler cannot run on a stack that has overflown. The stack is freed when the thread ends.
 * Returns 0 or -errno. */
int fault_thread_stack(void);

#endif
