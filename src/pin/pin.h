/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of Firehose: it decides which memory of this node and of its peers is pinned, for
 * whom, and which unit is unpinned to make room. "Firehose: An Algorithm for Distributed Page
 * Registration on Clusters of SMPs" (Bell, Nishtala, 2004), sections 3 and 4, is what "the paper"
 * means here.
 *
 * A unit is a page-sized bucket (page variant) or a region of any length up to a bound (region
 * variant). All limits count units. The engine has no threads, clock, network or lock: its caller
 * sends the messages, pins the memory, polls, and holds one lock in every call. Only pin_take() and
 * pin_drop() need no lock and may run at the same time as all others. An int that a function
 * returns is 0 or a negative errno value.
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

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PIN_HANDLE = 32 }; /* bytes that the client stores with each pinned unit */

/* The error of a request for a unit that its node has forgotten and that somebody still uses: the
 * caller begins it anew. */
#define PIN_RESTART (-ERESTART)

struct pin_config {
    uint32_t nodes, self;
    bool regions;         /* true: the region variant; false: the page variant */
    uint64_t page;        /* bytes of a bucket, a power of two */
    uint64_t region_most; /* region variant: bytes of a region, a multiple of `page` */
    uint64_t remote;      /* M: units that all peers together may have pinned here */
    /* MAXVICTIM: units that may stay pinned here though no peer has a firehose on them */
    uint64_t victims;
    uint64_t f;        /* F: firehoses that each node has at each other one */
    uint32_t most;     /* units of one remote request, at most f */
    uint32_t da_limit; /* after so many polls a request that waits declares deadlock */
};

struct pin_range {
    uint64_t addr, len;
    uint8_t handle[PIN_HANDLE];
};

/* The paper's counters: section 3's, once for requests for memory of this node and once for that of
 * peers, and section 4's. */
struct pin_counts {
    uint64_t pin, hit, pending, miss;
    uint64_t try_hit, try_miss, partial_hit, partial_miss, release;
};
struct pin_stats {
    struct pin_counts local, remote;
    uint64_t avoided;   /* how often a request has declared deadlock */
    uint64_t rollbacks; /* times that a request gave back what it had gathered */
    uint64_t yields;    /* of these: because another request had declared deadlock */
    /* entries that were reaped as replacements and taken back before they were replaced */
    uint64_t stolen;
    /* units replaced; moves sent to peers, moves of peers executed, times that one of those had to
     * wait */
    uint64_t evicted, moved, served, waited;
    uint64_t failed; /* requests that ended with an error */
    /* units of this node that were forgotten; units of peers given up because they were revoked;
     * requests that ended with PIN_RESTART */
    uint64_t forgotten, revoked, restarted;
    /* wrong messages of peers, and wrong calls of the client, that were refused */
    uint64_t refused;
};

enum pin_step { PIN_DONE, PIN_WAIT, PIN_SENT, PIN_AGAIN, PIN_YIELD };

struct pin;
struct pin_entry;
struct pin_request;

/* One unit that a request uses, or wants to. */
struct pin_use {
    struct pin_entry *entry;
    struct pin_request *request;
    struct pin_use *next; /* the next of the uses that wait for the same entry */
    uint64_t addr, len;
    bool fresh; /* the request itself has claimed the entry */
    bool waits; /* the entry's unit is being pinned by a move of another request */
};

/* A request's memory belongs to the caller, who does not touch its fields from pin_begin() until
 * the request was released, cancelled or has failed. */
struct pin_request {
    uint64_t addr, len; /* the range that is pinned: it covers the range that was asked for */
    uint32_t node;
    int error;
    uint32_t count;
    struct pin_use *uses, one;
    /* entries that the request has reaped to replace them; as long as `uses` */
    struct pin_entry **victims;
    struct pin_entry *one_victim;
    uint32_t claims, victim_count, reserved, tries, waiting;
    bool gathering; /* the request does not have all that it needs yet */
    bool later;     /* the request was not satisfied at once */
    bool sent;      /* the request's move is under way */
    uint64_t token;
    struct list link;
    struct list ended;
};

/* A move of a peer: a request to unpin and pin memory of this node. The engine allocates and frees
 * it. */
struct pin_serve {
    struct list link;
    uint32_t peer;
    uint64_t token;
    int error;
    uint32_t pin_count, leave_count, fresh_count, drop_count;
    /* the ranges as the peer asked for; after pin_served() the units that cover them, with
     * handles */
    struct pin_range *pins;
    /* the peer's grant and this node's entry, for each of `pins` */
    struct pin_entry **grants, **units;
    /* entries that the peer gives up; entries to unpin; entries to pin */
    struct pin_entry **drops, **leaves, **fresh;
    /* `units` is set, and nothing more must be waited for */
    bool resolved;
    bool running, answer;
    void *client;
};

int pin_open(const struct pin_config *config, struct pin **pin);
void pin_close(struct pin *pin);

/* pin_prepin() notes memory that the client has pinned already, for good. In the page variant it
 * must be whole buckets. */
int pin_prepin(struct pin *pin, uint64_t addr, uint64_t len, const uint8_t *handle);

/* pin_take() takes a pinned unit that covers the range, without the lock. NULL: the caller must
 * take the lock and call pin_begin(). pin_drop() gives the unit back; false: the caller must take
 * the lock and call pin_drop_locked(). */
struct pin_entry *pin_take(struct pin *pin, uint32_t node, uint64_t addr, uint64_t len,
                           uint32_t *generation);
bool pin_drop(struct pin *pin, struct pin_entry *entry, uint32_t generation, int *error);
int pin_drop_locked(struct pin *pin, struct pin_entry *entry, uint32_t generation);
void pin_entry_range(const struct pin_entry *entry, struct pin_range *range);
void pin_entry_parts(const struct pin_entry *entry, uint64_t *addr, uint64_t *len, uint8_t *handle);

/* pin_begin() asks for a pinned range on `node`; for a local pin that is this node. It returns a
 * step or a negative errno value:
 *   -EINVAL the range is empty or wraps, or no such node; -EMSGSIZE longer than may be pinned at
 *   once; -EPIPE the peer is dead; -ENOMEM
 * pin_again() tries again after a poll. pin_cancel() gives up a request for which the last step
 * was PIN_AGAIN. */
int pin_begin(struct pin *pin, struct pin_request *request, uint32_t node, uint64_t addr,
              uint64_t len);
int pin_again(struct pin *pin, struct pin_request *request);
void pin_cancel(struct pin *pin, struct pin_request *request);

/* pin_try() takes the range if all of it is pinned; pin_partial() the lowest part of the range that
 * is pinned. -EAGAIN: nothing of it was taken. Neither sends a message, pins or unpins. */
int pin_try(struct pin *pin, struct pin_request *request, uint32_t node, uint64_t addr,
            uint64_t len);
int pin_partial(struct pin *pin, struct pin_request *request, uint32_t node, uint64_t addr,
                uint64_t len);
void pin_release(struct pin *pin, struct pin_request *request);

/* pin_unpins() and pin_pins() list the ranges that the node of the request must unpin first and
 * then pin, after PIN_SENT. They return how many. */
uint32_t pin_unpins(const struct pin_request *request, struct pin_range *ranges);
uint32_t pin_pins(const struct pin_request *request, struct pin_range *ranges);

/* pin_finish() ends the move `token` from this node to `node`. `pinned` has the units that were
 * pinned, with their handles; if `error` is not 0 the node has unpinned its units but pinned none.
 * All requests that end by this are linked into the list `ended`. -EPROTO: there is no such move,
 * or it has another number of units. */
int pin_finish(struct pin *pin, uint32_t node, uint64_t token, int error,
               const struct pin_range *pinned, uint32_t count, struct list *ended);

/* pin_arrive() queues a move that `peer` has sent. -EPROTO: the move breaks the protocol's
 * rules. */
int pin_arrive(struct pin *pin, uint32_t peer, uint64_t token, const struct pin_range *unpins,
               uint32_t unpin_count, const struct pin_range *pins, uint32_t pin_count,
               struct pin_serve **serve);
/* pin_serve_next() returns a move of a peer that can go on, or NULL. The caller unpins the ranges
 * of pin_serve_unpins(), pins those of pin_serve_pins() and calls pin_served(). If that returns
 * true the move has ended: the caller answers the peer and calls pin_serve_free(). */
struct pin_serve *pin_serve_next(struct pin *pin);
uint32_t pin_serve_unpins(const struct pin_serve *serve, struct pin_range *ranges);
uint32_t pin_serve_pins(const struct pin_serve *serve, struct pin_range *ranges);
bool pin_served(struct pin *pin, struct pin_serve *serve, int error,
                const struct pin_range *pinned);
void pin_serve_free(struct pin_serve *serve);

/* pin_peer_dead() ends all requests that wait for a peer, with -EPIPE, and gives up all that the
 * peer has pinned here. */
int pin_peer_dead(struct pin *pin, uint32_t node, struct list *ended);

/* pin_forget() notes that memory of this node is gone, or about to go: from then on no unit that
 * touches the range is a hit. Each is unpinned when nobody here uses it and all peers have given it
 * up; until then requests for it wait. *when is the number of the call. -EINVAL: the range is empty
 * or wraps; -EBUSY: part of it was pinned by pin_prepin(), and nothing has changed; with `spare`
 * that part stays, and the rest is forgotten. pin_forgotten() is true when all that the call has
 * found is unpinned. */
int pin_forget(struct pin *pin, uint64_t addr, uint64_t len, bool spare, uint64_t *when);
bool pin_forgotten(const struct pin *pin, uint64_t addr, uint64_t len, uint64_t when);
/* What follows from it, until none of these returns anything: pin_gone_next() returns a unit that
 * the caller unpins, and then gives to pin_gone(). pin_revoke_next() lists up to `most` units that
 * `peer` is to give up, and returns how many; the peer hands them to pin_revoked() (-EPROTO: they
 * are no units). pin_give_up() begins a request that gives up units that were revoked, without
 * pinning any: PIN_SENT, or PIN_DONE if there is none, or -ENOMEM; after its end pin_gave() frees
 * it. pin_gone_due() is true if one of these has something to return. */
struct pin_entry *pin_gone_next(struct pin *pin, struct pin_range *range);
void pin_gone(struct pin *pin, struct pin_entry *unit);
uint32_t pin_revoke_next(struct pin *pin, uint32_t *peer, struct pin_range *ranges, uint32_t most);
int pin_revoked(struct pin *pin, uint32_t node, const struct pin_range *ranges, uint32_t count);
int pin_give_up(struct pin *pin, struct pin_request *request, uint32_t most);
void pin_gave(struct pin_request *request);
bool pin_gone_due(const struct pin *pin);

/* pin_hide() makes every pin_take() that begins after it fail, until pin_show(); it needs no lock,
 * and does not touch what was taken before. */
void pin_hide(struct pin *pin);
void pin_show(struct pin *pin);

/* pin_drain() takes out an idle unit of this node, which the caller unpins, when the engine ends;
 * false: there is none. */
bool pin_drain(struct pin *pin, struct pin_range *range);

/* pin_forsake() takes a peer's move out of the queue without serving it, when the engine ends;
 * NULL: the queue is empty. */
struct pin_serve *pin_forsake(struct pin *pin);

/* pin_winner() is true if a request for memory of `node` has declared deadlock: all others for that
 * node wait until it has ended. */
bool pin_winner(const struct pin *pin, uint32_t node);
const struct pin_stats *pin_stats(const struct pin *pin);
struct pin_stats *pin_stats_of(struct pin *pin);

/* How many units are pinned here, are charged to MAXVICTIM, were granted to the peer `node`, and
 * are mapped at `node`; and how many entries the table has. */
struct pin_load {
    uint64_t pinned, charged, granted, mapped, used;
};
struct pin_load pin_load(const struct pin *pin, uint32_t node);
/* pin_check() compares all tables with each other. It returns 0, or -EUCLEAN and writes what is
 * wrong to `text`. */
int pin_check(const struct pin *pin, char *text, size_t length);

#endif
