/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of synchronisation among many ranks: what each call promises, how many messages it
 * takes, and how much memory.
 *
 *      mpi_rma_sync           up to 1,000 ranks, many seeds
 *      mpi_rma_sync long      up to 131,072
 */
#include "world.h"

#include <string.h>

static bool is_long;

/* ceil(log2 size), by counting. */
static unsigned rounds_of(uint32_t size)
{
    unsigned rounds = 0;
    for (uint64_t reached = 1; reached < size; reached *= 2) {
        rounds++;
    }
    return rounds;
}

/* ---- Creation and fences ---- */

enum { FENCES = 3 };

struct fences {
    uint64_t highest[SYNC_WORDS];
    uint32_t entered[FENCES + 1]; /* ranks that have called it; the creation is the last one */
};

static bool one_create(struct world *w, uint32_t rank)
{
    struct fences *f = w->own;
    struct node *n = &w->nodes[rank];
    if (n->step++ == 0) {
        uint64_t words[SYNC_WORDS];
        for (int i = 0; i < SYNC_WORDS; i++) {
            words[i] = world_random(w, UINT64_MAX);
            f->highest[i] = words[i] > f->highest[i] ? words[i] : f->highest[i];
        }
        f->entered[FENCES]++;
        sync_create(&n->s, words);
        return true;
    }
    MUST(f->entered[FENCES] == w->size);
    MUST(memcmp(n->s.agreed, f->highest, sizeof(f->highest)) == 0);
    return false;
}

/* For tests of other calls. */
static bool one_create_nothing(struct world *w, uint32_t rank)
{
    static const uint64_t nothing[SYNC_WORDS];
    if (w->nodes[rank].step++ == 0) {
        sync_create(&w->nodes[rank].s, nothing);
        return true;
    }
    return false;
}

/* With jitter the ranks rest before each. */
static bool one_fence(struct world *w, uint32_t rank)
{
    struct fences *f = w->own;
    struct node *n = &w->nodes[rank];
    uint32_t step = n->step++, fence = step / 2;
    if (step % 2 == 0) {
        MUST(fence == 0 || f->entered[fence - 1] == w->size);
        if (fence == FENCES) {
            return false;
        }
        if (w->jitter > 0) {
            world_rest(w, rank, world_random(w, 20 * w->jitter));
        }
    } else {
        f->entered[fence]++;
        sync_fence(&n->s);
    }
    return true;
}

static void meets(uint32_t size, uint64_t seed, uint64_t jitter)
{
    struct world w;
    struct fences f;
    uint64_t rounds = rounds_of(size);
    memset(&f, 0, sizeof(f));
    world_open(&w, size, 7, seed, jitter);
    w.own = &f;
    world_run(&w, one_create);
    MUST(w.sent[SENT_WORDS] == size * rounds && world_sent(&w) == size * rounds);
    MUST(jitter > 0 || w.now == rounds * LATENCY);
    world_count_anew(&w);
    world_run(&w, one_fence);
    MUST(w.sent[SENT_ADD] == FENCES * size * rounds && world_sent(&w) == FENCES * size * rounds);
    MUST(jitter > 0 || w.now == FENCES * rounds * LATENCY);
    for (uint32_t r = 0; r < size; r++) {
        MUST(w.nodes[r].s.agreement == NULL && w.nodes[r].s.partners == NULL);
    }
    if (seed == 0) {
        printf("%6u ranks: create %2u, fence %2u messages a rank, in %2u latencies; %zu bytes\n",
               size, (unsigned)rounds, (unsigned)rounds, (unsigned)rounds,
               sizeof(struct sync) + sizeof(w.nodes[0].shared));
    }
    world_close(&w);
}

/* ---- Post, start, complete, wait ---- */

enum { EPOCHS = 4 };

/* Rank r accesses r + d for each of `count` distances d, and is accessed by r - d. */
struct graph {
    uint32_t count;
    uint32_t *distances;
    uint32_t *to, *from;                    /* `count` of each rank */
    uint32_t *posted, *started, *completed; /* epochs of each rank */
    uint32_t most_room;
    bool tests; /* waits by sync_test() */
};

static void each_epoch_step(struct world *w, struct graph *g, uint32_t rank, uint32_t what)
{
    struct node *n = &w->nodes[rank];
    uint32_t *to = g->to + (size_t)rank * g->count, *from = g->from + (size_t)rank * g->count;
    switch (what) {
    case 0:
        g->posted[rank]++;
        sync_post(&n->s, from, g->count, true);
        break;
    case 1:
        sync_start(&n->s, to, g->count, true);
        break;
    case 2: /* the start is over: all targets have posted this epoch */
        g->started[rank]++;
        for (uint32_t i = 0; i < g->count; i++) {
            MUST(g->posted[to[i]] >= g->started[rank]);
        }
        break;
    case 3:
        g->completed[rank]++;
        sync_complete(&n->s, to, g->count);
        break;
    default:
        sync_wait(&n->s);
    }
}

static bool one_epoch_step(struct world *w, uint32_t rank)
{
    struct graph *g = w->own;
    struct node *n = &w->nodes[rank];
    uint32_t step = n->step++, epoch = step / 6, what = step % 6;
    g->most_room = n->s.partner_room > g->most_room ? n->s.partner_room : g->most_room;
    if (what == 5) { /* the wait is over: all origins have completed this epoch */
        for (uint32_t i = 0; i < g->count; i++) {
            MUST(g->completed[g->from[(size_t)rank * g->count + i]] > epoch);
        }
        world_rest(w, rank, world_random(w, 5 * w->jitter + 1));
    } else if (what == 4 && g->tests && !sync_test(&n->s)) {
        n->step--; /* asks again */
        world_rest(w, rank, LATENCY);
    } else if (what != 4 || !g->tests) {
        if (epoch == EPOCHS) {
            return false;
        }
        each_epoch_step(w, g, rank, what);
    }
    return true;
}

static void pscw(uint32_t size, uint32_t count, uint64_t seed, bool tests)
{
    struct world w;
    struct graph g = {.count = count, .tests = tests};
    uint64_t edges = (uint64_t)size * count;
    world_open(&w, size, 3, seed, 5000);
    g.distances = calloc(count, sizeof(uint32_t));
    g.to = calloc(edges, sizeof(uint32_t));
    g.from = calloc(edges, sizeof(uint32_t));
    g.posted = calloc(size, sizeof(uint32_t));
    g.started = calloc(size, sizeof(uint32_t));
    g.completed = calloc(size, sizeof(uint32_t));
    /* distances that are all different; 0 is a rank in its own groups */
    for (uint32_t i = 0; i < count; i++) {
        g.distances[i] = (uint32_t)(i * (uint64_t)(size / count) + world_random(&w, size / count));
    }
    for (uint32_t r = 0; r < size; r++) {
        for (uint32_t i = 0; i < count; i++) {
            g.to[(size_t)r * count + i] = (r + g.distances[i]) % size;
            g.from[(size_t)r * count + i] = (r + size - g.distances[i]) % size;
        }
    }
    w.own = &g;
    world_run(&w, one_create_nothing);
    world_count_anew(&w);
    world_run(&w, one_epoch_step);
    MUST(w.sent[SENT_APPEND] == EPOCHS * edges && w.sent[SENT_ADD] == EPOCHS * edges);
    MUST(world_sent(&w) == 2 * EPOCHS * edges);
    MUST(g.most_room <= 8 + 8 * count); /* not of the number of ranks */
    for (uint32_t r = 0; r < size; r++) {
        MUST(w.nodes[r].s.partner_count <= 2 * count);
        MUST(w.nodes[r].shared[SYNC_COMPLETED] == (uint64_t)EPOCHS * count);
    }
    if (seed == 0) {
        printf("%6u ranks, groups of %3u: post %u, start 0, complete %u, wait 0 messages; "
               "list of %u at most\n",
               size, count, count, count, g.most_room);
    }
    free(g.distances);
    free(g.to);
    free(g.from);
    free(g.posted);
    free(g.started);
    free(g.completed);
    world_close(&w);
}

/* ---- Locks ---- */

struct holder {
    uint32_t exclusive, shared;
};

struct locks {
    struct holder *at; /* of each rank's memory */
    uint32_t all, exclusives;
    uint32_t steps;
    uint32_t targets; /* the first so many ranks are locked */
    uint64_t taken;
};

/* What a rank holds, or is about to: in its `own`. */
struct wish {
    int kind; /* 0 exclusive, 1 shared, 2 all, 3 two exclusive ones */
    uint32_t target[2];
};

static void got(struct locks *l, const struct wish *wish, int which)
{
    struct holder *h = &l->at[wish->target[which]];
    l->taken++;
    if (wish->kind == 2) {
        l->all++;
        MUST(l->exclusives == 0);
    } else if (wish->kind == 1) {
        h->shared++;
        MUST(h->exclusive == 0);
    } else {
        h->exclusive++;
        l->exclusives++;
        MUST(h->exclusive == 1 && h->shared == 0 && l->all == 0);
    }
}

static void give(struct locks *l, struct node *n, const struct wish *wish, int which)
{
    struct holder *h = &l->at[wish->target[which]];
    if (wish->kind == 2) {
        l->all--;
        sync_unlock_all(&n->s);
    } else if (wish->kind == 1) {
        h->shared--;
        sync_unlock(&n->s, wish->target[which], false);
    } else {
        h->exclusive--;
        l->exclusives--;
        sync_unlock(&n->s, wish->target[which], true);
    }
}

static void ask(struct node *n, const struct wish *wish, int which)
{
    if (wish->kind == 2) {
        sync_lock_all(&n->s);
    } else {
        sync_lock(&n->s, wish->target[which], wish->kind != 1);
    }
}

/* Steps of one wish: ask, (ask for the second one,) hold for a while, give back. */
static bool one_lock_step(struct world *w, uint32_t rank)
{
    struct locks *l = w->own;
    struct node *n = &w->nodes[rank];
    struct wish *wish = n->own;
    uint32_t step = n->step++;
    if (step / 6 == l->steps) {
        return false;
    }
    switch (step % 6) {
    case 0:
        wish->kind = (int)world_random(w, 4);
        wish->target[0] = (uint32_t)world_random(w, l->targets);
        wish->target[1] = wish->target[0] + 1; /* in one order, so that none waits in a circle */
        wish->kind = wish->target[1] == l->targets && wish->kind == 3 ? 0 : wish->kind;
        ask(n, wish, 0);
        break;
    case 1:
        got(l, wish, 0);
        if (wish->kind == 3) {
            ask(n, wish, 1);
        }
        break;
    case 2:
        if (wish->kind == 3) {
            got(l, wish, 1);
        }
        world_rest(w, rank, world_random(w, 3 * LATENCY));
        break;
    case 3:
        give(l, n, wish, 0);
        break;
    case 4:
        if (wish->kind == 3) {
            give(l, n, wish, 1);
        }
        break;
    default:
        world_rest(w, rank, world_random(w, 3 * LATENCY));
    }
    return true;
}

static void locks(uint32_t size, uint32_t targets, uint32_t steps, uint64_t seed)
{
    struct world w;
    struct locks l = {.steps = steps, .targets = targets};
    struct wish *wishes = calloc(size, sizeof(*wishes));
    l.at = calloc(size, sizeof(*l.at));
    world_open(&w, size, 5, seed, 700);
    w.own = &l;
    for (uint32_t r = 0; r < size; r++) {
        w.nodes[r].own = &wishes[r];
    }
    world_run(&w, one_create_nothing);
    world_count_anew(&w);
    world_run(&w, one_lock_step);
    MUST(l.taken >= (uint64_t)size * steps);
    for (uint32_t r = 0; r < size; r++) {
        MUST(w.nodes[r].shared[SYNC_LOCK] == 0 && w.nodes[r].shared[SYNC_MASTER] == 0);
        MUST(w.nodes[r].s.exclusives == 0);
    }
    if (seed == 0) {
        printf("%6u ranks, %u locked: %.1f messages a lock and its unlock\n", size, targets,
               (double)world_sent(&w) / (double)l.taken);
    }
    free(wishes);
    free(l.at);
    world_close(&w);
}

/* Alone: the number of messages is fixed. */
static bool one_of_each(struct world *w, uint32_t rank)
{
    struct node *n = &w->nodes[rank];
    static const uint64_t fetches[] = {1, 0, 1, 0, 1, 0, 0, 0, 0},
                          swaps[] = {1, 0, 0, 0, 0, 0, 1, 0, 0};
    static const uint64_t adds[] = {0, 2, 0, 1, 0, 1, 0, 1, 0};
    static uint64_t now[3];
    if (rank != 1) {
        return false;
    }
    uint32_t step = n->step++;
    /* steps: lock and unlock exclusive, shared, all */
    if (step > 0 && step <= 6) {
        MUST(w->sent[SENT_FETCH] - now[0] == fetches[step - 1]);
        MUST(w->sent[SENT_SWAP] - now[1] == swaps[step - 1]);
        MUST(w->sent[SENT_ADD] - now[2] == adds[step - 1]);
    }
    now[0] = w->sent[SENT_FETCH];
    now[1] = w->sent[SENT_SWAP];
    now[2] = w->sent[SENT_ADD];
    switch (step) {
    case 0:
    case 2:
        sync_lock(&n->s, 2, step == 0);
        break;
    case 1:
    case 3:
        sync_unlock(&n->s, 2, step == 1);
        break;
    case 4:
        sync_lock_all(&n->s);
        break;
    case 5:
        sync_unlock_all(&n->s);
        break;
    case 6: /* a second exclusive lock does not ask the master again */
        sync_lock(&n->s, 0, true);
        break;
    case 7:
        sync_lock(&n->s, 2, true);
        break;
    case 8:
        MUST(w->sent[SENT_FETCH] == 4 && w->sent[SENT_SWAP] == 3);
        sync_unlock(&n->s, 0, true);
        break;
    case 9:
        sync_unlock(&n->s, 2, true);
        break;
    default:
        return false;
    }
    return true;
}

static void alone(uint32_t size)
{
    struct world w;
    world_open(&w, size, 5, 1, 0);
    world_run(&w, one_create_nothing);
    world_count_anew(&w);
    world_run(&w, one_of_each);
    MUST(w.sent[SENT_ADD] == 4 + 3);
    world_close(&w);
    printf("%6u ranks, one locks: exclusive 2 and 2 messages, shared 1 and 1, all 1 and 1\n", size);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 1000};
    static const uint32_t large[] = {4096, 16384, 131072};
    is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t seed = 0; seed < (is_long ? 40 : 8); seed++) {
            uint32_t size = sizes[i];
            meets(size, seed, seed == 0 ? 0 : 100 * seed);
            pscw(size, size < 6 ? 1 : 1 + (uint32_t)seed % 6, seed, seed % 2 == 1);
            locks(size, size < 9 ? size : 1 + (uint32_t)seed * 3 % size, is_long ? 20 : 6, seed);
        }
    }
    pscw(100, 100, 0, false); /* all with all */
    alone(3);
    alone(1000);
    for (size_t i = 0; is_long && i < sizeof(large) / sizeof(large[0]); i++) {
        meets(large[i], 0, 0);
        meets(large[i], 1, 3000);
        pscw(large[i], 6, 0, false);
        alone(large[i]);
    }
    return 0;
}
