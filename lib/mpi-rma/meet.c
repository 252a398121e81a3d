/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation and fence: all ranks meet by dissemination. In round k a rank signals the one 2^k places
 * after it, and waits for the one 2^k before it; after ceil(log2 p) rounds it knows of all.
 *
 *      round 0   0→1 1→2 2→3 3→4 4→0        creation: signals carry words, of which each rank
 *      round 1   0→2 1→3 2→4 3→0 4→1        sends the maximum of its own and those that have come.
 *      round 2   0→4 1→0 2→1 3→2 4→3        A maximum does not mind to count a rank twice.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

static uint32_t partner(const struct sync *s)
{
    return (uint32_t)((s->rank + (UINT64_C(1) << s->round)) % s->size);
}

/* First the rank whose signal ends the round, then those of all rounds. */
bool meet_waits_for(const struct sync *s, uint32_t n, uint32_t *rank)
{
    unsigned round = n == 0 ? s->round : n - 1;
    uint64_t distance = (UINT64_C(1) << (round < SYNC_ROUNDS ? round : 0)) % s->size;
    *rank = (uint32_t)((s->rank + s->size - distance) % s->size);
    return n <= sync_rounds(s->size);
}

/* Sends this round's signal, if there is a round left. */
static void signal_round(struct sync *s)
{
    if (s->round == sync_rounds(s->size)) {
        s->step = STEP_NONE;
        if (s->agreement != NULL) {
            free(s->agreement);
            s->agreement = NULL;
        }
    } else if (s->step == STEP_FENCE) {
        sync_did(s, s->ops->add(s->client, partner(s), SYNC_FENCE + s->round, 1));
    } else {
        sync_did(s, s->ops->send(s->client, partner(s), s->round, s->agreed));
    }
}

static bool round_is_over(const struct sync *s)
{
    return s->step == STEP_FENCE ? sync_read(s, SYNC_FENCE + s->round) >= s->fences
                                 : (s->came >> s->round & 1) != 0;
}

static void combine(struct sync *s, const uint64_t *words)
{
    for (int i = 0; i < SYNC_WORDS; i++) {
        s->agreed[i] = words[i] > s->agreed[i] ? words[i] : s->agreed[i];
    }
}

void meet_go_on(struct sync *s)
{
    while ((s->step == STEP_FENCE || s->step == STEP_CREATE) && round_is_over(s)) {
        if (s->step == STEP_CREATE) {
            combine(s, s->agreement->words[s->round]);
        }
        s->round++;
        signal_round(s);
    }
}

void sync_agree(struct sync *s, unsigned round, const uint64_t *words)
{
    if (s->agreement != NULL && round < SYNC_ROUNDS) {
        memcpy(s->agreement->words[round], words, sizeof(s->agreement->words[round]));
        s->came |= 1u << round;
    }
}

void sync_create(struct sync *s, const uint64_t *words)
{
    if (!sync_begin(s, STEP_CREATE)) {
        return;
    }
    memcpy(s->agreed, words, sizeof(s->agreed));
    s->round = 0;
    signal_round(s);
}

void sync_fence(struct sync *s)
{
    if (!sync_begin(s, STEP_FENCE)) {
        return;
    }
    s->fences++;
    s->round = 0;
    signal_round(s);
}
