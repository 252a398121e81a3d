/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several nodes in one process, each with a table of libpinwheel-firehose, and a network between
 * them: messages are delivered in an order that a seed decides, by whoever polls at their target;
 * those from and to a node that was killed are lost. All nodes have the same memory; pins are
 * counted, or made with mlock().
 */
#ifndef TESTS_FIREHOSE_NET_H
#define TESTS_FIREHOSE_NET_H

#include "pinwheel_firehose.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { NET_NODES = 4, NET_PAGES = 256, NET_PAGE = 4096, NET_MESSAGES = 512 };
#define NET_BASE UINT64_C(0x40000000)

struct net_node {
    struct net *net;
    unsigned self;
    struct pw_firehose *table;
    bool dead, lock_memory;
    int fail_pins;                 /* so many pins from now on give -ENOMEM */
    _Atomic int pinned[NET_PAGES]; /* by page */
    _Atomic long units, most;
    unsigned called; /* remote callbacks */
    unsigned char args[PW_FIREHOSE_ARGS];
    size_t args_length, call_count;
    uint64_t call_addr;
};

struct net_message {
    unsigned from, to;
    size_t length;
    void *bytes;
};

struct net {
    pthread_mutex_t lock;
    uint64_t random;
    unsigned nodes;
    struct net_node node[NET_NODES];
    struct net_message message[NET_MESSAGES];
    size_t waiting;
    bool held; /* nothing is delivered */
};

/* net_open() fills in what a configuration needs of nodes, operations and client. */
struct net *net_open(const struct pw_firehose_config *config, unsigned nodes, uint64_t seed);
int net_close(struct net *net); /* how many requests were not released */
uint64_t net_page(unsigned page);
int net_lock(void *memory, size_t length);
int net_unlock(void *memory, size_t length);
/* Delivers one message to a node; false: there is none. */
bool net_deliver(struct net_node *node);
/* Everybody polls until nothing is under way. */
void net_settle(struct net *net);
void net_kill(struct net *net, unsigned node);

#endif
