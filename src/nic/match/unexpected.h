/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected headers: a search of the oldest header of a list that an entry matches. It is match.h
 * the other way round: headers, which are exact, wait in the list, and an entry with a mask asks.
 *
 *   list ── headers in order of arrival
 *        └─ indexes, one for each (ignore bits, source wildcards) asked with of late
 *              └─ table of cells, one a key: the bits and source that the mask keeps
 *                    └─ chain of the headers with that key, in order of arrival
 *
 * A search walks the list while that takes few steps; a short list has no indexes at all. A search
 * that would have to go on makes an index for its mask; from then on one probe answers all searches
 * with that mask, also those that find nothing. An index has every header of the list: add and
 * remove keep all of them up to date. The least recently used index makes room for a new one once
 * no search has used it for a while; until then, searches with other masks walk. An index only
 * saves steps: the list drops it when it is long unused or memory is short, and all when it is
 * short.
 *
 * The links of all chains are in the header, so a header never waits for memory.
 */
#ifndef NIC_MATCH_UNEXPECTED_H
#define NIC_MATCH_UNEXPECTED_H

#include "nic/match/match.h"

#include <stdbool.h>
#include <stdint.h>

enum { UNEXPECTED_INDEXES = 8 };

struct unexpected_index;

/* Source and match bits of a header. On a logical NI `nid` holds the rank, and `pid` is 0. */
struct unexpected_key {
    uint64_t bits;
    uint32_t nid, pid;
};

struct unexpected_link {
    struct unexpected_header *next, *prev;
};

struct unexpected_header {
    struct unexpected_key key;
    /* the rest belongs to the list: */
    uint64_t sequence; /* number in order of arrival */
    struct unexpected_header *next, *prev;
    struct unexpected_link chain[UNEXPECTED_INDEXES]; /* valid for the indexes that are live */
};

/* A list that is all zeros is empty. */
struct unexpected_list {
    struct unexpected_header *first, *last;
    uint32_t count;
    uint32_t live;     /* bit i: indexes[i] is in use */
    uint64_t sequence; /* of the next header to arrive */
    /* searches since the first live index was made: the clock that `used` of an index is read
     * from */
    uint64_t searches;
    struct unexpected_index *indexes; /* UNEXPECTED_INDEXES of them, or NULL */
};

/* unexpected_add() puts a header, whose key the caller has set, at the end of the list. It cannot
 * fail: if memory is short it drops an index. */
void unexpected_add(struct unexpected_list *list, struct unexpected_header *header);

/* unexpected_remove() takes a header out of its list. */
void unexpected_remove(struct unexpected_list *list, struct unexpected_header *header);

/* unexpected_first() returns the oldest header that the entry matches and fits() accepts (NULL:
 * any), or NULL. With `after`, a header of the list, it returns the oldest that came later than
 * that one; this is cheap if the entry matches `after`, as when a search goes on where it ended.
 * fits() must not change the list. */
struct unexpected_header *unexpected_first(struct unexpected_list *list,
                                           const struct match_entry *entry,
                                           const struct unexpected_header *after,
                                           bool (*fits)(const struct match_entry *entry,
                                                        const struct unexpected_header *header));

/* unexpected_any() returns some header of the list, or NULL; the caller empties the list with
 * it. */
static inline struct unexpected_header *unexpected_any(const struct unexpected_list *list)
{
    return list->first;
}

/* unexpected_free() releases the memory of an empty list. */
void unexpected_free(struct unexpected_list *list);

#endif
