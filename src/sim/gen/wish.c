/* SPDX-License-Identifier: BSD-3-Clause */
/* What a pattern is asked for: defaults, and what cannot be; see goal_gen.h. */
#include "goal_gen.h"

#include <inttypes.h>
#include <stdio.h>

const struct goal_wish goal_wish_default = {
    .ranks = 16,
    .size = 8,
    .iterations = 1,
    .seed = 1,
    .training = {.tensor = 1,
                 .pipeline = 1,
                 .expert = 1,
                 .layers = 8,
                 .microbatches = 1,
                 .hidden = 1024,
                 .sequence = 1024,
                 .batch = 1,
                 .element = 2,
                 .gradients = GOAL_DERIVED,
                 .expert_gradients = GOAL_DERIVED,
                 .activations = GOAL_DERIVED,
                 .experts_chosen = 1,
                 .backward = GOAL_DERIVED,
                 .bucket = 25 << 20}}; /* what DistributedDataParallel of PyTorch has */

/* ---- Extents ---- */

/* Whether base^exponent is at most n. */
static bool power_fits(uint64_t base, int exponent, uint64_t n)
{
    unsigned __int128 power = 1;
    for (int i = 0; i < exponent && power <= n; i++) {
        power *= base;
    }
    return power <= n;
}

/* The largest divisor of n up to its dimensions-th root. */
static uint32_t divisor_near_root(uint32_t n, int dimensions)
{
    uint32_t best = 1;
    for (uint64_t d = 1; dimensions > 1 && power_fits(d, dimensions, n); d++) {
        best = n % d == 0 ? (uint32_t)d : best;
    }
    return dimensions > 1 ? best : n;
}

/* As near to a cube as the ranks allow, smallest extent first. */
static void choose_extent(struct goal_wish *w, int dimensions)
{
    uint32_t rest = w->ranks;
    for (int i = 0; i < GOAL_SPACE; i++) {
        w->extent[i] = i < dimensions ? divisor_near_root(rest, dimensions - i) : 1;
        rest /= w->extent[i];
    }
}

/* A pattern with no dimensions of its own takes any number, one unless told. */
static int complete_extent(const struct goal_pattern *p, struct goal_wish *w,
                           struct goal_error *error)
{
    if (w->extent[0] == 0) {
        choose_extent(w, p->dimensions > 0 ? p->dimensions : 1);
        return 0;
    }
    char text[GOAL_SPACE * 11 + 1] = "";
    unsigned __int128 product = 1;
    int given = 0;
    for (int i = 0, at = 0; i < GOAL_SPACE; i++) {
        if (w->extent[i] != 0) {
            at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%" PRIu32, i > 0 ? "x" : "",
                           w->extent[i]);
            given++;
        }
        w->extent[i] = w->extent[i] != 0 ? w->extent[i] : 1;
        product *= w->extent[i];
    }
    if (p->dimensions > 0 && given != p->dimensions) {
        return goal_fail(error, "%s has %d dimensions, extent %s has %d", p->name, p->dimensions,
                         text, given);
    }
    if (product != w->ranks) {
        return goal_fail(error, "extent %s: must multiply to the %" PRIu32 " ranks", text,
                         w->ranks);
    }
    for (int i = 0; i < given && given > 1 && p->dimensions == 0; i++) {
        if ((w->extent[i] & (w->extent[i] - 1)) != 0) {
            return goal_fail(error,
                             "extent %s: %s on a torus of several dimensions needs powers of two; "
                             "without --extent it takes any number of ranks",
                             text, p->name);
        }
    }
    return 0;
}

/* ---- Sizes ---- */

static int check_sizes(const struct goal_pattern *p, const struct goal_wish *w,
                       struct goal_error *error)
{
    if (p->grows && w->size > UINT64_MAX / w->ranks) {
        return goal_fail(error,
                         "%s of %" PRIu32 " ranks sends up to %" PRIu32 " times the %" PRIu64
                         " bytes in a message, which is 2^64 or more; size can be %" PRIu64,
                         p->name, w->ranks, w->ranks, w->size, UINT64_MAX / w->ranks);
    }
    unsigned __int128 time = (unsigned __int128)w->size * w->reduce_rate / 1000000;
    if ((p->uses & GOAL_USES_REDUCE) != 0 && time >= UINT64_MAX) {
        return goal_fail(error,
                         "reducing %" PRIu64 " bytes at %" PRIu64 ".%06" PRIu64
                         " each takes 2^64 or more; size or rate must be less",
                         w->size, w->reduce_rate / 1000000, w->reduce_rate % 1000000);
    }
    uint64_t pieces = (p->uses & GOAL_USES_SEGMENT) != 0 ? w->size / w->segment : 0;
    if (pieces >= UINT32_MAX) {
        return goal_fail(error,
                         "%" PRIu64 " bytes in segments of %" PRIu64 " are %" PRIu64
                         " messages, and a rank has at most %" PRIu32
                         " operations; segments of %" PRIu64 " are possible",
                         w->size, w->segment, pieces, UINT32_MAX, w->size / (UINT32_MAX / 4) + 1);
    }
    return 0;
}

/* What was left to the pattern. */
static void complete(const struct goal_pattern *p, struct goal_wish *w)
{
    if (w->radix == 0) {
        w->radix = p->radix;
    }
    if (w->segment == 0) {
        w->segment = p->segment != 0 ? p->segment : UINT64_MAX;
    }
}

int goal_wish_check(const struct goal_pattern *p, struct goal_wish *w, struct goal_error *error)
{
    if (w->ranks == 0 || w->ranks == GOAL_ANY) {
        return goal_fail(error, "%" PRIu32 " ranks: there are from 1 to %" PRIu32, w->ranks,
                         GOAL_ANY - 1);
    }
    if (w->root >= w->ranks) {
        return goal_fail(error, "root %" PRIu32 " does not exist: ranks are 0 to %" PRIu32, w->root,
                         w->ranks - 1);
    }
    complete(p, w);
    if ((p->uses & GOAL_USES_RADIX) != 0 && p->radix > 1 && w->radix < 2) {
        return goal_fail(error, "radix %" PRIu32 ": %s needs 2 or more", w->radix, p->name);
    }
    bool spatial = p->dimensions > 0 || (p->uses & GOAL_USES_EXTENT) != 0;
    if (check_sizes(p, w, error) != 0 || (spatial && complete_extent(p, w, error) != 0)) {
        return -1;
    }
    return (p->uses & GOAL_USES_TRAINING) != 0 ? goal_training_check(w, error) : 0;
}
