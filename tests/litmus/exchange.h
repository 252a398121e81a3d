/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all traffic of every kind among N nodes, which are processes or the
 * NICs of one process. What each node starts is a function of the seed, so every
 * node knows what must arrive at it, and where with which bytes.
 *
 *   PT 0  window: one piece for each message of each node     plain entry
 *   PT 1  source: a pattern that gets read                    plain entry
 *   PT 2  forwards each packet to the node that it names      payload handler, PutFromDevice
 *   PT 3  sends a part of its pattern to the named node       header handler, PutFromHost
 *
 * Every byte is checked at the end, and the number of arrivals.
 */
#ifndef LITMUS_EXCHANGE_H
#define LITMUS_EXCHANGE_H

#include "portals4.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    EXCHANGE_NODES = 8,
    EXCHANGE_PIECE = 4096, /* longest message */
    EXCHANGE_PATIENCE_MS = 20000
};

struct exchange {
    int me, nodes;
    unsigned ops; /* that each node starts */
    uint64_t seed;
    ptl_handle_ni_t ni;
    ptl_process_t id[EXCHANGE_NODES]; /* physical */
    size_t packet;                    /* bytes of a packet, at least 64 */
    /* private: */
    unsigned char *window, *source, *replies;
    bool *arrived;
    ptl_handle_eq_t eq, mdeq;
    ptl_handle_ct_t ct;
    ptl_handle_md_t source_md, reply_md;
    uint64_t expected, arrivals; /* messages that land in the window */
    uint64_t answered, answers;
};

/* exchange_open() makes the objects on x->ni; all nodes must have done so before
 * any calls exchange_start(). The reason of a failure, or NULL. */
const char *exchange_open(struct exchange *x);
/* exchange_start() starts everything that the node sends, serving meanwhile. */
const char *exchange_start(struct exchange *x);
/* exchange_serve() serves for a moment; true when all that the node has started
 * was answered and, unless something was lost on the way, all has arrived. */
bool exchange_serve(struct exchange *x, const char **failure);
/* exchange_check() compares the window when everybody is done, unless handlers
 * somewhere had no room and gave up: *missing messages did not come here then. */
const char *exchange_check(struct exchange *x, uint64_t *missing);
void exchange_close(struct exchange *x);

#endif
