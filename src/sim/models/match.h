/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching of messages and receives, in the order of their arrival or posting.
 *
 * A rank has two sides: receives that wait for a message, and messages that wait
 * for a receive. A side is an ordered list of entries; what looks for a partner
 * takes the first entry whose source and tag fit, where MATCH_ANY, on either
 * side, fits everything.
 *
 *   short: one chain in order, searched from its head      head -> e0 -> e1 -> ... tail
 *   long:  a hash table of chains, one for each (source, tag) as the entries have
 *          them; the first fitting entry is the head of its chain. A search without
 *          wildcards probes a chain for each kind of wildcard among the entries and
 *          takes the lowest sequence number. One with wildcards asks a view.
 *   view:  chains by source, by tag, or one of all, of notes that name an entry and
 *          its sequence number. Built at the first search that needs it. A note whose
 *          entry has gone is skipped, and the view dropped when half of it is gone.
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

enum { MATCH_SHORT = 32 }; /* entries of the longest side kept as one chain */

struct match_entry {
    uint32_t next;
    uint32_t source;
    uint32_t tag;
    uint32_t ref;      /* the caller's */
    uint64_t sequence; /* the order; of a free entry UINT64_MAX */
};

struct match_pool {
    struct match_entry *entries; /* reserved address space, touched as used */
    struct slab slab;            /* of tables and views */
    uint32_t free;               /* chain of free entries */
    uint32_t used;               /* entries ever used */
    uint32_t capacity;
    uint64_t sequence; /* of the next entry, whosever */
};

struct match_table;

/* All bytes 0: empty. */
struct match_side {
    uint32_t head; /* index + 1; 0: empty */
    uint32_t tail;
    uint32_t count;
    struct match_table *table; /* NULL: short */
} __attribute__((packed, aligned(4)));

/* match_pool_init() reserves room for `capacity` entries at a time, at most 2^32 - 2;
 * -1 with errno set. */
int match_pool_init(struct match_pool *p, uint64_t capacity);
void match_pool_free(struct match_pool *p);

/* match_add() appends an entry; -1 if memory is short. */
int match_add(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
              uint32_t ref);

/* match_expect() makes room for so many more entries, which are about to be added; -1 if memory
 * is short. */
int match_expect(struct match_side *s, struct match_pool *p, uint32_t more);

/* match_take() removes the first entry that fits and copies it to *taken. It
 * returns 1, 0 if none fits, or -1 if memory is short. */
int match_take(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
               struct match_entry *taken);

/* match_fetch() brings into the cache what match_take() will touch, in three steps
 * with some time between them. The last gives the ref that is likely to be found,
 * or MATCH_NONE. */
enum match_step { MATCH_FETCH_SLOT, MATCH_FETCH_ENTRY, MATCH_FETCH_REF };
uint32_t match_fetch(const struct match_side *s, const struct match_pool *p, uint32_t source,
                     uint32_t tag, enum match_step step);

/* match_release() frees what a side holds besides its entries. */
void match_release(struct match_side *s, struct match_pool *p);

/* match_each() calls `visit` with each entry of a side, in no order. */
void match_each(const struct match_side *s, const struct match_pool *p,
                void (*visit)(void *context, const struct match_entry *e), void *context);

#endif
