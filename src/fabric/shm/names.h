/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of segments. A segment that has a name is locked by its owner, or dead (invariant set
 * 3); who may open it, and finds it dead, may remove the name.
 */
#ifndef FABRIC_SHM_NAMES_H
#define FABRIC_SHM_NAMES_H

#include "fabric/shm/layout.h"

/* segment_path() is the name of an address's segment. 0 or -errno, with a line in `why`. */
int segment_path(const struct options *, uint32_t nid, uint32_t pid, char *path, size_t size,
                 struct reason *why);

/* segment_each() shows the names of all segments of this kernel, those of the dead as well.
 * 0, or -errno of the folder. */
struct segment_name {
    const char *path;
    uint32_t nid, pid;
    bool ours; /* of this network namespace, which is a host */
};
int segment_each(const char *directory, void (*see)(void *arg, const struct segment_name *),
                 void *arg);

/* segment_remove_dead() removes the name of a segment if its owner is dead, and asks so many times
 * more, 100 us apart, if it seems to live. True if the name is free now. The lock of the
 * description makes sure that only one remover acts on what it looked at: the owner's lock may be
 * held by a child that the owner has left behind. */
bool segment_remove_dead(const char *path, int patience);

/* segment_sweep() removes what dead processes of this kernel and user have left behind: nobody may
 * ever ask for their addresses again, and of a network namespace that is gone nobody can. Death is
 * told by the lock, which is the kernel's and knows no namespaces; the names of another kernel's
 * processes say so, and are not touched. */
void segment_sweep(const char *directory);

#endif
