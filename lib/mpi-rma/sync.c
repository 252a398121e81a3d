/* SPDX-License-Identifier: BSD-3-Clause */
/* Instances of the engine, and the call in progress. */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sync_init(struct sync *s, const struct sync_ops *ops, void *client, uint64_t *shared,
              uint32_t rank, uint32_t size, uint32_t id)
{
    memset(s, 0, sizeof(*s));
    s->ops = ops;
    s->client = client;
    s->shared = shared;
    s->rank = rank;
    s->size = size;
    s->master = id % size;
    s->random = (uint64_t)id << 32 | rank;
    s->agreement = calloc(1, sizeof(*s->agreement));
    return s->agreement != NULL ? 0 : -ENOMEM;
}

void sync_fini(struct sync *s)
{
    free(s->agreement);
    free(s->partners);
}

bool sync_poll(struct sync *s)
{
    meet_go_on(s);
    pscw_go_on(s);
    if (s->step != STEP_NONE) {
        sync_failed(s, sync_ended(s));
    }
    return s->step != STEP_NONE && s->step != STEP_TEST;
}

int sync_error(const struct sync *s)
{
    return s->error;
}

void sync_failed(struct sync *s, int error)
{
    if (s->step != STEP_NONE) {
        sync_did(s, error);
    }
}

bool sync_waits_for(const struct sync *s, uint32_t n, uint32_t *rank)
{
    switch (s->step) {
    case STEP_NONE:
        return false;
    case STEP_CREATE:
    case STEP_FENCE:
        return meet_waits_for(s, n, rank);
    case STEP_START:
        *rank = n < s->group_left ? s->group[s->group_size - s->group_left + n] : 0;
        return n < s->group_left;
    case STEP_WAIT:
    case STEP_TEST:
        *rank = n < s->exposed_count ? s->exposed_to[n] : 0;
        return n < s->exposed_count;
    default:
        *rank = (uint32_t)((s->rank + UINT64_C(1) + n) % s->size);
        return n + 1 < s->size;
    }
}

void sync_answer(struct sync *s, uint64_t value)
{
    lock_answer(s, value);
}
