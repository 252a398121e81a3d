/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side file of a merged schedule: labels and lines of the jobs' operations, as far as the jobs
 * have them. The labels of a rank must differ. So at a node that jobs share, and at one where a job
 * starts late, LABEL of job 2 becomes "job2_LABEL"; the calc that was added for the late start is
 * "job2".
 */
#include "base/array.h"
#include "merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int no_memory(struct goal_error *error)
{
    return goal_fail(error, "no memory for the labels of the jobs");
}

/* Makes room for so many operations and bytes of labels. The origins point into `text`, which must
 * not move while the labels of a node are made. */
static int make_room(struct goal_merge_side *s, uint64_t operations, uint64_t bytes)
{
    return ARRAY_HOLDS(s->origins, operations, s->room, 0) &&
                   ARRAY_HOLDS(s->text, bytes, s->text_room, 0)
               ? 0
               : -1;
}

/* Sets the label of an operation, with the job's prefix if `prefixed`. */
static void put_label(struct goal_merge_side *s, uint32_t job, bool prefixed, struct goal_origin *o,
                      const struct goal_place *place)
{
    if (!prefixed) {
        o->label = place->label;
        o->label_length = place->label_length;
        return;
    }
    char *label = s->text + s->text_used;
    int length = sprintf(label, "job%" PRIu32 "%s", job + 1, place->label_length > 0 ? "_" : "");
    memcpy(label + length, place->label, place->label_length);
    o->label = label;
    o->label_length = (uint32_t)length + place->label_length;
    s->text_used += o->label_length;
}

static int add_rank(struct goal_merge_side *s, struct goal_merge *m, uint32_t job, uint32_t rank,
                    bool shared, struct goal_error *error)
{
    uint32_t count = goal_rank(&m->parts[job], rank).node_count;
    bool late = m->jobs.job[job].start > 0 && count > 0;
    struct goal_place place;
    if (late) {
        struct goal_origin *o = &s->origins[s->count++];
        *o = (struct goal_origin){.line = 0};
        put_label(s, job, true, o, &(struct goal_place){.label = ""});
    }
    for (uint32_t k = 0; k < count; k++) {
        struct goal_origin *o = &s->origins[s->count++];
        *o = (struct goal_origin){.line = 0};
        if (!goal_locate(&m->parts[job], rank, k, &place)) {
            continue;
        }
        o->line = place.line;
        put_label(s, job, (shared || late) && place.label_length > 0, o, &place);
        if (place.line > 0 && goal_side_source(&s->writer, place.file, &o->source, error) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Adds up how many operations a job's rank has, and how long their labels may become. */
static void measure(struct goal_merge *m, uint32_t job, uint32_t rank, uint64_t *operations,
                    uint64_t *bytes)
{
    uint32_t count = goal_rank(&m->parts[job], rank).node_count;
    struct goal_place place;
    *operations += count + (uint64_t)1;
    *bytes += GOAL_MERGE_PREFIX;
    for (uint32_t k = 0; k < count; k++) {
        if (goal_locate(&m->parts[job], rank, k, &place)) {
            *bytes += GOAL_MERGE_PREFIX + (uint64_t)place.label_length;
        }
    }
}

int goal_merge_label_node(struct goal_merge_side *s, struct goal_merge *m, uint32_t node,
                          struct goal_error *error)
{
    uint64_t operations = 0, bytes = 0;
    uint32_t at, job, rank;
    bool shared = m->head[node] != 0 && m->next[m->head[node] - 1] != 0;
    s->count = s->text_used = 0;
    for (at = m->head[node]; at != 0; at = m->next[at - 1]) {
        goal_merge_at(m, at, &job, &rank);
        measure(m, job, rank, &operations, &bytes);
    }
    if (make_room(s, operations, bytes) != 0) {
        return no_memory(error);
    }
    for (at = m->head[node]; at != 0; at = m->next[at - 1]) {
        goal_merge_at(m, at, &job, &rank);
        if (add_rank(s, m, job, rank, shared, error) != 0) {
            return -1;
        }
    }
    return goal_side_rank(&s->writer, s->origins, (uint32_t)s->count, error);
}

void goal_merge_side_free(struct goal_merge_side *s)
{
    free(s->origins);
    free(s->text);
}
