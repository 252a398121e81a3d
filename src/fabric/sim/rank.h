/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process as a rank of a simulated job: its virtual time, and the events of its NIC
 * (rank.c), and its threads (tasks.c). One thread of it runs at a time.
 */
#ifndef FABRIC_SIM_RANK_H
#define FABRIC_SIM_RANK_H

#include "fabric/sim/port.h"

#include <sys/types.h>

struct sim_event {
    uint64_t time, serial;
    void (*happen)(void *arg);
    void *arg;
    uint64_t lead;
    bool owned; /* `arg` is freed if it never happens */
};

/* What a thread that does not run waits for: its time; the next event of the NIC as well; what
 * other threads and processes do; the same, or what comes from outside of the job; any of these,
 * for memory. */
enum sim_task_waits {
    SIM_TASK_TIME,
    SIM_TASK_NIC,
    SIM_TASK_OTHERS,
    SIM_TASK_ANYBODY,
    SIM_TASK_MEMORY
};

/* A thread of the process (tasks.c). One of them runs at a time. */
struct sim_task {
    struct sim_task *next; /* in the order of their numbers */
    uint64_t number;
    pid_t thread;
    uint64_t wake; /* it goes on at that time; SIM_NEVER: not by itself */
    /* The lead of what had it go on sooner, if that did; since when it waits for one thing after
     * the other, and the lead that it had then (lead.h). */
    uint64_t lead, since, since_lead;
    uint64_t woke; /* when its last wait was over */
    uint64_t busy; /* until then it computes, as it is counted */
    enum sim_task_waits waits;
    enum sim_wait why;
    bool locked;      /* it waits with the lock of the NIC */
    bool outside;     /* it looks since real time has passed */
    bool interrupted; /* a signal came while it waited */
    /* Signals whose handlers run when it goes on: bit N - 1 of signal N. Only the thread itself
     * writes here, in a signal's handler too. */
    _Atomic uint64_t signals;
    /* Whether the kernel traps the thread's system calls now, and when it runs: it reads `gate`
     * (src/virtual/trap.c). While time passes it does not. */
    uint8_t gate, shut;
    uint64_t cpu;         /* ns of the processor that were counted, if compute is measured */
    _Atomic uint32_t run; /* it is its turn; a futex */
    /* While it does not run: what the clock has of the thread that does. */
    uint64_t debt;
    unsigned looks, calls;
    bool passing;
};

enum { SIM_STATES = 6 };

/* A row of looks at nothing, with nothing in between (looks.c). */
struct sim_loop {
    uint64_t since, lead;             /* when it began, and the lead then (lead.h) */
    uint64_t state[SIM_STATES], time; /* of the last looks; when the first of them began */
    unsigned states;                  /* how many */
    unsigned next, first; /* the look after which these are taken again; `next` of a new row */
    unsigned round;       /* so many looks and the process is as before; 0: that is not known */
    bool due;             /* the look that is made now may be after some that are skipped */
    bool told;            /* the coordinator knows that it has been long */
};

enum { SIM_GATE_OPEN, SIM_GATE_SHUT };

#define SIM_CLOCK_VERSION UINT64_C(0x386b636f6c637000)

/* A program has one, made by the library that is preloaded (src/virtual), if there is that. */
struct sim_clock {
    uint64_t version, bytes; /* SIM_CLOCK_VERSION, sizeof(struct sim_clock) */
    struct sim_segment *segment;
    struct sim_rank *shared;         /* this process's place in it */
    struct sim_record *me;           /* `record`: its copy of what is there, true while it runs */
    struct sim_record record, child; /* `child`: as the one begins that is forked now */
    struct sim_figures figures;      /* the same of these */
    bool has_turn;
    uint64_t pipes[2];     /* of its output; 0: it has none of its own (said.h) */
    uint32_t rank;         /* number of the place */
    uint64_t now;          /* of the event that happens, or of the program */
    uint64_t debt;         /* time that the thread has used, and that is still to pass */
    uint64_t until;        /* this rank may go on below it */
    uint64_t last;         /* when the last event happened */
    uint64_t lead;         /* how much sooner what happens now would, with one HPU more (lead.h) */
    uint64_t last_lead;    /* of the last event */
    struct sim_port *port; /* the NIC, of which it has a slot: its own, or that of its host */
    uint32_t slot, slots;
    uint64_t own_port[(sizeof(struct sim_port) + sizeof(struct sim_slot)) / sizeof(uint64_t)];
    unsigned looks;       /* of the thread at nothing, in a row */
    unsigned calls;       /* of the thread, in a row, that took no time */
    struct sim_loop loop; /* of these looks */
    uint64_t serial;
    struct sim_event *events; /* a heap */
    size_t count, capacity;
    uint64_t crowd; /* events in a row that happened at one time */
    bool passing;   /* time passes: a call for the same does nothing */
    struct sim_task main, *tasks, *running;
    uint64_t task_count;
    uint64_t waits;                                      /* calls of sim_clock_wait() */
    void (*take)(void *arg, const struct sim_packet *p); /* a packet whose time has come */
    void (*happened)(void *arg);                         /* called after each event */
    void (*tally)(void *arg, struct sim_figures *f);     /* brings what the NIC counts up to date */
    void (*freed)(void *arg);                            /* others have given up what they share */
    void *taker;                                         /* `arg` of all four */
    struct nic *nic; /* a thread that waits holds its lock, or takes it for what happens */
    size_t nic_size;
    void (*lock)(struct nic *), (*unlock)(struct nic *);
    /* Of the preloaded library; NULL: there is none. At `ring_at` (SIM_NEVER: never) ring() is
     * called, while time passes, by whichever thread lets it: a timer of the program is over.
     * handle() has the calling thread, which has just been given the clock, run the handlers of
     * its `signals`; they may let time pass. */
    uint64_t ring_at;
    void (*ring)(struct sim_clock *c), (*handle)(struct sim_clock *c);
};

/* sim_clock_join() gives the clock of this process: NULL if it is in no simulated job, or, with a
 * line in the log, if it cannot join the one that its environment names. The first call waits
 * until all ranks have come. */
struct sim_clock *sim_clock_join(void);
/* sim_clock_make() is the first half of that: it waits for nobody. `again`: it was called in this
 * process before, which has since executed another program; it is its turn. */
struct sim_clock *sim_clock_make(bool *again);
/* sim_clock_at() has something happen at a time that is not before now; with `owned` the clock
 * frees `arg`, by free(), if it forgets the event. False: no memory. sim_clock_forget() forgets
 * all. */
bool sim_clock_at(struct sim_clock *c, uint64_t time, void (*happen)(void *), void *arg,
                  bool owned);
void sim_clock_forget(struct sim_clock *c);
/* sim_clock_charge() adds the processor's time of the program since it last went on to `debt`, if
 * compute is measured. sim_clock_settle() does, and lets the time pass that the thread has used,
 * with all events in it. */
void sim_clock_charge(struct sim_clock *c);
void sim_clock_settle(struct sim_clock *c);
uint64_t sim_clock_cpu(void);
/* sim_clock_pass() lets time pass until the next event has happened, or until `end`. */
void sim_clock_pass(struct sim_clock *c, uint64_t end, enum sim_wait why);
/* sim_clock_wait() lets the calling thread wait until `wake`, and for what `waits` says; the others
 * go on meanwhile. `locked`: it holds the lock of the NIC. sim_clock_changed() has those that wait
 * for the NIC look again; sim_clock_stir(), those that wait for others, also in the other processes
 * of the rank, and sim_clock_wake() only in this one. */
void sim_clock_wait(struct sim_clock *c, uint64_t wake, enum sim_task_waits waits,
                    enum sim_wait why, bool locked);
void sim_clock_changed(struct sim_clock *c);
void sim_clock_stir(struct sim_clock *c);
void sim_clock_wake(struct sim_clock *c);
/* sim_task_begin() makes a thread that is to run, in its place among the others; sim_task_enter()
 * is called by it and returns when it may run. sim_task_drop() forgets it; one that has run then
 * has the others go on by sim_task_pass(), its last call. sim_task_interrupt() ends a wait, as a
 * signal. */
void sim_task_begin(struct sim_clock *c, struct sim_task *t);
void sim_task_enter(struct sim_clock *c, struct sim_task *t);
void sim_task_drop(struct sim_clock *c, const struct sim_task *t);
void sim_task_pass(struct sim_clock *c);
void sim_task_interrupt(struct sim_clock *c, struct sim_task *t);
/* sim_task_signal() is the same, for ring(): of the thread that lets time pass, too. */
void sim_task_signal(struct sim_clock *c, struct sim_task *t);
/* For tasks.c: sim_clock_first() is when the next event happens, sim_clock_happen() lets it.
 * sim_clock_hand_over() hands the turn of the process back, and has it again when it returns. */
uint64_t sim_clock_first(const struct sim_clock *c);
void sim_clock_happen(struct sim_clock *c);
void sim_clock_hand_over(struct sim_clock *c, uint64_t next, enum sim_wait why);
/* sim_clock_reserve() takes a place for a child that is about to be forked; NULL: there is none,
 * and the log says so. sim_clock_forked() is called then: by the parent with the child's number, or
 * 0 if there is none, and by the child, which waits for its turn, with `child` set. */
struct sim_rank *sim_clock_reserve(struct sim_clock *c);
void sim_clock_forked(struct sim_clock *c, struct sim_rank *place, uint32_t pid, bool child);
/* sim_clock_stop() hands the turn over, has stop() stop the process, and returns when another one
 * has had it go on. */
void sim_clock_stop(struct sim_clock *c, void (*stop)(void));
/* sim_clock_leave() says that the process is about to end. */
void sim_clock_leave(struct sim_clock *c);
/* sim_clock_break() ends a row of looks at nothing: the program does something else. */
static inline void sim_clock_break(struct sim_clock *c)
{
    c->looks = 0;
}
/* sim_clock_poke() has other ranks of the host look whether an HPU is free for them, now. */
void sim_clock_poke(struct sim_clock *c);
/* sim_clock_packet() is the packet to fill, after it has made room for one; sim_clock_sent() notes
 * that it is whole: it leaves at its time. */
struct sim_packet *sim_clock_packet(struct sim_clock *c);
void sim_clock_sent(struct sim_clock *c, const struct sim_packet *p);
/* sim_clock_fence() waits, in virtual time, until all ranks are in a fence. */
void sim_clock_fence(struct sim_clock *c);
/* sim_slot_of() is what this rank has of its NIC; sim_slots_sum() a member of all who share it. */
static inline struct sim_slot *sim_slot_of(const struct sim_clock *c)
{
    return &c->port->slot[c->slot];
}
static inline uint64_t sim_slots_sum(const struct sim_clock *c, size_t member)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->slots; i++) {
        sum += *(const uint64_t *)((const char *)&c->port->slot[i] + member);
    }
    return sum;
}
static inline const struct sim_machine *sim_machine(const struct sim_clock *c)
{
    return &c->segment->machine;
}

#endif
