/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generators of schedules. A pattern makes one rank at a time, from the rank's
 * number alone, so that schedules of millions of ranks need the memory of one;
 * whatever is random is a function of seed, rank and a count.
 */
#ifndef SIM_GOAL_GEN_H
#define SIM_GOAL_GEN_H

#include "sim/goal_write.h"

/* In which order a rank posts its receives, relative to the order of arrival. */
enum goal_order { GOAL_FORWARD, GOAL_REVERSE, GOAL_SHUFFLED };

/* What a pattern is asked for. Members a pattern does not use keep their default. */
struct goal_wish {
    uint32_t ranks;
    uint64_t size;        /* bytes of a message; for allreduce_ring and pipelinedring of all data */
    uint32_t root;        /* of trees, rings and incast */
    uint32_t iterations;  /* of exchanges, incast and permutations */
    uint64_t calc;        /* time computed after each iteration of an exchange */
    uint64_t random_calc; /* highest of the random calc before each send; 0: none */
    uint64_t seed;
    uint64_t segment;   /* bytes of a piece in pipelinedring */
    uint64_t late;      /* incast: time the root computes before it posts receives */
    uint32_t extent[3]; /* of stencils; 0: chosen, as near to a cube as the ranks allow */
    bool open;          /* exchanges end at the border rather than wrap around */
    bool any_source;    /* incast: receives name no source */
    enum goal_order order;
};

extern const struct goal_wish goal_wish_default;

/* The members that a pattern uses, besides ranks, size, random_calc and seed. */
enum {
    GOAL_USES_ROOT = 1,
    GOAL_USES_ITERATIONS = 2,
    GOAL_USES_CALC = 4,
    GOAL_USES_SEGMENT = 8,
    GOAL_USES_LATE = 16,
    GOAL_USES_EXTENT = 32,
    GOAL_USES_OPEN = 64,
    GOAL_USES_SOURCE = 128,
    GOAL_USES_ORDER = 256,
};

/* One rank on its way. */
struct goal_maker {
    const struct goal_wish *wish;
    struct goal_builder *builder;
    uint32_t rank;
    uint64_t draws; /* random numbers taken */
    /* A collective inside a schedule: what a pattern takes for rank i is rank
     * members[i] + shift (NULL: i), its tags begin at `tag`, its cpu is `cpu`. */
    const uint32_t *members;
    uint32_t shift;
    uint32_t tag;
    uint8_t cpu;
};

struct goal_pattern {
    const char *name;
    const char *summary;
    unsigned uses;
    int dimensions; /* of exchanges, else 0 */
    void (*make)(struct goal_maker *m);
};

extern const struct goal_pattern goal_patterns[];
extern const int goal_pattern_count;

/* goal_pattern_find() returns NULL if there is none of that name. */
const struct goal_pattern *goal_pattern_find(const char *name);

/* goal_wish_check() checks and completes a wish. Returns 0, or -1 with `error` set. */
int goal_wish_check(const struct goal_pattern *p, struct goal_wish *w, struct goal_error *error);

/* goal_generate() writes the schedule to the file `fd`, goal_generate_text() prints
 * it to `out`. The wish was checked. Returns 0, or -1 with `error` set. */
int goal_generate(const struct goal_pattern *p, const struct goal_wish *w, int fd,
                  struct goal_error *error);
int goal_generate_text(const struct goal_pattern *p, const struct goal_wish *w,
                       struct goal_stream *out, struct goal_error *error);

/* ---- For patterns ---- */

#define GOAL_NONE UINT32_MAX

/* A send, and the operation before it that waits in its place: itself, or the
 * random calc before it. */
struct goal_sent {
    uint32_t first;
    uint32_t send;
};

/* goal_make_send() adds a send, and a random calc before it if those are wished;
 * it waits for `after` unless that is GOAL_NONE. */
struct goal_sent goal_make_send(struct goal_maker *m, uint32_t to, uint64_t size, uint32_t tag,
                                uint32_t after);
uint32_t goal_make_recv(struct goal_maker *m, uint32_t from, uint64_t size, uint32_t tag,
                        uint32_t after);
uint32_t goal_make_calc(struct goal_maker *m, uint64_t time, uint32_t after);

#endif
