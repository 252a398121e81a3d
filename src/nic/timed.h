/* SPDX-License-Identifier: BSD-3-Clause */
/* A NIC in virtual time (timed.c): its clock, its timers, its HPUs. */
#ifndef NIC_TIMED_H
#define NIC_TIMED_H

#include "nic/objects.h"

#include "hpu/sched.h"
#include "nic/rx.h"

/* timed_begin() has a NIC whose home is a simulated one take its time from there. */
void timed_begin(struct nic *nic);
/* timed_hpus() makes its HPUs; NULL with errno set. */
struct hpu_sched *timed_hpus(struct nic *nic);
/* Real time after which a native handler is ended: its virtual time may stand still for ever. */
#define TIMED_PATIENCE_NS INT64_C(10000000000)
/* timed_told() says whether the host may be told that the handlers of a message have ended: when
 * what they have written is there, or, if there is anything to tell, a transfer of its own. */
bool timed_told(struct rx *rx);
/* timed_loses() says whether a packet for handlers is lost: it found no buffer, or flow control has
 * disabled the portal table entry. timed_lost() counts the packets of a message from the first one
 * on that is lost. */
bool timed_loses(const struct rx *rx, uint64_t offset);
void timed_lost(const struct rx *rx);
/* The upcalls of a fabric in virtual time. */
void timed_used(struct nic *nic);
void timed_happened(struct nic *nic);
void timed_tally(struct nic *nic, struct fabric_tally *tally);
void timed_early(struct nic_peer *peer, struct fabric_rx *f);
void timed_hpu_fails(struct nic *nic, unsigned hpu);
void timed_hpus_free(struct nic *nic);
bool timed_passes(const struct fabric_rx *f, const struct fabric_rx *other);
void timed_give(struct nic *nic);
void timed_take(struct nic *nic);
/* Of a program: timed_now() is its time in picoseconds, in or out of a simulation. Out of one the
 * others do nothing: timed_compute() lets time pass, timed_touch() that of an access to memory,
 * timed_pause() that of a look at nothing; timed_mark() begins a phase; timed_fence() waits for all
 * ranks of the job. */
uint64_t timed_now(void);
void timed_compute(struct process *p, uint64_t ps);
void timed_touch(struct process *p, uint64_t bytes);
void timed_pause(struct process *p);
void timed_mark(struct process *p, const char *name);
void timed_fence(struct process *p);

#endif
