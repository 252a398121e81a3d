/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments as files: made, found, locked and removed. A segment has a name
 * only while it is complete and locked by its owner, or dead; invariant set 3.
 */
#ifndef FABRIC_SHM_SEGMENT_H
#define FABRIC_SHM_SEGMENT_H

#include "fabric/shm/layout.h"

/* A mapped segment. NICs of one process share the mapping, so that they and the race detectors see
 * one address for one byte. The addresses of an own segment stay readable when it is gone, as a
 * hole of zeros, and are used for the next own segment of its size: a thread that reads the segment
 * without the NIC's lock may be late (invariant set 7). */
struct segment {
    struct list link; /* in the list of the segments that this process owns, or of holes */
    struct segment_header *header;
    struct segment_info info; /* checked copy of header->info */
    uint64_t mapped;          /* bytes mapped at header */
    bool own;                 /* owned by this process: wholly mapped, and locked by `fd` */
    unsigned users;
    int fd;
    char path[384];
};

/* segment_create() makes and publishes the segment of a NIC; pid 0 stands for any free one. 0 or
 * -errno, with a line in `why`. */
int segment_create(const struct options *, const struct segment_info *wanted, struct segment **,
                   struct reason *why);

/* segment_open() maps the header of a peer's segment and checks it. Returns 0;
 * -ENOENT when no live process has that address; another -errno with a line
 * in `why`. */
int segment_open(const struct options *, uint32_t nid, uint32_t pid, struct segment **,
                 struct reason *why);

/* segment_slot() backs the header, rings and first cells of slot `index` with memory, so that a
 * full /dev/shm is an error and no SIGBUS, and maps the slot. If it fails it returns NULL and sets
 * errno. */
struct slot *segment_slot(struct segment *, unsigned index);
/* segment_back_cells() backs the other cells of a class in a slot with memory; 0 or an errno. */
int segment_back_cells(struct segment *, unsigned index, unsigned class);
/* segment_touch() enters cells that are backed with memory into the page table of this process, to
 * be written or only read: otherwise the first access to each page is a page fault. */
void segment_touch(void *cells, uint64_t bytes, bool write);
void segment_slot_unmap(struct segment *, struct slot *);

static inline bool segment_closed(const struct segment *s)
{
    return (atomic_load(&s->header->flags) & SEGMENT_CLOSED) != 0;
}

/* segment_left() says whether the NIC that had this address and incarnation is gone for good: it
 * has closed its segment and left all slots, or its process is dead. With NULL: whether that holds
 * for every NIC that had the address. False: perhaps not. */
bool segment_left(const struct options *, uint32_t nid, uint32_t pid, const uint64_t *incarnation);

/* segment_alive() says whether the owner still holds the lock itself, and not only a child of
 * it. */
bool segment_alive(struct segment *);

/* segment_release() ends the use of a mapping; the owner's call also removes the name. */
void segment_release(struct segment *, bool owner);

/* segment_forget() forgets all segments in a forked child, which has none of its parent's. */
void segment_forget(void);

#endif
