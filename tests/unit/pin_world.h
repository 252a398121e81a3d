/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes with an engine each, memory whose pins are counted page by page, and the messages between
 * them, which are delivered when the test says so, in any order. Each step is followed by the check
 * of all that must hold: what somebody holds is pinned, nothing is unpinned that somebody holds, no
 * more than M + MAXVICTIM units are pinned, and the tables agree (pin_check).
 */
#ifndef TESTS_PIN_WORLD_H
#define TESTS_PIN_WORLD_H

#include "pin/pin.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    WORLD_NODES = 4,
    WORLD_PAGES = 64,
    WORLD_MOST = 16, /* units of a request */
    WORLD_REQUESTS = 16,
    WORLD_MESSAGES = 64,
    WORLD_JOBS = 16,
    WORLD_GIVES = 32,
    WORLD_FORGETS = 64,
    WORLD_PAGE = 4096,
};
#define WORLD_BASE UINT64_C(0x10000000)

/* GONE: the peer died while it held it; it still has to release it. */
enum world_state { W_IDLE, W_POLLS, W_YIELDS, W_WAITS, W_PINS, W_HOLDS };

struct world_request {
    struct pin_request r;
    enum world_state state;
    bool fast; /* taken without the lock */
    struct pin_entry *entry;
    uint32_t generation;
    uint32_t node;
    uint64_t addr, len; /* as asked */
    int error;          /* how it ended */
    uint64_t began;     /* the world's clock then */
};

/* A range whose memory has got other pages, which the engine was told of. */
struct world_forget {
    bool live;
    uint64_t addr, len, when;
};

struct world_message {
    bool live, reply, revoke;
    uint32_t from, to;
    uint64_t token;
    int error;
    uint32_t unpin_count, pin_count;
    struct pin_range unpins[WORLD_MOST], pins[WORLD_MOST];
};

struct world_node {
    struct pin *pin;
    bool dead;
    uint16_t pinned[WORLD_PAGES];
    /* page variant: which pages the memory has, which are pinned, and the clock when they changed
     */
    uint32_t age[WORLD_PAGES], pinned_age[WORLD_PAGES];
    uint64_t changed[WORLD_PAGES];
    uint64_t units;
    struct pin_entry *leaving; /* a forgotten unit that is being unpinned */
    struct pin_request gives[WORLD_GIVES];
    bool giving[WORLD_GIVES];
    struct world_forget forgets[WORLD_FORGETS];
    struct world_request requests[WORLD_REQUESTS];
    struct pin_serve *jobs[WORLD_JOBS];
};

struct world {
    struct pin_config config;
    struct world_node node[WORLD_NODES];
    struct world_message message[WORLD_MESSAGES];
    uint32_t sent;
    uint64_t clock;
    bool silent; /* nobody tells the engine that memory has got other pages */
    bool stale;  /* a request got pages that the memory had before the request began */
    uint64_t pins, unpins, wrong; /* wrong: messages that an engine refused */
};

struct world *world_open(const struct pin_config *config);
void world_close(struct world *w);
void world_check(struct world *w);

uint64_t world_page(uint32_t page);
/* Begins, goes on with, gives up and releases request `i` of a node. */
int world_begin(struct world *w, uint32_t node, uint32_t i, uint32_t target, uint64_t addr,
                uint64_t len);
int world_again(struct world *w, uint32_t node, uint32_t i);
bool world_take(struct world *w, uint32_t node, uint32_t i, uint32_t target, uint64_t addr,
                uint64_t len);
void world_cancel(struct world *w, uint32_t node, uint32_t i);
void world_release(struct world *w, uint32_t node, uint32_t i, bool fast);
/* Makes the pins that request `i` waits for itself, or fails to. */
void world_pin(struct world *w, uint32_t node, uint32_t i, int error);
/* Delivers message `m`. */
void world_deliver(struct world *w, uint32_t m);
/* Takes a job of the node's queue into job `j`, and ends it; false: there is none. */
bool world_job(struct world *w, uint32_t node, uint32_t j);
void world_job_end(struct world *w, uint32_t node, uint32_t j, int error);
/* The pages of the range are replaced by others, and the engine is told. */
void world_forget(struct world *w, uint32_t node, uint64_t addr, uint64_t len);
/* Does one thing that follows: begins or ends the unpin of a unit, asks a peer, or gives units up;
 * false: there is nothing. */
bool world_forget_step(struct world *w, uint32_t node);
/* All nodes hear that one is no more. */
void world_kill(struct world *w, uint32_t node);
/* Does all that needs no decision until nothing moves. */
void world_settle(struct world *w);

#endif
