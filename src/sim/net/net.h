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
 * Who uses it asks for the time of the next event and lets it happen; messages may
 * be sent off for that time or any later one.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "graph.h"

/* The parts of a byte's time, from when its message could leave on, ps: cables and switches, and
 * bytes before it that were handed over or carried. The rest it waited. */
struct net_way {
    uint64_t path, serial;
};

/* When the first byte of a message came, and the last. */
struct net_arrival {
    uint64_t first, last;
    struct net_way first_way, last_way;
};

/* The functions by which the network tells its user what becomes of a message; `ref` is the
 * message's net_message.ref. */
struct net_hooks {
    /* The last byte of a message leaves its host at `time`, which may be later than now; for
     * `waited` of the time until then it waited at the host. */
    void (*left)(void *context, uint32_t ref, uint64_t time, uint64_t waited);
    /* The whole message is there: its last byte came now, or earlier, and an older message of its
     * pair has come now. */
    void (*deliver)(void *context, uint32_t ref, const struct net_arrival *a, uint64_t now);
    /* A packet of it takes a channel from now on; NULL: nobody asks. */
    void (*taken)(void *context, uint32_t ref, uint32_t channel, uint64_t now, uint64_t length);
    void *context;
};

struct net_config {
    enum net_routing routing;
    bool store_and_forward;
    uint32_t packet; /* most bytes of one */
    uint64_t
        buffer; /* bytes of a virtual channel of a switch's incoming channel; at least a packet */
    uint64_t byte;       /* 1e-6 ps on a channel; at least 1 */
    uint64_t hop, cable; /* ps: through a switch, along a cable */
    uint64_t seed;
};

/* Bounds of what a configuration may ask for. */
enum { NET_PACKET_MOST = 1 << 20 };
#define NET_BUFFER_MOST (UINT64_C(1) << 40)

struct net_message {
    uint32_t from, to; /* hosts */
    uint64_t bytes;    /* at least 1 */
    uint64_t time;     /* when its first byte could leave */
    uint64_t pace;     /* 1e-6 ps: the host hands over no byte sooner than this after another */
    bool ordered;      /* not delivered before those of its pair that were sent off earlier */
    uint32_t ref;      /* the caller's */
};

/* Counts of the run so far. */
struct net_counts {
    uint64_t messages, packets; /* that were sent off; that left a host */
    uint64_t delivered;         /* packets that will have come */
    uint64_t hops;              /* of packets, over channels */
    uint64_t bytes;             /* of packets that came */
    uint64_t waits;             /* times that a packet waited */
    uint64_t waited, longest;   /* ps that packets waited, at hosts or switches; one of them */
    uint64_t most_packets;      /* in the network at one time */
};

struct net;

/* net_open() makes an empty network at time 0; NULL if memory is short. The graph
 * must outlive it. */
struct net *net_open(const struct net_graph *g, const struct net_config *c,
                     const struct net_hooks *hooks);
void net_close(struct net *n);

/* net_send() sends a message off; net_step() lets the next event happen. Both return 0, or
 * -1 if memory is short or a time would pass 2^63 - 1 ps: net_overflow() says which. */
int net_send(struct net *n, const struct net_message *m);
int net_step(struct net *n);
bool net_overflow(const struct net *n);

/* net_culprit() says whose time it was: net_message.ref. */
uint32_t net_culprit(const struct net *n);

/* net_next() gives the time of the next event; false: all is quiet. */
bool net_next(struct net *n, uint64_t *time);

const struct net_counts *net_counts(const struct net *n);

/* net_busy() is how long a channel was taken. */
uint64_t net_busy(const struct net *n, uint32_t channel);

/* net_check() holds the invariants of docs/network-model.md against all that is in the
 * network; -1 after it has written into `error` what is broken. Slow: for tests. */
int net_check(const struct net *n, char error[NET_ERROR]);

/* net_zero_load() is the closed form: when the last byte of a message that is alone
 * comes, after its first could leave. */
uint64_t net_zero_load(const struct net_graph *g, const struct net_config *c, uint32_t from,
                       uint32_t to, uint64_t bytes, uint64_t pace);

#endif
