/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of a run of the pinwheel model: the time of each step of each operation, and the one
 * step that caused it to happen then. The run writes it if sim_input.record is set; reports read it
 * afterwards, from the end back along the causes.
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
 * Only operations of a rendezvous have an ANSWER. The operations of all ranks are numbered
 * together, in the order of ranks; a step has the number 4 * operation + slot.
 *
 * The time that noise added to a step is not recorded: it is a function of the step's begin, and
 * computed again.
 *
 * Invariant, after a run that ended well: the time between a step and its cause is the one that
 * enum record_why names for `why`. So the causes lead from each step to time 0, and the times
 * between them add up. The thread that simulates a rank writes the rank's steps.
 */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "sim/goal/goal.h"
#include "sim/models/noise.h"
#include "sim/net/net.h"
#include "sim/util/charges.h"

enum record_slot { RECORD_BEGIN, RECORD_ANSWER, RECORD_IN, RECORD_TAKE, RECORD_SLOTS };

/* Why a step happened when it did, and how much later than its cause. */
enum record_why {
    RECORD_AT_ONCE,     /* it has no cause and happens at time 0 */
    RECORD_AFTER_START, /* an operation started: 0 later */
    RECORD_AFTER_END,   /* an operation completed: its whole duration later */
    RECORD_POSTED,      /* a recv was posted: 0 later */
    /* a message, reply or data arrived: o + L later, or o and the time in the network */
    RECORD_MESSAGE,
    RECORD_LAST_BYTE, /* the nic has taken the last byte in: (s-1)*G later */
    /* the last byte came when its sender's cpu, or the network, had delivered it: o + L + (s-1)*O
     * later, or o and the time in the network */
    RECORD_HANDED_OVER,
    RECORD_CPU,    /* another step had the cpu: its charge later */
    RECORD_NIC,    /* another message had the nic's sending side: g + (s-1)*G later */
    RECORD_NIC_IN, /* another message had the nic's receiving side: g + (s-1)*G later */
};

struct record_step {
    uint64_t time; /* ps */
    /* number of the step that is the cause; unused if `why` is RECORD_AT_ONCE */
    uint64_t cause : 60;
    uint64_t why : 4;
};
_Static_assert(sizeof(struct record_step) == 16, "four to a cache line");

/* On a packet network: the times of the message, reply or data that left in a BEGIN or ANSWER. */
struct record_way {
    uint64_t last; /* when it counted as arrived */
    /* of data: when the last byte left its host, and how long that byte had waited */
    uint64_t left, left_waited;
    struct net_arrival arrival; /* the arrival of its first and last byte */
};

/* A packet has taken a channel. */
struct record_taken {
    uint64_t time, length; /* ps */
    uint64_t way;          /* number (record_way()) of the message that the packet belongs to */
    uint32_t channel;
};

struct sim_record {
    const struct goal *goal;
    const struct sim_parameters *parameters;
    const struct sim_noise *noise; /* NULL: none */
    bool calc_in_ps;
    /* by rank: number of its first operation; behind the last rank the number of all operations */
    uint64_t *first;
    struct record_step *steps; /* by step */
    /* by operation: for a recv the number of the send that it matched */
    uint64_t *partner;
    /* by rank and clock (struct rank): the number of the step that took it last */
    uint64_t *holder;
    struct record_way *ways; /* indexed by record_way(); NULL: there is no network */
    /* in the order in which packets took channels; at most `taken_most` */
    struct record_taken *taken;
    uint64_t taken_most, taken_count, taken_missed;
};

/* record_open() prepares the record of one run of a schedule; goal, parameters and noise must
 * outlive the record. It returns 0, or -1 if memory is short. The caller calls record_close() in
 * any case. */
int record_open(struct sim_record *r, const struct goal *goal,
                const struct sim_parameters *parameters, const struct sim_noise *noise,
                bool calc_in_ps);
void record_close(struct sim_record *r);

/* record_add_network() makes room, before the run, for the times of messages on a packet network,
 * and for the first `most` packets that take channels. -1 if memory is short. */
int record_add_network(struct sim_record *r, uint64_t most);

/* record_way() returns the index in `ways` of the message that leaves in a step. */
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

/* record_find() finds the rank and index of the operation with a number. */
void record_find(const struct sim_record *r, uint64_t operation, uint32_t *rank, uint32_t *op);

const struct goal_node *record_node(const struct sim_record *r, uint64_t operation);

/* record_charges() computes the charges of the message of a send or recv, and returns true if the
 * message is a rendezvous. */
bool record_charges(const struct sim_record *r, uint64_t operation, struct charges *c);

/* record_work() returns how long a step works on its cpu, without noise. record_work_until()
 * returns when the cpu of the operation's rank, which begins at `begin`, has worked for `work`,
 * with noise. */
uint64_t record_work(const struct sim_record *r, uint64_t operation, enum record_slot slot);
uint64_t record_work_until(const struct sim_record *r, uint64_t operation, uint64_t begin,
                           uint64_t work);

/* record_handed() returns when a step hands its message to the nic: after o. record_data_left()
 * returns when the last byte of data has left the nic, record_free() when a step frees its cpu. */
uint64_t record_handed(const struct sim_record *r, uint64_t operation, enum record_slot slot);
uint64_t record_data_left(const struct sim_record *r, uint64_t operation);
uint64_t record_free(const struct sim_record *r, uint64_t operation, enum record_slot slot);

/* record_end() returns when an operation completed. */
uint64_t record_end(const struct sim_record *r, uint64_t operation);

#endif
