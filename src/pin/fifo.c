/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The FIFO of each pool, by which the engine chooses the entry to replace.
 *
 * An entry is listed while HIT is set, whether it is in use or not. The FIFO is a heap by stamps,
 * which may be out of date. So fifo_reap() reads the stamp of the first entry anew. If it has
 * changed, the entry moves to the place of its new stamp. If the entry is in use, fifo_reap()
 * clears HIT and takes it off the list; its last release then needs the lock, and lists it again.
 * If it is idle, no other idle entry was released before it.
 */
#include "pin/engine.h"

static void place(struct pin_pool *pool, uint32_t at, struct pin_place what)
{
    pool->fifo[at - 1] = what;
    what.entry->place = at;
}

/* A move of an entry in the heap writes to the entry, which is seldom in the cache. With eight
 * children a place there are few levels, and the children of a place are in two lines. */
enum { CHILDREN = 8 };

static uint32_t parent_of(uint32_t at)
{
    return (at + CHILDREN - 2) / CHILDREN;
}

static uint32_t first_child(uint32_t at)
{
    return CHILDREN * (at - 1) + 2;
}

static void rise(struct pin_pool *pool, uint32_t at, struct pin_place what)
{
    while (at > 1 && what.stamp < pool->fifo[parent_of(at) - 1].stamp) {
        place(pool, at, pool->fifo[parent_of(at) - 1]);
        at = parent_of(at);
    }
    place(pool, at, what);
}

static void sink(struct pin_pool *pool, uint32_t at, struct pin_place what)
{
    for (uint32_t first = first_child(at); first <= pool->listed; first = first_child(at)) {
        uint32_t child = first;
        for (uint32_t i = first + 1; i < first + CHILDREN && i <= pool->listed; i++) {
            child = pool->fifo[i - 1].stamp < pool->fifo[child - 1].stamp ? i : child;
        }
        if (what.stamp <= pool->fifo[child - 1].stamp) {
            break;
        }
        place(pool, at, pool->fifo[child - 1]);
        at = child;
    }
    place(pool, at, what);
}

static struct pin_pool *pool_of(struct pin *p, const struct pin_entry *x)
{
    return &p->pools[entry_node(x)];
}

void fifo_unlist(struct pin *p, struct pin_entry *x)
{
    struct pin_pool *pool = pool_of(p, x);
    uint32_t at = x->place;
    if (at == 0) {
        return;
    }
    struct pin_place last = pool->fifo[--pool->listed];
    x->place = 0;
    if (last.entry != x) {
        if (at > 1 && last.stamp < pool->fifo[parent_of(at) - 1].stamp) {
            rise(pool, at, last);
        } else {
            sink(pool, at, last);
        }
    }
}

/* Lists a pinned entry and sets HIT, so that threads can take it without the lock. With `now` it
 * gets a new stamp, that of the entry released last; else it keeps its stamp. */
void fifo_list(struct pin *p, struct pin_entry *x, bool now)
{
    if (now) {
        uint64_t epoch = atomic_fetch_add_explicit(&p->epoch, 1, memory_order_relaxed) + 1;
        atomic_store_explicit(&x->word.stamp, epoch, memory_order_relaxed);
    }
    struct pin_pool *pool = pool_of(p, x);
    struct pin_place what = {atomic_load_explicit(&x->word.stamp, memory_order_relaxed), x};
    rise(pool, ++pool->listed, what);
    word_open(&x->word);
}

/* Sets HIT of a PINNED entry again, so that threads can take it without the lock. A unit of this
 * node that is not charged, and one that was forgotten, stay as they are. */
void entry_open(struct pin *p, struct pin_entry *x)
{
    if (x->gone) {
        return;
    }
    if (x->fixed) {
        word_open(&x->word);
    } else if (!pin_is_self(p, entry_node(x)) || x->charged) {
        fifo_list(p, x, true);
    }
}

/* Frees the slot of a unit of this node that peers keep pinned; it no longer counts against
 * MAXVICTIM. HIT is clear. */
void entry_uncharge(struct pin *p, struct pin_entry *x)
{
    fifo_unlist(p, x);
    x->charged = false;
    p->pools[p->config.self].used--;
}

/* Gives back one use, with the lock held; after the last one the entry is listed, uncharged or
 * removed. */
void entry_drop(struct pin *p, struct pin_entry *x)
{
    bool self = pin_is_self(p, entry_node(x));
    if (entry_word(x) & WORD_HIT) {
        if (word_uses(entry_word(x)) == 1) {
            uint64_t epoch = atomic_fetch_add_explicit(&p->epoch, 1, memory_order_relaxed) + 1;
            atomic_store_explicit(&x->word.stamp, epoch, memory_order_relaxed);
        }
        if (word_use(&x->word, -1) == 0 && self && x->peers > 0 && !x->fixed &&
            word_seize(&x->word)) {
            entry_uncharge(p, x);
        }
        return;
    }
    if (word_use(&x->word, -1) > 0 || (x->state != PINNED && x->state != DEAD)) {
        return;
    }
    if (x->state == DEAD) {
        table_remove(p, x);
    } else if (x->gone) {
        gone_idle(p, x);
    } else if (self && x->peers > 0) {
        entry_uncharge(p, x);
    } else {
        fifo_list(p, x, true);
    }
}

/* Takes the idle entry that was released first, as a replacement for `owner`; NULL if no entry is
 * idle. If that entry is a unit of this node that peers have pinned, too, it stays pinned: then it
 * is returned uncharged instead of REAPED, and its slot is free. */
struct pin_entry *fifo_reap(struct pin *p, struct pin_pool *pool, struct pin_request *owner)
{
    while (pool->listed > 0) {
        struct pin_place first = pool->fifo[0];
        struct pin_entry *x = first.entry;
        uint64_t stamp = atomic_load_explicit(&x->word.stamp, memory_order_relaxed);
        if (stamp != first.stamp) {
            sink(pool, 1, (struct pin_place){stamp, x});
        } else if (!word_seize(&x->word)) {
            if (word_shut(&x->word) == 0) {
                /* given back since word_seize(): the next turn looks at its new stamp */
                word_open(&x->word);
            } else {
                fifo_unlist(p, x);
            }
        } else if (atomic_load_explicit(&x->word.stamp, memory_order_relaxed) != stamp) {
            word_open(&x->word);
        } else if (x->peers > 0) {
            entry_uncharge(p, x);
            return x;
        } else {
            fifo_unlist(p, x);
            x->state = REAPED;
            x->owner = owner;
            return x;
        }
    }
    return NULL;
}

/* Puts a replacement that its request does not need back into the FIFO, at the place of its
 * stamp. */
void fifo_restore(struct pin *p, struct pin_entry *x)
{
    x->owner = NULL;
    if (p->pools[entry_node(x)].dead) {
        x->state = PINNED;
        entry_forget(p, x);
        return;
    }
    x->state = PINNED;
    fifo_list(p, x, false);
}

/* Takes an entry out of the log of replacements of the request that has reaped it, since another
 * request or a move of a peer needs it, and lists it again. */
void fifo_steal(struct pin *p, struct pin_entry *x)
{
    struct pin_request *r = x->owner;
    for (uint32_t i = 0; i < r->victim_count; i++) {
        if (r->victims[i] == x) {
            r->victims[i] = r->victims[--r->victim_count];
            break;
        }
    }
    p->stats.stolen++;
    fifo_restore(p, x);
}

/* Removes an entry and frees its slot: its unit was unpinned, or belongs to a peer that is dead. */
void entry_forget(struct pin *p, struct pin_entry *x)
{
    struct pin_pool *pool = pool_of(p, x);
    fifo_unlist(p, x);
    if (pin_is_self(p, entry_node(x))) {
        p->pinned--;
        pool->used -= x->charged;
    } else {
        pool->used--;
    }
    table_remove(p, x);
}
