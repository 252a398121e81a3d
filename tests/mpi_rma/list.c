/* SPDX-License-Identifier: BSD-3-Clause */
/* One instance of the engine by itself: its list of posts, and calls that fail. */
#include "world.h"

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

int main(void)
{
    failing();
    for (uint64_t seed = 0; seed < 20; seed++) {
        list(seed);
    }
    return 0;
}
