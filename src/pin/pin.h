/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of Firehose: which memory of this node and of its peers is pinned, for whom, and what
 * gives way. "Firehose: An Algorithm for Distributed Page Registration on Clusters of SMPs" (Bell,
 * Nishtala, 2004), sections 3 and 4, is what "the paper" means here.
 *
 * A unit is a page-sized bucket (page variant) or a region of any length up to a bound (region
 * variant). All limits count units. The engine has no threads, clock, network or lock: its caller
 * sends its messages, pins its memory, polls, and holds one lock in every call but pin_take() and
 * pin_drop(), which need none and may run beside all others. An int that is returned is 0 or a
 * negative errno value.
 *
 *   request of this node:  pin_begin() ─► PIN_DONE
 *                              │  ▲            ▲
 *             PIN_AGAIN: poll, │  │ PIN_YIELD: wait until pin_winner() is none
 *             then pin_again() ▼  │            │
 *                            PIN_SENT ──► move to a peer, or memory of one's own to be pinned
 *                            PIN_WAIT         │ pin_finish()
 *                              └──────────────┴──► in the list of those that have ended
 *
 *   move of a peer:        pin_arrive() ─► pin_serve_next() ─► unpin and pin ─► pin_served()
 */
#ifndef PIN_PIN_H
#define PIN_PIN_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PIN_HANDLE = 32 }; /* bytes that the client keeps with a pinned unit */

struct pin_config {
    uint32_t nodes, self;
    bool regions;         /* the region variant */
    uint64_t page;        /* bytes of a bucket, a power of two */
    uint64_t region_most; /* region variant: bytes of a region, a multiple of `page` */
    uint64_t remote;      /* M: units that all peers together may have pinned here */
    uint64_t victims;     /* MAXVICTIM: units that are pinned here without any peer's wish */
    uint64_t f;           /* firehoses of each node to each other */
    uint32_t most;        /* units of one remote request, at most f */
    uint32_t da_limit;    /* polls after which a request declares deadlock */
};

struct pin_range {
    uint64_t addr, len;
    uint8_t handle[PIN_HANDLE];
};

/* The paper's counters, of local and of remote requests, and those of section 4. */
struct pin_counts {
    uint64_t pin, hit, pending, miss;
    uint64_t try_hit, try_miss, partial_hit, partial_miss, release;
};
struct pin_stats {
    struct pin_counts local, remote;
    uint64_t avoided;   /* times that a request declared deadlock */
    uint64_t rollbacks; /* times that a request gave back what it had */
    uint64_t yields;    /* of these: because another one had declared deadlock */
    uint64_t stolen;    /* replacements that somebody hit before they were replaced */
    uint64_t evicted, moved, served, waited; /* units replaced; moves sent, executed, held up */
    uint64_t failed;                         /* requests that ended with an error */
    uint64_t refused;                        /* messages of peers that were wrong, and calls */
};

enum pin_step { PIN_DONE, PIN_WAIT, PIN_SENT, PIN_AGAIN, PIN_YIELD };

struct pin;
struct pin_entry;
struct pin_request;

/* One unit of a request. */
struct pin_use {
    struct pin_entry *entry;
    struct pin_request *request;
    struct pin_use *next; /* behind it among those that wait for the entry */
    uint64_t addr, len;
    bool fresh; /* the entry is this request's claim */
    bool waits; /* for a move of somebody else */
};

/* A request belongs to its caller, who leaves its inside alone, from pin_begin() until it was
 * released, cancelled or has failed. */
struct pin_request {
    uint64_t addr, len; /* the range that is pinned, a superset of the one asked for */
    uint32_t node;
    int error;
    uint32_t count;
    struct pin_use *uses, one;
    struct pin_entry **victims; /* replacements, uses[] long */
    struct pin_entry *one_victim;
    uint32_t claims, victim_count, reserved, tries, waiting;
    bool gathering; /* it has not all that it needs */
    bool later;     /* it was not a hit at once */
    bool sent;      /* its move is under way */
    uint64_t token;
    struct list link;
    struct list ended;
};

/* A move of a peer, which the engine allocates and frees. */
struct pin_serve {
    struct list link;
    uint32_t peer;
    uint64_t token;
    int error;
    uint32_t pin_count, leave_count, fresh_count, drop_count;
    struct pin_range *pins; /* as asked; after pin_served(): what is pinned there, with handles */
    struct pin_entry **grants, **units;          /* of pins */
    struct pin_entry **drops, **leaves, **fresh; /* uses to give up; to unpin; to pin */
    bool resolved;                               /* the units of `pins` are found */
    bool running, answer;
    void *client;
};

int pin_open(const struct pin_config *config, struct pin **pin);
void pin_close(struct pin *pin);

/* pin_prepin() notes memory that was pinned before, for good. Page variant: whole buckets. */
int pin_prepin(struct pin *pin, uint64_t addr, uint64_t len, const uint8_t *handle);

/* pin_take() takes one unit that covers the range and is pinned, without the lock. NULL: take the
 * lock and ask pin_begin(). pin_drop() gives it back; false: pin_drop_locked(), with the lock. */
struct pin_entry *pin_take(struct pin *pin, uint32_t node, uint64_t addr, uint64_t len,
                           uint32_t *generation);
bool pin_drop(struct pin *pin, struct pin_entry *entry, uint32_t generation, int *error);
int pin_drop_locked(struct pin *pin, struct pin_entry *entry, uint32_t generation);
void pin_entry_range(const struct pin_entry *entry, struct pin_range *range);

/* pin_begin() wants a range on `node`, its own for a local pin. It returns a step or an errno:
 *   -EINVAL the range is empty or wraps, or no such node; -EMSGSIZE longer than may be pinned at
 *   once; -EPIPE the peer is dead; -ENOMEM
 * pin_again() goes on after a poll. pin_cancel() gives up a request that was told PIN_AGAIN. */
int pin_begin(struct pin *pin, struct pin_request *request, uint32_t node, uint64_t addr,
              uint64_t len);
int pin_again(struct pin *pin, struct pin_request *request);
void pin_cancel(struct pin *pin, struct pin_request *request);

/* pin_try() takes the range if it is pinned; pin_partial() the lowest part of it that is.
 * -EAGAIN: it is not. They send, pin and unpin nothing. */
int pin_try(struct pin *pin, struct pin_request *request, uint32_t node, uint64_t addr,
            uint64_t len);
int pin_partial(struct pin *pin, struct pin_request *request, uint32_t node, uint64_t addr,
                uint64_t len);
void pin_release(struct pin *pin, struct pin_request *request);

/* pin_unpins() and pin_pins() give the ranges that a request which was told PIN_SENT has to unpin,
 * and then to pin. */
uint32_t pin_unpins(const struct pin_request *request, struct pin_range *ranges);
uint32_t pin_pins(const struct pin_request *request, struct pin_range *ranges);

/* pin_finish() ends the move `token` of this node to `node`, with the handles of what it pinned; if
 * `error` is not 0 it unpinned and pinned nothing else. Requests that have ended are linked to
 * `ended`, by `ended`. -EPROTO: no such move, or another number of units. */
int pin_finish(struct pin *pin, uint32_t node, uint64_t token, int error,
               const struct pin_range *pinned, uint32_t count, struct list *ended);

/* pin_arrive() takes a move of a peer. -EPROTO: the peer does not keep to the rules. */
int pin_arrive(struct pin *pin, uint32_t peer, uint64_t token, const struct pin_range *unpins,
               uint32_t unpin_count, const struct pin_range *pins, uint32_t pin_count,
               struct pin_serve **serve);
/* pin_serve_next() gives a move that can go on, or NULL: its caller unpins `leaves`, pins `fresh`
 * and calls pin_served(). True: the move has ended; its caller answers and calls pin_serve_free().
 */
struct pin_serve *pin_serve_next(struct pin *pin);
uint32_t pin_serve_unpins(const struct pin_serve *serve, struct pin_range *ranges);
uint32_t pin_serve_pins(const struct pin_serve *serve, struct pin_range *ranges);
bool pin_served(struct pin *pin, struct pin_serve *serve, int error,
                const struct pin_range *pinned);
void pin_serve_free(struct pin_serve *serve);

/* pin_peer_dead() ends all that waits for a peer, with -EPIPE, and gives up what it had here. */
int pin_peer_dead(struct pin *pin, uint32_t node, struct list *ended);

/* pin_drain() gives an idle unit of this node, which its caller unpins, at the end of all. */
bool pin_drain(struct pin *pin, struct pin_range *range);

/* pin_forsake() takes a move of a peer out of the queue, at the end of all; NULL: there is none. */
struct pin_serve *pin_forsake(struct pin *pin);

/* pin_winner() says whether a request to `node` has declared deadlock. */
bool pin_winner(const struct pin *pin, uint32_t node);
const struct pin_stats *pin_stats(const struct pin *pin);
struct pin_stats *pin_stats_of(struct pin *pin);

/* How many units are pinned here, charged to MAXVICTIM, in use by peers, mapped at `node`. */
struct pin_load {
    uint64_t pinned, charged, granted, mapped, used;
};
struct pin_load pin_load(const struct pin *pin, uint32_t node);
/* pin_check() walks all tables: 0, or -EUCLEAN with what is wrong in `text`. */
int pin_check(const struct pin *pin, char *text, size_t length);

#endif
