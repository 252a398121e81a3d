/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that run on one machine: which nodes each of them has. A node is a rank of the
 * schedule of all of them together. In a file a job is a line:
 *
 *     0-14:2,31 cpus 1-2 start 5000 name stencil.bin
 *
 * rank 0 of the job is on node 0, rank 1 on node 2, ... rank 8 on node 31. What follows
 * may be left out: then the job has all cpus of its nodes and begins at time 0. The name
 * goes on to the end of the line. Empty lines and those that begin with # say nothing.
 *
 * Invariant after goal_jobs_read(): each job has a node, and no node twice.
 */
#ifndef SIM_GOAL_JOBS_H
#define SIM_GOAL_JOBS_H

#include "file.h"

struct goal_job {
    char *name;      /* NULL: none */
    uint32_t *nodes; /* by rank of the job */
    uint32_t count, room;
    uint64_t start; /* as a calc counts time */
    uint32_t first_cpu, last_cpu;
    bool has_cpus, has_start; /* as opposed to all of them, and to 0 */
};

struct goal_jobs {
    struct goal_job *job;
    uint32_t count, room;
};

/* goal_jobs_read() reads a file, in which a job has at most `most` nodes. Returns 0, or -1
 * with `error` set: file, line, what is wrong. goal_jobs_write() writes one.
 * goal_jobs_free() in any case. */
int goal_jobs_read(struct goal_jobs *jobs, const char *path, uint32_t most,
                   struct goal_error *error);
void goal_jobs_write(const struct goal_jobs *jobs, struct goal_stream *out);
void goal_jobs_free(struct goal_jobs *jobs);

/* goal_jobs_highest() is the highest node that a job has. */
uint32_t goal_jobs_highest(const struct goal_jobs *jobs);

#endif
