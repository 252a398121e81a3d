/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the first thread of a process polls, if a launcher gave the process a core (its home,
 * PINWHEEL_CORE). Two peers that wait by yielding share a core for good on a busy machine: each
 * hands it to the other, both look busy, and the scheduler sees nothing to mend; who is taken
 * elsewhere is brought back by the next wake-up. Only a mask keeps them apart. But threads inherit
 * the mask of their maker, so it is there only while it is of use:
 *
 *   FREE   the thread has the mask that it had when the NIC was opened
 *   HELD   it has its home only
 *
 *   FREE ──the thread begins to poll──► HELD
 *   HELD ──it has not polled for a lease; the NIC is closed; fork(), in the child──► FREE
 *
 * Threads that were made meanwhile are found once a lease by the NIC thread, and get the whole
 * mask. A thread whose mask is neither of the two was told where to run, and is left alone.
 */
#ifndef NIC_PLACE_H
#define NIC_PLACE_H

#include <sched.h>
#include <stdbool.h>

struct nic;

/* The lock of the NIC guards it. */
struct place {
    bool on;             /* there is a home */
    bool held;           /* HELD; read without the lock by who forks */
    bool forking;        /* what it was before fork(): the NIC thread may end it meanwhile */
    cpu_set_t whole;     /* the mask when the NIC was opened, */
    cpu_set_t home;      /* and one core of it */
    unsigned long tasks; /* of the process when they were last looked at */
};

/* place_open() is called by who opens the NIC, before it has threads. */
void place_open(struct nic *nic);

/* place_hold() is called by a thread that begins to poll; place_tend() by the NIC thread once a
 * lease while that goes on, and place_free() when it is over. Lock held. */
void place_hold(struct nic *nic);
void place_tend(struct nic *nic);
void place_free(struct nic *nic);

/* place_before_fork() notes whether the home is held, and place_fork() gives the forked child,
 * which is one thread, the whole mask then. */
void place_before_fork(struct nic *nic);
void place_fork(const struct nic *nic);

#endif
