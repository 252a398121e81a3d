/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pinwheel model (docs/loggops-model.md), inside.
 *
 * What happens at a rank depends on its own state and on what arrives there, and
 * an arrival is at least o + L after the event that made it. So time is cut into
 * windows of o + L: within one, each rank is simulated alone, event by event in
 * the order of keys, and what is later goes into the wheel. The order of ranks
 * within a window is of no consequence, which is why several threads, each with
 * ranks of its own, give the same results.
 *
 *   worker:  wheel --- the events of a window, chained by rank ---> agenda of a rank
 *              ^                                                     |
 *              '---- later windows -------- what an event makes -----+--> agenda
 *              ^                                                     |
 *              '---- outbox of another worker, at the window's end --'
 *
 * With o + L = 0 there is one window, and its agenda has the events of all ranks.
 *
 * When an operation starts its completion is known, except that of a recv and of
 * a rendezvous send: so completions need no event. What waits for an operation is
 * told at once from when on it may run.
 */
#ifndef SIM_LOGGOPS_H
#define SIM_LOGGOPS_H

#include "agenda.h"
#include "claims.h"
#include "engine.h"
#include "match.h"
#include "sim/util/charges.h"
#include "team.h"
#include "wheel.h"

/* A window has so many slots. It begins with the slot of the first event that is left, and is
 * shorter than o + L by one slot at most. */
enum { LOGGOPS_SLOTS = 16 };

#define NO_SLOT UINT64_MAX
#define NO_FREE UINT64_MAX

/* The queues of a rank that ever had a claim. */
struct waits {
    uint32_t queues;
    uint64_t armed; /* time of the last FREE */
    struct claims queue[];
};

/*
 * The recvs that wait for nothing are posted first, in their order. While messages
 * come about in that order too, they stand in no list: the schedule's own list of
 * roots is one. Roots before `next` are done with; of the 32 from there on, a set
 * bit in `taken` says which are. When a message fits none of the first few, or
 * another recv is posted, the rest moves to `posted`.
 */
struct roots {
    uint32_t next;
    uint32_t count; /* next == count: none left */
    uint32_t taken;
};

/* The part of a rank that most of its events touch: one cache line, with one cpu and one nic. */
struct rank {
    const struct goal_node *nodes;
    uint32_t node_count;
    uint32_t chain; /* its events of this window: index + 1 of the first */
    struct roots roots;
    uint32_t sent;      /* arrivals that it has caused, modulo 2^32 */
    uint32_t waiting;   /* claims */
    uint32_t has_lists; /* its struct lists was ever used */
    uint64_t clocks[];  /* next_o[cpus], next_gs[nics], next_gr[nics] */
};
_Static_assert(sizeof(struct rank) + 3 * sizeof(uint64_t) == 64, "a cache line");

/* The rest, often never touched. */
struct lists {
    struct match_side posted, arrived;
    struct waits *waits; /* NULL: nothing ever waited */
    uint64_t data_end;   /* the latest completion that is in no next_o: of data sent */
};

/* Events for another worker. */
struct outbox {
    struct event *events;
    size_t count, capacity;
};

/* The same for all workers; nothing in it changes while they run, but what belongs
 * to a rank, by the worker that has the rank, and a worker, by itself. */
struct loggops_net;

struct loggops {
    const struct sim_input *in;
    const struct goal *goal;
    struct sim_record *record; /* NULL: none */
    struct loggops_net *net;   /* NULL: messages take L */
    uint64_t L, o, g;          /* ps */
    uint64_t G, O;             /* 1e-6 ps */
    uint64_t S;
    uint32_t cpus, nics;
    uint32_t slots; /* of the wheel, in a window */
    uint8_t *ranks;
    size_t rank_size;
    struct lists *lists; /* by rank */
    uint64_t node_room;  /* entries of the next two */
    uint32_t *met;       /* by node with two or more dependencies: how many are met */
    uint64_t *ready_at;  /* by such a node: when the last of them was */
    uint32_t workers;
    uint32_t ranks_per_worker;
    struct worker *worker;
    struct sim_queues *queues; /* by worker; NULL: not counted */
    struct team team;
    _Atomic int go; /* the threads may begin (1), or must end (-1) */
};

/* Aligned, so that no two workers write to one line, or to a pair of lines. */
struct worker {
    _Alignas(128) struct loggops *s;
    uint32_t number;
    uint32_t first_rank, end_rank;
    uint64_t end;     /* of the current window: what is earlier goes to the agenda */
    uint64_t free_at; /* the next FREE of the rank that is being run; NO_FREE */
    bool apart;       /* ranks are run one by one, so that free_at stands for those events */
    struct agenda agenda;
    struct charges charges; /* of the size that was asked for last */
    struct wheel wheel;
    uint32_t *active; /* ranks that have events in this window */
    struct match_pool pool;
    struct event *parked; /* claims that wait, messages that arrived */
    uint32_t parked_free, parked_used, parked_count;
    struct outbox *outbox; /* by worker */
    uint64_t next;         /* slot of its first event; NO_SLOT: none */
    bool stop;             /* it cannot go on */
    uint64_t told;         /* events when progress was told last */
    uint64_t completed, messages;
    struct sim_queues *queues;     /* NULL: not counted */
    const struct sim_noise *noise; /* NULL: none */
    uint64_t cause;                /* for the record: a step, and how it makes operations ready */
    int why;                       /* enum record_why */
    bool short_of_memory;
    bool overflow;
    uint32_t overflow_rank, overflow_op; /* the least */
};

static inline struct rank *loggops_rank(const struct loggops *s, uint32_t rank)
{
    return (struct rank *)(s->ranks + rank * s->rank_size);
}

/* Every node has a place of its own in `met` and `ready_at`: its bytes are its own. */
static inline size_t loggops_place(const struct loggops *s, const struct goal_node *n)
{
    return (size_t)((const uint8_t *)n - s->goal->base) / sizeof(*n);
}

/* loggops_tell_progress() tells it if it is time. */
void loggops_tell_progress(struct worker *w);

/* loggops_handle() does what an event does. */
void loggops_handle(struct worker *w, const struct event *e);

/* loggops_free() starts what waits at a rank, as far as it can. */
void loggops_free(struct worker *w, struct rank *r, const struct event *e);

/* loggops_emit_free() makes a FREE of what has become w->free_at. */
void loggops_emit_free(struct worker *w, uint32_t rank);

/* loggops_begin_all() begins the worker's ranks and runs the first window.
 * loggops_window() runs the window that begins with `slot`. */
void loggops_begin_all(struct worker *w);
void loggops_window(struct worker *w, uint64_t slot);

/* loggops_begin() makes the operations ready that wait for nothing. */
void loggops_begin(struct worker *w, uint32_t rank);

/* loggops_end() puts all posted recvs that are left into `posted`. */
void loggops_end(struct worker *w, uint32_t rank);

#endif
