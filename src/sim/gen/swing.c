/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swing: De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher
 * Bandwidth Allreduce", NSDI 2024.
 *
 * On a ring of p = 2^k places, in step s, an even place x exchanges data with place x + d(s), an
 * odd one with place x - d(s), where d(s) = (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11, ...; the
 * distance is less than recursive doubling's 2^s, and is the same for all. On a torus the steps
 * take turns over the dimensions that are not done.
 *
 *   latency      k steps with all data
 *   bandwidth    a reduce-scatter, in which the peer of step s gets the chunks that it
 *                and those it meets later are to have; then the same back
 *
 * How these chunks are found: each step is an involution of the places. Two steps s and t one after
 * the other move a place by d(t) - d(s), and d(s + 1) - d(s) is 2^(s+1) up to its sign. So by the
 * steps from s on place x reaches exactly the places that equal x, or x's peer in step s, modulo
 * 2^(s+1). These are two residue classes, which can be counted without listing their places. On a
 * torus each dimension has such classes of coordinates.
 */
#include "gen.h"

/* Returns the peer of place x in step s, on a ring of `extent` places. */
static uint64_t swing(uint64_t x, unsigned s, uint64_t extent)
{
    int64_t power = (int64_t)2 << s, d = (1 - (s % 2 == 0 ? -power : power)) / 3;
    int64_t to = (int64_t)x + (x % 2 == 0 ? d : -d);
    return (uint64_t)(to % (int64_t)extent + (int64_t)extent) % extent;
}

/* A torus, the place of the rank on it, and how many steps of each dimension are done. */
struct torus {
    int dimensions;
    uint64_t places;
    uint64_t extent[GOAL_SPACE];
    uint64_t at[GOAL_SPACE];
    unsigned steps[GOAL_SPACE]; /* steps of each dimension in total */
    unsigned done[GOAL_SPACE];
};

static struct torus torus(const struct goal_maker *m, const struct gen_fold *f)
{
    struct torus t = {.dimensions = 1, .places = f->power, .extent = {f->power, 1, 1, 1}};
    if (f->extra == 0 && m->config->extent[0] != 0) {
        for (int d = 0; d < GOAL_SPACE; d++) {
            t.extent[d] = m->config->extent[d];
            t.dimensions = t.extent[d] > 1 ? d + 1 : t.dimensions;
        }
    }
    uint64_t rest = f->self;
    for (int d = 0; d < t.dimensions; d++) {
        t.at[d] = rest % t.extent[d];
        rest /= t.extent[d];
        while (UINT64_C(1) << t.steps[d] < t.extent[d]) {
            t.steps[d]++;
        }
    }
    return t;
}

/* Returns the number of the place whose coordinate in `dimension` is `at`, and whose other
 * coordinates are the rank's. */
static uint64_t moved(const struct torus *t, int dimension, uint64_t at)
{
    uint64_t number = 0;
    for (int d = t->dimensions - 1; d >= 0; d--) {
        number = number * t->extent[d] + (d == dimension ? at : t->at[d]);
    }
    return number;
}

/* ---- Sets of chunks ---- */

/* The coordinates in one dimension that equal a or b modulo `modulus`. */
struct residues {
    uint64_t a, b, modulus;
};

/* Returns the coordinates that x reaches by the steps from number s on. */
static struct residues leads_to(uint64_t x, unsigned s, unsigned steps, uint64_t extent)
{
    if (s >= steps) {
        return (struct residues){x, x, extent};
    }
    uint64_t modulus = UINT64_C(2) << s;
    return (struct residues){x % modulus, swing(x, s, extent) % modulus, modulus};
}

static uint64_t below(uint64_t limit, uint64_t residue, uint64_t modulus)
{
    return limit > residue ? (limit - residue - 1) / modulus + 1 : 0;
}

static uint64_t members_below(const struct residues *r, uint64_t limit)
{
    return below(limit, r->a, r->modulus) + (r->b != r->a ? below(limit, r->b, r->modulus) : 0);
}

/* Returns the bytes of all chunks that a place reaches by the steps that are not done yet. The
 * place's coordinate in `dimension` is `at`, its others are the rank's. The first size % places
 * chunks have a byte more. How many of those the place reaches is counted digit by digit, with the
 * coordinates as the digits of a chunk's number. */
static uint64_t chunks(const struct goal_maker *m, const struct torus *t, int dimension,
                       uint64_t at)
{
    uint64_t size = m->config->size, longer = size % t->places, count = 0, lower = 1;
    /* true if the place reaches coordinates that are the digits of `longer` from dimension d on */
    bool equal[GOAL_SPACE + 1] = {0};
    struct residues r[GOAL_SPACE];
    uint64_t digit[GOAL_SPACE], all = 1;
    for (int d = 0; d < t->dimensions; d++) {
        uint64_t x = d == dimension ? at : t->at[d];
        r[d] = leads_to(x, t->done[d], t->steps[d], t->extent[d]);
        digit[d] = longer % t->extent[d];
        longer /= t->extent[d];
        all *= members_below(&r[d], t->extent[d]);
    }
    equal[t->dimensions] = true;
    for (int d = t->dimensions - 1; d >= 0; d--) {
        uint64_t residue = digit[d] % r[d].modulus;
        equal[d] = equal[d + 1] && (residue == r[d].a || residue == r[d].b);
    }
    for (int d = 0; d < t->dimensions; d++) {
        count += equal[d + 1] ? members_below(&r[d], digit[d]) * lower : 0;
        lower *= members_below(&r[d], t->extent[d]);
    }
    return size / t->places * all + count;
}

/* ---- Steps ---- */

/* Returns the dimension of the next step, -1 after the last step. */
static int turn(const struct torus *t)
{
    int next = -1;
    for (int d = 0; d < t->dimensions; d++) {
        if (t->done[d] < t->steps[d] && (next < 0 || t->done[d] < t->done[next])) {
            next = d;
        }
    }
    return next;
}

void gen_allreduce_swing_latency(struct goal_maker *m)
{
    struct gen_fold f = gen_fold(m);
    struct gen_round r = GEN_ROUND_FIRST;
    if (!gen_fold_in(m, &f, &r)) {
        return;
    }
    struct torus t = torus(m, &f);
    for (int d; (d = turn(&t)) >= 0; t.done[d]++) {
        uint64_t other = moved(&t, d, swing(t.at[d], t.done[d], t.extent[d]));
        uint32_t peer = gen_unfold(&f, other);
        gen_exchange(m, &r, peer, m->config->size, peer, m->config->size, GEN_REDUCE);
    }
    gen_fold_out(m, &f, &r);
}

/* After the reduce-scatter the same steps run backwards, last step first. */
void gen_allreduce_swing_bandwidth(struct goal_maker *m)
{
    struct gen_fold f = gen_fold(m);
    struct gen_round r = GEN_ROUND_FIRST;
    int order[64], steps = 0;
    if (!gen_fold_in(m, &f, &r)) {
        return;
    }
    struct torus t = torus(m, &f);
    for (int d; (d = turn(&t)) >= 0;) {
        uint64_t at = swing(t.at[d], t.done[d], t.extent[d]);
        uint32_t peer = gen_unfold(&f, moved(&t, d, at));
        t.done[d]++;
        order[steps++] = d;
        gen_exchange(m, &r, peer, chunks(m, &t, d, at), peer, chunks(m, &t, d, t.at[d]),
                     GEN_REDUCE);
    }
    while (steps > 0) {
        int d = order[--steps];
        uint64_t at = swing(t.at[d], t.done[d] - 1, t.extent[d]);
        uint32_t peer = gen_unfold(&f, moved(&t, d, at));
        gen_exchange(m, &r, peer, chunks(m, &t, d, t.at[d]), peer, chunks(m, &t, d, at), GEN_KEEP);
        t.done[d]--;
    }
    gen_fold_out(m, &f, &r);
}
