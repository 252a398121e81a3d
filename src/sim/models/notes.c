/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts notes; see notes.h. */
#include "notes.h"

#include <stdlib.h>

static int by_sequence(const void *a, const void *b)
{
    const struct note *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* If the numbers lie close together, as when only one rank is busy,
 * each note is put into its place directly. */
int notes_sort(struct note *notes, uint32_t n, struct slab *slab)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        least = notes[i].sequence < least ? notes[i].sequence : least;
        most = notes[i].sequence > most ? notes[i].sequence : most;
    }
    uint64_t range = most - least + 1;
    if (range / 4 > n) {
        qsort(notes, n, sizeof(*notes), by_sequence);
        return 0;
    }
    /* by sequence number - `least`: index of the entry + 1 */
    uint32_t *at = slab_take(slab, range * sizeof(*at));
    if (at == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < n; i++) {
        at[notes[i].sequence - least] = notes[i].entry + 1;
    }
    uint32_t next = 0;
    for (uint64_t i = 0; i < range; i++) {
        if (at[i] != 0) {
            notes[next++] = (struct note){.sequence = least + i, .entry = at[i] - 1};
        }
    }
    slab_give(slab, at, range * sizeof(*at));
    return 0;
}
