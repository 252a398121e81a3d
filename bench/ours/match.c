/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for a matching entry alone, without a message: match_first() on a list
 * of entries as posted receives of Open MPI make them (masks.h); those that ignore the
 * source bits take any process too. The entries stay in the list; headers come in
 * random order, each matching exactly one entry. The library's own objects are linked
 * into this program, so it is the code that messages run.
 *
 *   match         one mask, a known source each    match_masks   the eight masks
 *   match_wild    one mask, any source             match_wild_2  both of these, in turns
 */
#include "link.h"
#include "masks.h"

#include "nic/match/match.h"
#include "nic/objects.h"

#include <stdlib.h>

enum { ENTRIES_MAX = 4096, SEARCHES = 64, HEADERS = 8192, RANK_PID = 0 };

static struct {
    struct match_list list;
    struct le *entries;
    uint64_t count, bench; /* of the list */
    struct match_header headers[HEADERS];
    struct match_entry *expected[HEADERS];
    unsigned next;
} search;

/* As a message's header asks: entries that do not truncate take only what fits. */
static bool fits(const struct match_entry *entry, const struct match_header *header)
{
    const struct le *le = container_of(entry, struct le, match);
    return (le->options & PTL_ME_NO_TRUNCATE) == 0 || header->length <= le->length;
}

/* The bits that an entry ignores. */
static uint64_t mask_of(uint64_t bench, uint64_t entry)
{
    switch (bench) {
    case BENCH_MATCH:
        return masks_eight[0];
    case BENCH_MATCH_WILD:
        return masks_eight[1];
    case BENCH_MATCH_WILD_2:
        return masks_eight[entry % 2];
    default:
        return masks_eight[entry % MASKS];
    }
}

static void clear_list(void)
{
    for (struct match_entry *e; (e = match_any(&search.list)) != NULL;) {
        match_remove(&search.list, e);
    }
    match_free(&search.list);
    search.list = (struct match_list){.sequence = 0};
    free(search.entries);
    search.entries = NULL;
    search.count = 0;
}

static int fill_list(uint64_t count, uint64_t bench)
{
    clear_list();
    search.entries = calloc(count, sizeof(*search.entries));
    if (search.entries == NULL) {
        return turn_fail("no memory for %lu entries", (unsigned long)count);
    }
    for (uint64_t i = 0; i < count; i++) {
        struct le *le = &search.entries[i];
        le->length = 1 << 20;
        le->options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
        le->match.bits = masks_bits(i);
        le->match.ignore = mask_of(bench, i);
        le->match.nid = (uint32_t)i;
        le->match.any =
            (uint8_t)(MATCH_ANY_PID | ((le->match.ignore & MASKS_SOURCE) != 0 ? MATCH_ANY_NID : 0));
        match_append(&search.list, &le->match);
    }
    search.count = count;
    search.bench = bench;
    return 0;
}

static void draw_headers(void)
{
    uint64_t x = 88172645463325252u;
    for (unsigned i = 0; i < HEADERS; i++) {
        uint64_t entry = masks_random(&x) % search.count;
        search.headers[i] = (struct match_header){
            .bits = masks_bits(entry), .nid = (uint32_t)entry, .pid = RANK_PID, .fits = fits};
        search.expected[i] = &search.entries[entry].match;
    }
}

static bool supports(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size >= 1 && work->size <= ENTRIES_MAX;
}

static int begin(const struct turn_work *work)
{
    if (turn_rank() != 0) {
        return 0;
    }
    if ((search.count != work->size || search.bench != work->bench) &&
        fill_list(work->size, work->bench) != 0) {
        return -1;
    }
    draw_headers();
    search.next = 0;
    for (unsigned i = 0; work->check && i < HEADERS; i++) {
        if (match_first(&search.list, &search.headers[i]) != search.expected[i]) {
            return turn_fail("a header found an entry that is not its own");
        }
    }
    return 0;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    if (turn_rank() != 0) {
        return 0;
    }
    uint64_t wrong = 0;
    unsigned next = search.next;
    for (uint64_t i = 0; i < iterations * SEARCHES; i++, next = (next + 1) % HEADERS) {
        wrong += match_first(&search.list, &search.headers[next]) != search.expected[next];
    }
    search.next = next;
    return wrong == 0 ? 0
                      : turn_fail("%lu headers found no or a wrong entry", (unsigned long)wrong);
}

static const struct turn_duty duties[] = {
    {BENCH_MATCH, supports, begin, run, NULL},
    {BENCH_MATCH_MASKS, supports, begin, run, NULL},
    {BENCH_MATCH_WILD, supports, begin, run, NULL},
    {BENCH_MATCH_WILD_2, supports, begin, run, NULL},
};

const struct family family_match = {NULL, duties, sizeof(duties) / sizeof(duties[0])};
