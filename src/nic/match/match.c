/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching by groups of masks and one hash table, and by a walk through the fresh entries, which
 * are not in the table; see match.h.
 *
 *   tags    one byte a cell: 0 empty, 1 a key was removed, else seven bits of its hash
 *   cells   keys, BLOCK of them side by side
 *
 * A probe compares the tags of a whole block at once. With many groups in use most
 * probes find nothing, and learn so without a branch that the processor cannot predict. A probe
 * ends at the first block that has an empty cell.
 */
#include "nic/match/match.h"

#include "base/array.h"

#include <emmintrin.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 16u
#define GROUPS_FIRST 4u
/* fresh entries that a search may look at in vain before it moves them to the table */
#define WALK 8

enum { TAG_EMPTY = 0, TAG_REMOVED = 1, TAG_KEY = 0x80 };

struct match_group {
    uint64_t keep, keep_source; /* the bits of a header that its entries compare */
    uint64_t salt;
    uint32_t entries;
    uint32_t id;
};

/* A key, and the chain of the entries that have it. */
struct match_cell {
    uint64_t bits, source;
    struct match_entry *first;
    uint32_t group; /* id of the key's group */
};

/* Keys are often consecutive numbers, and masks leave a few bits of them, at any place. The first
 * product brings these bits up, the second one spreads them. The callers use the high half, where
 * both have arrived. */
static inline uint64_t hash_of(const struct match_group *g, uint64_t bits, uint64_t source)
{
    uint64_t mixed = bits * 0x9e3779b97f4a7c15ull + source * 0x9fb21c651e98df25ull + g->salt;
    return (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
}

static inline uint8_t tag_of(uint64_t hash)
{
    return (uint8_t)(TAG_KEY | hash >> 57);
}

static inline uint32_t block_of(const struct match_list *list, uint64_t hash)
{
    return (uint32_t)(hash >> 32) & (list->cells / BLOCK - 1);
}

/* The tags of a block that equal `tag`, as a mask of bits. */
static inline unsigned equal_tags(const struct match_list *list, uint32_t block, uint8_t tag)
{
    __m128i tags = _mm_load_si128((const __m128i *)(list->tags + block * BLOCK));
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8((char)tag)));
}

/* Returns the cell of a key, whose hash the caller has computed, or NULL. */
static inline struct match_cell *find_hashed(const struct match_list *list,
                                             const struct match_group *g, uint64_t bits,
                                             uint64_t source, uint64_t hash)
{
    uint32_t block = block_of(list, hash);
    for (;;) {
        for (unsigned m = equal_tags(list, block, tag_of(hash)); m != 0; m &= m - 1) {
            struct match_cell *c = &list->table[block * BLOCK + (unsigned)__builtin_ctz(m)];
            if (c->bits == bits && c->source == source && c->group == g->id) {
                return c;
            }
        }
        if (equal_tags(list, block, TAG_EMPTY) != 0) {
            return NULL;
        }
        block = (block + 1) & (list->cells / BLOCK - 1);
    }
}

/* Returns the cell of a key, or NULL. */
static inline struct match_cell *find_cell(const struct match_list *list,
                                           const struct match_group *g, uint64_t bits,
                                           uint64_t source)
{
    return find_hashed(list, g, bits, source, hash_of(g, bits, source));
}

static struct match_cell *cell_of(const struct match_list *list, const struct match_group *g,
                                  const struct match_entry *e)
{
    return find_cell(list, g, e->bits & g->keep, match_source(e->nid, e->pid) & g->keep_source);
}

/* Takes a free cell for a key that is not in the table, and sets its tag. */
static struct match_cell *new_cell(struct match_list *list, uint64_t hash)
{
    uint32_t block = block_of(list, hash);
    unsigned empty;
    while ((empty = equal_tags(list, block, TAG_EMPTY)) == 0) {
        block = (block + 1) & (list->cells / BLOCK - 1);
    }
    uint32_t at = block * BLOCK + (unsigned)__builtin_ctz(empty);
    list->tags[at] = tag_of(hash);
    list->filled++;
    return &list->table[at];
}

static struct match_group *group_by_id(const struct match_list *list, uint32_t id)
{
    struct match_group *g = list->groups;
    while (g->id != id) {
        g++;
    }
    return g;
}

/* Makes the table anew: twice as large, or of the same size if removed keys had filled it. 0, or -1
 * if memory is short. */
static int rebuild(struct match_list *list)
{
    struct match_list fresh = *list;
    fresh.cells = list->cells == 0                ? BLOCK
                  : list->keys >= list->cells / 2 ? list->cells * 2
                                                  : list->cells;
    fresh.filled = 0;
    fresh.table = malloc(fresh.cells * sizeof(*fresh.table));
    fresh.tags = aligned_alloc(BLOCK, fresh.cells);
    if (fresh.table == NULL || fresh.tags == NULL) {
        free(fresh.table);
        free(fresh.tags);
        return -1;
    }
    memset(fresh.tags, TAG_EMPTY, fresh.cells);
    for (uint32_t i = 0; i < list->cells; i++) {
        const struct match_cell *c = &list->table[i];
        if (list->tags[i] >= TAG_KEY) {
            uint64_t hash = hash_of(group_by_id(list, c->group), c->bits, c->source);
            struct match_cell *to = new_cell(&fresh, hash);
            *to = *c;
            to->first->cell = (uint32_t)(to - fresh.table);
        }
    }
    free(list->table);
    free(list->tags);
    *list = fresh;
    return 0;
}

static struct match_group *group_of(const struct match_list *list, const struct match_entry *e)
{
    uint64_t keep = ~e->ignore, keep_source = match_kept_source(e->any);
    for (uint32_t i = 0; i < list->group_count; i++) {
        struct match_group *g = &list->groups[i];
        if (g->keep == keep && g->keep_source == keep_source) {
            return g;
        }
    }
    return NULL;
}

static struct match_group *new_group(struct match_list *list, const struct match_entry *e)
{
    if (!ARRAY_ROOM(list->groups, list->group_count, list->group_room, GROUPS_FIRST)) {
        return NULL;
    }
    struct match_group *g = &list->groups[list->group_count++];
    g->keep = ~e->ignore;
    g->keep_source = match_kept_source(e->any);
    g->salt = g->keep * 0xff51afd7ed558ccdull + g->keep_source * 0xc4ceb9fe1a85ec53ull;
    g->entries = 0;
    g->id = list->next_group++;
    return g;
}

static void link_last(struct match_list *list, struct match_cell *c, struct match_entry *e)
{
    e->next = NULL;
    e->prev = c->first != NULL ? c->first->last : NULL;
    if (e->prev != NULL) {
        e->prev->next = e;
    } else {
        c->first = e;
        e->cell = (uint32_t)(c - list->table);
    }
    c->first->last = e;
}

/* Moves the oldest fresh entry into the table. 0, or -1 if memory is short. */
static int file_eldest(struct match_list *list)
{
    struct match_entry *e = list->fresh;
    /* At least one cell in eight stays empty, so that probes end. */
    if (list->filled + 1 > list->cells / 8 * 7 && rebuild(list) != 0) {
        return -1;
    }
    struct match_group *g = group_of(list, e);
    if (g == NULL && (g = new_group(list, e)) == NULL) {
        return -1;
    }
    match_remove_fresh(list, e);
    e->fresh = false;
    g->entries++;
    uint64_t bits = e->bits & g->keep, source = match_source(e->nid, e->pid) & g->keep_source;
    uint64_t hash = hash_of(g, bits, source);
    struct match_cell *c = find_hashed(list, g, bits, source, hash);
    if (c == NULL) {
        c = new_cell(list, hash);
        *c = (struct match_cell){bits, source, NULL, g->id};
        list->keys++;
    }
    link_last(list, c, e);
    list->below = 0;
    return 0;
}

/* Removes a key. If its block has an empty cell, no probe goes beyond the block, so the cell may
 * become empty; else it is marked as removed, for probes to go on. */
static void remove_cell(struct match_list *list, const struct match_cell *c)
{
    uint32_t at = (uint32_t)(c - list->table);
    if (equal_tags(list, at / BLOCK, TAG_EMPTY) != 0) {
        list->tags[at] = TAG_EMPTY;
        list->filled--;
    } else {
        list->tags[at] = TAG_REMOVED;
    }
    list->keys--;
}

void match_remove_filed(struct match_list *list, struct match_entry *e)
{
    struct match_group *g = group_of(list, e);
    struct match_cell *c = e->prev == NULL ? &list->table[e->cell] : cell_of(list, g, e);
    if (e->next != NULL) {
        e->next->prev = e->prev;
    } else {
        c->first->last = e->prev;
    }
    if (e->prev != NULL) {
        e->prev->next = e->next;
    } else if (e->next != NULL) {
        e->next->last = e->last;
        e->next->cell = e->cell;
        c->first = e->next;
    } else {
        remove_cell(list, c);
    }
    if (--g->entries == 0) {
        *g = list->groups[--list->group_count];
    }
}

static inline bool accepts(const struct match_entry *e, const struct match_header *h)
{
    return !e->picky || h->fits == NULL || h->fits(e, h);
}

/* Returns the oldest entry of a chain that fits and is older than `best`; if there is none,
 * `best`. */
static inline struct match_entry *older(struct match_entry *e, struct match_entry *best,
                                        const struct match_header *h)
{
    for (; e != NULL && (best == NULL || e->sequence < best->sequence); e = e->next) {
        if (accepts(e, h)) {
            return e;
        }
    }
    return best;
}

/* Returns the oldest entry of the table that the header matches, or NULL. */
static inline struct match_entry *first_filed(const struct match_list *list,
                                              const struct match_header *h)
{
    struct match_entry *best = NULL;
    uint64_t source = match_source(h->nid, h->pid);
    const struct match_group *g = list->groups;
    for (uint32_t left = list->group_count; left != 0; left--, g++) {
        const struct match_cell *c = find_cell(list, g, h->bits & g->keep, source & g->keep_source);
        if (c != NULL) {
            best = older(c->first, best, h);
        }
    }
    return best;
}

/* Returns the first fresh entry, from `e` on, that the header matches. It looks at *walk of them at
 * most, and counts *walk down. */
static inline struct match_entry *first_fresh(struct match_entry *e, const struct match_header *h,
                                              uint32_t *walk)
{
    for (; e != NULL && *walk != 0; e = e->next, --*walk) {
        if (match_key(e, h) && accepts(e, h)) {
            return e;
        }
    }
    return NULL;
}

/* Moves the fresh entries to the table, as many as memory allows, after a walk past too many of
 * them, and searches the table and the fresh ones that are left. */
__attribute__((noinline)) static struct match_entry *file_and_search(struct match_list *list,
                                                                     const struct match_header *h)
{
    while (list->fresh != NULL && file_eldest(list) == 0) {
    }
    struct match_entry *e = first_filed(list, h);
    uint32_t all = list->entries;
    return e != NULL ? e : first_fresh(list->fresh, h, &all);
}

struct match_entry *match_first(struct match_list *list, const struct match_header *h)
{
    struct match_entry *e = first_filed(list, h);
    if (e != NULL) {
        return e;
    }
    uint32_t walk = WALK;
    e = first_fresh(list->fresh, h, &walk);
    return e != NULL || walk != 0 ? e : file_and_search(list, h);
}

struct match_entry *match_any(struct match_list *list)
{
    if (list->fresh != NULL) {
        return list->fresh;
    }
    for (; list->below < list->cells; list->below++) {
        if (list->tags[list->below] >= TAG_KEY) {
            return list->table[list->below].first;
        }
    }
    return NULL;
}

void match_free(struct match_list *list)
{
    free(list->table);
    free(list->tags);
    free(list->groups);
    list->table = NULL;
    list->tags = NULL;
    list->groups = NULL;
    list->cells = list->filled = list->group_room = 0;
}
