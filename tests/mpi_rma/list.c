/* SPDX-License-Identifier: BSD-3-Clause */
/* One instance of the engine by itself: its list of posts, and calls that fail. */
#include "world.h"

#include <errno.h>

/* The list by itself: ranks that post several times ahead, in any order, against plain counts. */
static void list(uint64_t seed)
{
    enum { RANKS = 200, STEPS = 3000 };
    uint32_t posts[RANKS] = {0}, starts[RANKS] = {0}, names[RANKS], group[1], used = 0;
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
        used += posts[one] + starts[one] == 0;
        if (comes) {
            MUST(sync_noted(s, group[0], SYNC_POST, posts[one]++) == 0);
        } else {
            sync_start(s, group, 1, true);
            bool waits = sync_poll(s);
            MUST(waits == (posts[one] == starts[one]));
            if (waits) {
                sync_failed(s, -1);
                used -= posts[one] + starts[one] == 0; /* counted again when it succeeds */
            } else {
                starts[one]++;
            }
        }
        MUST(s->partner_count >= used && s->partner_count <= RANKS);
    }
    world_close(&w);
}

/* Numbers go round: both ends count on, also while nothing is sent. */
static void round_and_round(void)
{
    static const uint32_t to[] = {1}, from[] = {0};
    struct world w;
    world_open(&w, 2, 0, 1, 0);
    struct sync *starter = &w.nodes[0].s, *poster = &w.nodes[1].s;
    uint32_t over = 3u << SYNC_NUMBER_BITS;
    for (uint32_t i = 0; i < over; i++) {
        bool check = i % 1500000 == 1499999 || i + 3 > over;
        sync_start(starter, to, 1, check);
        MUST(sync_poll(starter) == check);
        sync_post(poster, from, 1, check);
        world_deliver(&w);
        MUST(!sync_poll(starter));
        sync_complete(starter, to, 1);
        sync_wait(poster);
        MUST(sync_poll(poster));
        world_deliver(&w);
        MUST(!sync_poll(poster) && sync_error(poster) == 0 && sync_error(starter) == 0);
    }
    MUST(w.sent[SENT_APPEND] == 4 && w.sent[SENT_ADD] == over);
    world_close(&w);
}

/* ---- MPI_MODE_NOCHECK at one end ---- */

/* Ranks 0 and 1 start rank 2, which posts to both. An epoch as it should be. */
static void right(struct world *w, bool check)
{
    static const uint32_t to[] = {2}, from[] = {0, 1};
    struct sync *s[] = {&w->nodes[0].s, &w->nodes[1].s}, *poster = &w->nodes[2].s;
    for (int i = 0; i < 2; i++) {
        sync_start(s[i], to, 1, check);
        MUST(sync_poll(s[i]) == check); /* nothing is left of earlier epochs */
    }
    sync_post(poster, from, 2, check);
    world_deliver(w);
    sync_wait(poster);
    for (int i = 0; i < 2; i++) {
        MUST(!sync_poll(s[i]) && sync_error(s[i]) == 0);
        MUST(sync_poll(poster));
        sync_complete(s[i], to, 1);
        world_deliver(w);
    }
    MUST(!sync_poll(poster) && sync_error(poster) == 0);
}

/* The post has it, the start of rank 0 has not, that of rank 1 has. */
static void by_the_post(struct world *w, bool tests)
{
    static const uint32_t to[] = {2}, from[] = {0, 1};
    struct sync *first = &w->nodes[0].s, *second = &w->nodes[1].s, *poster = &w->nodes[2].s;
    uint64_t appended = w->sent[SENT_APPEND];
    sync_post(poster, from, 2, false);
    sync_start(first, to, 1, true);
    sync_start(second, to, 1, false);
    world_deliver(w);
    MUST(sync_poll(first) && !sync_poll(second) && w->sent[SENT_APPEND] == appended);
    for (int i = 0; i < 2; i++) { /* it may ask more than once */
        sync_ask(first, 2);
        world_deliver(w);
        if (!tests && i == 0) {
            sync_wait(poster);
        }
        MUST(tests ? !sync_test(poster) : sync_poll(poster));
    }
    world_deliver(w);
    MUST(!sync_poll(first) && sync_error(first) == -EPROTO);
    sync_complete(second, to, 1);
    world_deliver(w);
    MUST(tests ? sync_test(poster) : !sync_poll(poster));
    MUST(sync_error(poster) == -EPROTO && sync_error(second) == 0);
}

/* The start of rank 0 has it; before the post, or behind it. */
static void by_the_start(struct world *w, bool early)
{
    static const uint32_t to[] = {2}, from[] = {0, 1};
    struct sync *first = &w->nodes[0].s, *second = &w->nodes[1].s, *poster = &w->nodes[2].s;
    if (early) {
        sync_start(first, to, 1, false);
        MUST(!sync_poll(first));
        sync_complete(first, to, 1);
        world_deliver(w);
    }
    sync_post(poster, from, 2, true);
    sync_start(second, to, 1, true);
    world_deliver(w);
    MUST(!sync_poll(second));
    sync_complete(second, to, 1);
    sync_wait(poster);
    world_deliver(w);
    MUST(sync_poll(poster) == !early);
    if (!early) {
        sync_start(first, to, 1, false);
        MUST(!sync_poll(first));
        sync_complete(first, to, 1);
        world_deliver(w);
        MUST(!sync_poll(poster));
    }
    MUST(sync_error(poster) == -EPROTO && sync_error(first) == 0 && sync_error(second) == 0);
}

/* The refusal comes together with the next post. */
static void post_behind(struct world *w)
{
    static const uint32_t to[] = {2}, from[] = {0};
    struct sync *starter = &w->nodes[0].s, *poster = &w->nodes[2].s;
    sync_post(poster, from, 1, false);
    sync_start(starter, to, 1, true);
    MUST(sync_poll(starter));
    sync_ask(starter, 2);
    world_deliver(w);
    sync_wait(poster);
    MUST(!sync_poll(poster) && sync_error(poster) == -EPROTO);
    sync_post(poster, from, 1, true);
    world_deliver(w);
    MUST(!sync_poll(starter) && sync_error(starter) == -EPROTO);
    sync_start(starter, to, 1, true);
    MUST(!sync_poll(starter) && sync_error(starter) == 0);
    sync_complete(starter, to, 1);
    world_deliver(w);
    MUST(sync_test(poster) && sync_error(poster) == 0);
}

/* A start of two ranks of which one has posted with it: the other one is completed. */
static void of_two(struct world *w)
{
    static const uint32_t to[] = {1, 2}, from[] = {0};
    struct sync *starter = &w->nodes[0].s, *checks = &w->nodes[1].s, *other = &w->nodes[2].s;
    sync_post(checks, from, 1, true);
    sync_post(other, from, 1, false);
    sync_start(starter, to, 2, true);
    sync_wait(checks);
    sync_wait(other);
    world_deliver(w);
    MUST(sync_poll(starter) && sync_poll(checks) && sync_poll(other));
    sync_ask(starter, 2);
    world_deliver(w);
    MUST(!sync_poll(other) && sync_error(other) == -EPROTO);
    world_deliver(w);
    MUST(!sync_poll(starter) && sync_error(starter) == -EPROTO);
    world_deliver(w);
    MUST(!sync_poll(checks) && sync_error(checks) == 0);
}

static void one_end(void)
{
    struct world w;
    world_open(&w, 3, 0, 1, 0);
    for (int i = 0; i < 24; i++) {
        right(&w, i % 2 == 0);
        switch (i / 2 % 6) {
        case 0:
        case 1:
            by_the_post(&w, i / 2 % 6 == 0);
            break;
        case 2:
        case 3:
            by_the_start(&w, i / 2 % 6 == 2);
            break;
        case 4:
            post_behind(&w);
            break;
        default:
            of_two(&w);
        }
        right(&w, true);
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
    MUST(sync_noted(s, 4, SYNC_POST, 0) == 0);
    sync_start(s, group, 3, true);
    MUST(sync_poll(s) && sync_waits_for(s, 1, &rank) && rank == 3 && !sync_waits_for(s, 2, &rank));
    s->shared[SYNC_ENDED] = 1;
    MUST(!sync_poll(s) && sync_error(s) == -EPIPE);
    s->shared[SYNC_ENDED] = 0;
    sync_post(s, group, 3, true);
    MUST(!sync_test(s) && sync_waits_for(s, 2, &rank) && rank == 3);
    s->shared[SYNC_ENDED] = 1;
    MUST(!sync_test(s) && sync_error(s) == -EPIPE);
    /* what others have completed counts, whoever has ended */
    s->shared[SYNC_COMPLETED] = 3;
    MUST(sync_test(s) && sync_error(s) == 0);
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
    one_end();
    round_and_round();
    for (uint64_t seed = 0; seed < 20; seed++) {
        list(seed);
    }
    return 0;
}
