/* SPDX-License-Identifier: BSD-3-Clause */
/* Replays the dependencies of a schedule; see replay.h. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

/* Counts that an operation has ended, or begun, for all operations that wait for that; those that
 * wait for nothing more become ready. */
static void release(const struct goal_rank *r, uint32_t first, uint32_t count, uint32_t *met,
                    uint32_t *ready, uint32_t *ready_count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t op = r->successors[first + i];
        if (++met[op] == r->nodes[op].depends) {
            ready[(*ready_count)++] = op;
        }
    }
}

/* Replays the dependencies of a rank. An operation that becomes ready is GOAL_DONE, unless `fate`
 * has it as one that starts and never ends. Returns how many operations do not end. */
static uint32_t replay(const struct goal_rank *r, uint8_t *fate, uint32_t *met, uint32_t *ready)
{
    uint32_t count = r->root_count, unfinished = r->node_count;
    memset(met, 0, r->node_count * sizeof(*met));
    for (uint32_t i = 0; i < r->node_count; i++) {
        if (goal_is_part(&r->nodes[i])) {
            fate[i] = GOAL_DONE; /* it is none */
            unfinished--;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ready[i] = r->roots[i];
    }
    while (count > 0) {
        uint32_t op = ready[--count];
        const struct goal_node *n = &r->nodes[op];
        release(r, n->start_first, n->start_count, met, ready, &count);
        if (fate[op] == GOAL_NEVER_READY) {
            fate[op] = GOAL_DONE;
            unfinished--;
            release(r, n->done_first, n->done_count, met, ready, &count);
        }
    }
    return unfinished;
}

int64_t goal_replay(const struct goal *g, uint8_t *fate)
{
    uint32_t *met = malloc(((size_t)g->most_nodes + 1) * sizeof(*met));
    uint32_t *ready = malloc(((size_t)g->most_nodes + 1) * sizeof(*ready));
    int64_t unfinished = met != NULL && ready != NULL ? 0 : -1;
    for (uint32_t rank = 0; unfinished >= 0 && rank < g->ranks; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        unfinished += replay(&r, fate, met, ready);
        fate += r.node_count;
    }
    free(met);
    free(ready);
    return unfinished;
}

int goal_cyclic(const struct goal *g)
{
    uint8_t *fate = calloc(g->nodes + 1, 1);
    int64_t unfinished = fate != NULL ? goal_replay(g, fate) : -1;
    free(fate);
    return unfinished < 0 ? -1 : unfinished > 0;
}
