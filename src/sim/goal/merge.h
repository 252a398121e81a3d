/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merges the schedules of several jobs on one network into one schedule. Its ranks are the nodes:
 * goal_jobs gives the node of each rank of a job. A node that no job has is a rank without
 * operations.
 *
 * A message of one job never matches a recv of another. If two jobs share no node that cannot
 * happen: a message goes to a node of its own job, where only that job has recvs. Jobs that share a
 * node get disjoint tags and cpus, and operations with any tag at a shared node are refused.
 *
 * A job that starts later has a calc at each rank for which all its other operations wait.
 */
#ifndef SIM_GOAL_MERGE_H
#define SIM_GOAL_MERGE_H

#include "jobs.h"
#include "read.h"

enum goal_spread {
    GOAL_PACKED,      /* each job has consecutive nodes */
    GOAL_INTERLEAVED, /* each job in turn gets a node, as long as it needs one */
    GOAL_SCATTERED,   /* nodes are given at random */
};

struct goal_merge {
    struct goal *parts; /* the jobs' schedules, which stay the caller's */
    struct goal_jobs jobs;
    uint32_t nodes;
    bool share; /* several jobs may have the same node */
    /* The rest is private to goal_merge_check() and goal_merge_write(). */
    /* by job: the place of its rank 0; places number the ranks of all jobs, job by job */
    uint64_t *first;
    uint32_t *head; /* by node: the first place at it, + 1; 0: none */
    uint32_t *next; /* by place: the next place at the same node, + 1 */
    uint32_t *tags; /* by job: what is added to the tags of its operations */
};

/* goal_merge_spread() assigns nodes to `count` jobs whose schedules are open. `m->nodes` is how
 * many nodes there are; 0: as many as the jobs need. Returns 0, or -1 with `error` set. */
int goal_merge_spread(struct goal_merge *m, uint32_t count, enum goal_spread how, uint64_t seed,
                      struct goal_error *error);

/* goal_merge_check() checks that each job has as many nodes as ranks, and assigns cpus and tags to
 * jobs that share nodes. goal_merge_write() writes the schedule: as text to `text` if that is set,
 * else in binary form to `fd`, with labels and lines in `side_fd` unless that is -1. They return 0,
 * or -1 with `error` set. The caller calls goal_merge_free() in any case. */
int goal_merge_check(struct goal_merge *m, struct goal_error *error);
int goal_merge_write(struct goal_merge *m, int fd, int side_fd, struct goal_stream *text,
                     struct goal_error *error);
void goal_merge_free(struct goal_merge *m);

/* goal_merge_at() finds the job and the rank of an entry of `head` or `next`. */
void goal_merge_at(const struct goal_merge *m, uint32_t at, uint32_t *job, uint32_t *rank);

/* ---- Labels and lines (merge_side.c) ---- */

enum { GOAL_MERGE_PREFIX = 16 }; /* "job4294967295_", at most */

/* A struct that is zeroed, but for an open writer, is ready for the first node. */
struct goal_merge_side {
    struct goal_side_writer writer;
    struct goal_origin *origins; /* of the operations of one node */
    uint64_t count, room;
    char *text; /* labels that were made for the node */
    uint64_t text_used, text_room;
};

/* goal_merge_label_node() adds the labels and lines of a node's operations, in the order in which
 * goal_merge_write() merges them. Returns 0, or -1 with `error` set. */
int goal_merge_label_node(struct goal_merge_side *s, struct goal_merge *m, uint32_t node,
                          struct goal_error *error);
void goal_merge_side_free(struct goal_merge_side *s);

#endif
