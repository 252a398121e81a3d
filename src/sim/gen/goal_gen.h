/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generators of schedules. A pattern makes one rank at a time, from the rank's number alone, so
 * that a schedule of millions of ranks needs memory for one rank only. A random number is a
 * function of the seed, the rank and a count.
 */
#ifndef SIM_GOAL_GEN_H
#define SIM_GOAL_GEN_H

#include "sim/goal/write.h"

enum { GOAL_SPACE = 4 }; /* dimensions of stencils and tori, at most */

/* The order in which a rank posts its receives, relative to the order in which the messages
 * arrive. */
enum goal_order { GOAL_FORWARD, GOAL_REVERSE, GOAL_SHUFFLED };

struct goal_pattern;

/* The order in which a stage of a pipeline works on microbatches. */
enum goal_pipeline { GOAL_GPIPE, GOAL_1F1B };

/* the number of bytes is derived from hidden, sequence and batch */
#define GOAL_DERIVED UINT64_MAX

/* A step of training a network; docs/goal.md says what it consists of. */
struct goal_training {
    /* ranks in each kind of parallelism; data 0: all ranks that the others leave */
    uint32_t data, tensor, pipeline, expert;
    uint32_t layers, microbatches;
    /* dimensions of a transformer; element: bytes of a number */
    uint64_t hidden, sequence, batch, element;
    /* bytes of a layer's gradients at a rank, without those of experts */
    uint64_t gradients;
    uint64_t expert_gradients; /* bytes of the gradients of a layer's experts at a rank */
    uint64_t activations;      /* bytes that pass between two layers for a microbatch */
    uint64_t experts_chosen;   /* experts that process each token */
    /* times: forward and backward of a layer, update at the end of a step */
    uint64_t forward, backward, update;
    uint64_t bucket; /* bytes of gradients reduced together */
    const struct goal_pattern *allreduce;
    enum goal_pipeline order;
    bool no_overlap; /* the reduction of gradients begins after the whole backward computation */
};

/* The configuration of a pattern. Members that the pattern does not use keep their defaults. */
struct goal_config {
    uint32_t ranks;
    uint64_t size;  /* in bytes; docs/goal.md says for each pattern what has this size */
    uint32_t root;  /* root of trees, rings, incast and outcast */
    uint32_t radix; /* 0: the pattern's own */
    /* rounds of exchanges, incast, outcast and permutations; steps of training */
    uint32_t iterations;
    uint64_t calc;        /* calc after each iteration of an exchange */
    uint64_t random_calc; /* upper bound of the random calc before each send; 0: no such calcs */
    uint64_t reduce_rate; /* time to reduce a byte, in millionths of the unit of time */
    uint64_t seed;
    /* bytes of a segment, in patterns that send in segments; 0: the pattern's own */
    uint64_t segment;
    uint64_t late; /* incast: calc of the root before it posts its receives */
    /* extents of a stencil or torus; 0: goal_config_check() chooses them */
    uint32_t extent[GOAL_SPACE];
    /* exchanges: ranks at a border have no neighbours beyond it; else the space wraps around */
    bool open;
    bool any_source; /* incast: the root's receives take messages from any rank */
    enum goal_order order;
    struct goal_training training;
};

extern const struct goal_config goal_config_default;

/* The members that a pattern uses beside ranks, random_calc and seed. */
enum {
    GOAL_USES_SIZE = 1,
    GOAL_USES_ROOT = 2,
    GOAL_USES_ITERATIONS = 4,
    GOAL_USES_CALC = 8,
    GOAL_USES_SEGMENT = 16,
    GOAL_USES_LATE = 32,
    GOAL_USES_EXTENT = 64,
    GOAL_USES_OPEN = 128,
    GOAL_USES_SOURCE = 256,
    GOAL_USES_ORDER = 512,
    GOAL_USES_RADIX = 1024,
    GOAL_USES_REDUCE = 2048,
    GOAL_USES_TRAINING = 4096,
};

/* The state of a pattern that makes one rank. */
struct goal_maker {
    const struct goal_config *config;
    struct goal_builder *builder;
    uint32_t rank;
    uint64_t draws; /* random numbers that this rank has drawn */
    /* If the pattern is a collective inside a larger schedule: rank i of the pattern is rank
     * members[i] + shift of the schedule, or i * stride + shift without members (stride 0 counts
     * as 1). The pattern's tags begin at `tag`, and its operations are on cpu `cpu`. */
    const uint32_t *members;
    uint32_t shift;
    uint32_t stride;
    uint32_t tag;
    uint8_t cpu;
};

struct goal_pattern {
    const char *name;
    const char *summary;
    unsigned uses;
    int dimensions; /* of the space, for exchanges; else 0 */
    void (*make)(struct goal_maker *m);
    uint32_t radix;   /* the default radix, if the pattern uses one */
    uint64_t segment; /* the default segment; 0: data are sent in one piece */
    bool grows;       /* a message of the pattern may have up to `ranks` * `size` bytes */
};

extern const struct goal_pattern goal_patterns[];
extern const int goal_pattern_count;

/* goal_pattern_find() returns the pattern of a name, or NULL. */
const struct goal_pattern *goal_pattern_find(const char *name);

/* goal_config_check() checks a configuration and sets members that were left out. It returns 0, or
 * -1 with `error` set. goal_training_check() is the part of it for training. */
int goal_config_check(const struct goal_pattern *p, struct goal_config *c,
                      struct goal_error *error);
int goal_training_check(struct goal_config *c, struct goal_error *error);

/* goal_generate() writes the schedule to the file `fd`, goal_generate_text() prints it to `out`.
 * The caller has checked the configuration. They return 0, or -1 with `error` set. */
int goal_generate(const struct goal_pattern *p, const struct goal_config *c, int fd,
                  struct goal_error *error);
int goal_generate_text(const struct goal_pattern *p, const struct goal_config *c,
                       struct goal_stream *out, struct goal_error *error);

/* ---- For patterns ---- */

#define GOAL_NONE UINT32_MAX

/* A send, and the first operation that was added for it: the send itself, or the random calc before
 * it. An operation that must come before the send is one that `first` waits for. */
struct goal_sent {
    uint32_t first;
    uint32_t send;
};

/* goal_make_send() adds a send, and a random calc before it if the configuration asks for that. The
 * first of them waits for `after` unless that is GOAL_NONE. */
struct goal_sent goal_make_send(struct goal_maker *m, uint32_t to, uint64_t size, uint32_t tag,
                                uint32_t after);
uint32_t goal_make_recv(struct goal_maker *m, uint32_t from, uint64_t size, uint32_t tag,
                        uint32_t after);
uint32_t goal_make_calc(struct goal_maker *m, uint64_t time, uint32_t after);

#endif
