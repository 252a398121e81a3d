/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where threads of the program wait. Two peers that wait by yielding share a core for good on a
 * busy machine: each hands it to the other, both look busy, and the scheduler sees nothing to mend.
 * Two things keep them apart.
 *
 * Home: the core that a launcher gave to the process (PINWHEEL_CORE). The NIC binds the first
 * thread to it while that polls. Not for longer, as threads inherit the mask of the thread that
 * makes them:
 *
 *   FREE   the thread has the mask that it had when the NIC was opened
 *   HELD   it has its home only
 *
 *   FREE ──the thread begins to poll, and takes the doorbell over from the NIC thread──► HELD
 *   HELD ──nobody has polled for a lease; the NIC is closed; fork(), in the child──► FREE
 *
 * A first thread that sleeps on the doorbell makes no threads, and stays HELD. So does one that is
 * held up: it was ready to run, but got no core for that lease. One that computes, while another
 * thread sleeps on the doorbell, goes to FREE. While a thread sleeps there, no other one takes the
 * doorbell over, so the first thread cannot become HELD.
 *
 * Once a lease the NIC thread looks for threads that the first one has made while HELD, and gives
 * them the whole mask. It asks for the mask of each thread, since their number does not tell that
 * one has ended and another one begun. It leaves alone a thread whose mask is neither of the two:
 * the program has told it where to run.
 *
 * Apart, in processes without a home whose waits may spin: a thread that waits tells its peers, at
 * each look, on which core. If a peer waits on the same core, and the mask has cores where none
 * waits, the thread leaves:
 *
 *   TOGETHER ──mask without the cores of peers, and at once the whole one again──► APART
 *   APART    ──APART_NS are over; a peer is met and no core is free of peers──► as ever
 *
 * A thread that sleeps, or whose peer does, may be brought back by the kernel: a core that becomes
 * idle pulls a waiting thread from the other one, and a woken thread whose core is busy comes to
 * its waker's. So a thread that is APART polls for a time slice of the scheduler before it yields
 * or sleeps, as a third process may hold up the peer. Of two threads on one core only one leaves,
 * as only one of them runs.
 */
#ifndef NIC_PLACE_H
#define NIC_PLACE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct nic;

/* The lock of the NIC guards it. */
struct place {
    bool on;         /* there is a home */
    bool leaves;     /* threads may leave the cores of peers */
    bool held;       /* HELD; a thread that forks reads it without the lock */
    bool forking;    /* whether it was HELD before fork(): the NIC thread may end that meanwhile */
    bool asleep;     /* the first thread sleeps on the doorbell */
    cpu_set_t whole; /* the mask when the NIC was opened */
    cpu_set_t home;  /* the core of the mask that the first thread has */
    /* time that the first thread had had a core at the last look; -1: no look yet */
    int64_t ran;
    /* The next two are read without the lock. */
    _Atomic int64_t next_look; /* when to look next for a peer that waits on the same core */
    _Atomic int64_t apart;     /* threads that wait are APART until then */
};

/* place_open() sets up the state; the thread that opens the NIC calls it, before that has
 * threads. */
void place_open(struct nic *nic);

/* A program thread calls place_hold() when it begins to poll. The NIC thread calls place_tend()
 * once a lease while that goes on, and place_rest() when no thread has polled for a lease: true if
 * the NIC thread shall look again in a lease, as the first thread is held up. place_free() ends
 * HELD in any case. A program thread calls place_sleeps() before and after it sleeps on the
 * doorbell. The caller holds the lock. */
void place_hold(struct nic *nic);
void place_tend(struct nic *nic);
bool place_rest(struct nic *nic);
void place_free(struct nic *nic);
void place_sleeps(struct nic *nic, bool asleep);

/* A program thread that has polled in vain calls place_leave(), without the lock; true if that has
 * moved it to another core. place_stay() returns for how long the thread should poll on. */
bool place_leave(struct nic *nic, int64_t now);
int64_t place_stay(const struct nic *nic, int64_t now);
/* place_yield() leaves the core if a peer waits there, or polls on while APART; else it yields. */
void place_yield(struct nic *nic);

/* place_before_fork() notes whether the home is HELD; if so, place_fork() gives the whole mask to
 * the only thread of the forked child. */
void place_before_fork(struct nic *nic);
void place_fork(struct nic *nic);

#endif
