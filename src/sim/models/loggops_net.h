/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pinwheel model on a packet network (docs/network-model.md): where a message
 * would be at its receiver L after its o, it is sent through the network instead,
 * and its ARRIVE is the moment at which its last byte has come.
 *
 * All ranks are simulated together, in the order of time, the network's events
 * before the ranks' of the same moment.
 */
#ifndef SIM_LOGGOPS_NET_H
#define SIM_LOGGOPS_NET_H

#include "loggops.h"
#include "sim/net/net.h"

/* A message in the network: what will arrive, and when its sender's cpu is free. */
struct flight {
    struct event arrival;
    uint64_t free;
    uint32_t next; /* of the free ones: index + 1 */
};

struct loggops_net {
    struct worker *w;
    struct net *net;
    struct net_config config;
    const uint32_t *host; /* by rank */
    uint64_t pace;        /* 1e-6 ps from byte to byte as they leave */
    uint64_t *came;       /* by send (loggops_place): when its first byte came */
    struct flight *flights;
    uint32_t used, free, capacity;
};

/* loggops_net_open() makes the network of `in`; -1 if memory is short.
 * loggops_net_close() in any case. */
int loggops_net_open(struct loggops_net *n, struct loggops *s);
void loggops_net_close(struct loggops_net *n);

/* loggops_net_run() runs the schedule, and loggops_net_end() says how it went on the
 * network: SIM_DONE, or what is wrong. */
void loggops_net_run(struct loggops_net *n);
enum sim_end loggops_net_end(const struct loggops_net *n, struct sim_output *out);

/* loggops_net_send() sends `bytes` bytes off at arrival->time, of which arrival->rank
 * hears as soon as they have come. The send of data completes when they have left, and
 * not before `free`. */
void loggops_net_send(struct worker *w, const struct event *arrival, uint64_t bytes, uint64_t free);

/* loggops_net_came() is when the first byte of a message came that has arrived. */
uint64_t loggops_net_came(const struct worker *w, const struct event *message);

#endif
