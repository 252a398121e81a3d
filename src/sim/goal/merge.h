/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several jobs on one network: their schedules become one, in which rank i of a job is
 * the node that goal_jobs says. Nodes that no job has are ranks without operations.
 *
 * Jobs never match each other. Those that share no node cannot: a message goes to a node
 * of its own job, and only that job's recvs are there. Jobs that share one get tags and
 * cpus of their own, and what takes any tag at a shared node is refused.
 *
 * A job that starts later begins, at each rank, with a calc for which all else waits.
 */
#ifndef SIM_GOAL_MERGE_H
#define SIM_GOAL_MERGE_H

#include "jobs.h"
#include "read.h"

enum goal_spread {
    GOAL_PACKED,      /* one job after the other */
    GOAL_INTERLEAVED, /* a node for each job in turn, as long as it needs one */
    GOAL_SCATTERED,   /* by lot */
};

struct goal_merge {
    struct goal *parts; /* by job */
    struct goal_jobs jobs;
    uint32_t nodes;
    bool share; /* jobs may share nodes */
    /* Private, while it is written. */
    uint64_t *first; /* by job: its rank 0 among all ranks of all jobs ("places") */
    uint32_t *head;  /* by node: the first place that is there, + 1 */
    uint32_t *next;  /* by place: the next one at its node, + 1 */
    uint32_t *tags;  /* by job: what is added to its tags */
};

/* goal_merge_spread() gives nodes to `count` jobs, which have been opened. `m->nodes` is
 * how many there are, or 0: as many as are needed. Returns 0, or -1 with `error` set. */
int goal_merge_spread(struct goal_merge *m, uint32_t count, enum goal_spread how, uint64_t seed,
                      struct goal_error *error);

/* goal_merge_check() checks that jobs fit their nodes, as a file may have it, and gives
 * cpus and tags to those that share some. goal_merge_write() writes the schedule, binary
 * to `fd` (and labels and lines to `side_fd`, unless that is -1) or, if `text` is set, as
 * text to that. They return 0, or -1 with `error` set;
 * goal_merge_free() in any case. The parts stay the caller's. */
int goal_merge_check(struct goal_merge *m, struct goal_error *error);
int goal_merge_write(struct goal_merge *m, int fd, int side_fd, struct goal_stream *text,
                     struct goal_error *error);
void goal_merge_free(struct goal_merge *m);

/* goal_merge_at() says which rank of which job an entry of `head` or `next` is. */
void goal_merge_at(const struct goal_merge *m, uint32_t at, uint32_t *job, uint32_t *rank);

/* ---- Labels and lines (merge_side.c) ---- */

enum { GOAL_MERGE_PREFIX = 16 }; /* "job4294967295_", at most */

/* Zeroed, with an open writer, is ready for the first node. */
struct goal_merge_side {
    struct goal_side_writer writer;
    struct goal_origin *origins; /* of a node's operations */
    uint64_t count, room;
    char *text; /* labels that were made for it */
    uint64_t text_used, text_room;
};

/* goal_merge_label_node() adds a node, as goal_merge_write() puts it together. Returns 0,
 * or -1 with `error` set. */
int goal_merge_label_node(struct goal_merge_side *s, struct goal_merge *m, uint32_t node,
                          struct goal_error *error);
void goal_merge_side_free(struct goal_merge_side *s);

#endif
