/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drives a packet network without a schedule: hosts send messages of one packet at
 * a rate that does not depend on what becomes of them (an open loop), to
 * destinations that a pattern chooses. Throughput is counted over a window.
 */
#ifndef TESTS_NET_TRY_H
#define TESTS_NET_TRY_H

#include "sim/net/net.h"

enum { TRY_PACKET = 4096 };

/* 20 ps a byte, 50 ns a switch, 33.4 ns a cable: the sPIN paper's, section 4.2. */
extern const struct net_config try_config;

struct try_net {
    struct net_graph g;
    struct net_config c;
    struct net *n;
    uint64_t random;
    uint64_t *next;      /* by host: when its next message could leave */
    uint64_t *delivered; /* by source host: packets, within the window */
    uint32_t *source;    /* by ref: from where it was sent */
    uint32_t refs;
    uint64_t begin, end;  /* the window, ps */
    uint64_t first, last; /* of the message that came last */
    struct net_way way;   /* what the time of its last byte went to */
    uint64_t came;        /* messages */
    bool failed;
};

/* try_open() makes a network of what a user would write; a test that cannot go on
 * exits with 1. */
void try_open(struct try_net *t, const char *spec, const struct net_config *c);
void try_close(struct try_net *t);

uint64_t try_draw(struct try_net *t);

/* Where host `from` sends to next. TRY_SILENT: it does not send at all. */
#define TRY_SILENT UINT32_MAX
typedef uint32_t try_pattern(struct try_net *t, uint32_t from, const void *parameter);

/* try_load() sends for `packets` packet times at `load` of the line rate, at random
 * times if `random`, else evenly; counts over the last half of it; and returns what was
 * delivered then, as a part of the line rate, for each host that sends. */
double try_load(struct try_net *t, try_pattern *pattern, const void *parameter, double load,
                bool random, uint64_t packets);

/* try_drain() runs until nothing is left, with the invariants checked now and then. */
void try_drain(struct try_net *t);

/* try_one() sends one message through a network at rest, and returns when it was there. */
uint64_t try_one(struct try_net *t, uint32_t from, uint32_t to, uint64_t bytes, uint64_t pace);

#endif
