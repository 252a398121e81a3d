/* SPDX-License-Identifier: BSD-3-Clause */
/* One instance of the engine by itself: its list of posts, and calls that fail. */
#include "world.h"

#include <errno.h>

/* The list by itself: ranks that come several times, in any order, against plain counts. */
static void list(uint64_t seed)
{
    enum { RANKS = 200, STEPS = 3000 };
    uint32_t counts[RANKS] = {0}, names[RANKS], group[1];
    struct world w;
    world_open(&w, RANKS, 0, seed, 0);
    struct sync *s = &w.nodes[0].s;
    for (int r = 0; r < RANKS; r++) {
        names[r] = (uint32_t)world_random(&w, 1u << 30) * 2 + (r & 1);
    }
    for (int i = 0; i < STEPS; i++) {
        uint32_t one = (uint32_t)world_random(&w, RANKS);
        group[0] = names[one];
        bool comes = i / 400 % 2 == 0 ? world_random(&w, 4) != 0 : world_random(&w, 4) == 0;
        if (comes) {
            MUST(sync_posted(s, group[0]) == 0);
            counts[one]++;
        } else {
            sync_start(s, group, 1, true);
            bool waits = sync_poll(s);
            MUST(waits == (counts[one] == 0));
            if (waits) {
                sync_failed(s, -1);
            } else {
                counts[one]--;
            }
        }
        uint32_t used = 0;
        for (int r = 0; r < RANKS; r++) {
            used += counts[r] != 0;
        }
        MUST(s->credit_used == used);
    }
    world_close(&w);
}

/* ---- A rank that has ended ---- */

static void failing(void)
{
    static const uint32_t group[] = {1};
    struct world w;
    world_open(&w, 2, 0, 1, 0);
    struct sync *s = &w.nodes[0].s;
    sync_start(s, group, 1, true);
    MUST(sync_poll(s) && sync_error(s) == 0);
    sync_failed(s, -32);
    MUST(!sync_poll(s) && sync_error(s) == -32);
    sync_failed(s, -5); /* nothing is in progress */
    MUST(sync_error(s) == -32);
    sync_fence(s);
    MUST(sync_poll(s) && sync_error(s) == 0);
    sync_failed(s, -32);
    sync_start(s, group, 1, false); /* not checked: over at once */
    MUST(!sync_poll(s) && sync_error(s) == 0);
    world_close(&w);
}

/* Whom a call waits for, and how the end of a rank ends it and each later one. */
static void ended(void)
{
    static const uint32_t group[] = {4, 2, 3};
    struct world w;
    uint32_t rank;
    world_open(&w, 6, 5, 1, 0);
    struct sync *s = &w.nodes[1].s;
    MUST(!sync_waits_for(s, 0, &rank));
    sync_fence(s);
    static const uint32_t before[] = {0, 0, 5, 3}; /* first that of the round */
    for (uint32_t n = 0; n < 4; n++) {
        MUST(sync_waits_for(s, n, &rank) && rank == before[n]);
    }
    MUST(!sync_waits_for(s, 4, &rank));
    s->shared[SYNC_FENCE] = 1; /* the signal of round 0 */
    MUST(sync_poll(s) && sync_waits_for(s, 0, &rank) && rank == 5);
    s->shared[SYNC_ENDED] = 1 + 3;
    MUST(!sync_poll(s) && sync_error(s) == -EPIPE);
    sync_fence(s);
    MUST(!sync_poll(s) && sync_error(s) == -EPIPE);
    s->shared[SYNC_ENDED] = 0;
    MUST(sync_posted(s, 4) == 0);
    sync_start(s, group, 3, true);
    MUST(sync_poll(s) && sync_waits_for(s, 1, &rank) && rank == 3 && !sync_waits_for(s, 2, &rank));
    s->shared[SYNC_ENDED] = 1;
    MUST(!sync_poll(s) && sync_error(s) == -EPIPE);
    s->shared[SYNC_ENDED] = 0;
    MUST(!sync_test(s, group, 3) && sync_waits_for(s, 2, &rank) && rank == 3);
    s->shared[SYNC_ENDED] = 1;
    MUST(!sync_test(s, group, 3) && sync_error(s) == -EPIPE);
    /* what others have completed counts, whoever has ended */
    s->shared[SYNC_COMPLETED] = 3;
    MUST(sync_test(s, group, 3) && sync_error(s) == 0);
    s->shared[SYNC_ENDED] = 0;
    sync_lock(s, 2, true);
    for (uint32_t n = 0; n < 5; n++) {
        MUST(sync_waits_for(s, n, &rank) && rank == (2 + n) % 6);
    }
    MUST(!sync_waits_for(s, 5, &rank));
    s->shared[SYNC_ENDED] = 3;
    MUST(!sync_poll(s) && sync_error(s) == -EPIPE);
    /* a lock is given back in any case */
    uint64_t sent = w.sent[SENT_ADD];
    s->exclusives = 1;
    sync_unlock(s, 2, true);
    MUST(w.sent[SENT_ADD] == sent + 2 && sync_error(s) == -EPIPE);
    world_close(&w);
}

int main(void)
{
    failing();
    ended();
    for (uint64_t seed = 0; seed < 20; seed++) {
        list(seed);
    }
    return 0;
}
