/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected headers in order of arrival, with an index for each mask that long searches have used;
 * see unexpected.h.
 *
 * The table of an index is probed linearly and at most half full. A removed key leaves no mark: the
 * cells behind it move up, so that a search for a key that is not there ends soon, however many
 * keys came and went.
 */
#include "nic/match/unexpected.h"

#include <stddef.h>
#include <stdlib.h>

/* A search that took this many steps makes an index for its mask, if there is a place for one. */
#define NEAR 64u
/* A list of fewer headers has no indexes. SHORT is far below NEAR, so that a list whose length goes
 * up and down does not make and drop indexes over and over. */
#define SHORT 16u
/* A new index may replace one that this many searches have not used. So with more masks in turn
 * than indexes, a search walks the list, instead of making a new index each time. */
#define PATIENCE 64u
/* The list drops an index that this many searches, for each header of the list, have not used:
 * their number pays for making the index again, and its upkeep is saved. */
#define IDLE 4u
#define CELLS_FIRST 64u
#define ALL_LIVE ((1u << UNEXPECTED_INDEXES) - 1)

/* A key and the chain of its headers; first and last are NULL in an empty cell. */
struct cell {
    uint64_t bits, source;
    struct unexpected_header *first, *last;
};

/* The bits of a header that the entry of a search compares. */
struct mask {
    uint64_t keep, keep_source;
};

struct unexpected_index {
    struct mask mask;
    struct cell *cells;
    uint32_t room; /* cells, a power of two */
    uint32_t keys;
    uint64_t used; /* number of the search that used it last */
};

struct search {
    struct mask mask;
    uint64_t bits, source; /* masked */
    const struct match_entry *entry;
    bool (*fits)(const struct match_entry *entry, const struct unexpected_header *header);
};

static inline struct mask mask_of(const struct match_entry *e)
{
    return (struct mask){~e->ignore, match_kept_source(e->any)};
}

static inline uint64_t masked_bits(struct mask m, const struct unexpected_header *h)
{
    return h->key.bits & m.keep;
}

static inline uint64_t masked_source(struct mask m, const struct unexpected_header *h)
{
    return match_source(h->key.nid, h->key.pid) & m.keep_source;
}

static inline bool matches(const struct search *s, const struct unexpected_header *h)
{
    return masked_bits(s->mask, h) == s->bits && masked_source(s->mask, h) == s->source;
}

static inline bool accepts(const struct search *s, const struct unexpected_header *h)
{
    return s->fits == NULL || s->fits(s->entry, h);
}

/* The cell where the probe for a key begins. The hash is that of match.c, for the same reasons. */
static inline uint32_t home_of(const struct unexpected_index *x, uint64_t bits, uint64_t source)
{
    uint64_t mixed = bits * 0x9e3779b97f4a7c15ull + source * 0x9fb21c651e98df25ull;
    mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
    return (uint32_t)(mixed >> 32) & (x->room - 1);
}

/* Returns the cell of a key, or the empty cell where it belongs. */
static struct cell *cell_of(const struct unexpected_index *x, uint64_t bits, uint64_t source)
{
    uint32_t at = home_of(x, bits, source);
    for (;;) {
        struct cell *c = &x->cells[at];
        if (c->first == NULL || (c->bits == bits && c->source == source)) {
            return c;
        }
        at = (at + 1) & (x->room - 1);
    }
}

static bool grow(struct unexpected_index *x)
{
    struct unexpected_index larger = *x;
    larger.room = x->room == 0 ? CELLS_FIRST : x->room * 2;
    larger.cells = calloc(larger.room, sizeof(*larger.cells));
    if (larger.cells == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < x->room; i++) {
        const struct cell *c = &x->cells[i];
        if (c->first != NULL) {
            *cell_of(&larger, c->bits, c->source) = *c;
        }
    }
    free(x->cells);
    *x = larger;
    return true;
}

/* Empties a cell: moves the next cell whose probe passes here up to its place, and so on. */
static void close_gap(struct unexpected_index *x, struct cell *empty)
{
    uint32_t wrap = x->room - 1, gap = (uint32_t)(empty - x->cells);
    for (uint32_t at = (gap + 1) & wrap; x->cells[at].first != NULL; at = (at + 1) & wrap) {
        const struct cell *c = &x->cells[at];
        if (((at - home_of(x, c->bits, c->source)) & wrap) >= ((at - gap) & wrap)) {
            x->cells[gap] = *c;
            gap = at;
        }
    }
    x->cells[gap] = (struct cell){0};
}

/* Puts a header at the end of its chain in index `id`. False: memory is short. */
static bool enter(struct unexpected_index *x, unsigned id, struct unexpected_header *h)
{
    /* Makes room for one more key, even if the header turns out to have a known one. */
    if (x->keys >= x->room / 2 && !grow(x)) {
        return false;
    }
    uint64_t bits = masked_bits(x->mask, h), source = masked_source(x->mask, h);
    struct cell *c = cell_of(x, bits, source);
    h->chain[id] = (struct unexpected_link){.prev = c->last};
    if (c->first == NULL) {
        *c = (struct cell){bits, source, h, h};
        x->keys++;
    } else {
        c->last->chain[id].next = h;
        c->last = h;
    }
    return true;
}

static void leave(struct unexpected_index *x, unsigned id, struct unexpected_header *h)
{
    struct unexpected_header *next = h->chain[id].next, *prev = h->chain[id].prev;
    if (next != NULL && prev != NULL) {
        next->chain[id].prev = prev;
        prev->chain[id].next = next;
        return;
    }
    struct cell *c = cell_of(x, masked_bits(x->mask, h), masked_source(x->mask, h));
    if (next != NULL) {
        next->chain[id].prev = NULL;
        c->first = next;
    } else if (prev != NULL) {
        prev->chain[id].next = NULL;
        c->last = prev;
    } else {
        close_gap(x, c);
        x->keys--;
    }
}

static void drop_index(struct unexpected_list *list, unsigned id)
{
    free(list->indexes[id].cells);
    list->indexes[id].cells = NULL;
    list->live &= ~(1u << id);
}

/* Returns a free place for an index, or that of the least recently used one, which it drops; or
 * UNEXPECTED_INDEXES if all of them are in use. */
static unsigned free_place(struct unexpected_list *list)
{
    if (list->live != ALL_LIVE) {
        return (unsigned)__builtin_ctz(~list->live);
    }
    unsigned oldest = 0;
    for (unsigned i = 1; i < UNEXPECTED_INDEXES; i++) {
        if (list->indexes[i].used < list->indexes[oldest].used) {
            oldest = i;
        }
    }
    if (list->searches - list->indexes[oldest].used < PATIENCE) {
        return UNEXPECTED_INDEXES;
    }
    drop_index(list, oldest);
    return oldest;
}

/* Makes an index for a mask; NULL if there is no place or no memory for it. */
static const struct unexpected_index *new_index(struct unexpected_list *list, struct mask mask)
{
    if (list->indexes == NULL) {
        list->indexes = calloc(UNEXPECTED_INDEXES, sizeof(*list->indexes));
        if (list->indexes == NULL) {
            return NULL;
        }
    }
    unsigned id = free_place(list);
    if (id == UNEXPECTED_INDEXES) {
        return NULL;
    }
    struct unexpected_index *x = &list->indexes[id];
    *x = (struct unexpected_index){.mask = mask, .used = list->searches};
    list->live |= 1u << id;
    for (struct unexpected_header *h = list->first; h != NULL; h = h->next) {
        if (!enter(x, id, h)) {
            drop_index(list, id);
            return NULL;
        }
    }
    return x;
}

/* Returns the index of a mask, or NULL if it has none. */
static const struct unexpected_index *live_index(struct unexpected_list *list, struct mask mask)
{
    for (uint32_t left = list->live; left != 0; left &= left - 1) {
        struct unexpected_index *x = &list->indexes[__builtin_ctz(left)];
        if (x->mask.keep == mask.keep && x->mask.keep_source == mask.keep_source) {
            x->used = list->searches;
            return x;
        }
    }
    return NULL;
}

static void enter_all(struct unexpected_list *list, struct unexpected_header *h)
{
    for (uint32_t left = list->live; left != 0; left &= left - 1) {
        unsigned id = (unsigned)__builtin_ctz(left);
        struct unexpected_index *x = &list->indexes[id];
        bool idle = list->searches - x->used > (uint64_t)list->count * IDLE;
        if (idle || !enter(x, id, h)) {
            drop_index(list, id);
        }
    }
}

static void leave_all(struct unexpected_list *list, struct unexpected_header *h)
{
    for (uint32_t left = list->live; left != 0; left &= left - 1) {
        unsigned id = (unsigned)__builtin_ctz(left);
        if (list->count < SHORT) {
            drop_index(list, id);
        } else {
            leave(&list->indexes[id], id, h);
        }
    }
}

void unexpected_add(struct unexpected_list *list, struct unexpected_header *h)
{
    h->sequence = list->sequence++;
    h->next = NULL;
    h->prev = list->last;
    if (h->prev != NULL) {
        h->prev->next = h;
    } else {
        list->first = h;
    }
    list->last = h;
    list->count++;
    enter_all(list, h);
}

void unexpected_remove(struct unexpected_list *list, struct unexpected_header *h)
{
    if (h->next != NULL) {
        h->next->prev = h->prev;
    } else {
        list->last = h->prev;
    }
    if (h->prev != NULL) {
        h->prev->next = h->next;
    } else {
        list->first = h->next;
    }
    list->count--;
    leave_all(list, h);
}

static struct unexpected_header *first_in_index(const struct unexpected_list *list,
                                                const struct unexpected_index *x,
                                                const struct search *s,
                                                const struct unexpected_header *after)
{
    ptrdiff_t id = x - list->indexes;
    struct unexpected_header *h;
    if (after != NULL && matches(s, after)) {
        h = after->chain[id].next;
    } else {
        h = cell_of(x, s->bits, s->source)->first;
        while (h != NULL && after != NULL && h->sequence < after->sequence) {
            h = h->chain[id].next;
        }
    }
    while (h != NULL && !accepts(s, h)) {
        h = h->chain[id].next;
    }
    return h;
}

struct unexpected_header *unexpected_first(struct unexpected_list *list,
                                           const struct match_entry *entry,
                                           const struct unexpected_header *after,
                                           bool (*fits)(const struct match_entry *entry,
                                                        const struct unexpected_header *header))
{
    struct mask mask = mask_of(entry);
    struct search s = {.mask = mask,
                       .bits = entry->bits & mask.keep,
                       .source = match_source(entry->nid, entry->pid) & mask.keep_source,
                       .entry = entry,
                       .fits = fits};
    const struct unexpected_index *x;
    if (list->live != 0) {
        list->searches++;
        if ((x = live_index(list, mask)) != NULL) {
            return first_in_index(list, x, &s, after);
        }
    }
    /* An entry that matches all headers walks the list only for the sake of fits(): no index saves
     * it a step. */
    bool everything = (mask.keep | mask.keep_source) == 0;
    struct unexpected_header *h = after != NULL ? after->next : list->first;
    for (uint32_t steps = 1; h != NULL; h = h->next, steps++) {
        if (matches(&s, h) && accepts(&s, h)) {
            return h;
        }
        if (steps == NEAR && !everything && (x = new_index(list, mask)) != NULL) {
            return first_in_index(list, x, &s, h);
        }
    }
    return NULL;
}

void unexpected_free(struct unexpected_list *list)
{
    free(list->indexes);
    list->indexes = NULL;
}
