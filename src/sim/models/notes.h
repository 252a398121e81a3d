/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes that name entries of a match side, in the order of these (match.h). */
#ifndef SIM_NOTES_H
#define SIM_NOTES_H

#include "sim/util/slab.h"

#include <stdint.h>

struct note {
    uint64_t sequence;
    uint32_t entry;
    uint32_t next; /* index + 1 */
};

/* notes_sort() sorts notes by sequence number; -1 if memory is short. */
int notes_sort(struct note *notes, uint32_t n, struct slab *slab);

#endif
