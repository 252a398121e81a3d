/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a pattern: its defaults, and the checks that refuse a wrong one; see
 * goal_gen.h. */
#include "goal_gen.h"

#include <inttypes.h>
#include <stdio.h>

const struct goal_config goal_config_default = {
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
                 .bucket = 25 << 20}}; /* as in DistributedDataParallel of PyTorch */

/* ---- Extents ---- */

/* True if base^exponent is at most n. */
static bool power_fits(uint64_t base, int exponent, uint64_t n)
{
    unsigned __int128 power = 1;
    for (int i = 0; i < exponent && power <= n; i++) {
        power *= base;
    }
    return power <= n;
}

/* Returns the largest divisor of n that is at most the `dimensions`-th root of n. */
static uint32_t divisor_near_root(uint32_t n, int dimensions)
{
    uint32_t best = 1;
    for (uint64_t d = 1; dimensions > 1 && power_fits(d, dimensions, n); d++) {
        best = n % d == 0 ? (uint32_t)d : best;
    }
    return dimensions > 1 ? best : n;
}

/* Chooses the extents of a torus or stencil with so many dimensions: as near to a cube as the
 * number of ranks allows, smallest extent first. */
static void choose_extent(struct goal_config *c, int dimensions)
{
    uint32_t rest = c->ranks;
    for (int i = 0; i < GOAL_SPACE; i++) {
        c->extent[i] = i < dimensions ? divisor_near_root(rest, dimensions - i) : 1;
        rest /= c->extent[i];
    }
}

/* Checks the extents that the user gave, or chooses them. A pattern with a fixed number of
 * dimensions must have as many; any other takes any number, and has one if the user gave none. */
static int complete_extent(const struct goal_pattern *p, struct goal_config *c,
                           struct goal_error *error)
{
    if (c->extent[0] == 0) {
        choose_extent(c, p->dimensions > 0 ? p->dimensions : 1);
        return 0;
    }
    char text[GOAL_SPACE * 11 + 1] = "";
    unsigned __int128 product = 1;
    int given = 0;
    for (int i = 0, at = 0; i < GOAL_SPACE; i++) {
        if (c->extent[i] != 0) {
            at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%" PRIu32, i > 0 ? "x" : "",
                           c->extent[i]);
            given++;
        }
        c->extent[i] = c->extent[i] != 0 ? c->extent[i] : 1;
        product *= c->extent[i];
    }
    if (p->dimensions > 0 && given != p->dimensions) {
        return goal_fail(error, "%s has %d dimensions, extent %s has %d", p->name, p->dimensions,
                         text, given);
    }
    if (product != c->ranks) {
        return goal_fail(error, "extent %s: must multiply to the %" PRIu32 " ranks", text,
                         c->ranks);
    }
    for (int i = 0; i < given && given > 1 && p->dimensions == 0; i++) {
        if ((c->extent[i] & (c->extent[i] - 1)) != 0) {
            return goal_fail(error,
                             "extent %s: %s on a torus of several dimensions needs powers of two; "
                             "without --extent it takes any number of ranks",
                             text, p->name);
        }
    }
    return 0;
}

/* ---- Sizes ---- */

static int check_sizes(const struct goal_pattern *p, const struct goal_config *c,
                       struct goal_error *error)
{
    if (p->grows && c->size > UINT64_MAX / c->ranks) {
        return goal_fail(error,
                         "%s of %" PRIu32 " ranks sends up to %" PRIu32 " times the %" PRIu64
                         " bytes in a message, which is 2^64 or more; size can be %" PRIu64,
                         p->name, c->ranks, c->ranks, c->size, UINT64_MAX / c->ranks);
    }
    unsigned __int128 time = (unsigned __int128)c->size * c->reduce_rate / 1000000;
    if ((p->uses & GOAL_USES_REDUCE) != 0 && time >= UINT64_MAX) {
        return goal_fail(error,
                         "reducing %" PRIu64 " bytes at %" PRIu64 ".%06" PRIu64
                         " each takes 2^64 or more; size or rate must be less",
                         c->size, c->reduce_rate / 1000000, c->reduce_rate % 1000000);
    }
    uint64_t pieces = (p->uses & GOAL_USES_SEGMENT) != 0 ? c->size / c->segment : 0;
    if (pieces >= UINT32_MAX) {
        return goal_fail(error,
                         "%" PRIu64 " bytes in segments of %" PRIu64 " are %" PRIu64
                         " messages, and a rank has at most %" PRIu32
                         " operations; segments of %" PRIu64 " are possible",
                         c->size, c->segment, pieces, UINT32_MAX, c->size / (UINT32_MAX / 4) + 1);
    }
    return 0;
}

/* Sets members that the user left out to the defaults of the pattern. */
static void complete(const struct goal_pattern *p, struct goal_config *c)
{
    if (c->radix == 0) {
        c->radix = p->radix;
    }
    if (c->segment == 0) {
        c->segment = p->segment != 0 ? p->segment : UINT64_MAX;
    }
}

int goal_config_check(const struct goal_pattern *p, struct goal_config *c, struct goal_error *error)
{
    if (c->ranks == 0 || c->ranks == GOAL_ANY) {
        return goal_fail(error, "%" PRIu32 " ranks: there are from 1 to %" PRIu32, c->ranks,
                         GOAL_ANY - 1);
    }
    if (c->root >= c->ranks) {
        return goal_fail(error, "root %" PRIu32 " does not exist: ranks are 0 to %" PRIu32, c->root,
                         c->ranks - 1);
    }
    complete(p, c);
    if ((p->uses & GOAL_USES_RADIX) != 0 && p->radix > 1 && c->radix < 2) {
        return goal_fail(error, "radix %" PRIu32 ": %s needs 2 or more", c->radix, p->name);
    }
    bool spatial = p->dimensions > 0 || (p->uses & GOAL_USES_EXTENT) != 0;
    if (check_sizes(p, c, error) != 0 || (spatial && complete_extent(p, c, error) != 0)) {
        return -1;
    }
    return (p->uses & GOAL_USES_TRAINING) != 0 ? goal_training_check(c, error) : 0;
}
