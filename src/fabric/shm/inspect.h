/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at the segments of this host from outside, as nobody's peer. */
#ifndef FABRIC_SHM_INSPECT_H
#define FABRIC_SHM_INSPECT_H

#include "base/options.h"

#include <stddef.h>
#include <stdint.h>

struct segment_view {
    uint32_t nid, pid;
    int32_t process;        /* the owner's, as itself numbers processes */
    uint64_t incarnation;   /* of the NIC: another one is another NIC */
    unsigned senders, most; /* NICs that have a place to send to it, and places */
    const void *stats;      /* FABRIC_STATS bytes that the owner writes; until the call returns */
};

/* inspect_segments() shows those of living NICs, by NID and PID; `skipped` hears why one cannot
 * be looked at. 0, or -errno of the folder that segments lie in. */
int inspect_segments(const struct options *o,
                     void (*see)(void *arg, const struct segment_view *view),
                     void (*skipped)(void *arg, const char *why), void *arg);

#endif
