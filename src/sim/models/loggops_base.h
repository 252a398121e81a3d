/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of every event of the pinwheel model: take clocks, add times, make other
 * events, park itself, complete operations. Inline, for it is done a few times in
 * 40 nanoseconds; what is rare is in loggops_base.c.
 */
#ifndef SIM_LOGGOPS_BASE_H
#define SIM_LOGGOPS_BASE_H

#include "loggops_record.h"

/* loggops_overflow() notes that a time of an operation would be too late, and gives
 * the latest time. */
uint64_t loggops_overflow(struct worker *w, uint32_t rank, uint32_t op);

/* loggops_put_out() keeps an event for another worker. */
void loggops_put_out(struct worker *w, struct outbox *o, const struct event *e);

/* loggops_compute_charges() fills in worker.charges. */
void loggops_compute_charges(struct worker *w, uint64_t bytes);

/* loggops_resolve() tells the operations in `count` entries of a rank's list of
 * successors, from `first` on, that one that they wait for happens at `time`. */
void loggops_resolve(struct worker *w, struct rank *r, uint32_t rank, uint32_t first,
                     uint32_t count, uint64_t time);

/* loggops_claim() starts a claim, or lets it wait. */
void loggops_claim(struct worker *w, struct rank *r, const struct event *e);

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A time and a duration of at most 2^63. */
static inline uint64_t add(struct worker *w, const struct event *e, uint64_t time, uint64_t more)
{
    uint64_t sum = time + more;
    return sum <= LOGGOPS_LAST ? sum : loggops_overflow(w, e->rank, e->op);
}

/* When a cpu has worked for `work` from `begin` on. */
static inline uint64_t work_until(struct worker *w, const struct event *e, uint64_t begin,
                                  uint64_t work)
{
    if (__builtin_expect(w->noise == NULL, 1) || work == 0 || work > LOGGOPS_LAST) {
        return add(w, e, begin, work);
    }
    return add(w, e, sim_noise_end(w->noise, e->rank, begin, work), 0);
}

static inline void emit(struct worker *w, const struct event *e)
{
    if (e->time < w->end) {
        if (agenda_push(&w->agenda, e) != 0) {
            w->short_of_memory = true;
        }
        return;
    }
    struct event *to = wheel_place(&w->wheel, wheel_slot(&w->wheel, e->time));
    if (to == NULL) {
        w->short_of_memory = true;
        return;
    }
    *to = *e;
}

/* An event at whatever rank. */
static inline void send_out(struct worker *w, const struct event *e)
{
    uint32_t owner = w->s->workers > 1 ? e->rank / w->s->ranks_per_worker : 0;
    if (owner == w->number) {
        emit(w, e);
    } else {
        loggops_put_out(w, &w->outbox[owner], e);
    }
}

static inline uint32_t park(struct worker *w, const struct event *e)
{
    uint32_t i = w->parked_free;
    w->parked_count++;
    if (i != 0) {
        w->parked_free = w->parked[i - 1].rank;
    } else {
        i = ++w->parked_used;
    }
    w->parked[i - 1] = *e;
    return i;
}

/* The chain of free places is as shuffled as what was unparked; when all are free, they
 * are in order again. */
static inline void unpark(struct worker *w, uint32_t i)
{
    if (--w->parked_count == 0) {
        w->parked_free = w->parked_used = 0;
        return;
    }
    w->parked[i - 1].rank = w->parked_free;
    w->parked_free = i;
}

static inline const struct charges *charges_of(struct worker *w, uint64_t size)
{
    if (w->charges.size != size) {
        loggops_compute_charges(w, size);
    }
    return &w->charges;
}

/* On a packet network. */
static inline bool networked(const struct worker *w)
{
    return __builtin_expect(w->s->net != NULL, 0);
}

/* A match queue of so many entries is searched, or one is added to it. */
static inline void count_search(struct sim_queue_use *u, uint32_t length, bool hit)
{
    u->searches++;
    u->hits += hit;
    u->lengths += length;
}

static inline void count_length(struct sim_queue_use *u, uint32_t length, uint32_t rank)
{
    if (length > u->most || (length == u->most && rank < u->rank)) {
        u->most = length;
        u->rank = rank;
    }
}

static inline bool counting(const struct worker *w)
{
    return __builtin_expect(w->queues != NULL, 0);
}

/* Bytes of a message: 1 where the schedule says 0. */
static inline uint64_t bytes_of(const struct goal_node *send)
{
    return send->size > 0 ? send->size : 1;
}

static inline uint32_t short_size(uint64_t bytes)
{
    return bytes < EVENT_LARGE ? (uint32_t)bytes : EVENT_LARGE;
}

static inline uint64_t *next_o(struct rank *r, uint32_t cpu)
{
    return &r->clocks[cpu];
}

static inline uint64_t *next_gs(struct worker *w, struct rank *r, uint32_t nic)
{
    return &r->clocks[w->s->cpus + nic];
}

static inline uint64_t *next_gr(struct worker *w, struct rank *r, uint32_t nic)
{
    return &r->clocks[w->s->cpus + w->s->nics + nic];
}

/* The lists that a rank has beside its one cache line. */
static inline struct lists *lists_of(struct worker *w, struct rank *r, uint32_t rank)
{
    r->has_lists = true;
    return &w->s->lists[rank];
}

static inline void start(struct worker *w, struct rank *r, const struct event *e,
                         const struct goal_node *n)
{
    if (n->start_count > 0) {
        if (recording(w)) {
            loggops_record_cause(w, e, RECORD_AFTER_START);
        }
        loggops_resolve(w, r, e->rank, n->start_first, n->start_count, e->time);
    }
}

/* An operation will complete at `time`. A rank's finish time is found at the end, as
 * the latest next_o: all completions are one, but those of data. */
static inline void complete(struct worker *w, struct rank *r, const struct event *e,
                            const struct goal_node *n, uint64_t time)
{
    w->completed++;
    if (n->done_count > 0) {
        if (recording(w)) {
            loggops_record_cause(w, e, RECORD_AFTER_END);
        }
        loggops_resolve(w, r, e->rank, n->done_first, n->done_count, time);
    }
}

#endif
