/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the coordinator, for its files: coordinator.c has turns and windows, traffic.c the
 * packets and the network, open.c the beginning and the end of a run.
 */
#ifndef PINWHEEL_SIM_STATE_H
#define PINWHEEL_SIM_STATE_H

#include "coordinator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* A packet that is to come to a rank. */
struct coming {
    uint64_t time, serial;
    struct sim_packet *packet;
};

struct player {
    struct coming *coming; /* a heap */
    size_t count, capacity;
    _Atomic bool exited;
    bool gone; /* nothing happens there any more */
};

struct coordinator {
    struct sim_segment *segment;
    char path[64];
    int fd;
    pthread_t thread;
    _Atomic bool stop;
    struct coordinator_setup setup;
    struct net_graph graph;
    struct net *net;
    struct player *players;
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
    bool memory_short;
    struct coordinator_result result;
};

static inline struct sim_rank *rank_of(const struct coordinator *c, uint32_t rank)
{
    return &c->segment->rank[rank];
}

/* coordinate() is the coordinator's thread: `arg` is a struct coordinator. */
void *coordinate(void *arg);

#endif
