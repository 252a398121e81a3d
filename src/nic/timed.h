/* SPDX-License-Identifier: BSD-3-Clause */
/* A NIC in virtual time (timed.c): its clock, its timers, its HPUs. */
#ifndef NIC_TIMED_H
#define NIC_TIMED_H

#include "nic/objects.h"

#include "hpu/sched.h"

/* timed_begin() has a NIC whose home is a simulated one take its time from there. */
void timed_begin(struct nic *nic);
/* timed_hpus() makes its HPUs; NULL with errno set. */
struct hpu_sched *timed_hpus(struct nic *nic);
/* The upcalls of a fabric in virtual time. */
void timed_used(struct nic *nic);
void timed_happened(struct nic *nic);
void timed_give(struct nic *nic);
void timed_take(struct nic *nic);
uint64_t timed_handler(struct nic *nic);
/* Of a program: timed_now() is its time in picoseconds, in or out of a simulation. Out of one
 * timed_compute(), which lets time pass, and timed_fence(), which waits for all ranks of the job,
 * do nothing. */
uint64_t timed_now(void);
void timed_compute(struct process *p, uint64_t ps);
void timed_fence(struct process *p);

#endif
