/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes (process.c): PtlInit makes one in an address space, tests and the simulator several. */
#ifndef NIC_PROCESS_H
#define NIC_PROCESS_H

#include "nic/objects.h"

/* process_current() returns the process that the calling thread runs in: the one set for the
 * thread, else that of the address space; NULL before PtlInit. */
extern struct process *process_space;
extern __thread struct process *process_thread __attribute__((tls_model("initial-exec")));
static inline struct process *process_current(void)
{
    struct process *p = process_thread;
    return unlikely(p != NULL) ? p : __atomic_load_n(&process_space, __ATOMIC_ACQUIRE);
}
int process_init(void);
void process_fini(void);
int process_set_key(struct process *, const void *key, size_t length);
/* process_enter() makes the calling thread run in another process of this address space (NULL: the
 * address space's own), and returns the one before. process_new() makes a process, in which the
 * thread may then call PtlInit. */
struct process *process_enter(struct process *p);
struct process *process_new(void);
void process_free(struct process *p);
/* process_renew() begins another epoch: objects that were found by handles before, in any process
 * of this address space, may be gone. The first epoch is 1. */
extern _Atomic uint64_t process_epoch;
void process_renew(void);
/* process_each_nic() calls see() for each NIC that the process (NULL: none) has or had, also for
 * one that is being opened or closed. */
void process_each_nic(struct process *p, void (*see)(struct nic *));
/* process_abort() ends the waits of all threads in the process: ni_wait_abort(). */
void process_abort(struct process *p);

#endif
