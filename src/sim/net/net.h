/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet-level network in virtual time; docs/network-model.md defines it.
 *
 *   net_send()  ──► host: its messages, the oldest packet first
 *                     │ channel, if its virtual channel has credit
 *                     ▼
 *                   switch: route, wait for the channel, the oldest packet first ──► ...
 *                     │
 *                     ▼
 *                   host ──► deliver()
 *
 * The user of a network asks for the time of its next event (net_next()) and lets it happen
 * (net_step()); it may send messages for that time or any later one.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "graph.h"

/* How the time of a byte divides, in ps, from the moment at which its message could leave: `path`
 * is cables and switches, `serial` the bytes before it that were handed over or carried. The rest
 * of the time it waited for other messages. */
struct net_way {
    uint64_t path, serial;
};

/* When the first and the last byte of a message came, and how their times divide. */
struct net_arrival {
    uint64_t first, last;
    struct net_way first_way, last_way;
};

/* Functions by which the network reports to its user; `ref` is the message's net_message.ref. */
struct net_hooks {
    /* Called when the last packet of a message leaves its host: the last byte leaves at `time`,
     * which may be later than now, and has waited for `waited` at the host. */
    void (*left)(void *context, uint32_t ref, uint64_t time, uint64_t waited);
    /* Called when a message is delivered: its last byte has come now; or it has come earlier, and
     * now an older message of the same pair was delivered first. */
    void (*deliver)(void *context, uint32_t ref, const struct net_arrival *a, uint64_t now);
    /* Called when a packet of a message takes a channel, from now on, for `length`; NULL: not
     * wanted. */
    void (*taken)(void *context, uint32_t ref, uint32_t channel, uint64_t now, uint64_t length);
    void *context;
};

struct net_config {
    enum net_routing routing;
    bool store_and_forward;
    uint32_t packet; /* highest number of bytes of a packet */
    uint64_t
        buffer; /* bytes of the buffer of each virtual channel into a switch; at least a packet */
    uint64_t byte;       /* time of a byte on a channel, in 1e-6 ps; at least 1 */
    uint64_t hop, cable; /* ps through a switch; along a cable */
    uint64_t seed;
    const struct net_down *down; /* of the caller, as long as the network is open */
    size_t downs;
};

/* A channel that carries nothing from one time until another, in ps. */
struct net_down {
    uint32_t channel;
    uint64_t from, until;
};

/* Highest values of a configuration. */
enum { NET_PACKET_MOST = 1 << 20 };
#define NET_BUFFER_MOST (UINT64_C(1) << 40)

struct net_message {
    uint32_t from, to; /* hosts */
    uint64_t bytes;    /* at least 1 */
    uint64_t time;     /* when its first byte could leave its host */
    uint64_t pace;     /* 1e-6 ps: the least time between two bytes that the host hands over */
    /* it is delivered after all earlier messages from the same host to the same host */
    bool ordered;
    uint32_t ref; /* for the caller's use */
};

/* Figures of the run so far. */
struct net_counts {
    uint64_t messages, packets; /* messages that were sent; packets that have left a host */
    uint64_t delivered;         /* packets whose arrival is known */
    uint64_t hops;              /* channels that packets have used, added up */
    uint64_t bytes;             /* bytes of the packets in `delivered` */
    uint64_t waits;             /* how often a packet has waited */
    /* ps that packets have waited, at hosts or switches, added up; the longest wait */
    uint64_t waited, longest;
    uint64_t most_packets; /* highest number of packets in the network at one time */
};

struct net;

/* net_open() makes an empty network at time 0; NULL if memory is short. The graph must outlive the
 * network. */
struct net *net_open(const struct net_graph *g, const struct net_config *c,
                     const struct net_hooks *hooks);
void net_close(struct net *n);

/* net_send() sends a message; net_step() lets the next event happen. Both return 0, or -1 if memory
 * is short or a time would exceed 2^63 - 1 ps; net_overflow() is true in the second case. */
int net_send(struct net *n, const struct net_message *m);
int net_step(struct net *n);
bool net_overflow(const struct net *n);

/* net_culprit() returns the `ref` of the message whose time would exceed that. */
uint32_t net_culprit(const struct net *n);

/* net_next() stores the time of the next event; false if there are no events. */
bool net_next(struct net *n, uint64_t *time);

const struct net_counts *net_counts(const struct net *n);

/* net_busy() returns for how many ps a channel was busy. */
uint64_t net_busy(const struct net *n, uint32_t channel);

/* net_check() checks the invariants of docs/network-model.md for all that is in the network. It
 * returns -1 after it has written to `error` what is broken. It is slow, for tests. */
int net_check(const struct net *n, char error[NET_ERROR]);

/* net_zero_load() returns the time between the moment at which a message could leave and the
 * arrival of its last byte, if it is alone in the network, by a formula. */
uint64_t net_zero_load(const struct net_graph *g, const struct net_config *c, uint32_t from,
                       uint32_t to, uint64_t bytes, uint64_t pace);

#endif
