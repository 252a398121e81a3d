/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The matching of messages and receives; see match.h.
 */
#include "match.h"

#include "chains.h"
#include "notes.h"
#include "sim/util/reserve.h"

#include <string.h>

enum view_kind { VIEW_SOURCE, VIEW_TAG, VIEW_ALL, VIEWS };
struct view {
    struct chains chains; /* slots NULL: not built */
    struct note *notes;
    uint32_t used;
    uint32_t capacity;
};

struct match_table {
    struct chains exact;
    /* how many entries have wildcards, by kind: 1 any source, 2 any tag, 3 both */
    uint32_t wild[4];
    struct view views[VIEWS];
};

int match_pool_init(struct match_pool *p, uint64_t capacity)
{
    p->capacity = capacity < MATCH_NONE ? (uint32_t)capacity : MATCH_NONE - 1;
    p->free = MATCH_NONE;
    p->used = 0;
    p->sequence = 0;
    p->slab = (struct slab){0};
    p->entries = sim_reserve((size_t)p->capacity * sizeof(*p->entries));
    return p->entries != NULL ? 0 : -1;
}

void match_pool_free(struct match_pool *p)
{
    sim_unreserve(p->entries, (size_t)p->capacity * sizeof(*p->entries));
    p->entries = NULL;
    slab_free(&p->slab);
}

static inline uint32_t entry_new(struct match_pool *p)
{
    uint32_t i = p->free;
    if (i != MATCH_NONE) {
        p->free = p->entries[i].next;
        return i;
    }
    return p->used < p->capacity ? p->used++ : MATCH_NONE;
}

static inline void entry_free(struct match_pool *p, uint32_t i)
{
    p->entries[i].next = p->free;
    p->entries[i].sequence = UINT64_MAX;
    p->free = i;
}

static inline unsigned kind_of(uint32_t source, uint32_t tag)
{
    return (source == MATCH_ANY ? 1u : 0u) | (tag == MATCH_ANY ? 2u : 0u);
}

static void view_drop(struct view *v, struct match_pool *p)
{
    if (v->chains.slots != NULL) {
        chains_free(&v->chains, &p->slab);
    }
    slab_give(&p->slab, v->notes, v->capacity * sizeof(*v->notes));
    *v = (struct view){0};
}

static void table_free(struct match_table *t, struct match_pool *p)
{
    if (t == NULL) {
        return;
    }
    for (int k = 0; k < VIEWS; k++) {
        view_drop(&t->views[k], p);
    }
    chains_free(&t->exact, &p->slab);
    slab_give(&p->slab, t, sizeof(*t));
}

static int table_add(struct match_table *t, struct match_pool *p, uint32_t i)
{
    struct match_entry *e = &p->entries[i];
    struct chain *s = chains_make(&t->exact, &p->slab, e->source, e->tag);
    if (s == NULL) {
        return -1;
    }
    if (s->head == 0) {
        s->head = i + 1;
    } else {
        p->entries[s->tail - 1].next = i;
    }
    s->tail = i + 1;
    e->next = MATCH_NONE;
    t->wild[kind_of(e->source, e->tag)]++;
    return 0;
}

/* Makes room for `capacity` notes. */
static int view_grow(struct view *v, struct match_pool *p, uint32_t capacity)
{
    struct note *notes = slab_take(&p->slab, capacity * sizeof(*notes));
    if (notes == NULL) {
        return -1;
    }
    if (v->used > 0) {
        memcpy(notes, v->notes, v->used * sizeof(*notes));
    }
    slab_give(&p->slab, v->notes, v->capacity * sizeof(*v->notes));
    v->notes = notes;
    v->capacity = capacity;
    return 0;
}

/* Adds the note with index `note` to the chain of its entry's source, or tag, or to the only chain,
 * by the kind of the view. */
static int view_link(struct view *v, enum view_kind kind, struct match_pool *p, uint32_t note)
{
    const struct match_entry *e = &p->entries[v->notes[note].entry];
    struct chain *s = chains_make(&v->chains, &p->slab, kind == VIEW_SOURCE ? e->source : 0,
                                  kind == VIEW_TAG ? e->tag : 0);
    if (s == NULL) {
        return -1;
    }
    if (s->head == 0) {
        s->head = note + 1;
    } else {
        v->notes[s->tail - 1].next = note + 1;
    }
    s->tail = note + 1;
    return 0;
}

static int view_add(struct view *v, enum view_kind kind, struct match_pool *p, uint32_t i)
{
    if (v->used == v->capacity && view_grow(v, p, 2 * v->capacity) != 0) {
        return -1;
    }
    uint32_t note = v->used++;
    v->notes[note] = (struct note){.entry = i, .sequence = p->entries[i].sequence};
    return view_link(v, kind, p, note);
}

/* Turns a side's single chain into a table with room for `entries` entries. */
static int make_long(struct match_side *s, struct match_pool *p, uint32_t entries)
{
    struct match_table *t = slab_take(&p->slab, sizeof(*t));
    if (t == NULL || chains_init(&t->exact, &p->slab, entries) != 0) {
        slab_give(&p->slab, t, sizeof(*t));
        return -1;
    }
    uint32_t next;
    for (uint32_t i = s->head - 1; i != MATCH_NONE; i = next) {
        next = p->entries[i].next;
        if (table_add(t, p, i) != 0) {
            table_free(t, p);
            return -1;
        }
    }
    s->table = t;
    return 0;
}

static int add_long(struct match_side *s, struct match_pool *p, uint32_t i)
{
    struct match_table *t = s->table;
    if (table_add(t, p, i) != 0) {
        return -1;
    }
    for (int k = 0; k < VIEWS; k++) {
        struct view *v = &t->views[k];
        if (v->chains.slots == NULL) {
            continue;
        }
        if (v->used > 2 * s->count + 64) {
            view_drop(v, p);
        } else if (view_add(v, (enum view_kind)k, p, i) != 0) {
            return -1;
        }
    }
    return 0;
}

int match_expect(struct match_side *s, struct match_pool *p, uint32_t more)
{
    bool becomes_long = s->table == NULL && more > MATCH_SHORT;
    return becomes_long ? make_long(s, p, s->count + more) : 0;
}

int match_add(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
              uint32_t ref)
{
    uint32_t i = entry_new(p);
    if (i == MATCH_NONE) {
        return -1;
    }
    p->entries[i] = (struct match_entry){
        .next = MATCH_NONE, .source = source, .tag = tag, .ref = ref, .sequence = p->sequence++};
    if (s->table == NULL && s->count == MATCH_SHORT && make_long(s, p, 4 * MATCH_SHORT) != 0) {
        return -1;
    }
    s->count++;
    if (s->table != NULL) {
        return add_long(s, p, i);
    }
    if (s->head == 0) {
        s->head = i + 1;
    } else {
        p->entries[s->tail - 1].next = i;
    }
    s->tail = i + 1;
    return 0;
}

static inline bool fits(const struct match_entry *e, uint32_t source, uint32_t tag)
{
    return (e->source == source || e->source == MATCH_ANY || source == MATCH_ANY) &&
           (e->tag == tag || e->tag == MATCH_ANY || tag == MATCH_ANY);
}

static int take_short(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
                      struct match_entry *taken)
{
    uint32_t before = MATCH_NONE;
    for (uint32_t i = s->head - 1; i != MATCH_NONE; before = i, i = p->entries[i].next) {
        struct match_entry *e = &p->entries[i];
        if (!fits(e, source, tag)) {
            continue;
        }
        if (before == MATCH_NONE) {
            s->head = e->next + 1; /* MATCH_NONE + 1 is 0: the chain is empty */
        } else {
            p->entries[before].next = e->next;
        }
        if (s->tail == i + 1) {
            s->tail = before + 1;
        }
        s->count--;
        *taken = *e;
        entry_free(p, i);
        return 1;
    }
    return 0;
}

/* Sets *best to the chain of a source and tag if its first entry is earlier than that of *best. */
static void probe(const struct match_table *t, const struct match_pool *p, uint32_t source,
                  uint32_t tag, struct chain **best)
{
    struct chain *s = chains_find(&t->exact, source, tag);
    if (s->head != 0 && (*best == NULL || p->entries[s->head - 1].sequence <
                                              p->entries[(*best)->head - 1].sequence)) {
        *best = s;
    }
}

static struct chain *first_exact(const struct match_table *t, const struct match_pool *p,
                                 uint32_t source, uint32_t tag)
{
    struct chain *best = NULL;
    if (t->wild[0] > 0) {
        probe(t, p, source, tag, &best);
    }
    if (t->wild[1] > 0) {
        probe(t, p, MATCH_ANY, tag, &best);
    }
    if (t->wild[2] > 0) {
        probe(t, p, source, MATCH_ANY, &best);
    }
    if (t->wild[3] > 0) {
        probe(t, p, MATCH_ANY, MATCH_ANY, &best);
    }
    return best;
}

/* Makes notes of all entries of a side, in their order. */
static int note_all(const struct match_side *s, struct view *v, struct match_pool *p)
{
    const struct chains *exact = &s->table->exact;
    if (view_grow(v, p, s->count > 32 ? 2 * s->count : 64) != 0) {
        return -1;
    }
    for (uint32_t k = 0; k <= exact->mask; k++) {
        for (uint32_t i = exact->slots[k].head - 1; i != MATCH_NONE; i = p->entries[i].next) {
            v->notes[v->used++] = (struct note){.entry = i, .sequence = p->entries[i].sequence};
        }
    }
    return notes_sort(v->notes, v->used, &p->slab);
}

static int view_build(const struct match_side *s, struct view *v, enum view_kind kind,
                      struct match_pool *p)
{
    int status = note_all(s, v, p) == 0 ? chains_init(&v->chains, &p->slab, 40) : -1;
    for (uint32_t i = 0; i < v->used && status == 0; i++) {
        status = view_link(v, kind, p, i);
    }
    if (status != 0) {
        view_drop(v, p);
    }
    return status;
}

/* Returns the view of a kind, which is built first if there is none; NULL if memory is short. */
static struct view *view_of(struct match_side *s, enum view_kind kind, struct match_pool *p)
{
    struct view *v = &s->table->views[kind];
    return v->chains.slots != NULL || view_build(s, v, kind, p) == 0 ? v : NULL;
}

/* Returns the note of the first entry that still exists in a chain of a view, and drops the notes
 * before it; NULL if there is none. */
static const struct note *first_note(struct view *v, const struct match_pool *p, uint32_t source,
                                     uint32_t tag)
{
    struct chain *s = chains_find(&v->chains, source, tag);
    while (s->head != 0) {
        const struct note *n = &v->notes[s->head - 1];
        /* A freed entry has no sequence number, and one that was used again has a greater one. */
        if (p->entries[n->entry].sequence == n->sequence) {
            return n;
        }
        s->head = n->next;
    }
    return NULL;
}

/* Finds the first entry that fits a search with wildcards: *found gets the chain that begins with
 * it. */
static int first_wild(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
                      struct chain **found)
{
    enum view_kind kind = source != MATCH_ANY ? VIEW_SOURCE
                          : tag != MATCH_ANY  ? VIEW_TAG
                                              : VIEW_ALL;
    struct view *v = view_of(s, kind, p);
    if (v == NULL) {
        return -1;
    }
    uint32_t key_source = kind == VIEW_SOURCE ? source : 0;
    uint32_t key_tag = kind == VIEW_TAG ? tag : 0;
    const struct note *n = first_note(v, p, key_source, key_tag);
    if (kind != VIEW_ALL) {
        const struct note *any =
            kind == VIEW_SOURCE ? first_note(v, p, MATCH_ANY, 0) : first_note(v, p, 0, MATCH_ANY);
        n = n == NULL || (any != NULL && any->sequence < n->sequence) ? any : n;
    }
    if (n != NULL) {
        const struct match_entry *e = &p->entries[n->entry];
        *found = chains_find(&s->table->exact, e->source, e->tag);
    }
    return 0;
}

/* Finds the chain that begins with the first entry that fits; *found is NULL if none does. */
static int find_long(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
                     struct chain **found)
{
    *found = NULL;
    if (source == MATCH_ANY || tag == MATCH_ANY) {
        return first_wild(s, p, source, tag, found);
    }
    *found = first_exact(s->table, p, source, tag);
    return 0;
}

static int take_long(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
                     struct match_entry *taken)
{
    struct chain *found;
    if (find_long(s, p, source, tag, &found) != 0) {
        return -1;
    }
    if (found == NULL) {
        return 0;
    }
    uint32_t i = found->head - 1;
    struct match_entry *e = &p->entries[i];
    found->head = e->next + 1;
    s->table->wild[kind_of(e->source, e->tag)]--;
    *taken = *e;
    entry_free(p, i);
    if (--s->count == 0) {
        table_free(s->table, p);
        *s = (struct match_side){0};
    }
    return 1;
}

int match_take(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
               struct match_entry *taken)
{
    if (s->count == 0) {
        return 0;
    }
    return s->table == NULL ? take_short(s, p, source, tag, taken)
                            : take_long(s, p, source, tag, taken);
}

int match_find(struct match_side *s, struct match_pool *p, uint32_t source, uint32_t tag,
               struct match_entry *found)
{
    uint32_t i = s->head - 1;
    if (s->count == 0) {
        return 0;
    }
    if (s->table != NULL) {
        struct chain *chain;
        if (find_long(s, p, source, tag, &chain) != 0) {
            return -1;
        }
        i = chain != NULL ? chain->head - 1 : MATCH_NONE;
    }
    while (i != MATCH_NONE && !fits(&p->entries[i], source, tag)) {
        i = p->entries[i].next;
    }
    if (i != MATCH_NONE) {
        *found = p->entries[i];
    }
    return i != MATCH_NONE;
}

uint32_t match_fetch(const struct match_side *s, const struct match_pool *p, uint32_t source,
                     uint32_t tag, enum match_step step)
{
    uint32_t head = s->head;
    if (s->table != NULL) {
        const struct chains *c = &s->table->exact;
        const struct chain *slot = &c->slots[chains_place(c, source, tag)];
        if (step == MATCH_FETCH_SLOT) {
            __builtin_prefetch(slot);
            return MATCH_NONE;
        }
        head = slot->key == chains_key(source, tag) ? slot->head : 0;
    }
    if (head == 0) {
        return MATCH_NONE;
    }
    if (step != MATCH_FETCH_REF) {
        __builtin_prefetch(&p->entries[head - 1]);
        return MATCH_NONE;
    }
    return p->entries[head - 1].ref;
}

void match_each(const struct match_side *s, const struct match_pool *p,
                void (*visit)(void *context, const struct match_entry *e), void *context)
{
    uint32_t chains = s->table != NULL ? s->table->exact.mask + 1 : 1;
    for (uint32_t k = 0; k < chains; k++) {
        uint32_t head = s->table != NULL ? s->table->exact.slots[k].head : s->head;
        for (uint32_t i = head - 1; i != MATCH_NONE; i = p->entries[i].next) {
            visit(context, &p->entries[i]);
        }
    }
}

void match_release(struct match_side *s, struct match_pool *p)
{
    table_free(s->table, p);
    *s = (struct match_side){0};
}
