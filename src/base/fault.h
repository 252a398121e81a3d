/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults: SIGSEGV, SIGBUS, SIGFPE and SIGILL of this process, sorted.
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
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <signal.h>
#include <stdint.h>

/* Where a thread continues when the code that it runs is given up. */
struct fault_guard {
    volatile sig_atomic_t armed;                /* set while in code that may be given up */
    void (*landing)(struct fault_guard *guard); /* called on the stack below; does not return */
    void *stack;                                /* its top, a multiple of 16 */
    int signal;                                 /* written by the fault: which, */
    uintptr_t address;                          /* what it touched (SIGSEGV, SIGBUS), */
    uintptr_t instruction;                      /* and where. */
};

/* fault_install() installs the signal handlers, or counts one more user of them.
 * Returns 0 or -errno. fault_remove() counts one less; the last one puts back what
 * was installed before, unless the program has installed another above it since. */
int fault_install(void);
void fault_remove(void);

/* fault_set_guard() makes `guard` (or none: NULL) the one of the calling thread, and
 * returns the one it replaces. A fault disarms the guard and calls its landing. */
struct fault_guard *fault_set_guard(struct fault_guard *guard);

/* fault_thread_stack() gives the calling thread an alternate signal stack, without
 * which an overflown stack cannot be told to anyone; a thread that has one keeps it.
 * It is freed when the thread ends. Returns 0 or -errno. */
int fault_thread_stack(void);

#endif
