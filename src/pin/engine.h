/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between the files of the engine: entries, pools and functions. */
#ifndef PIN_ENGINE_H
#define PIN_ENGINE_H

#include "pin/pin.h"
#include "pin/word.h"

#include <errno.h>

/*
 *           absent ──claim──► CLAIMED ──commit──► PENDING ──pinned──► PINNED ◄──┐ restore, hit
 *             ▲  ▲               │                   │                  │ reap   │
 *             │  └───roll back───┘◄───────failed─────┘                  ▼        │
 *             └──────────unpinned───────── LEAVING ◄────commit─────── REAPED ────┘
 *
 * A unit that was forgotten (`gone`) is PENDING until its pin ends, PINNED until its last use ends,
 * and then LEAVING; HIT is clear, and no request finds it.
 *
 * An entry of node number `nodes + p` is a grant: a unit of this node's memory that peer p has had
 * pinned; `unit` is the entry of this node for it.
 */
enum pin_state { FREE, CLAIMED, PENDING, PINNED, REAPED, LEAVING, DEAD };

struct pin_entry {
    _Alignas(64) struct pin_word word;
    /* next entry in the chain of each grain of addresses that the unit touches, see table.c */
    _Atomic uint32_t next[2];
    /* index in the FIFO of its pool, from 1 on; 0: the entry is in no FIFO */
    uint32_t place;
    /* unit of this node: how many peers have a firehose on it (R in the paper) */
    uint32_t peers;
    uint8_t state;           /* enum pin_state */
    bool charged;            /* unit of this node: it counts against MAXVICTIM */
    bool fixed;              /* the unit was pinned by pin_prepin() and is never unpinned */
    bool gone;               /* the unit was forgotten; `link` is in one of the engine's lists */
    bool told;               /* grant: its peer was asked to give it up */
    struct pin_use *waiters; /* PENDING: uses that wait until the unit is pinned */
    union {
        struct pin_request *owner; /* CLAIMED, REAPED: the request in whose log the entry is */
        struct pin_entry *unit;    /* grant: the entry of the pinned unit, once it is pinned */
        struct pin_entry *free;    /* FREE: the next free entry */
        uint64_t when;             /* gone unit of this node: number of the call that forgot it */
    };
    struct list link;
    uint8_t handle[PIN_HANDLE];
};

/* A place in the FIFO of a pool: an entry, and the stamp that it had when a thread last looked,
 * with the lock. */
struct pin_place {
    uint64_t stamp;
    struct pin_entry *entry;
};
/* The pool of a node (of a peer, or of this node). Its FIFO lists the units that a hit may take, in
 * use or idle, in the order in which their last use ended; fifo_reap() replaces the first one that
 * is idle. A hit does not take the lock and cannot move its unit in the list: the list is a heap
 * ordered by stamps that may be out of date. */
struct pin_pool {
    struct pin_place *fifo;
    uint32_t listed;
    /* slots: those that entries have, and those that requests have reserved */
    uint64_t used, limit;
    uint64_t reserved;
    uint64_t granted; /* how many grants the peer has here */
    struct pin_request *winner;
    bool dead;
};

struct pin {
    struct pin_config config;
    /* log2 of the bytes of a grain of addresses; a unit touches two grains at most */
    unsigned grain;
    struct pin_entry *entries, *free;
    uint32_t capacity;
    uint32_t drained; /* entries before this one have nothing more for pin_drain() */
    _Atomic uint32_t *chains;
    /* what pin_take() looks into: `chains`, or `none`, in which there is nothing */
    _Atomic uint32_t *_Atomic hits, *none;
    unsigned shift; /* shift of an address's hash that leaves the number of a chain */
    _Atomic uint64_t epoch;
    /* units of this node that are PENDING, PINNED, REAPED or LEAVING. The last may come on top of
     * the bound: a move unpins them before it pins others. */
    uint64_t pinned;
    uint64_t token;
    struct pin_pool *pools;
    struct list moves, serves;
    /* Units that were forgotten, each in one list: those of this node whose peers must still be
     * asked; those of this node to unpin; those of peers to give up; and all others. */
    struct list ask, unpin, give, gone;
    uint64_t gone_count, forgets;
    struct pin_stats stats;
};

static inline uint64_t entry_addr(const struct pin_entry *x)
{
    return atomic_load_explicit(&x->word.addr, memory_order_relaxed);
}
static inline uint64_t entry_len(const struct pin_entry *x)
{
    return atomic_load_explicit(&x->word.len, memory_order_relaxed);
}
static inline uint32_t entry_node(const struct pin_entry *x)
{
    return atomic_load_explicit(&x->word.node, memory_order_relaxed);
}
static inline uint64_t entry_word(const struct pin_entry *x)
{
    return atomic_load_explicit(&x->word.word, memory_order_relaxed);
}
static inline bool pin_is_self(const struct pin *p, uint32_t node)
{
    return node == p->config.self;
}

/* table.c */
struct pin_entry *table_add(struct pin *p, uint32_t node, uint64_t addr, uint64_t len,
                            enum pin_state state);
void table_remove(struct pin *p, struct pin_entry *x);
/* table_find() returns an entry that covers the range, a PINNED one if there is one; table_exact()
 * the one whose range is the same. */
struct pin_entry *table_find(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len);
struct pin_entry *table_exact(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len);
void table_widen(struct pin *p, uint32_t node, uint64_t *addr, uint64_t *len);
/* table_over() returns the entries of a node that touch the range, one after the other, and some of
 * them twice; the caller zeroes the cursor before, and removes no entry meanwhile. table_gone() is
 * true if one of them was forgotten. */
struct table_cursor {
    uint64_t at;
    uint32_t link;
};
struct pin_entry *table_over(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len,
                             struct table_cursor *cursor);
bool table_gone(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len);

/* fifo.c */
void fifo_list(struct pin *p, struct pin_entry *x, bool now);
void fifo_unlist(struct pin *p, struct pin_entry *x);
struct pin_entry *fifo_reap(struct pin *p, struct pin_pool *pool, struct pin_request *owner);
void fifo_restore(struct pin *p, struct pin_entry *x);
void fifo_steal(struct pin *p, struct pin_entry *x);
void entry_open(struct pin *p, struct pin_entry *x);
void entry_drop(struct pin *p, struct pin_entry *x);
void entry_uncharge(struct pin *p, struct pin_entry *x);
void entry_forget(struct pin *p, struct pin_entry *x);

/* request.c */
int request_shape(struct pin *p, struct pin_request *r, uint32_t node, uint64_t addr, uint64_t len);
void request_rollback(struct pin *p, struct pin_request *r);
void request_end(struct pin *p, struct pin_request *r, struct list *ended);
void request_free(struct pin_request *r);
void request_lose_claim(struct pin_request *r, struct pin_entry *x);

/* forget.c */
void gone_idle(struct pin *p, struct pin_entry *x);
void gone_granted(struct pin *p, struct pin_entry *x);
void gone_remove(struct pin *p, struct pin_entry *x);

#endif
