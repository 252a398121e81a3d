/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP engines on a network in virtual time that loses, repeats, delays and spoils packets
 * as a seed has it, with an application at each that knows every byte it should be given.
 *
 * Node i has the address {i + 1, 9000 + i}. A message is sent with an identity, from which
 * its bytes follow; the receiving application checks order, bytes, and that each byte comes
 * once. What is wrong ends the program by assert.
 */
#ifndef TESTS_UNIT_SLMP_NET_H
#define TESTS_UNIT_SLMP_NET_H

#include "fabric/slmp/slmp.h"

struct net_faults {
    unsigned loss, twice, late, spoil; /* of 10,000 packets */
    int64_t delay;                     /* one way */
    int64_t later;                     /* what a late packet takes more, at most */
    int64_t per_packet;                /* the cable's time for a packet; 0: any number at once */
    unsigned queue;                    /* with that: packets that may wait; more are lost */
};

enum { NET_NODES = 8 };

struct net;

#define SECOND 1000000000LL /* in nanoseconds */

struct net_node {
    struct net *net;
    struct slmp *engine;
    unsigned index;
    uint64_t incarnation;
    /* what its application saw */
    uint64_t began, received, bytes, sent, undeliverable, torn, opened, closed;
    uint64_t last_peer;                           /* incarnation of the last one opened */
    unsigned later_begin, later_data;             /* of 100: answers SLMP_LATER */
    bool stuck[SLMP_CHANNELS];                    /* answers SLMP_LATER to all begins */
    uint64_t next[NET_NODES][SLMP_CHANNELS];      /* the identity that should begin next */
    uint64_t committed[NET_NODES][SLMP_CHANNELS]; /* the identity to give to the next sent */
};

struct net *net_open(uint64_t seed, const struct net_faults *);
void net_close(struct net *);
void net_faults(struct net *, const struct net_faults *);

/* net_add() starts an engine on the next node, or on node `index` again after net_kill(). */
struct net_node *net_add(struct net *, const struct slmp_config *);
void net_kill(struct net_node *); /* it is gone at once; gives its messages back */
void net_again(struct net_node *, const struct slmp_config *);

/* net_send() sends a message of `length` bytes and returns 0 or slmp_send()'s error. */
int net_send(struct net_node *from, const struct net_node *to, unsigned channel, size_t length,
             enum slmp_way way, int64_t gap);

/* net_run() lets time pass until `until`, or until nothing is left to happen. */
void net_run(struct net *, int64_t until);
int64_t net_now(const struct net *);

/* net_talk() has two nodes send each other `messages` reliable messages, short and long, over both
 * channels, and lets time pass until all have come and nothing is on its way. */
void net_talk(struct net_node *a, struct net_node *b, unsigned messages);

/* net_settle() runs until `messages` have been received by `to`, or the time is over. */
bool net_settle(struct net *, const struct net_node *to, uint64_t messages, int64_t longest);

/* Packets can be seen when they leave a node; true: it is lost. */
void net_watch(struct net *, bool (*see)(void *, unsigned from, const uint8_t *, size_t), void *);

/* net_trace() is a hash of all that has left all nodes, and when. */
uint64_t net_trace(const struct net *);
void net_inject(struct net *, unsigned from, unsigned to, const void *packet, size_t length);
uint64_t net_random(struct net *);
struct slmp_address net_address(unsigned index);

#endif
