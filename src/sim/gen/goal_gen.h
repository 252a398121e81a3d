/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generators of schedules. A pattern makes one rank at a time, from the rank's
 * number alone, so that schedules of millions of ranks need the memory of one;
 * whatever is random is a function of seed, rank and a count.
 */
#ifndef SIM_GOAL_GEN_H
#define SIM_GOAL_GEN_H

#include "sim/goal/write.h"

enum { GOAL_SPACE = 4 }; /* dimensions of stencils and tori, at most */

/* In which order a rank posts its receives, relative to the order of arrival. */
enum goal_order { GOAL_FORWARD, GOAL_REVERSE, GOAL_SHUFFLED };

struct goal_pattern;

/* In which order a stage of a pipeline works on microbatches. */
enum goal_pipeline { GOAL_GPIPE, GOAL_1F1B };

#define GOAL_DERIVED UINT64_MAX /* bytes that follow from hidden, sequence and batch */

/* A step of training a network; docs/goal.md says what it consists of. */
struct goal_training {
    uint32_t data, tensor, pipeline, expert; /* ranks along each; data 0: all that are left */
    uint32_t layers, microbatches;
    uint64_t hidden, sequence, batch, element; /* of a transformer; element: bytes of a number */
    uint64_t gradients;                 /* bytes of a layer's gradients at a rank, experts apart */
    uint64_t expert_gradients;          /* of these, the gradients of its experts */
    uint64_t activations;               /* bytes of a microbatch between two layers */
    uint64_t experts_chosen;            /* experts that see each token */
    uint64_t forward, backward, update; /* times: of a layer, of the end of the step */
    uint64_t bucket;                    /* bytes of gradients reduced together */
    const struct goal_pattern *allreduce;
    enum goal_pipeline order;
    bool no_overlap; /* gradients wait for the end of the backward computation */
};

/* The configuration of a pattern. Members a pattern does not use keep their default. */
struct goal_config {
    uint32_t ranks;
    uint64_t size;        /* bytes; docs/goal.md says of what */
    uint32_t root;        /* of trees, rings, incast and outcast */
    uint32_t radix;       /* 0: the pattern's own */
    uint32_t iterations;  /* of exchanges, incast, outcast, permutations and training */
    uint64_t calc;        /* time computed after each iteration of an exchange */
    uint64_t random_calc; /* highest of the random calc before each send; 0: none */
    uint64_t reduce_rate; /* millionths of time computed for each byte that is reduced */
    uint64_t seed;
    uint64_t segment;            /* bytes of a piece of what is pipelined; 0: the pattern's own */
    uint64_t late;               /* incast: time the root computes before it posts receives */
    uint32_t extent[GOAL_SPACE]; /* of stencils and tori; 0: chosen by goal_config_check() */
    bool open;                   /* exchanges end at the border rather than wrap around */
    bool any_source;             /* incast: receives name no source */
    enum goal_order order;
    struct goal_training training;
};

extern const struct goal_config goal_config_default;

/* The members that a pattern uses, besides ranks, random_calc and seed. */
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

/* One rank on its way. */
struct goal_maker {
    const struct goal_config *config;
    struct goal_builder *builder;
    uint32_t rank;
    uint64_t draws; /* random numbers taken */
    /* A collective inside a schedule: what a pattern takes for rank i is rank
     * members[i] + shift, or i * stride + shift without members (stride 0 is 1);
     * its tags begin at `tag`, its cpu is `cpu`. */
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
    int dimensions; /* of exchanges, else 0 */
    void (*make)(struct goal_maker *m);
    uint32_t radix;   /* own radix, of those that use one */
    uint64_t segment; /* own segment; 0: all in one piece */
    bool grows;       /* a message may be `ranks` times as large as `size` */
};

extern const struct goal_pattern goal_patterns[];
extern const int goal_pattern_count;

/* goal_pattern_find() returns NULL if there is none of that name. */
const struct goal_pattern *goal_pattern_find(const char *name);

/* goal_config_check() checks and completes a config. Returns 0, or -1 with `error` set.
 * goal_training_check() is its part for training. */
int goal_config_check(const struct goal_pattern *p, struct goal_config *c,
                      struct goal_error *error);
int goal_training_check(struct goal_config *c, struct goal_error *error);

/* goal_generate() writes the schedule to the file `fd`, goal_generate_text() prints
 * it to `out`. The configuration was checked. Returns 0, or -1 with `error` set. */
int goal_generate(const struct goal_pattern *p, const struct goal_config *c, int fd,
                  struct goal_error *error);
int goal_generate_text(const struct goal_pattern *p, const struct goal_config *c,
                       struct goal_stream *out, struct goal_error *error);

/* ---- For patterns ---- */

#define GOAL_NONE UINT32_MAX

/* A send, and the operation before it that waits in its place: itself, or the
 * random calc before it. */
struct goal_sent {
    uint32_t first;
    uint32_t send;
};

/* goal_make_send() adds a send, and a random calc before it if those are asked for;
 * it waits for `after` unless that is GOAL_NONE. */
struct goal_sent goal_make_send(struct goal_maker *m, uint32_t to, uint64_t size, uint32_t tag,
                                uint32_t after);
uint32_t goal_make_recv(struct goal_maker *m, uint32_t from, uint64_t size, uint32_t tag,
                        uint32_t after);
uint32_t goal_make_calc(struct goal_maker *m, uint64_t time, uint32_t after);

#endif
