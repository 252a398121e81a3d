/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of a window in one process, each an instance of the engine (lib/mpi-rma/sync.h), on a
 * network in virtual time. A message takes LATENCY units and a random part of up to `jitter`; a
 * rank does the steps of its script one after the other.
 */
#ifndef WORLD_H
#define WORLD_H

#include "sync.h"

#include <stdio.h>
#include <stdlib.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { LATENCY = 1000 };
enum message_kind { SENT_ADD, SENT_FETCH, SENT_SWAP, SENT_APPEND, SENT_WORDS, MESSAGE_KINDS };

struct world;

struct node {
    struct sync s;
    uint64_t shared[SYNC_SHARED];
    struct world *world;
    uint32_t step; /* of its script */
    bool idle;     /* between two steps, for a while */
    void *own;     /* the test's */
};

struct event {
    uint64_t time, order;
    uint32_t from, to;
    uint8_t kind; /* enum message_kind, or one of world.c's own */
    uint8_t word;
    uint64_t value, compare;
    uint64_t words[SYNC_WORDS];
};

struct world {
    uint32_t size;
    struct node *nodes;
    struct event *heap;
    size_t events, room;
    uint64_t now, order, random, jitter;
    uint64_t sent[MESSAGE_KINDS]; /* messages, without answers */
    uint32_t done;                /* ranks whose script is over */
    /* begins the rank's next step; false: its script is over */
    bool (*next)(struct world *w, uint32_t rank);
    void *own;
};

/* world_run() runs all scripts to their end; a deadlock fails. */
void world_open(struct world *w, uint32_t size, uint32_t id, uint64_t seed, uint64_t jitter);
void world_run(struct world *w, bool (*next)(struct world *w, uint32_t rank));
void world_close(struct world *w);

uint64_t world_random(struct world *w, uint64_t bound);

/* Brings all that is under way, and what that causes, to its ranks, whose calls are the test's. */
void world_deliver(struct world *w);

/* Forgets what was sent, and begins at time 0. */
void world_count_anew(struct world *w);
uint64_t world_sent(const struct world *w);

/* The rank does nothing for so many units of time, then its next step. */
void world_rest(struct world *w, uint32_t rank, uint64_t units);

#endif
