/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The critical path of a run: from the end of the operation that ends last, back
 * along the causes of a record (record.h) to time 0. Each piece of the time from 0
 * to the end belongs to one step, so the parts add up to the last finish.
 */
#ifndef SIM_PATH_H
#define SIM_PATH_H

#include "sim/models/record.h"

#include <stddef.h>

/* Time of the path by its use, ps. */
struct path_parts {
    uint64_t o, g, G, L, O, calc;
    /* On a packet network, in the place of L: cables and switches, bytes before, contention. */
    uint64_t path, serial, queue;
    uint64_t noise; /* time that detours added to o, O and calc */
    uint64_t wait; /* how much of these another operation spent on the cpu or nic that was needed */
};

/* A step of the path, and what passed from it to the next one, or to the end. */
struct path_step {
    uint64_t time;
    uint64_t operation; /* record_find() */
    enum record_slot slot;
    enum record_why why; /* reason that it happened at `time`; the step before is the cause */
    struct path_parts parts;
};

struct path {
    struct path_step *steps; /* the earliest first */
    size_t count, room;      /* 0: no rank has an operation */
    uint64_t end;
    struct path_parts sum;
};

/* path_find() finds the path to `finish`, when rank `last` finishes, of a run that
 * ended well. It returns 0, or -1 if memory is short. path_free() in any case. */
int path_find(struct path *p, const struct sim_record *r, uint32_t last, uint64_t finish);
void path_free(struct path *p);

#endif
