/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments as files: made, found, locked and removed. A segment has a name
 * only while it is complete and locked by its owner, or dead; invariant set 3.
 */
#ifndef FABRIC_SHM_SEGMENT_H
#define FABRIC_SHM_SEGMENT_H

#include "fabric/shm/layout.h"

/* A mapped segment. NICs of one process share the mapping, so that they and
 * the race detectors see one address for one byte. The addresses of an own one stay readable
 * when it is gone, as a hole of zeros, and become the next own segment of its size: who looks
 * into it without the NIC's lock may be late (invariant set 7). */
struct segment {
    struct list link; /* of all segments that this process owns, or of the holes */
    struct segment_header *header;
    struct segment_info info; /* checked copy of header->info */
    uint64_t mapped;          /* bytes mapped at header */
    bool own;                 /* of this process: fully mapped, locked by `fd` */
    unsigned users;
    int fd;
    char path[384];
};

/* segment_create() makes and publishes the segment of a NIC. A wanted pid of 0
 * takes any that is free. Returns 0 or -errno, with a line
 * in `why`. */
int segment_create(const struct options *, const struct segment_info *wanted, struct segment **,
                   struct reason *why);

/* segment_open() maps the header of a peer's segment and checks it. Returns 0;
 * -ENOENT when no live process has that address; another -errno with a line
 * in `why`. */
int segment_open(const struct options *, uint32_t nid, uint32_t pid, struct segment **,
                 struct reason *why);

/* segment_slot() allocates memory for the header, rings and first cells of slot `index`, so that a
 * full /dev/shm is an error and no SIGBUS, and maps the slot. On failure it returns NULL and sets
 * errno. */
struct slot *segment_slot(struct segment *, unsigned index);
/* segment_back_cells() backs the other cells of a class of a slot; 0 or an errno. */
int segment_back_cells(struct segment *, unsigned index, unsigned class);
/* segment_touch() brings cells that are backed with memory into the page table of this process at
 * once, to be written or only read: else each is a page fault of its own. */
void segment_touch(void *cells, uint64_t bytes, bool write);
void segment_slot_unmap(struct segment *, struct slot *);

static inline bool segment_closed(const struct segment *s)
{
    return (atomic_load(&s->header->flags) & SEGMENT_CLOSED) != 0;
}

/* segment_left() tells whether whoever had that address with that incarnation is gone for good:
 * closed, with all that it had mapped, or dead; with NULL, whether that holds for everybody who
 * had the address. False: perhaps not. */
bool segment_left(const struct options *, uint32_t nid, uint32_t pid, const uint64_t *incarnation);

/* segment_alive() tells whether the owner still holds its lock, and not a child of its. */
bool segment_alive(struct segment *);

/* segment_release() lets go of a mapping; the owner's also removes the name. */
void segment_release(struct segment *, bool owner);

/* segment_forget() is for a forked child, which has none of its parent's segments. */
void segment_forget(void);

#endif
