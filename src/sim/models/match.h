/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching of messages and receives, in the order of their arrival or posting.
 *
 * A rank has two sides: receives that wait for a message, and messages that wait for a receive. A
 * side is an ordered list of entries. A message that arrives searches the receives, a receive that
 * is posted searches the messages, and takes the first entry whose source and tag fit; MATCH_ANY,
 * on either side, fits everything.
 *
 *   short: one chain in order, searched from its head      head -> e0 -> e1 -> ... tail
 *   long:  a hash table of chains, one for each (source, tag) as the entries have
 *          them; the first fitting entry is the head of its chain. A search without
 *          wildcards probes a chain for each kind of wildcard among the entries and
 *          takes the lowest sequence number. One with wildcards asks a view.
 *   view:  chains by source, by tag, or one of all, of notes that name an entry and
 *          its sequence number. Built at the first search that needs it. A note whose entry is gone
 *          is skipped; the view is dropped when half of its notes are such.
 *
 * So the cost of an operation does not grow with the length of a side.
 * Entries live in a pool that all ranks of a worker share.
 */
#ifndef SIM_MATCH_H
#define SIM_MATCH_H

#include "sim/util/slab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MATCH_ANY UINT32_MAX
#define MATCH_NONE UINT32_MAX

enum { MATCH_SHORT = 32 }; /* longest side that is kept as one chain, in entries */

struct match_entry {
    uint32_t next;
    uint32_t source;
    uint32_t tag;
    uint32_t ref;      /* for the caller's use */
    uint64_t sequence; /* defines the order of the entries; UINT64_MAX: the entry is free */
};

struct match_pool {
    /* reserved address space, of which only pages in use cost memory */
    struct match_entry *entries;
    struct slab slab; /* memory of tables and views */
    uint32_t free;    /* chain of free entries: the first */
    uint32_t used;    /* entries that were ever in use */
    uint32_t capacity;
    uint64_t sequence; /* sequence number of the next entry, of any side */
};

struct match_table;

/* A zeroed struct is an empty side. */
struct match_side {
    uint32_t head; /* the first entry: index + 1; 0: the side is empty */
    uint32_t tail;
    uint32_t count;
    struct match_table *table; /* NULL: the side is a single chain */
} __attribute__((packed, aligned(4)));

/* match_pool_init() reserves address space for `capacity` entries, at most 2^32 - 2. Returns 0, or
 * -1 with errno set. */
int match_pool_init(struct match_pool *p, uint64_t capacity);
void match_pool_free(struct match_pool *p);

/* match_add() appends an entry to a side; -1 if memory is short. */
int match_add(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
              uint32_t ref);

/* match_expect() prepares a side for `more` entries that the caller is about to add; -1 if memory
 * is short. */
int match_expect(struct match_side *s, struct match_pool *p, uint32_t more);

/* match_take() removes the first entry that fits and copies it to *taken. It returns 1, 0 if none
 * fits, or -1 if memory is short. */
int match_take(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
               struct match_entry *taken);

/* match_find() copies the entry that match_take() would take to *found, and leaves it there. */
int match_find(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
               struct match_entry *found);

/* match_fetch() prefetches the memory that match_take() will use, in three steps with some time
 * between them. The last step returns the `ref` of the entry that match_take() is likely to find,
 * or MATCH_NONE. */
enum match_step { MATCH_FETCH_SLOT, MATCH_FETCH_ENTRY, MATCH_FETCH_REF };
uint32_t match_fetch(const struct match_side *s, const struct match_pool *p, uint32_t source,
                     uint32_t tag, enum match_step step);

/* match_release() frees the memory of a side's table and views. */
void match_release(struct match_side *s, struct match_pool *p);

/* match_each() calls `visit` for each entry of a side, in any order. */
void match_each(const struct match_side *s, const struct match_pool *p,
                void (*visit)(void *context, const struct match_entry *e), void *context);

#endif
