/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching by groups of masks and one hash table; see match.h. */
#include "nic/match.h"

#include <stddef.h>
#include <stdlib.h>

#define FIRST_BUCKETS 16

struct match_group {
    struct match_group *next;
    uint64_t ignore;
    unsigned any;
    uint32_t entries;
};

/* A strong mix of 64 bits (the finalizer of MurmurHash3): keys are often
 * consecutive numbers. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

/* The hash of what a group compares. */
static uint64_t key_hash(const struct match_group *g, uint64_t bits, uint32_t nid, uint32_t pid)
{
    uint64_t source = (uint64_t)((g->any & MATCH_ANY_NID) != 0 ? 0 : nid) << 32 |
                      ((g->any & MATCH_ANY_PID) != 0 ? 0 : pid);
    return mix(mix(mix(bits & ~g->ignore) + source) + g->ignore + g->any);
}

static bool key_equal(const struct match_entry *e, const struct match_group *g, uint64_t bits,
                      uint32_t nid, uint32_t pid)
{
    return e->group == g && ((e->bits ^ bits) & ~g->ignore) == 0 &&
           ((g->any & MATCH_ANY_NID) != 0 || e->nid == nid) &&
           ((g->any & MATCH_ANY_PID) != 0 || e->pid == pid);
}

static void link_last(struct match_list *list, struct match_entry *e)
{
    struct match_bucket *b = &list->table[e->hash & (list->buckets - 1)];
    e->next = NULL;
    e->prev = b->last;
    if (b->last != NULL) {
        b->last->next = e;
    } else {
        b->first = e;
    }
    b->last = e;
}

/* Doubles the table. Entries of one old bucket go to two new ones, in order, so
 * chains stay sorted by age within a key. */
static int grow(struct match_list *list)
{
    struct match_list wider = *list;
    wider.buckets = list->buckets != 0 ? list->buckets * 2 : FIRST_BUCKETS;
    wider.table = calloc(wider.buckets, sizeof(*wider.table));
    if (wider.table == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < list->buckets; i++) {
        for (struct match_entry *e = list->table[i].first, *next; e != NULL; e = next) {
            next = e->next;
            link_last(&wider, e);
        }
    }
    free(list->table);
    *list = wider;
    return 0;
}

static struct match_group *group_of(struct match_list *list, const struct match_entry *e)
{
    struct match_group *g = list->groups;
    while (g != NULL && (g->ignore != e->ignore || g->any != e->any)) {
        g = g->next;
    }
    if (g == NULL) {
        g = calloc(1, sizeof(*g));
        if (g == NULL) {
            return NULL;
        }
        g->ignore = e->ignore;
        g->any = e->any;
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

int match_append(struct match_list *list, struct match_entry *e)
{
    if (list->entries >= list->buckets && grow(list) != 0) {
        return -1;
    }
    struct match_group *g = group_of(list, e);
    if (g == NULL) {
        return -1;
    }
    g->entries++;
    e->group = g;
    e->sequence = list->sequence++;
    e->hash = key_hash(g, e->bits, e->nid, e->pid);
    link_last(list, e);
    list->entries++;
    return 0;
}

void match_remove(struct match_list *list, struct match_entry *e)
{
    struct match_bucket *b = &list->table[e->hash & (list->buckets - 1)];
    if (e->prev != NULL) {
        e->prev->next = e->next;
    } else {
        b->first = e->next;
    }
    if (e->next != NULL) {
        e->next->prev = e->prev;
    } else {
        b->last = e->prev;
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
    for (const struct match_group *g = list->groups; g != NULL; g = g->next) {
        uint64_t hash = key_hash(g, h->bits, h->nid, h->pid);
        struct match_entry *e = list->table[hash & (list->buckets - 1)].first;
        for (; e != NULL && (best == NULL || e->sequence < best->sequence); e = e->next) {
            if (key_equal(e, g, h->bits, h->nid, h->pid) && (h->fits == NULL || h->fits(e, h))) {
                best = e;
                break;
            }
        }
    }
    return best;
}

struct match_entry *match_any(const struct match_list *list)
{
    for (uint32_t i = 0; i < list->buckets; i++) {
        if (list->table[i].first != NULL) {
            return list->table[i].first;
        }
    }
    return NULL;
}

void match_free(struct match_list *list)
{
    free(list->table);
    list->table = NULL;
    list->buckets = 0;
}
