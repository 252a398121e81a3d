/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Homes: a core of its own for each rank of this host, where that harms no other program. The
 * launcher tells the rank its home by PINWHEEL_CORE and does nothing else: the rank's affinity mask
 * stays the launcher's, so that its threads may run anywhere. libportals keeps the first thread on
 * that core while the thread polls (src/nic/place.h). There are no homes
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
    cpu_set_t allowed; /* cores that the affinity mask of this command allows */
    int *home;         /* by rank of this host: its core; NULL: there are no homes */
    int lock;          /* descriptor of CORES_FILE, which holds the locks on the cores */
};

/* cores_claim() finds homes for `ranks` ranks, if it can; cores_release() releases their cores. */
void cores_claim(struct cores *c, int ranks);
void cores_release(struct cores *c);

#endif
