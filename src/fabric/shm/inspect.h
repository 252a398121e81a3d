/* SPDX-License-Identifier: BSD-3-Clause */
/* Inspection of the segments of this host, for tools: the caller is nobody's peer. */
#ifndef FABRIC_SHM_INSPECT_H
#define FABRIC_SHM_INSPECT_H

#include "base/options.h"

#include <stddef.h>
#include <stdint.h>

struct segment_view {
    uint32_t nid, pid;
    int32_t process;        /* process number of the owner, in the owner's PID namespace */
    uint64_t incarnation;   /* of the NIC, which another NIC at the same address does not share */
    unsigned senders, most; /* NICs that have a slot in it, and the number of slots */
    /* FABRIC_STATS bytes that the owner writes; valid until the call returns */
    const void *stats;
};

/* inspect_segments() calls see() for the segment of each living NIC, in order of NID and PID, and
 * skipped() with the reason for each that cannot be read. 0, or -errno of the folder of the
 * segments. */
int inspect_segments(const struct options *o,
                     void (*see)(void *arg, const struct segment_view *view),
                     void (*skipped)(void *arg, const char *why), void *arg);

#endif
