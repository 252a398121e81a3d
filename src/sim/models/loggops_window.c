/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One window of a worker: its events are chained by rank, then each rank is
 * simulated alone.
 *
 * The ranks of a window are known beforehand. So while one rank is simulated the worker prefetches
 * memory that the next ranks will use, in steps, each of which reads what the step before has
 * prefetched: the rank; the head of its queue of recvs; the queue's table; the recv that the
 * message is likely to match; that recv's operation; its list of successors; the first successor. A
 * wrong guess costs a little time and nothing else.
 */
#include "loggops.h"

/* GCC 12 takes a function that only prefetches for one without effect and drops calls of it, unless
 * it must inline them. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* How many ranks are between two steps of prefetching, how many events between two steps within a
 * rank, and how many events ahead they are prefetched while they are chained. */
enum { AHEAD = 6, EVENTS_AHEAD = 4, STEPS = 4, CHAIN_AHEAD = 12, TRIED = 8 };

/* The operations that the first events of the next ranks are likely to be about. */
struct likely {
    const struct goal_node *nodes[AHEAD * STEPS];
};

/* Chains the events of a chain of blocks by rank. `count` ranks have events so far; returns how
 * many have then. */
static uint32_t chain(struct worker *w, uint32_t block, uint32_t count)
{
    for (; block != WHEEL_NONE; block = w->wheel.blocks[block].next) {
        uint32_t begin = block * WHEEL_BLOCK, end = begin + w->wheel.blocks[block].fill;
        for (uint32_t i = begin; i < end; i++) {
            struct event *e = &w->wheel.events[i];
            struct rank *r = loggops_rank(w->s, e->rank);
            if (i + CHAIN_AHEAD < end) {
                __builtin_prefetch(loggops_rank(w->s, e[CHAIN_AHEAD].rank), 1);
            }
            if (r->chain == 0) {
                w->active[count++] = e->rank;
            }
            e->rank = r->chain;
            r->chain = i + 1;
        }
    }
    return count;
}

static ALWAYS_INLINE void fetch_node(const struct goal_node *n)
{
    __builtin_prefetch(n);
    __builtin_prefetch((const char *)n + sizeof(*n) - 1);
}

static ALWAYS_INLINE const goal_u32 *next_root(const struct rank *r)
{
    return (const goal_u32 *)r->nodes - r->roots.count + r->roots.next;
}

/* ---- Prefetching ---- */

/* A FREE is likely to start the first claim of the rank's first queue; prefetches one step towards
 * it. */
static ALWAYS_INLINE uint32_t fetch_claim(const struct worker *w, uint32_t rank,
                                          enum match_step step)
{
    const struct waits *waits = w->s->lists[rank].waits;
    if (step == MATCH_FETCH_SLOT) {
        __builtin_prefetch(waits);
        return MATCH_NONE;
    }
    uint32_t head = waits->queue[0].head;
    if (head == 0) {
        return MATCH_NONE;
    }
    if (step == MATCH_FETCH_ENTRY) {
        __builtin_prefetch(&w->parked[head - 1]);
        return MATCH_NONE;
    }
    return w->parked[head - 1].op;
}

/* Prefetches one step towards the operation that an event is about. The last step returns the
 * operation's index; MATCH_NONE before, or if it is not known. */
static ALWAYS_INLINE uint32_t fetch_event(const struct worker *w, uint32_t rank,
                                          const struct event *e, enum match_step step)
{
    const struct rank *r = loggops_rank(w->s, rank);
    if (e->kind == EVENT_FREE) {
        return fetch_claim(w, rank, step);
    }
    if (e->kind == EVENT_TAKE && (e->number & TAKE_SUCCESSORS) == 0) {
        return MATCH_NONE;
    }
    if (e->kind != EVENT_ARRIVE || e->arrival != ARRIVE_MESSAGE) {
        return step < MATCH_FETCH_REF ? MATCH_NONE : e->kind == EVENT_ARRIVE ? e->tag : e->op;
    }
    if (r->roots.next < r->roots.count) {
        return step < MATCH_FETCH_REF ? MATCH_NONE : *next_root(r);
    }
    return r->has_lists ? match_fetch(&w->s->lists[rank].posted, &w->pool, e->source, e->tag, step)
                        : MATCH_NONE;
}

/* Does one step of prefetching for the first events of a rank. The last step returns the operation
 * that is likely to be used first, or NULL. */
static ALWAYS_INLINE const struct goal_node *fetch_rank(const struct worker *w, uint32_t rank,
                                                        enum match_step step)
{
    const struct rank *r = loggops_rank(w->s, rank);
    const struct goal_node *first = NULL;
    uint32_t tried = 0;
    for (uint32_t i = r->chain; i != 0 && tried < TRIED; tried++) {
        const struct event *e = &w->wheel.events[i - 1];
        uint32_t op = fetch_event(w, rank, e, step);
        if (op != MATCH_NONE) {
            first = &r->nodes[op];
            fetch_node(first);
        }
        i = e->rank;
    }
    return first;
}

static ALWAYS_INLINE void fetch_lists(const struct worker *w, uint32_t rank)
{
    const struct rank *r = loggops_rank(w->s, rank);
    if (r->roots.next < r->roots.count) {
        __builtin_prefetch(next_root(r));
    }
    if (r->has_lists) {
        __builtin_prefetch(&w->s->lists[rank]);
    }
}

static ALWAYS_INLINE void fetch_table(const struct worker *w, uint32_t rank)
{
    if (loggops_rank(w->s, rank)->has_lists) {
        __builtin_prefetch(w->s->lists[rank].posted.table);
    }
}

static ALWAYS_INLINE void fetch_successors(const struct rank *r, const struct goal_node *n,
                                           bool nodes)
{
    const goal_u32 *list = (const goal_u32 *)(r->nodes + r->node_count) + n->done_first;
    if (!nodes) {
        __builtin_prefetch(list);
    } else if (n->done_count > 0) {
        fetch_node(&r->nodes[*list]);
    }
}

/* Does the steps of prefetching for the ranks that come after the i-th of `count`. */
static ALWAYS_INLINE void fetch_ahead(const struct worker *w, struct likely *likely, uint32_t i,
                                      uint32_t count)
{
    const struct loggops *s = w->s;
    const uint32_t *active = w->active + i;
    uint32_t left = count - i;
    if (left > 8 * AHEAD) {
        __builtin_prefetch(loggops_rank(s, active[8 * AHEAD]));
    }
    if (left > 7 * AHEAD) {
        fetch_lists(w, active[7 * AHEAD]);
    }
    if (left > 6 * AHEAD) {
        fetch_table(w, active[6 * AHEAD]);
    }
    if (left > 5 * AHEAD) {
        fetch_rank(w, active[5 * AHEAD], MATCH_FETCH_SLOT);
    }
    if (left > 4 * AHEAD) {
        fetch_rank(w, active[4 * AHEAD], MATCH_FETCH_ENTRY);
    }
    if (left > 3 * AHEAD) {
        likely->nodes[(i + 3 * AHEAD) % (AHEAD * STEPS)] =
            fetch_rank(w, active[3 * AHEAD], MATCH_FETCH_REF);
    }
    if (left > 2 * AHEAD) {
        const struct goal_node *n = likely->nodes[(i + 2 * AHEAD) % (AHEAD * STEPS)];
        if (n != NULL) {
            fetch_successors(loggops_rank(s, active[2 * AHEAD]), n, false);
        }
    }
    if (left > AHEAD) {
        const struct goal_node *n = likely->nodes[(i + AHEAD) % (AHEAD * STEPS)];
        if (n != NULL) {
            fetch_successors(loggops_rank(s, active[AHEAD]), n, true);
        }
    }
}

/* Prefetches for a recv that is about to be posted and searches the messages that have arrived. */
static ALWAYS_INLINE void fetch_post(const struct worker *w, const struct event *e,
                                     enum match_step step)
{
    const struct rank *r = loggops_rank(w->s, e->rank);
    const struct goal_node *n = &r->nodes[e->op];
    if (r->has_lists) {
        const struct match_side *arrived = &w->s->lists[e->rank].arrived;
        uint32_t ref = match_fetch(arrived, &w->pool, n->peer, n->tag, step);
        __builtin_prefetch(&w->parked[ref != MATCH_NONE ? ref - 1 : 0]);
    }
}

/* Prefetches within a rank that has many events, for the next ones of its agenda. */
static ALWAYS_INLINE void fetch_within(const struct worker *w)
{
    const struct agenda *a = &w->agenda;
    for (enum match_step step = MATCH_FETCH_SLOT; step <= MATCH_FETCH_REF; step++) {
        const struct event *e = &a->list[a->begin + (size_t)(3 - step) * EVENTS_AHEAD];
        if (e->kind == EVENT_POST) {
            fetch_post(w, e, step);
            continue;
        }
        uint32_t op = fetch_event(w, e->rank, e, step);
        if (op != MATCH_NONE) {
            fetch_node(&loggops_rank(w->s, e->rank)->nodes[op]);
        }
    }
}

/* ---- Simulation ---- */

/* True if w->free_at, the next FREE, comes before all events of the agenda. */
static inline bool free_is_next(const struct worker *w)
{
    if (w->free_at >= w->end) {
        return false;
    }
    const struct event *first = agenda_first(&w->agenda);
    return first == NULL || w->free_at < first->time ||
           (w->free_at == first->time && first->kind > EVENT_FREE);
}

static inline void run_free(struct worker *w, uint32_t rank)
{
    struct event e = {.time = w->free_at, .source = rank, .rank = rank, .kind = EVENT_FREE};
    loggops_free(w, loggops_rank(w->s, rank), &e);
}

/* Handles the events of a rank up to the end of the window; with one agenda for all ranks, those of
 * all. */
static void run_agenda(struct worker *w, uint32_t rank)
{
    struct event e;
    w->free_at = NO_FREE;
    for (;;) {
        if (free_is_next(w)) {
            run_free(w, rank);
            continue;
        }
        if (!agenda_pop(&w->agenda, &e)) {
            break;
        }
        if (w->agenda.end - w->agenda.begin > 3 * EVENTS_AHEAD) {
            fetch_within(w);
        }
        loggops_handle(w, &e);
    }
    if (w->free_at != NO_FREE) {
        loggops_emit_free(w, rank);
    }
}

/* Puts the events of a rank into the agenda, sorted. */
static void collect(struct worker *w, uint32_t rank)
{
    struct rank *r = loggops_rank(w->s, rank);
    uint32_t next;
    for (uint32_t i = r->chain; i != 0; i = next) {
        struct event *e = &w->wheel.events[i - 1];
        next = e->rank;
        e->rank = rank;
        if (agenda_collect(&w->agenda, e) != 0) {
            w->short_of_memory = true;
        }
    }
    r->chain = 0;
    if (w->agenda.end > AGENDA_INSERT && agenda_sort(&w->agenda) != 0) {
        w->short_of_memory = true;
    }
}

/* Blocks of events that were taken out of the wheel, one chain for each slot of the window. */
struct taken {
    uint32_t first[LOGGOPS_SLOTS], last[LOGGOPS_SLOTS];
    int slots;
};

static void release(struct worker *w, struct taken *t)
{
    for (int i = 0; i < t->slots; i++) {
        wheel_release(&w->wheel, t->first[i], t->last[i]);
    }
    t->slots = 0;
}

void loggops_window(struct worker *w, uint64_t slot)
{
    struct taken t = {.slots = 0};
    uint32_t count = 0;
    uint64_t last = slot + w->s->slots - 1;
    w->end = wheel_end(&w->wheel, last);
    for (; wheel_next(&w->wheel, &slot) && slot <= last; t.slots++) {
        if (wheel_advance(&w->wheel, slot, &t.first[t.slots], &t.last[t.slots]) != 0) {
            w->short_of_memory = true;
            return;
        }
        count = chain(w, t.first[t.slots], count);
    }
    struct likely likely = {{NULL}};
    for (uint32_t i = 0; i < count; i++) {
        fetch_ahead(w, &likely, i, count);
        collect(w, w->active[i]);
        if (i + 1 == count) {
            release(w, &t); /* so that new events use the blocks while they are in the cache */
        }
        run_agenda(w, w->active[i]);
    }
}

void loggops_begin_all(struct worker *w)
{
    w->apart = w->s->o + w->s->L > 0;
    w->end = wheel_end(&w->wheel, w->s->slots - 1);
    for (uint32_t rank = w->first_rank; rank < w->end_rank; rank++) {
        loggops_begin(w, rank);
        if (w->apart) {
            run_agenda(w, rank);
        }
    }
    run_agenda(w, 0);
}
