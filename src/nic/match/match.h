/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching: the first entry of a list, in list order, that a header fits.
 *
 *   list ── groups, one for each (ignore bits, source wildcards) in use
 *        ├─ table of cells, one a key: group, and the bits and source that it compares
 *        │     └─ chain of the entries with that key, oldest first
 *        └─ fresh entries, in order: newer than all in the table
 *
 * A search probes the table once for each group and takes the oldest of what it
 * finds, so its cost grows with the number of distinct masks, not of entries
 * (docs/architecture.md, decision 10). A cell holds its whole key: a probe touches
 * the table and, where it hits, the entry. What the table does not have is looked for
 * among the fresh ones: they are walked, and put into the table once a walk has become
 * long. So who takes messages in the order of his entries, or has few, pays for no table.
 * The lists know nothing of Portals but the match rule.
 */
#ifndef NIC_MATCH_MATCH_H
#define NIC_MATCH_MATCH_H

#include "base/branch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Source wildcards of an entry. On a logical NI the rank stands in `nid`. */
enum { MATCH_ANY_NID = 1, MATCH_ANY_PID = 2 };

/* match_source() is a source as one word; match_kept_source() what of it an entry compares that has
 * these wildcards. */
static inline uint64_t match_source(uint32_t nid, uint32_t pid)
{
    return (uint64_t)nid << 32 | pid;
}
static inline uint64_t match_kept_source(unsigned any)
{
    return match_source((any & MATCH_ANY_NID) != 0 ? 0 : UINT32_MAX,
                        (any & MATCH_ANY_PID) != 0 ? 0 : UINT32_MAX);
}

struct match_group;

struct match_entry {
    uint64_t bits, ignore;
    uint32_t nid, pid;
    uint8_t any; /* MATCH_ANY_... */
    bool picky;  /* the header's fits() is to be asked; may change while linked */
    /* the list's */
    uint64_t sequence;
    struct match_entry *next, *prev; /* of its chain, or of the fresh ones */
    struct match_entry *last;        /* of the chain; valid in its first, as is */
    uint32_t cell;                   /* where the chain is in the table */
    bool fresh;                      /* not in the table */
};

struct match_list {
    struct match_entry *fresh, *fresh_last; /* oldest, newest */
    struct match_group *groups;
    uint32_t group_count; /* of those that have entries in the table */
    uint32_t cells;       /* BLOCK times a power of two, or 0 */
    uint8_t *tags;
    struct match_cell *table;
    uint32_t entries;
    uint32_t keys;
    uint32_t filled; /* cells that are not empty: keys, and where some were removed */
    uint32_t below;  /* cells that are known to hold no key, for match_any() */
    uint32_t group_room, next_group;
    uint64_t sequence; /* of the next entry */
};

/* A header that asks for an entry. fits() has the last word on a picky entry (one that does not
 * truncate); NULL: it fits. */
struct match_header {
    uint64_t bits;
    uint32_t nid, pid;
    bool (*fits)(const struct match_entry *entry, const struct match_header *header);
    uint64_t length;
};

/* match_append() puts an entry at the end of the list. */
static inline void match_append(struct match_list *list, struct match_entry *e)
{
    struct match_entry *last = list->fresh_last;
    e->sequence = list->sequence++;
    e->fresh = true;
    e->next = NULL;
    e->prev = last;
    *(last != NULL ? &last->next : &list->fresh) = e;
    list->fresh_last = e;
    list->entries++;
}

/* match_remove_fresh() takes an entry off the fresh ones. */
static inline void match_remove_fresh(struct match_list *list, struct match_entry *e)
{
    *(e->prev != NULL ? &e->prev->next : &list->fresh) = e->next;
    *(e->next != NULL ? &e->next->prev : &list->fresh_last) = e->prev;
}

/* match_remove_filed() takes an entry out of the table. */
void match_remove_filed(struct match_list *list, struct match_entry *e);

/* match_remove() takes an entry out of its list. */
static inline void match_remove(struct match_list *list, struct match_entry *e)
{
    list->entries--;
    if (likely(e->fresh)) {
        match_remove_fresh(list, e);
    } else {
        match_remove_filed(list, e);
    }
}

/* match_first() is the oldest entry that the header matches, or NULL. */
struct match_entry *match_first(struct match_list *list, const struct match_header *header);

/* match_key() is the match rule: bits and source, without fits(). */
static inline bool match_key(const struct match_entry *e, const struct match_header *h)
{
    return ((e->bits ^ h->bits) & ~e->ignore) == 0 &&
           ((e->any & MATCH_ANY_NID) != 0 || e->nid == h->nid) &&
           ((e->any & MATCH_ANY_PID) != 0 || e->pid == h->pid);
}

/* match_is_eldest() tells of an entry of the list that it is the oldest, or, by false, nothing. */
static inline bool match_is_eldest(const struct match_list *list, const struct match_entry *e)
{
    bool eldest = e->fresh ? list->group_count == 0 : list->group_count == 1;
    return eldest && e->prev == NULL;
}

/* match_is_first() tells, at little cost, that match_first() would give this entry of
 * the list; false says nothing. Where one entry takes message after message, the
 * processor then need not wait for a search to know where the next one goes. */
static inline bool match_is_first(const struct match_list *list, const struct match_entry *e,
                                  const struct match_header *h)
{
    return match_is_eldest(list, e) && !e->picky && match_key(e, h);
}

/* match_any() is some entry of the list, or NULL: for emptying it. */
struct match_entry *match_any(struct match_list *list);

/* match_free() releases the memory of an empty list. */
void match_free(struct match_list *list);

#endif
