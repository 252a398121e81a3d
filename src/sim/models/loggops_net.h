/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pinwheel model on a packet network (docs/network-model.md): instead of arriving L after its
 * o, a message goes through the network, and its ARRIVE happens when its last byte has come to the
 * receiver.
 *
 * All ranks are simulated together, in the order of time. Of events at the same time those of the
 * network come before those of ranks.
 */
#ifndef SIM_LOGGOPS_NET_H
#define SIM_LOGGOPS_NET_H

#include "loggops.h"
#include "sim/net/net.h"

/* A message in the network: the event of its arrival, and the time at which its sender's cpu is
 * free. */
struct flight {
    struct event arrival;
    uint64_t free;
    uint32_t next; /* in the chain of free ones the next one: index + 1 */
};

struct loggops_net {
    struct worker *w;
    struct net *net;
    struct net_config config;
    const uint32_t *host; /* by rank */
    uint64_t pace;        /* 1e-6 ps between two bytes of a message as they leave their host */
    uint64_t *came;       /* by send (loggops_place()): when its first byte came to the receiver */
    struct flight *flights;
    uint32_t used, free, capacity;
};

/* loggops_net_open() makes the network of the run's input; -1 if memory is short. The caller calls
 * loggops_net_close() in any case. */
int loggops_net_open(struct loggops_net *n, struct loggops *s);
void loggops_net_close(struct loggops_net *n);

/* loggops_net_run() runs the schedule. loggops_net_end() then returns SIM_DONE, or what went wrong
 * in the network. */
void loggops_net_run(struct loggops_net *n);
enum sim_end loggops_net_end(const struct loggops_net *n, struct sim_output *out);

/* loggops_net_send() sends `bytes` bytes into the network at arrival->time; the event `arrival`
 * happens when they have come. A send of data completes when all its bytes have left its host, and
 * not before `free`. */
void loggops_net_send(struct worker *w, const struct event *arrival, uint64_t bytes, uint64_t free);

/* loggops_net_came() returns when the first byte of an arrived message came to its receiver. */
uint64_t loggops_net_came(const struct worker *w, const struct event *message);

#endif
