/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults: SIGSEGV, SIGBUS, SIGFPE and SIGILL of this process, sorted; and FAULT_OVERDUE,
 * which ends code that may be given up when somebody says that its time is over.
 *
 *      in nic_copy() or an atomic of nic_copy.h ─► resumed there, gives -EFAULT
 *      in code that may be given up ─────────────► resumed at the guard's landing
 *      any other, and signals sent by kill() ────► the handler installed before ours
 *
 * Only synchronous faults are taken for ours. The action that was installed before
 * is carried out as if ours was not there: the default one kills at the faulting
 * instruction, so that a core file shows the right place; a handler gets its own
 * mask, SA_NODEFER and SA_RESETHAND, but runs on the alternate stack of the thread
 * even if it did not ask for it.
 *
 * A program that installs a handler after us has put it above ours, and may or may not call
 * the one it found. fault_refresh() puts ours above it again, once:
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

/* The signal that fault_end() sends: nobody minds one too many, since its default is that
 * it is ignored. */
#define FAULT_OVERDUE SIGURG

/* Where a thread continues when the code that it runs is given up. */
struct fault_guard {
    volatile sig_atomic_t armed;                /* set while in code that may be given up */
    void (*landing)(struct fault_guard *guard); /* called on the stack below; does not return */
    void *stack;                                /* its top, a multiple of 16 */
    pid_t thread;                               /* that runs what is guarded */
    _Atomic uint64_t turn;                      /* odd while one does; each run has its own */
    _Atomic uint64_t overdue;                   /* the turn whose time is over */
    int signal;        /* which signal the fault raised; the fault writes it and the next four */
    int code;          /* its si_code; SI_KERNEL: the fault has no address */
    uintptr_t address; /* address that the fault touched (SIGSEGV, SIGBUS) */
    uintptr_t instruction;   /* where the fault was */
    uintptr_t stack_pointer; /* as it stood at the fault */
};

/* fault_install() installs the signal handlers, or counts one more user of them.
 * Returns 0 or -errno. fault_remove() counts one less; the last one puts back what
 * was installed before, unless the program has installed another above it since. */
int fault_install(void);
void fault_remove(void);

/* fault_fork() is for a forked child: of the users that were counted none exists there. The
 * handlers stay, and the child's own last fault_remove() puts back what was before them. */
void fault_fork(void);

/* fault_set_guard() makes `guard` (or none: NULL) the one of the calling thread, and
 * returns the one it replaces. A fault disarms the guard and calls its landing. */
struct fault_guard *fault_set_guard(struct fault_guard *guard);

/* fault_guard_turn() begins a turn on the calling thread, or ends it; fault_guard_next() ends
 * one and begins another. fault_guard_overdue()
 * says, in one, that its time is over. */
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

/* fault_end() ends a turn from another thread: at once if its code may be given up at that
 * moment, else fault_guard_overdue() says so from then on. A turn that is over is left alone. */
void fault_end(struct fault_guard *guard, uint64_t turn);

/* fault_refresh() looks for handlers that the program has installed since fault_install(),
 * and puts ours above them. */
void fault_refresh(void);

/* fault_keep() takes the signals of this file out of a set that is to be blocked. */
void fault_keep(sigset_t *blocked);

/* fault_thread_id() is the kernel's number of the calling thread. */
extern __thread pid_t fault_thread __attribute__((tls_model("initial-exec")));
pid_t fault_ask_thread_id(void);
static inline pid_t fault_thread_id(void)
{
    pid_t id = fault_thread;
    return id != 0 ? id : fault_ask_thread_id();
}

/* fault_thread_stack() gives the calling thread an alternate signal stack, without
 * which an overflown stack cannot be told to anyone; a thread that has one keeps it.
 * It is freed when the thread ends. Returns 0 or -errno. */
int fault_thread_stack(void);

#endif
