/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that run together on one machine, and the nodes of each job. A node is a rank of the
 * schedule into which all jobs are merged. In a file of jobs each line is a job:
 *
 *     0-14:2,31 cpus 1-2 start 5000 name stencil.bin
 *
 * rank 0 of the job is on node 0, rank 1 on node 2, ... rank 8 on node 31. The words behind the
 * nodes may be left out: without "cpus" the job has all cpus of its nodes, without "start" it
 * begins at time 0. The name is the rest of the line. Empty lines and lines that begin with # are
 * ignored.
 *
 * Invariant after goal_jobs_read(): each job has a node, and no node twice.
 */
#ifndef SIM_GOAL_JOBS_H
#define SIM_GOAL_JOBS_H

#include "file.h"

struct goal_job {
    char *name;      /* NULL: none */
    uint32_t *nodes; /* by rank of the job: its node */
    uint32_t count, room;
    uint64_t start; /* in the unit in which calcs are */
    uint32_t first_cpu, last_cpu;
    bool has_cpus, has_start; /* false: all cpus; time 0 */
};

struct goal_jobs {
    struct goal_job *job;
    uint32_t count, room;
};

/* goal_jobs_read() reads a file in which a job may have at most `most` nodes. It returns 0, or -1
 * with `error` set: file, line, and what is wrong. goal_jobs_write() writes such a file. The caller
 * calls goal_jobs_free() in any case. */
int goal_jobs_read(struct goal_jobs *jobs, const char *path, uint32_t most,
                   struct goal_error *error);
void goal_jobs_write(const struct goal_jobs *jobs, struct goal_stream *out);
void goal_jobs_free(struct goal_jobs *jobs);

/* goal_jobs_highest() returns the highest node of all jobs. */
uint32_t goal_jobs_highest(const struct goal_jobs *jobs);

#endif
