/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The internal state and functions of the pinwheel model (docs/loggops-model.md).
 *
 * An event of a rank depends only on the rank's own state and on messages that have arrived at it,
 * and a message arrives at least o + L after the event that sent it. So time is cut into windows of
 * o + L. Within a window each rank is simulated alone, event by event in the order of keys; events
 * that are later than the window go into the wheel. The order of the ranks within a window does not
 * matter, so several threads, each with ranks of its own, give the same results.
 *
 *   worker:  wheel --- the events of a window, chained by rank ---> agenda of a rank
 *              ^                                                     |
 *              '---- later windows -------- what an event makes -----+--> agenda
 *              ^                                                     |
 *              '---- outbox of another worker, at the window's end --'
 *
 * With o + L = 0 there is one window, and its agenda has the events of all ranks.
 *
 * When an operation starts the model can compute its completion, but for a recv and a rendezvous
 * send, whose completion it computes later: so completions need no event. An operation's successors
 * are told at that moment from which time on they may run.
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

/* A window has LOGGOPS_SLOTS slots of the wheel. It begins with the slot of the first event that is
 * left, so it may be shorter than o + L by up to one slot. */
enum { LOGGOPS_SLOTS = 16 };

#define NO_SLOT UINT64_MAX
#define NO_FREE UINT64_MAX

/* The queues of claims of a rank; they are made at its first claim. */
struct waits {
    uint32_t queues;
    uint64_t armed; /* time of the last FREE */
    struct claims queue[];
};

/*
 * The recvs of a rank that depend on nothing (roots) are posted before all others, in their order.
 * As long as messages come in about the same order, the rank needs no match queue for them: the
 * schedule's list of roots serves as one. The roots before `next` have been matched; of the 32 from
 * `next` on, a bit in `taken` is set for each that has been. When a message fits none of the first
 * few, or another recv is posted, the model moves the rest to the queue `posted`.
 */
struct roots {
    uint32_t next;
    uint32_t count; /* next == count: all are matched */
    uint32_t taken;
};

/* The part of a rank's state that most of its events use. With one cpu and one nic it fills a cache
 * line. */
struct rank {
    const struct goal_node *nodes;
    uint32_t node_count;
    uint32_t chain; /* events of the rank in this window: index + 1 of the first of a chain */
    struct roots roots;
    uint32_t sent;      /* how many ARRIVE events the rank has caused, modulo 2^32 */
    uint32_t waiting;   /* claims of the rank that wait */
    uint32_t has_lists; /* the rank's struct lists was used at least once */
    uint64_t clocks[];  /* next_o[cpus], next_gs[nics], next_gr[nics] */
};
_Static_assert(sizeof(struct rank) + 3 * sizeof(uint64_t) == 64, "a cache line");

/* The rest of a rank's state, which many ranks never use. */
struct lists {
    struct match_side posted, arrived;
    struct waits *waits; /* NULL: no claim of the rank ever waited */
    uint64_t data_end;   /* the latest end of a send of data, which no next_o shows */
};

/* Events that a worker has made for ranks of another worker. */
struct outbox {
    struct event *events;
    size_t count, capacity;
};

/* State that all workers share. While they run each changes only its own struct worker and the
 * parts that belong to its ranks. */
struct loggops_net;

struct loggops {
    const struct sim_input *in;
    const struct goal *goal;
    struct sim_record *record; /* NULL: the run is not recorded */
    struct loggops_net *net;   /* NULL: messages take L */
    uint64_t L, o, g;          /* ps */
    uint64_t G, O;             /* 1e-6 ps */
    uint64_t S;
    uint32_t cpus, nics;
    uint32_t slots; /* slots of the wheel in a window */
    uint8_t *ranks;
    size_t rank_size;
    struct lists *lists; /* by rank */
    uint64_t node_room;  /* entries of `met` and `ready_at` */
    uint32_t *met;       /* by node with two or more dependencies: how many of them are met */
    uint64_t *ready_at;  /* by such a node: time at which the last of these was met */
    uint32_t workers;
    uint32_t ranks_per_worker;
    struct worker *worker;
    struct sim_queues *queues; /* by worker; NULL: queues are not counted */
    struct team team;
    _Atomic int go; /* the new threads may begin (1), or must end (-1); 0: wait */
};

/* Aligned to a pair of cache lines, so that no two workers write to the same pair. */
struct worker {
    _Alignas(128) struct loggops *s;
    uint32_t number;
    uint32_t first_rank, end_rank;
    /* end of the current window: events before it go to the agenda, later ones to the wheel */
    uint64_t end;
    /* time of the next FREE of the rank that is simulated, which is no event yet; NO_FREE: none */
    uint64_t free_at;
    /* ranks are simulated one by one, so `free_at` belongs to one rank; false with one window for
     * all */
    bool apart;
    struct agenda agenda;
    struct charges charges; /* charges of the message size that was asked for last */
    struct wheel wheel;
    uint32_t *active; /* ranks with events in this window */
    struct match_pool pool;
    struct event *parked; /* claims that wait, and messages that have arrived */
    uint32_t parked_free, parked_used, parked_count;
    struct outbox *outbox; /* by worker that they are for */
    uint64_t next;         /* slot of the worker's first event; NO_SLOT: it has none */
    bool stop;             /* the worker cannot go on */
    uint64_t told;         /* number of events at the last call of `progress` */
    uint64_t completed, messages;
    struct sim_queues *queues;     /* NULL: queues are not counted */
    const struct sim_noise *noise; /* NULL: no noise */
    uint64_t cause;                /* for the record: the step that now makes operations ready */
    int why;                       /* enum record_why */
    bool short_of_memory;
    bool overflow;
    uint32_t overflow_rank, overflow_op; /* the lowest operation with an overflow */
};

static inline struct rank *loggops_rank(const struct loggops *s, uint32_t rank)
{
    return (struct rank *)(s->ranks + rank * s->rank_size);
}

/* Returns the index of a node in `met` and `ready_at`: its offset in the schedule, in nodes, which
 * no other node has. */
static inline size_t loggops_place(const struct loggops *s, const struct goal_node *n)
{
    return (size_t)((const uint8_t *)n - s->goal->base) / sizeof(*n);
}

/* loggops_tell_progress() calls the user's `progress` if enough events have been handled since the
 * last call. */
void loggops_tell_progress(struct worker *w);

/* loggops_handle() handles one event. */
void loggops_handle(struct worker *w, const struct event *e);

/* loggops_free() starts the claims of a rank whose cpu and nic are free now. */
void loggops_free(struct worker *w, struct rank *r, const struct event *e);

/* loggops_emit_free() makes a FREE event for the time w->free_at. */
void loggops_emit_free(struct worker *w, uint32_t rank);

/* loggops_begin_all() begins the worker's ranks and simulates the first window. loggops_window()
 * simulates the window that begins with the slot `slot`. */
void loggops_begin_all(struct worker *w);
void loggops_window(struct worker *w, uint64_t slot);

/* loggops_begin() makes the operations of a rank ready that depend on nothing. */
void loggops_begin(struct worker *w, uint32_t rank);

/* loggops_end() moves the roots that were never matched to the queue `posted`. */
void loggops_end(struct worker *w, uint32_t rank);

#endif
