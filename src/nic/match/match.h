/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching: a search of the first entry of a list, in list order, that a header fits.
 *
 *   list ── groups, one for each (ignore bits, source wildcards) in use
 *        ├─ table of cells, one a key: group, and the bits and source that it compares
 *        │     └─ chain of the entries with that key, oldest first
 *        └─ fresh entries, in order: newer than all in the table
 *
 * A search probes the table once for each group and takes the oldest entry that a
 * probe finds, so its cost grows with the number of distinct masks, not of entries
 * (docs/architecture.md, decision 10). A cell holds its whole key: a probe touches
 * the table and, where it hits, the entry. If the table has no match, the
 * search walks the fresh entries, and moves them to the table once a walk has become long. So a
 * program whose messages come in the order of its entries, or which has few, pays for no table.
 * This code knows nothing of Portals but the match rule.
 */
#ifndef NIC_MATCH_MATCH_H
#define NIC_MATCH_MATCH_H

#include "base/branch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Source wildcards of an entry. On a logical NI `nid` holds the rank. */
enum { MATCH_ANY_NID = 1, MATCH_ANY_PID = 2 };

/* match_source() returns a source as one word; match_kept_source() the bits of it that an entry
 * with these wildcards compares. */
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
    /* matching must ask the header's fits() about this entry; may change while it is linked */
    bool picky;
    /* the rest belongs to the list: */
    uint64_t sequence;
    struct match_entry *next, *prev; /* in its chain, or among the fresh entries */
    struct match_entry *last;        /* of the chain; valid in its first entry only, as is `cell` */
    uint32_t cell;                   /* place of the chain in the table */
    bool fresh;                      /* the entry is not in the table */
};

struct match_list {
    /* oldest and newest of the entries that are not in the table */
    struct match_entry *fresh, *fresh_last;
    struct match_group *groups;
    uint32_t group_count; /* of groups that have entries in the table */
    uint32_t cells;       /* BLOCK times a power of two, or 0 */
    uint8_t *tags;
    struct match_cell *table;
    uint32_t entries;
    uint32_t keys;
    /* cells that are not empty: those with a key, and those where one was removed */
    uint32_t filled;
    uint32_t below; /* the cells below this one hold no key, for match_any() */
    uint32_t group_room, next_group;
    uint64_t sequence; /* of the next entry to be appended */
};

/* A header that asks for an entry. Of a picky entry (one that does not truncate, or is reserved)
 * fits() decides; where it is NULL, every entry fits. */
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

/* match_remove_fresh() takes a fresh entry out of its list. */
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

/* match_first() returns the oldest entry that the header matches, or NULL. */
struct match_entry *match_first(struct match_list *list, const struct match_header *header);

/* match_key() is the match rule: bits and source, without fits(). */
static inline bool match_key(const struct match_entry *e, const struct match_header *h)
{
    return ((e->bits ^ h->bits) & ~e->ignore) == 0 &&
           ((e->any & MATCH_ANY_NID) != 0 || e->nid == h->nid) &&
           ((e->any & MATCH_ANY_PID) != 0 || e->pid == h->pid);
}

/* match_is_eldest() returns true if it knows, without a search, that an entry of the list is its
 * oldest. */
static inline bool match_is_eldest(const struct match_list *list, const struct match_entry *e)
{
    bool eldest = e->fresh ? list->group_count == 0 : list->group_count == 1;
    return eldest && e->prev == NULL;
}

/* match_is_first() returns true if it knows, without a search, that match_first() would find this
 * entry of the list. Where one entry takes message after message, the processor then need not wait
 * for a search to know where the next payload goes. */
static inline bool match_is_first(const struct match_list *list, const struct match_entry *e,
                                  const struct match_header *h)
{
    return match_is_eldest(list, e) && !e->picky && match_key(e, h);
}

/* match_any() returns some entry of the list, or NULL; the caller empties the list with it. */
struct match_entry *match_any(struct match_list *list);

/* match_free() releases the memory of an empty list. */
void match_free(struct match_list *list);

#endif
