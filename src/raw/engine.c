/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of engine.h. */
#include "raw/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int find_context(const struct raw_engine *e, const char *name)
{
    for (unsigned c = 0; c < e->count; c++) {
        if (strcmp(e->context[c].name, name) == 0) {
            return (int)c;
        }
    }
    return name[0] == '\0' && e->count == 1 ? 0 : -1;
}

/* ---- Tallies ---- */

static bool is_of(const struct raw_tally *t, const struct raw_set *set, uint8_t context)
{
    return (t->in_place || t->left > 0) && t->action == set->action && t->context == context &&
           strcmp(t->name, set->name) == 0;
}

/* The counter of a set: the one that its name has had, or one that no set has, the longest unused.
 * There are more counters than sets of two tables, so it takes none from those in place. */
static unsigned counter_for(const struct raw_engine *e, const struct raw_set *set, uint8_t context,
                            const bool taken[RAW_COUNTERS])
{
    unsigned best = RAW_COUNTERS;
    for (unsigned i = 0; i < RAW_COUNTERS; i++) {
        const struct raw_tally *t = &e->tally[i];
        if (!taken[i] && is_of(t, set, context)) {
            return i;
        }
        if (!taken[i] && !t->in_place && (best == RAW_COUNTERS || t->left < e->tally[best].left)) {
            best = i;
        }
    }
    return best;
}

static void find_counters(const struct raw_engine *e, struct raw_wanted *wanted)
{
    bool taken[RAW_COUNTERS] = {false};
    for (unsigned s = 0; s < wanted->rules->count; s++) {
        unsigned i = counter_for(e, &wanted->rules->set[s], wanted->context[s], taken);
        taken[i] = true;
        wanted->counter[s] = (uint16_t)i;
    }
}

static struct raw_counter since(const struct raw_tally *t, const struct raw_counter *now)
{
    return (struct raw_counter){now->frames - t->base.frames, now->bytes - t->base.bytes};
}

/* The rules of `wanted` are in place: sets that are not in them have left. `counts` are those
 * before that: no frame was counted since by a counter that is new in the table. */
static void keep_tallies(struct raw_engine *e, const struct raw_wanted *wanted,
                         const struct raw_source_counts *counts)
{
    e->swaps++;
    for (unsigned i = 0; i < RAW_COUNTERS; i++) {
        struct raw_tally *t = &e->tally[i];
        t->left = t->in_place ? e->swaps : t->left;
        t->in_place = false;
    }
    for (unsigned s = 0; s < wanted->rules->count; s++) {
        const struct raw_set *set = &wanted->rules->set[s];
        unsigned i = wanted->counter[s];
        struct raw_tally *t = &e->tally[i];
        if (!is_of(t, set, wanted->context[s])) {
            if (t->left > 0 && t->action == RAW_HANDLERS) {
                e->past[t->context] += since(t, &counts->matched[i]).frames;
            }
            *t = (struct raw_tally){
                .action = set->action, .context = wanted->context[s], .base = counts->matched[i]};
            memcpy(t->name, set->name, sizeof(t->name));
        }
        t->in_place = true;
    }
}

/* ---- Rules ---- */

int raw_engine_rules(struct raw_engine *e, const struct raw_rules *rules, char error[RAW_ERROR])
{
    struct raw_wanted wanted = {.rules = rules, .contexts = e->count};
    for (unsigned s = 0; s < rules->count; s++) {
        if (rules->set[s].action != RAW_HANDLERS) {
            continue;
        }
        int c = find_context(e, rules->set[s].context);
        if (c < 0) {
            snprintf(error, RAW_ERROR, "set %s, line %u: there is no context \"%s\"; %s",
                     rules->set[s].name, rules->set[s].line, rules->set[s].context,
                     "--context NAME=IMAGE gives it handlers");
            return -1;
        }
        wanted.context[s] = (uint8_t)c;
    }
    find_counters(e, &wanted);
    struct raw_source_counts counts = {0};
    if (e->source != NULL) {
        e->source->ops->counts(e->source, &counts);
    }
    if (e->source != NULL && e->source->ops->rules(e->source, &wanted, error) != 0) {
        return -1;
    }
    keep_tallies(e, &wanted, &counts);
    e->rules = *rules;
    e->wanted = wanted;
    e->wanted.rules = &e->rules;
    for (unsigned c = 0; c < e->count; c++) {
        e->stale[c] = e->source != NULL;
    }
    for (unsigned i = 0; i < e->count; i++) {
        unsigned at = i;
        for (; at > 0 &&
               e->context[e->order[at - 1]].options.priority > e->context[i].options.priority;
             at--) {
            e->order[at] = e->order[at - 1];
        }
        e->order[at] = i;
    }
    return 0;
}

/* A frame that has waited since before the rules were swapped is matched by those of now. If they
 * do not want it for its context it is dropped where they say so, and else the kernel's. */
static bool still_wanted(struct raw_engine *e, unsigned context, struct raw_frame *f,
                         enum raw_fate *fate)
{
    f->verdict = raw_match(&e->rules, f->bytes, f->length);
    enum raw_action action = raw_action(&e->rules, f->verdict);
    *fate = action == RAW_DISCARD ? RAW_DROP : RAW_PASS;
    return action == RAW_HANDLERS && e->wanted.context[f->verdict >> 1] == context;
}

static int turn_of(struct raw_engine *e, unsigned c)
{
    struct raw_frame frames[RAW_BATCH];
    struct raw_source *s = e->source;
    int n = s->ops->receive(s, c, frames, e->context[c].options.share);
    for (int i = 0; i < n; i++) {
        enum raw_fate fate;
        if (e->stale[c] && !still_wanted(e, c, &frames[i], &fate)) {
            s->ops->done(s, &frames[i], fate, 0);
        } else {
            raw_context_frame(&e->context[c], s, &e->rules, &frames[i]);
        }
    }
    e->stale[c] = e->stale[c] && n != 0;
    e->frames += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* The clock is asked only if there is something that could be too old. */
static void age(struct raw_engine *e)
{
    uint64_t now = 0;
    for (unsigned c = 0; c < e->count; c++) {
        if (e->context[c].unfinished > 0) {
            now = now != 0 ? now : e->source->ops->now(e->source);
            raw_context_age(&e->context[c], e->source, now, false);
        }
    }
}

int raw_engine_turn(struct raw_engine *e)
{
    int total = 0, over = 0;
    if (e->count == 0) { /* the source decides all; it is to read on */
        struct raw_frame none;
        return e->source->ops->receive(e->source, 0, &none, 1);
    }
    for (unsigned i = 0; i < e->count; i++) {
        int n = turn_of(e, e->order[i]);
        if (n < 0 && n != -ENODATA) {
            return n;
        }
        total += n > 0 ? n : 0;
        over += n == -ENODATA;
    }
    if (total > 0) {
        e->source->ops->flush(e->source);
    }
    age(e);
    return total == 0 && over == (int)e->count ? -ENODATA : total;
}

struct raw_counter raw_engine_matched(const struct raw_engine *e, unsigned set,
                                      const struct raw_source_counts *counts)
{
    unsigned i = e->wanted.counter[set];
    return since(&e->tally[i], &counts->matched[i]);
}

uint64_t raw_engine_lost(const struct raw_engine *e, unsigned context,
                         const struct raw_source_counts *counts)
{
    uint64_t matched = e->past[context];
    for (unsigned i = 0; i < RAW_COUNTERS; i++) {
        const struct raw_tally *t = &e->tally[i];
        if (t->action == RAW_HANDLERS && t->context == context) {
            matched += since(t, &counts->matched[i]).frames;
        }
    }
    uint64_t frames = e->context[context].counts.frames;
    return matched > frames ? matched - frames : 0;
}
