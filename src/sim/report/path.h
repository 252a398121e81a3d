/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The critical path of a run: from the end of the operation that ends last, back from each step to
 * its cause, as the record (record.h) has it, to time 0. Each interval between 0 and the end
 * belongs to one step, so the parts of all steps add up to the last finish time.
 */
#ifndef SIM_PATH_H
#define SIM_PATH_H

#include "sim/models/record.h"

#include <stddef.h>

/* The time of the path, in ps, divided by what it was spent on. */
struct path_parts {
    uint64_t o, g, G, L, O, calc;
    /* With a packet network these replace L: cables and switches; the message's own bytes;
     * contention with other messages. */
    uint64_t path, serial, queue;
    uint64_t noise; /* time that detours added to o, O and calc */
    /* how much of all these times was waiting, while another operation had the cpu or nic */
    uint64_t wait;
};

/* A step of the path, and the parts of the time between it and the next step, or the end. */
struct path_step {
    uint64_t time;
    uint64_t operation; /* record_find() */
    enum record_slot slot;
    /* why it happened at `time`; the step before it in the path is the cause */
    enum record_why why;
    struct path_parts parts;
};

struct path {
    struct path_step *steps; /* the earliest first */
    size_t count, room;      /* 0: no rank has an operation */
    uint64_t end;
    struct path_parts sum;
};

/* path_find() finds the critical path of a run that ended well, back from the time `finish`, at
 * which rank `last` finishes. It returns 0, or -1 if memory is short. The caller calls path_free()
 * in both cases. */
int path_find(struct path *p, const struct sim_record *r, uint32_t last, uint64_t finish);
void path_free(struct path *p);

#endif
