/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching by groups of masks and one hash table with linear probing; see match.h.
 * A key that goes leaves no mark: the keys behind it move up (Knuth, volume 3,
 * section 6.4, algorithm R).
 */
#include "nic/match.h"

#include <stddef.h>
#include <stdlib.h>

#define FIRST_CELLS 16

struct match_group {
    struct match_group *next;
    uint64_t keep, keep_source; /* what is compared */
    uint64_t salt;
    uint32_t entries;
};

/* A key and its entries; empty when it has none. */
struct match_cell {
    uint64_t bits, source;
    struct match_group *group;
    struct match_entry *first;
};

static uint64_t source_of(uint32_t nid, uint32_t pid)
{
    return (uint64_t)nid << 32 | pid;
}

/* Both halves of a 128-bit product: keys are often consecutive numbers. */
static inline uint32_t home(const struct match_list *list, const struct match_group *g,
                            uint64_t bits, uint64_t source)
{
    unsigned __int128 product = (unsigned __int128)(bits ^ 0x9e3779b97f4a7c15ull) *
                                (source * 0x9fb21c651e98df25ull ^ g->salt);
    uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64);
    return (uint32_t)(mixed ^ mixed >> 32) & (list->cells - 1);
}

/* The cell of a key, or the empty one where it would go. */
static inline struct match_cell *find_cell(const struct match_list *list,
                                           const struct match_group *g, uint64_t bits,
                                           uint64_t source)
{
    uint32_t at = home(list, g, bits, source);
    for (;; at = (at + 1) & (list->cells - 1)) {
        struct match_cell *c = &list->table[at];
        if (c->first == NULL || (c->bits == bits && c->source == source && c->group == g)) {
            return c;
        }
    }
}

static struct match_cell *cell_of(const struct match_list *list, const struct match_entry *e)
{
    const struct match_group *g = e->group;
    return find_cell(list, g, e->bits & g->keep, source_of(e->nid, e->pid) & g->keep_source);
}

/* Doubles the table. */
static int grow(struct match_list *list)
{
    struct match_list wider = *list;
    wider.cells = list->cells != 0 ? list->cells * 2 : FIRST_CELLS;
    wider.table = calloc(wider.cells, sizeof(*wider.table));
    if (wider.table == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < list->cells; i++) {
        const struct match_cell *c = &list->table[i];
        if (c->first != NULL) {
            *find_cell(&wider, c->group, c->bits, c->source) = *c;
        }
    }
    free(list->table);
    *list = wider;
    return 0;
}

static uint64_t kept_source(unsigned any)
{
    return ((any & MATCH_ANY_NID) != 0 ? 0 : 0xffffffffull << 32) |
           ((any & MATCH_ANY_PID) != 0 ? 0 : 0xffffffffull);
}

static struct match_group *group_of(struct match_list *list, const struct match_entry *e)
{
    uint64_t keep = ~e->ignore, keep_source = kept_source(e->any);
    struct match_group *g = list->groups;
    while (g != NULL && (g->keep != keep || g->keep_source != keep_source)) {
        g = g->next;
    }
    if (g == NULL) {
        g = calloc(1, sizeof(*g));
        if (g == NULL) {
            return NULL;
        }
        g->keep = keep;
        g->keep_source = keep_source;
        /* Odd, so that no source makes the product nothing but zeros. */
        g->salt = (keep * 0xff51afd7ed558ccdull + keep_source * 0xc4ceb9fe1a85ec53ull) | 1;
        g->next = list->groups;
        list->groups = g;
    }
    return g;
}

static void drop_group(struct match_list *list, struct match_group *g)
{
    struct match_group **at = &list->groups;
    while (*at != g) {
        at = &(*at)->next;
    }
    *at = g->next;
    free(g);
}

static void link_last(struct match_cell *c, struct match_entry *e)
{
    e->next = NULL;
    e->prev = c->first != NULL ? c->first->last : NULL;
    if (e->prev != NULL) {
        e->prev->next = e;
    } else {
        c->first = e;
    }
    c->first->last = e;
}

int match_append(struct match_list *list, struct match_entry *e)
{
    /* At least a quarter of the cells stays empty, for short probes. */
    if (list->keys + 1 > list->cells / 4 * 3 && grow(list) != 0) {
        return -1;
    }
    struct match_group *g = group_of(list, e);
    if (g == NULL) {
        return -1;
    }
    g->entries++;
    e->group = g;
    e->sequence = list->sequence++;
    struct match_cell *c = cell_of(list, e);
    if (c->first == NULL) {
        c->group = g;
        c->bits = e->bits & g->keep;
        c->source = source_of(e->nid, e->pid) & g->keep_source;
        list->keys++;
    }
    link_last(c, e);
    list->entries++;
    list->below = 0;
    return 0;
}

/* Empties a cell. A key further on moves here if this cell lies between its home
 * and where it is, and then its own cell is the one to fill. */
static void empty_cell(struct match_list *list, struct match_cell *c)
{
    uint32_t mask = list->cells - 1;
    uint32_t hole = (uint32_t)(c - list->table);
    for (uint32_t at = (hole + 1) & mask; list->table[at].first != NULL; at = (at + 1) & mask) {
        const struct match_cell *k = &list->table[at];
        uint32_t from = home(list, k->group, k->bits, k->source);
        if (((at - from) & mask) >= ((at - hole) & mask)) {
            list->table[hole] = *k;
            hole = at;
        }
    }
    list->table[hole] = (struct match_cell){0};
    list->keys--;
}

void match_remove(struct match_list *list, struct match_entry *e)
{
    struct match_cell *c = cell_of(list, e);
    if (e->next != NULL) {
        e->next->prev = e->prev;
    } else {
        c->first->last = e->prev;
    }
    if (e->prev != NULL) {
        e->prev->next = e->next;
    } else if (e->next != NULL) {
        e->next->last = e->last;
        c->first = e->next;
    } else {
        empty_cell(list, c);
    }
    list->entries--;
    if (--e->group->entries == 0) {
        drop_group(list, e->group);
    }
    e->group = NULL;
}

struct match_entry *match_first(const struct match_list *list, const struct match_header *h)
{
    struct match_entry *best = NULL;
    uint64_t source = source_of(h->nid, h->pid);
    for (const struct match_group *g = list->groups; g != NULL; g = g->next) {
        struct match_entry *e =
            find_cell(list, g, h->bits & g->keep, source & g->keep_source)->first;
        for (; e != NULL && (best == NULL || e->sequence < best->sequence); e = e->next) {
            if (!e->picky || h->fits == NULL || h->fits(e, h)) {
                best = e;
                break;
            }
        }
    }
    return best;
}

struct match_entry *match_any(struct match_list *list)
{
    for (; list->below < list->cells; list->below++) {
        if (list->table[list->below].first != NULL) {
            return list->table[list->below].first;
        }
    }
    return NULL;
}

void match_free(struct match_list *list)
{
    free(list->table);
    list->table = NULL;
    list->cells = 0;
}
