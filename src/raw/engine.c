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

int raw_engine_rules(struct raw_engine *e, const struct raw_rules *rules, char error[RAW_ERROR])
{
    struct raw_wanted wanted = {.rules = rules, .contexts = e->count};
    for (unsigned s = 0; s < rules->count; s++) {
        int c = find_context(e, rules->set[s].context);
        if (c < 0) {
            snprintf(error, RAW_ERROR, "set %s, line %u: there is no context \"%s\"; %s",
                     rules->set[s].name, rules->set[s].line, rules->set[s].context,
                     "--context NAME=IMAGE gives it handlers");
            return -1;
        }
        wanted.context[s] = (uint8_t)c;
    }
    if (e->source != NULL && e->source->ops->rules(e->source, &wanted, error) != 0) {
        return -1;
    }
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

/* A frame that has waited since before the rules were swapped is matched by those of now; it is the
 * kernel's if they do not want it. */
static bool still_wanted(struct raw_engine *e, unsigned context, struct raw_frame *f)
{
    f->verdict = raw_match(&e->rules, f->bytes, f->length);
    return f->verdict != RAW_NONE && e->wanted.context[f->verdict >> 1] == context;
}

static int turn_of(struct raw_engine *e, unsigned c)
{
    struct raw_frame frames[RAW_BATCH];
    struct raw_source *s = e->source;
    int n = s->ops->receive(s, c, frames, e->context[c].options.share);
    for (int i = 0; i < n; i++) {
        if (e->stale[c] && !still_wanted(e, c, &frames[i])) {
            s->ops->done(s, &frames[i], RAW_PASS, 0);
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

uint64_t raw_engine_lost(const struct raw_engine *e, unsigned context,
                         const struct raw_source_counts *counts)
{
    uint64_t matched = 0;
    for (unsigned s = 0; s < e->rules.count; s++) {
        matched += e->wanted.context[s] == context ? counts->matched[s] : 0;
    }
    uint64_t frames = e->context[context].counts.frames;
    return matched > frames ? matched - frames : 0;
}
