/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of segments. The owner of a segment that has a name holds its lock, or is dead
 * (invariant set 3). A process that may open the segment, and finds the owner dead, may remove the
 * name. */
#ifndef FABRIC_SHM_NAMES_H
#define FABRIC_SHM_NAMES_H

#include "fabric/shm/layout.h"

/* segment_path() writes the name of the segment of an address. 0 or -errno, with a line in
 * `why`. */
int segment_path(const struct options *, uint32_t nid, uint32_t pid, char *path, size_t size,
                 struct reason *why);

/* segment_each() calls a function with the name of each segment of this kernel, those of dead
 * owners included. 0, or -errno of the folder. */
struct segment_name {
    const char *path;
    uint32_t nid, pid;
    bool ours; /* of this network namespace, and so of this host */
};
int segment_each(const char *directory, void (*see)(void *arg, const struct segment_name *),
                 void *arg);

/* segment_remove_dead() removes the name of a segment if its owner is dead. If the owner seems to
 * live, it asks `patience` times more, 100 us apart. True: the name is free now. It first takes the
 * lock of the file description, so that only one remover at a time acts; the owner's own lock may
 * be held by a child that a dead owner has left behind. */
bool segment_remove_dead(const char *path, int patience);

/* segment_sweep() removes the names of this user's dead processes on this kernel: their addresses
 * may never be asked for again, and cannot be if their network namespace is gone. The lock tells
 * whether the owner is dead; it is the kernel's, and works across namespaces. The names of another
 * kernel's processes are told apart, and left alone. */
void segment_sweep(const char *directory);

#endif
