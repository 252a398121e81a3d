/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop between a source and the execution contexts that rules name.
 *
 *      source ──frames of context 0──► up to its share ──► handlers
 *             ──frames of context 1──► up to its share ──► handlers      then all over again
 *
 * Contexts take turns in the order of their priority; each gets as many frames a turn as its share
 * says, whatever waits for the others.
 */
#ifndef RAW_ENGINE_H
#define RAW_ENGINE_H

#include "raw/context.h"

struct raw_engine {
    struct raw_source *source;
    struct raw_rules rules;
    struct raw_wanted wanted;
    unsigned count, order[RAW_CONTEXTS];
    struct raw_context context[RAW_CONTEXTS];
    bool stale[RAW_CONTEXTS]; /* frames of this context may have verdicts of earlier rules */
    uint64_t frames;
};

/* raw_engine_rules() finds the context of each set: by name, or the only one. -1: a set names a
 * context that is not there, or none and there are several. The rules are then e->rules, and those
 * of the source, if it is open. */
int raw_engine_rules(struct raw_engine *e, const struct raw_rules *rules, char error[RAW_ERROR]);

/* raw_engine_turn() gives each context a turn, and returns the number of frames; -ENODATA when
 * there will be no more; or another -errno. */
int raw_engine_turn(struct raw_engine *e);

/* raw_engine_lost() returns how many frames of a context the kernel has matched and not brought. */
uint64_t raw_engine_lost(const struct raw_engine *e, unsigned context,
                         const struct raw_source_counts *counts);

#endif
