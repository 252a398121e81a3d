/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters against a model; see counters.h. */
#include "counters.h"

#include <string.h>

enum { COUNTERS = 4, WAITING = 256, ACTS = 10 };

/* A triggered operation that waits, or has been reached. */
struct waiting {
    unsigned trigger, ct; /* of the interface's counters */
    uint64_t threshold;
    ptl_ct_event_t value;
    bool set;
};

struct list {
    unsigned n;
    struct waiting v[WAITING];
};

/* Of one kind of interface. */
static struct counters {
    bool open;
    ptl_handle_ct_t ct[COUNTERS];
    ptl_ct_event_t count[COUNTERS];
    struct list waiting, fired; /* in order of issue; in the order in which they are carried out */
} all[KINDS];

static void list_add(struct list *list, const struct waiting *w)
{
    if (list->n == WAITING) {
        fail("the model is too small for the triggered operations");
    }
    list->v[list->n++] = *w;
}

static struct waiting list_take(struct list *list, unsigned i)
{
    struct waiting w = list->v[i];
    memmove(&list->v[i], &list->v[i + 1], (--list->n - i) * sizeof(w));
    return w;
}

/* Moves what a counter has reached to the fired ones, the lowest threshold first. */
static void reach(struct counters *c, unsigned ct)
{
    uint64_t sum = c->count[ct].success + c->count[ct].failure;
    for (;;) {
        const struct waiting *first = NULL;
        for (unsigned i = 0; i < c->waiting.n; i++) {
            const struct waiting *w = &c->waiting.v[i];
            if (w->trigger == ct && w->threshold <= sum &&
                (first == NULL || w->threshold < first->threshold)) {
                first = w;
            }
        }
        if (first == NULL) {
            return;
        }
        struct waiting w = list_take(&c->waiting, (unsigned)(first - c->waiting.v));
        list_add(&c->fired, &w);
    }
}

static void change(struct counters *c, unsigned ct, ptl_ct_event_t value, bool set)
{
    ptl_ct_event_t *count = &c->count[ct];
    *count = set ? value
                 : (ptl_ct_event_t){count->success + value.success, count->failure + value.failure};
    reach(c, ct);
}

static void carry_out(struct counters *c)
{
    while (c->fired.n != 0) {
        struct waiting w = list_take(&c->fired, 0);
        change(c, w.ct, w.value, w.set);
    }
}

static void cancel(struct counters *c, unsigned ct)
{
    for (unsigned i = 0; i < c->waiting.n;) {
        if (c->waiting.v[i].trigger == ct) {
            (void)list_take(&c->waiting, i);
        } else {
            i++;
        }
    }
}

/* One field of an increment is 0, as the standard wants it. */
static ptl_ct_event_t draw_value(uint64_t *r, bool set)
{
    ptl_size_t n = splitmix_below(r, 6);
    bool failure = percent(r, 25);
    return (ptl_ct_event_t){failure && !set ? 0 : n,
                            failure ? (set ? splitmix_below(r, 3) : n) : 0};
}

static void act(struct lane *l, struct counters *c)
{
    uint64_t *r = &l->random;
    unsigned what = splitmix_below(r, 100), ct = splitmix_below(r, COUNTERS);
    bool set = percent(r, 20);
    ptl_ct_event_t value = draw_value(r, set);
    struct waiting w = {.trigger = splitmix_below(r, COUNTERS),
                        .ct = ct,
                        .threshold = splitmix_below(r, 30),
                        .value = value,
                        .set = set};
    if (what < 40) {
        OK(set ? PtlCTSet(c->ct[ct], value) : PtlCTInc(c->ct[ct], value));
        change(c, ct, value, set);
    } else if (what < 97 && c->waiting.n < WAITING / 2) {
        OK(set ? PtlTriggeredCTSet(c->ct[ct], value, c->ct[w.trigger], w.threshold)
               : PtlTriggeredCTInc(c->ct[ct], value, c->ct[w.trigger], w.threshold));
        list_add(&c->waiting, &w);
        reach(c, w.trigger);
    } else {
        OK(PtlCTCancelTriggered(c->ct[ct]));
        cancel(c, ct);
    }
    carry_out(c);
}

static void open_counters(struct counters *c, unsigned kind)
{
    for (unsigned i = 0; i < COUNTERS; i++) {
        OK(PtlCTAlloc(ni[kind], &c->ct[i]));
    }
    c->open = true;
}

void counters_round(struct lane *l)
{
    struct counters *c = &all[l->kind];
    if (l->process == me && !c->open) {
        open_counters(c, l->kind);
    }
    for (unsigned i = 0; i < ACTS; i++) {
        if (act_begins(l) && l->process == me) {
            act(l, c);
        }
    }
    for (unsigned i = 0; i < COUNTERS && l->process == me; i++) {
        ptl_ct_event_t now;
        OK(PtlCTGet(c->ct[i], &now));
        if (now.success != c->count[i].success || now.failure != c->count[i].failure) {
            fail("counter %u of kind %u is {%llu, %llu} and not {%llu, %llu}", i, l->kind,
                 (unsigned long long)now.success, (unsigned long long)now.failure,
                 (unsigned long long)c->count[i].success, (unsigned long long)c->count[i].failure);
        }
    }
}
