/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A core of its own for each rank of this host, where that does nobody harm: its home. The rank is
 * told (PINWHEEL_CORE) and nothing else: its mask stays the launcher's, so that its threads may
 * run anywhere. libportals keeps the first thread there while that one polls (src/nic/place.h).
 * There are no homes
 *
 *   - for one rank, or for more ranks than cores that this command may run on;
 *   - where somebody has set a mask: then that one decides;
 *   - where other jobs of this user leave too few cores: each job holds a lock on its cores, the
 *     byte of that number in the file CORES_FILE of PINWHEEL_SHM_DIR, which ends with the
 *     launcher however it ends.
 */
#ifndef PINWHEEL_CORES_H
#define PINWHEEL_CORES_H

#include <sched.h>

#define CORES_FILE "pinwheel.cores-" /* and the user's number */

struct cores {
    cpu_set_t allowed; /* to this command */
    int *home;         /* of each rank of this host; NULL: there are none */
    int lock;          /* holds them */
};

/* cores_claim() finds homes for `ranks` ranks, if it can; cores_release() gives them back. */
void cores_claim(struct cores *c, int ranks);
void cores_release(struct cores *c);

#endif
