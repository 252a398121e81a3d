/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps that all events of the pinwheel model share: they take clocks, add times, make other
 * events, park events, and complete operations. They are inline, since an event of some 40 ns does
 * several of them; the less frequent ones are in loggops_base.c.
 */
#ifndef SIM_LOGGOPS_BASE_H
#define SIM_LOGGOPS_BASE_H

#include "loggops_record.h"

/* loggops_overflow() notes that a time of operation `op` exceeds the highest one, and returns the
 * highest time. */
uint64_t loggops_overflow(struct worker *w, uint32_t rank, uint32_t op);

/* loggops_put_out() adds an event to the outbox of another worker. */
void loggops_put_out(struct worker *w, struct outbox *o, const struct event *e);

/* loggops_compute_charges() sets worker.charges to the charges of a message of `bytes` bytes. */
void loggops_compute_charges(struct worker *w, uint64_t bytes);

/* loggops_resolve() is called when an operation starts or completes at `time`. The operations that
 * wait for that, `count` entries of the rank's successors from `first` on, have one dependency
 * less. */
void loggops_resolve(struct worker *w, struct rank *r, uint32_t rank, uint32_t first,
                     uint32_t count, uint64_t time);

/* loggops_claim() starts a claim, or puts it into the queue of its cpu and nic. */
void loggops_claim(struct worker *w, struct rank *r, const struct event *e);

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Adds a duration of at most 2^63 to a time; the result is at most the highest time. */
static inline uint64_t add(struct worker *w, const struct event *e, uint64_t time, uint64_t more)
{
    uint64_t sum = time + more;
    return sum <= LOGGOPS_LAST ? sum : loggops_overflow(w, e->rank, e->op);
}

/* Returns when a cpu that begins at `begin` has worked for `work`, noise included. */
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

/* Makes an event for any rank, also one of another worker. */
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

/* Frees the place of a parked event. The chain of free places gets as shuffled as the order in
 * which they were freed; when all places are free the chain is dropped and they are used in order
 * again. */
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

/* True if messages go through a packet network. */
static inline bool networked(const struct worker *w)
{
    return __builtin_expect(w->s->net != NULL, 0);
}

/* Counts a search of a match queue of `length` entries, which may have found a partner. */
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

/* Returns the bytes of a message: 1 if the schedule says 0. */
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

/* Returns the part of a rank's state that is outside its struct rank. */
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

/* Notes that an operation completes at `time`, and tells its successors. A rank's finish time is
 * computed at the end, as the latest next_o: completions are at one of those times, but for
 * data. */
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
