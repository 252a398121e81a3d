/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fuzz targets of shared memory have in common: a NIC to attack, a hostile peer's
 * view of its segment, and a segment of the hostile peer's own.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "fabric/shm/layout.h"
#include "fuzz.h"
#include "portals4.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define HOSTILE_PID 61000u
#define HOSTILE_INCARNATION 4712u

/* A segment, mapped whole. */
struct mapping {
    bool vandalised; /* the doorbell line or the owners were written over: no promise holds */
    int fd;
    uint8_t *base;
    size_t bytes;
    char path[512];
};

/* hostile_options() sets the environment of a small NIC that gives up at once. */
void hostile_options(void);
/* hostile_open() maps the segment of the NIC at `self`. */
void hostile_open(struct mapping *m, ptl_process_t self);
/* hostile_make() makes one that looks right under the hostile PID. */
void hostile_make(struct mapping *m, ptl_process_t self);
/* hostile_claim() takes the last slot of a segment for the hostile peer, not ready yet. */
struct slot *hostile_claim(struct mapping *m, ptl_process_t self, unsigned *index);
/* hostile_tell() sets the bit of a slot, so that the NIC looks at it. */
void hostile_tell(struct mapping *m, unsigned index);
void hostile_unmap(struct mapping *m);

#endif
