/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of the engine: entries, pools and the functions that its files share. */
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
 * Entries of `nodes + p` are grants: what peer p has pinned here; `unit` is the local entry.
 */
enum pin_state { FREE, CLAIMED, PENDING, PINNED, REAPED, LEAVING, DEAD };

struct pin_entry {
    _Alignas(64) struct pin_word word;
    _Atomic uint32_t next[2]; /* in the chain of each grain that it touches, see table.c */
    uint32_t place;           /* in the FIFO of its pool, from 1 on; 0: in none */
    uint32_t peers;           /* local: firehoses of peers on it (R) */
    uint8_t state;            /* enum pin_state */
    bool charged;             /* local: counts against MAXVICTIM */
    bool fixed;               /* pinned before, for good */
    struct pin_use *waiters;  /* PENDING: who waits for it */
    union {
        struct pin_request *owner; /* CLAIMED, REAPED: in whose log it is */
        struct pin_entry *unit;    /* grant: what is pinned for it, once it is */
        struct pin_entry *free;    /* FREE: the next one */
    };
    uint8_t handle[PIN_HANDLE];
};

/* An entry in the list of a pool, under the stamp that the holder of the lock last read of it. */
struct pin_place {
    uint64_t stamp;
    struct pin_entry *entry;
};
/* The pool of a node (a peer, or this one). It lists the units that may be hit, in use or idle, in
 * the order in which their last use ended; fifo_reap() takes the first idle one. A hit does not
 * take the lock, so it cannot move its unit: the list is a heap by stamps that may be out of date.
 */
struct pin_pool {
    struct pin_place *fifo;
    uint32_t listed;
    uint64_t used, limit; /* slots: those of entries, and of these that requests have put aside */
    uint64_t reserved;
    uint64_t granted; /* that the peer has here */
    struct pin_request *winner;
    bool dead;
};

struct pin {
    struct pin_config config;
    unsigned grain; /* bits of an address in a grain: no unit lies in more than two grains */
    struct pin_entry *entries, *free;
    uint32_t capacity;
    _Atomic uint32_t *chains;
    unsigned shift; /* of a hash, which leaves the number of a chain */
    _Atomic uint64_t epoch;
    uint64_t pinned; /* units here that are PENDING, PINNED, REAPED or LEAVING (and may exceed the
                      * bound by those: they are unpinned before others are pinned) */
    uint64_t token;
    struct pin_pool *pools;
    struct list moves, serves;
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
/* table_find() prefers a PINNED entry that covers the range; exact: the one that is the range. */
struct pin_entry *table_find(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len);
struct pin_entry *table_exact(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len);
void table_widen(struct pin *p, uint32_t node, uint64_t *addr, uint64_t *len);

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

#endif
