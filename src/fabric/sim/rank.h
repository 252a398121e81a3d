/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process as a rank of a simulated job: its virtual time, and the events of its NIC
 * (rank.c). One thread of it runs at a time.
 */
#ifndef FABRIC_SIM_RANK_H
#define FABRIC_SIM_RANK_H

#include "fabric/sim/segment.h"

struct sim_event {
    uint64_t time, serial;
    void (*happen)(void *arg);
    void *arg;
    bool owned; /* `arg` is freed if it never happens */
};

struct sim_clock {
    struct sim_segment *segment;
    struct sim_rank *me;
    uint32_t rank;
    uint64_t now;   /* of the event that happens, or of the program */
    uint64_t debt;  /* time that the program has used, and that is still to pass */
    uint64_t until; /* this rank may go on below it */
    uint64_t last;  /* when the last event happened */
    unsigned looks; /* of the program at nothing, since then */
    bool skips;     /* its next look is to skip some */
    uint64_t serial;
    struct sim_event *events; /* a heap */
    size_t count, capacity;
    bool passing; /* time passes: a call for the same does nothing */
    void (*take)(void *arg, const struct sim_packet *p); /* a packet whose time has come */
    void (*happened)(void *arg);                         /* called after each event */
    void *taker;                                         /* `arg` of both */
};

/* sim_clock_join() gives the clock of this process: NULL if it is in no simulated job, or, with a
 * line in the log, if it cannot join the one that its environment names. The first call waits
 * until all ranks have come. */
struct sim_clock *sim_clock_join(void);
/* sim_clock_at() has something happen at a time that is not before now; with `owned` the clock
 * frees `arg`, by free(), if it forgets the event. False: no memory. sim_clock_forget() forgets
 * all. */
bool sim_clock_at(struct sim_clock *c, uint64_t time, void (*happen)(void *), void *arg,
                  bool owned);
void sim_clock_forget(struct sim_clock *c);
/* sim_clock_settle() lets the time pass that the program has used, with all events in it. */
void sim_clock_settle(struct sim_clock *c);
/* sim_clock_pass() lets time pass until the next event has happened, or until `end`. */
void sim_clock_pass(struct sim_clock *c, uint64_t end, enum sim_wait why);
/* sim_clock_look() says that the program looks at nothing. After SIM_LOOKS of these in a row
 * sim_clock_skip(), if `skips` is set, lets time pass until something happens, at most SIM_SKIP;
 * the program goes on at the time of the look that finds it. */
void sim_clock_look(struct sim_clock *c);
void sim_clock_skip(struct sim_clock *c);
/* sim_clock_sent() notes that a packet was put into me->out: it leaves at `time`.
 * sim_clock_packet() is the packet to fill, after it has made room for one. */
struct sim_packet *sim_clock_packet(struct sim_clock *c);
void sim_clock_sent(struct sim_clock *c, uint64_t time);
/* sim_clock_fence() waits, in virtual time, until all ranks are in a fence. */
void sim_clock_fence(struct sim_clock *c);
static inline const struct sim_machine *sim_machine(const struct sim_clock *c)
{
    return &c->segment->machine;
}

#endif
