/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a training step: checks which values fit together, and derives the
 * others. */
#include "goal_gen.h"

#include <inttypes.h>

static int check_counts(const struct goal_config *c, struct goal_error *error)
{
    const struct goal_training *t = &c->training;
    const struct {
        const char *option;
        uint64_t value;
    } counts[] = {
        {"--tp", t->tensor},       {"--pp", t->pipeline},       {"--ep", t->expert},
        {"--layers", t->layers},   {"--bucket", t->bucket},     {"--microbatches", t->microbatches},
        {"--hidden", t->hidden},   {"--sequence", t->sequence}, {"--batch", t->batch},
        {"--element", t->element}, {"--top", t->experts_chosen}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (counts[i].value == 0) {
            return goal_fail(error, "%s 0: must be 1 or more", counts[i].option);
        }
    }
    return 0;
}

/* Checks that the ranks can be divided among the kinds of parallelism. */
static int check_groups(struct goal_config *c, struct goal_error *error)
{
    struct goal_training *t = &c->training;
    uint64_t inner = (uint64_t)t->tensor * t->pipeline;
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): --tp and --pp are 1 or more */
    if (t->data == 0 && c->ranks % inner != 0) {
        return goal_fail(error,
                         "%" PRIu32 " ranks: must be a multiple of tp x pp = %" PRIu32 " x %" PRIu32
                         " = %" PRIu64,
                         c->ranks, t->tensor, t->pipeline, inner);
    }
    t->data = t->data != 0 ? t->data : (uint32_t)(c->ranks / inner);
    if ((unsigned __int128)inner * t->data != c->ranks) {
        return goal_fail(error,
                         "dp x tp x pp = %" PRIu32 " x %" PRIu32 " x %" PRIu32
                         ": must be the %" PRIu32 " ranks; without --dp it is what is left",
                         t->data, t->tensor, t->pipeline, c->ranks);
    }
    if (t->data % t->expert != 0) {
        return goal_fail(error,
                         "--ep %" PRIu32 ": must divide dp = %" PRIu32
                         ", since ranks that have other experts are data parallel ranks",
                         t->expert, t->data);
    }
    if (t->layers % t->pipeline != 0) {
        return goal_fail(error,
                         "--layers %" PRIu32 ": must be a multiple of --pp %" PRIu32
                         ", so that all stages have the same number",
                         t->layers, t->pipeline);
    }
    return 0;
}

/* Returns a * b * c * d / divisor, rounded up; GOAL_DERIVED if that is too large. */
static uint64_t product(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t divisor)
{
    unsigned __int128 p = (unsigned __int128)a * b;
    const uint64_t factors[] = {c, d};
    for (int i = 0; i < 2; i++) {
        if (p != 0 && factors[i] > UINT64_MAX / p) {
            return GOAL_DERIVED;
        }
        p *= factors[i];
    }
    p = (p + divisor - 1) / divisor;
    return p < GOAL_DERIVED ? (uint64_t)p : GOAL_DERIVED;
}

/* Derives the numbers of bytes that the user left out. A layer of a transformer has 4 hidden^2
 * parameters in its attention and 8 hidden^2 in the two matrices behind; with experts these
 * matrices belong to the experts. */
static int complete_bytes(struct goal_config *c, struct goal_error *error)
{
    struct goal_training *t = &c->training;
    bool experts = t->expert > 1;
    if (!experts && t->expert_gradients != GOAL_DERIVED) {
        return goal_fail(error, "--expert-gradients %" PRIu64 ": there are no experts without --ep",
                         t->expert_gradients);
    }
    if (t->gradients == GOAL_DERIVED) {
        t->gradients = product(t->hidden, t->hidden, experts ? 4 : 12, t->element, t->tensor);
    }
    if (t->expert_gradients == GOAL_DERIVED) {
        t->expert_gradients = experts ? product(t->hidden, t->hidden, 8, t->element, t->tensor) : 0;
    }
    if (t->activations == GOAL_DERIVED) {
        t->activations = product(t->batch, t->sequence, t->hidden, t->element, 1);
    }
    if (product(t->gradients, t->layers, 1, 1, 1) == GOAL_DERIVED ||
        product(t->expert_gradients, t->layers, 1, 1, 1) == GOAL_DERIVED) {
        return goal_fail(error,
                         "the gradients of %" PRIu32
                         " layers are 2^64 bytes or more; --hidden, --element or --gradients "
                         "must be less",
                         t->layers);
    }
    if (product(t->activations, t->experts_chosen, 1, 1, 1) == GOAL_DERIVED) {
        return goal_fail(error, "the activations of a microbatch are 2^64 bytes or more; --batch, "
                                "--sequence, --hidden, --element or --activations must be less");
    }
    uint64_t largest = t->activations > t->bucket ? t->activations : t->bucket;
    if ((unsigned __int128)largest * c->reduce_rate / 1000000 >= UINT64_MAX) {
        return goal_fail(error,
                         "reducing %" PRIu64
                         " bytes takes 2^64 or more; --reduce-rate or --bucket must be less",
                         largest);
    }
    return 0;
}

/* Checks that each collective can have a tag of its own below the tags of messages between
 * stages. */
static int check_tags(const struct goal_config *c, struct goal_error *error)
{
    const struct goal_training *t = &c->training;
    unsigned __int128 tags = (unsigned __int128)t->layers * t->microbatches * 8 +
                             (unsigned __int128)t->gradients * t->layers / t->bucket +
                             (unsigned __int128)t->expert_gradients * t->layers / t->bucket + 2;
    if (tags * c->iterations > INT32_MAX) {
        return goal_fail(error, "a rank takes part in 2^31 collectives or more; --iterations, "
                                "--microbatches or --layers must be less, or --bucket more");
    }
    return 0;
}

int goal_training_check(struct goal_config *c, struct goal_error *error)
{
    struct goal_training *t = &c->training;
    if (check_counts(c, error) != 0 || check_groups(c, error) != 0 ||
        complete_bytes(c, error) != 0) {
        return -1;
    }
    if (t->backward == GOAL_DERIVED) {
        t->backward = t->forward <= (UINT64_MAX - 1) / 2 ? 2 * t->forward : UINT64_MAX;
    }
    if (t->allreduce == NULL) {
        t->allreduce = goal_pattern_find("allreduce_ring");
    }
    return check_tags(c, error);
}
