/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where threads of the program wait. Two peers that wait by yielding share a core for good on a
 * busy machine: each hands it to the other, both look busy, and the scheduler sees nothing to mend.
 * Two things keep them apart.
 *
 * Home: the core that a launcher gave to the process (PINWHEEL_CORE), which its first thread has
 * while it polls. Threads inherit the mask of their maker, so it is there only while it is of use:
 *
 *   FREE   the thread has the mask that it had when the NIC was opened
 *   HELD   it has its home only
 *
 *   FREE ──the thread begins to poll, and takes the doorbell over from the NIC thread──► HELD
 *   HELD ──nobody has polled for a lease; the NIC is closed; fork(), in the child──► FREE
 *
 * A first thread that sleeps on the doorbell makes no threads, and stays HELD; so does one that is
 * held up: it was ready to run and was given no core for that lease. One that computes while
 * another thread sleeps on the doorbell does not. While one sleeps there, nobody takes the doorbell
 * over.
 *
 * Threads that were made meanwhile are found once a lease by the NIC thread, and get the whole
 * mask. It asks for the mask of each: a number of threads does not tell that one has ended and
 * another one begun. A thread whose mask is neither of the two was told where to run, and is left
 * alone.
 *
 * Apart, in processes without a home whose waits may spin: who waits tells its peers on which core,
 * once a look. If one waits there, too, and the mask has cores where none does, the thread leaves:
 *
 *   TOGETHER ──mask without the cores of peers, and at once the whole one again──► APART
 *   APART    ──APART_NS are over; a peer is met and no core is free of peers──► as ever
 *
 * The kernel brings back who sleeps, or whose peer does: a core that becomes idle takes over what
 * waits on the other one, and who is woken finds that one busy and comes to its waker's. So who is
 * APART polls for a slice of the scheduler's before it yields or sleeps: the peer may be held up by
 * a third process. Only one of two leaves, as only one of them can be running.
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
    bool held;       /* HELD; read without the lock by who forks */
    bool forking;    /* the state before fork(): the NIC thread may end it meanwhile */
    bool asleep;     /* the first thread sleeps on the doorbell */
    cpu_set_t whole; /* the mask when the NIC was opened */
    cpu_set_t home;  /* the core of the mask that the first thread has */
    int64_t ran;     /* time on a core of the first thread at the last look; -1: none was */
    /* Read without the lock: */
    _Atomic int64_t next_look; /* for a peer on the same core */
    _Atomic int64_t apart;     /* until then threads that wait are APART */
};

/* place_open() is called by who opens the NIC, before it has threads. */
void place_open(struct nic *nic);

/* place_hold() is called by a thread that begins to poll; place_tend() by the NIC thread once a
 * lease while that goes on, and place_rest() when nobody has polled for one: true if it is to look
 * again in a lease, as the first thread is held up. place_free() ends HELD in any case.
 * place_sleeps() is called by a thread before it sleeps on the doorbell, and after. Lock held. */
void place_hold(struct nic *nic);
void place_tend(struct nic *nic);
bool place_rest(struct nic *nic);
void place_free(struct nic *nic);
void place_sleeps(struct nic *nic, bool asleep);

/* place_leave() is called by a thread that has polled in vain, without the lock; true if it was
 * taken to another core. place_stay() says how long it should go on polling. */
bool place_leave(struct nic *nic, int64_t now);
int64_t place_stay(const struct nic *nic, int64_t now);
/* place_yield() does what both say, and else yields. */
void place_yield(struct nic *nic);

/* place_before_fork() notes whether the home is held, and place_fork() gives the forked child,
 * which is one thread, the whole mask then. */
void place_before_fork(struct nic *nic);
void place_fork(struct nic *nic);

#endif
