/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the coordinator, for its files: coordinator.c has windows, turns.c turns, traffic.c
 * the packets and the network, open.c the beginning and the end of a run.
 */
#ifndef PINWHEEL_SIM_STATE_H
#define PINWHEEL_SIM_STATE_H

#include "coordinator.h"
#include "lines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* A packet that is to come to a rank. */
struct coming {
    uint64_t time, serial;
    struct sim_packet *packet;
};

/* When a rank may run. */
struct due {
    uint64_t time;
    uint32_t rank;
};

enum turn { TURN_IDLE, TURN_OUT };

struct player {
    struct coming *coming; /* a heap */
    size_t count, capacity;
    struct sim_record record; /* what the coordinator knows of it, and gives it */
    uint32_t process;         /* its own number, as it has told it; 0: it has not */
    bool torn;                /* it has ended in the midst of a turn: its figures may be of two */
    uint64_t floor;           /* time of the last packet that it sent */
    bool known;               /* it has a record that was read */
    _Atomic int pid;          /* as the launcher says; 0: not started */
    _Atomic bool exited;
    _Atomic bool killed; /* it has died, as was asked for */
    uint64_t dies;       /* when it is to; SIM_NEVER: never */
    uint64_t entered;    /* packets that it has put into the network */
    uint64_t link_free;  /* when its link has got the last one through */
    bool gone;           /* nothing happens there any more */
    enum turn turn;
    bool blocked;   /* it uses no place, out or not */
    uint64_t due;   /* the time of its item in the heap of them; SIM_NEVER: it has none */
    uint32_t stirs; /* of its record, that its kin was told of */
    uint32_t forks; /* of the record of a rank: when its places were looked at last */
    bool stopped;   /* it gets no turn */
    bool anybody;   /* it waits for what may come from outside of the job */
};

struct rank_list {
    uint32_t *rank;
    uint32_t count;
};

struct coordinator {
    struct sim_segment *segment;
    uint32_t used; /* no place from this one on was ever taken */
    bool spoiled;  /* a rank has written over its memory; it was said */
    char path[64];
    int fd;
    pthread_t thread;
    _Atomic bool stop;
    struct coordinator_setup setup;
    struct lines *lines; /* what ranks write; NULL: they do so themselves */
    struct net_graph graph;
    struct net *net;
    struct net_down *down; /* channels of links that are down for a while */
    struct player *players;
    struct due *due; /* a heap */
    size_t due_count, due_capacity;
    struct rank_list out, back, batch; /* turns that are out; that are over; to be given */
    uint32_t given;                    /* since the last window: in the segment's order */
    _Atomic uint32_t exits;            /* ranks that have ended, as the launcher says */
    uint32_t exits_seen;
    uint64_t travelling;      /* packets in the network whose arrival is not known */
    struct sim_packet **sent; /* in the network, or about to be; by net_message.ref */
    size_t sent_count, sent_capacity;
    uint32_t *free; /* places of `sent` */
    size_t free_count, free_capacity;
    struct departing {
        uint64_t time;
        uint32_t rank, number;
        struct sim_packet *packet;
    } * departing;
    size_t departing_count, departing_capacity;
    uint64_t serial;
    uint32_t anybody;   /* processes that wait for what may come from outside of the job */
    int64_t looked;     /* when these looked last, in real time */
    bool looked_all;    /* all who wait outside of Portals have looked, when `found_all` was */
    uint64_t found_all; /* how often they had found something */
    bool memory_short;
    struct coordinator_result result;
    /* as it was made: what ranks may have written has no say; its array has no members */
    struct sim_segment layout;
};

/* rank_of() is the coordinator's own copy of a record, shared_of() the memory that it shares with
 * that rank, and spans_of() the spans there. */
static inline struct sim_record *rank_of(const struct coordinator *c, uint32_t rank)
{
    return &c->players[rank].record;
}
static inline struct sim_rank *shared_of(const struct coordinator *c, uint32_t rank)
{
    return (struct sim_rank *)((uintptr_t)c->segment + c->layout.ranks_at) + rank;
}
static inline const struct sim_span *spans_of(const struct coordinator *c, uint32_t rank)
{
    return (const struct sim_span *)((uintptr_t)c->segment + c->layout.spans_at +
                                     rank * sim_spans_bytes(&c->layout));
}
/* port_of() is the NIC that ranks of a host share. */
static inline struct sim_port *port_of(const struct coordinator *c, uint32_t node)
{
    return (struct sim_port *)((uintptr_t)c->segment + c->layout.ports_at +
                               node * sim_port_bytes(&c->layout));
}
static inline struct sim_board *board_of(const struct coordinator *c)
{
    return (struct sim_board *)((uintptr_t)c->segment + c->layout.board_at);
}

/* places() is the number of places that are looked at: ranks, and behind them children. */
static inline uint32_t places(const struct coordinator *c)
{
    return c->used;
}

/* coordinate() is the coordinator's thread: `arg` is a struct coordinator. */
void *coordinate(void *arg);

#endif
