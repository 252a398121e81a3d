/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of a run of the pinwheel model: when each operation did what, and
 * the one thing that made it do so then. A run writes it if sim_input.record says
 * so; afterwards it is read from the end to the beginning, along the causes.
 *
 * An operation has up to four steps, in slots of its own:
 *
 *            BEGIN                   ANSWER            IN                       TAKE
 *   calc     it runs                 -                 -                        -
 *   send     message or request      data leave        -                        -
 *            leaves
 *   recv     it is posted            reply leaves      its nic begins to bring  its cpu begins
 *                                                      the bytes in             to take it
 *
 * Only a rendezvous has ANSWERs. Operations of all ranks are numbered together, in
 * the order of ranks; steps are numbered 4 * operation + slot.
 *
 * What noise added to the time that a cpu was taken is not kept: it is a function of
 * when that began, and found again.
 *
 * Invariant, after a run that ended well: the time between a step and its cause is
 * what `why` says, so a chain of causes leads to time 0 and the intervals add up.
 * A rank's steps are written by the thread that simulates the rank.
 */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "sim/goal/goal.h"
#include "sim/models/noise.h"
#include "sim/net/net.h"
#include "sim/util/charges.h"

enum record_slot { RECORD_BEGIN, RECORD_ANSWER, RECORD_IN, RECORD_TAKE, RECORD_SLOTS };

/* The cause of a step's time, and how long before the cause began. */
enum record_why {
    RECORD_AT_ONCE,     /* nothing: it is time 0 */
    RECORD_AFTER_START, /* an operation started: 0 */
    RECORD_AFTER_END,   /* an operation completed: all that it takes */
    RECORD_POSTED,      /* a recv was posted: 0 */
    RECORD_MESSAGE,     /* something arrived: o + L, or o and its way through the network */
    RECORD_LAST_BYTE,   /* the nic has brought the last byte in: (s-1)*G */
    RECORD_HANDED_OVER, /* the last byte came as late as its sender's cpu let it: o + L + (s-1)*O,
                           or as the network did: o and its way */
    RECORD_CPU,         /* another step held the cpu: its charge */
    RECORD_NIC,         /* another message held the nic's sending side: g + (s-1)*G */
    RECORD_NIC_IN,      /* another message held the nic's receiving side: the same */
};

struct record_step {
    uint64_t time;       /* ps */
    uint64_t cause : 60; /* a step, unless `why` is RECORD_AT_ONCE */
    uint64_t why : 4;
};
_Static_assert(sizeof(struct record_step) == 16, "four to a cache line");

/* On a packet network: what became of that which left in a BEGIN or an ANSWER. */
struct record_way {
    uint64_t last;              /* when it counted as there */
    uint64_t left, left_waited; /* of data: when the last byte was out of its host */
    struct net_arrival arrival; /* of its bytes */
};

/* A packet took a channel. */
struct record_taken {
    uint64_t time, length; /* ps */
    uint64_t way;          /* of which message */
    uint32_t channel;
};

struct sim_record {
    const struct goal *goal;
    const struct sim_parameters *parameters;
    const struct sim_noise *noise; /* NULL: none */
    bool calc_in_ps;
    uint64_t *first;            /* by rank: number of its first operation; and their count */
    struct record_step *steps;  /* by step */
    uint64_t *partner;          /* by operation: of a recv, the send that it met */
    uint64_t *holder;           /* by rank and clock (struct rank): the step that took it last */
    struct record_way *ways;    /* by record_way(); NULL: no network */
    struct record_taken *taken; /* as packets took channels, up to `taken_most` of them */
    uint64_t taken_most, taken_count, taken_missed;
};

/* record_open() prepares the record of one run of a schedule; goal, parameters and noise
 * must outlive it. It returns 0, or -1 if memory is short; record_close() in any case. */
int record_open(struct sim_record *r, const struct goal *goal,
                const struct sim_parameters *parameters, const struct sim_noise *noise,
                bool calc_in_ps);
void record_close(struct sim_record *r);

/* record_add_network() makes room, before the run, for what a packet network adds: ways,
 * and which packets take channels, of which the first `most` are kept. -1 if memory is short. */
int record_add_network(struct sim_record *r, uint64_t most);

/* record_way() is the number of the way of what leaves in a step. */
static inline uint64_t record_way(uint64_t operation, enum record_slot slot)
{
    return 2 * operation + (slot == RECORD_ANSWER);
}

static inline uint64_t record_operation(const struct sim_record *r, uint32_t rank, uint32_t op)
{
    return r->first[rank] + op;
}

static inline uint64_t record_number(const struct sim_record *r, uint32_t rank, uint32_t op,
                                     enum record_slot slot)
{
    return (r->first[rank] + op) * RECORD_SLOTS + slot;
}

/* record_find() says which operation of which rank has a number. */
void record_find(const struct sim_record *r, uint64_t operation, uint32_t *rank, uint32_t *op);

const struct goal_node *record_node(const struct sim_record *r, uint64_t operation);

/* record_charges() gives what the message of a send or recv costs, and returns whether
 * it is a rendezvous. */
bool record_charges(const struct sim_record *r, uint64_t operation, struct charges *c);

/* record_work() is how long a step that takes a cpu takes it, without noise, and
 * record_work_until() when its rank's cpu, taken at `begin`, has worked for `work`. */
uint64_t record_work(const struct sim_record *r, uint64_t operation, enum record_slot slot);
uint64_t record_work_until(const struct sim_record *r, uint64_t operation, uint64_t begin,
                           uint64_t work);

/* record_handed() is when what a step sends has left the cpu: after o. record_data_left() is
 * when the last byte of data has left, and record_free() when a step gives its cpu back. */
uint64_t record_handed(const struct sim_record *r, uint64_t operation, enum record_slot slot);
uint64_t record_data_left(const struct sim_record *r, uint64_t operation);
uint64_t record_free(const struct sim_record *r, uint64_t operation, enum record_slot slot);

/* record_end() is when an operation completed. */
uint64_t record_end(const struct sim_record *r, uint64_t operation);

#endif
