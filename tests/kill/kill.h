/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kill tests: what the driver and its three actors share.
 *
 *      victim ◄──── exchange ────► peer ◄──── ping-pong ────► bystander
 *         └─ dies of SIGKILL at one labelled point of the protocol
 *
 * The driver forks the actors, moves `phase` on and watches them; they tell it
 * how far they are. One page holds all of that. An actor that finds something
 * wrong says so and exits with 1.
 */
#ifndef KILL_H
#define KILL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILL_OPS 4 /* operations of one exchange, all started at once */
#define KILL_LENGTH_MAX (256u * 1024)

/* Portals PIDs of the actors. */
enum { PID_PEER = 101, PID_BYSTANDER, PID_VICTIM };

enum kill_act {
    KILL_PUT,
    KILL_GET,
    KILL_ATOMIC,
    KILL_FETCH,
    KILL_SWAP,
    KILL_ASK /* a handler gets */
};

/* Where the target's data goes, besides a plain entry of the priority list. */
enum kill_way {
    WAY_PLAIN,
    WAY_PARTS,    /* MDs and entries are PTL_IOVEC */
    WAY_OVERFLOW, /* the overflow list; entries for the messages are appended as these come in */
    WAY_HANDLERS, /* handlers put it there, packet by packet: run by who makes progress */
    WAY_HPUS,     /* handlers, run by HPU threads */
    WAY_RV32      /* handlers, on the RV32 cores */
};

/* What victim and peer exchange. */
struct scenario {
    const char *name;
    enum kill_act act;
    size_t length;
    bool victim_asks;  /* the victim initiates, else the peer does */
    const char *large; /* PINWHEEL_SHM_LARGE */
    enum kill_way way;
};

enum phase {
    PHASE_SETUP,
    PHASE_WORK,  /* the victim and the peer exchange; it may die at any time */
    PHASE_DEAD,  /* the victim is gone */
    PHASE_AGAIN, /* a second victim, under the same address, must be served whole */
    PHASE_STOP   /* all go */
};

struct stage {
    atomic_int phase;
    atomic_int ready[4]; /* peer, bystander, first victim, second victim */
    atomic_int asked[2]; /* the peer has ended its part of an exchange */
    atomic_int settled;  /* the peer is done with the dead */
    atomic_long rounds;  /* of the bystander with the peer */
    atomic_int through;  /* the bystander wants no more answers of the peer */
    atomic_int torn;     /* claimed messages that the victim's death cut short */
    _Atomic(const char *) place[4];
};

extern struct stage *stage;
extern const struct scenario *scenario;

/* kill_slow() is the factor by which time limits grow. */
int kill_slow(void);
uint64_t kill_now_ms(void);

/* The actors; none returns before its part is over. */
void run_peer(void);
void run_bystander(void);
void run_victim(int life);

#endif
