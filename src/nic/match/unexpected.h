/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected headers: the oldest header of a list that an entry matches. It is
 * match.h the other way round: exact headers wait, entries with masks ask.
 *
 *   list ── headers in order of arrival
 *        └─ indexes, one for each (ignore bits, source wildcards) asked with of late
 *              └─ table of cells, one a key: the bits and source that the mask keeps
 *                    └─ chain of the headers with that key, in order of arrival
 *
 * A search walks the list while that is a matter of few steps, and in a short list
 * there is nothing else. A search that would have to go on makes an index for its
 * mask; from then on one probe answers all searches with that mask, those that find
 * nothing too. An index has every header of the list: add and remove keep all of
 * them up to date. The least recently used makes room for a new one once it has had
 * no search for a while; until then, masks without an index walk. Nobody asked with
 * for long, or no memory: an index may go at any time, it only saves steps. When the
 * list is short again, all go.
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

/* Where a header comes from, and its match bits. On a logical NI the rank stands in
 * `nid`, and `pid` is 0. */
struct unexpected_key {
    uint64_t bits;
    uint32_t nid, pid;
};

struct unexpected_link {
    struct unexpected_header *next, *prev;
};

struct unexpected_header {
    struct unexpected_key key;
    /* the list's */
    uint64_t sequence; /* of arrival */
    struct unexpected_header *next, *prev;
    struct unexpected_link chain[UNEXPECTED_INDEXES]; /* valid where the index is live */
};

/* All zeros is an empty list. */
struct unexpected_list {
    struct unexpected_header *first, *last;
    uint32_t count;
    uint32_t live;                    /* bit i: indexes[i] is in use */
    uint64_t sequence;                /* of the next header */
    uint64_t searches;                /* since there was a live index: the clock of their use */
    struct unexpected_index *indexes; /* UNEXPECTED_INDEXES of them, or NULL */
};

/* unexpected_add() puts a header, its key set, at the end of the list. It needs no
 * memory that it cannot do without. */
void unexpected_add(struct unexpected_list *list, struct unexpected_header *header);

/* unexpected_remove() takes a header out of its list. */
void unexpected_remove(struct unexpected_list *list, struct unexpected_header *header);

/* unexpected_first() is the oldest header that the entry matches and fits() accepts
 * (NULL: all), or NULL. With `after`, a header in the list, only those that came after
 * it count; this is cheap where the entry matches `after`, as it does when a search is
 * taken up again where it ended. fits() must not change the list. */
struct unexpected_header *unexpected_first(struct unexpected_list *list,
                                           const struct match_entry *entry,
                                           const struct unexpected_header *after,
                                           bool (*fits)(const struct match_entry *entry,
                                                        const struct unexpected_header *header));

/* unexpected_any() is some header of the list, or NULL: for emptying it. */
static inline struct unexpected_header *unexpected_any(const struct unexpected_list *list)
{
    return list->first;
}

/* unexpected_free() releases the memory of an empty list. */
void unexpected_free(struct unexpected_list *list);

#endif
