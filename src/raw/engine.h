/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop between a source and the execution contexts that rules name.
 *
 *      source ──frames of context 0──► up to its share ──► handlers
 *             ──frames of context 1──► up to its share ──► handlers      then all over again
 *
 * Contexts take turns in the order of their priority; each gets as many frames a turn as its share
 * says, whatever waits for the others.
 *
 * What a set has matched is counted under its name, so that counts go on when rules are swapped. A
 * tally is one of the RAW_COUNTERS counters of the source: of a name, and of the context or action
 * that the set has; a set that changes these begins anew.
 *
 * Invariants:
 *  - The counter of a set that is in place is of no other. One of a set that is gone keeps its
 *    counts until another name needs it: what it has counted for a context is kept in `past`.
 */
#ifndef RAW_ENGINE_H
#define RAW_ENGINE_H

#include "raw/context.h"

/* What a set has matched, whether it is in place or not. */
struct raw_tally {
    char name[RAW_NAME];
    enum raw_action action;
    uint8_t context; /* of RAW_HANDLERS */
    bool in_place;
    uint64_t left;           /* when it has gone, in swaps; 0: the counter was never used */
    struct raw_counter base; /* of the counter, when the tally began */
};

struct raw_engine {
    struct raw_source *source;
    struct raw_rules rules;
    struct raw_wanted wanted;
    unsigned count, order[RAW_CONTEXTS];
    struct raw_context context[RAW_CONTEXTS];
    bool stale[RAW_CONTEXTS]; /* frames of this context may have verdicts of earlier rules */
    uint64_t frames, swaps;
    struct raw_tally tally[RAW_COUNTERS];
    uint64_t past[RAW_CONTEXTS]; /* frames of tallies whose counters others have now */
};

/* raw_engine_rules() finds the context of each set for handlers: by name, or the only one. -1: a
 * set names a context that is not there, or none and there are several. The rules are then
 * e->rules, and those of the source, if it is open. */
int raw_engine_rules(struct raw_engine *e, const struct raw_rules *rules, char error[RAW_ERROR]);

/* raw_engine_turn() gives each context a turn, and returns the number of frames; -ENODATA when
 * there will be no more; or another -errno. */
int raw_engine_turn(struct raw_engine *e);

/* raw_engine_matched() returns what set `set` of e->rules has matched, with what sets of its name
 * and action did before. */
struct raw_counter raw_engine_matched(const struct raw_engine *e, unsigned set,
                                      const struct raw_source_counts *counts);

/* raw_engine_lost() returns how many frames of a context the kernel has matched and not brought. */
uint64_t raw_engine_lost(const struct raw_engine *e, unsigned context,
                         const struct raw_source_counts *counts);

#endif
