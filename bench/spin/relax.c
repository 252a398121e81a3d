/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Relaxations of a graph at its owner: 16 messages of 256, each of which shortens a way; then
 * the program takes the frontier.
 *
 *   handlers   handlers/graph
 *   cpu        rank 1's program takes a full event for each message; its frontier is a bitmap
 *              and a list
 */
#include "jobs.h"

#include "graph.h"

#include <string.h>

enum {
    BATCHES = 16,
    RELAXATIONS = 256, /* of a batch: one packet */
    VERTICES = BATCHES * RELAXATIONS
};

static _Alignas(64) uint8_t frontier[VERTICES * 8];
static uint32_t taken[VERTICES];
static uint64_t in_frontier[VERTICES / 64], frontier_size; /* the CPU's */

static int begin_graph(const struct turn_work *work)
{
    static struct graph_state state;
    ptl_handlers_t h;
    int rc = 0;
    if (turn_rank() == 1) {
        memset(spin.to, 0xff, VERTICES * sizeof(uint64_t)); /* GRAPH_FAR */
        memset(frontier, 0, sizeof(frontier));
        if (graph_frontier_size(VERTICES) > sizeof(frontier)) {
            return turn_fail("the frontier has %lu bytes",
                             (unsigned long)graph_frontier_size(VERTICES));
        }
        int code = graph_handlers(0, VERTICES, frontier, &state, &h);
        rc = !link_ok(code, "graph_handlers") ? -1
             : spin.way == WAY_CPU
                 ? spin_append_for_cpu(0)
                 : spin_append(LINK_COUNTED, spin.to, VERTICES * sizeof(uint64_t), &h);
    }
    return rc != 0 ? rc : spin_ready();
}

/* Every vertex once, in an order of no pattern; all of them nearer than the time before. */
static int relax_all(uint64_t round)
{
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        struct graph_record *record = (struct graph_record *)(spin.from + batch * SPIN_SLOT);
        for (uint64_t i = 0; i < RELAXATIONS; i++) {
            record[i] =
                (struct graph_record){.vertex = (batch * RELAXATIONS + i) * 2654435761u % VERTICES,
                                      .parent = (uint32_t)i,
                                      .distance = (uint32_t)(INT32_MAX - round)};
        }
        if (spin_request(batch, RELAXATIONS * sizeof(*record), SPIN_BITS) != 0) {
            return -1;
        }
    }
    return spin_hear();
}

static int relax_by_cpu(void)
{
    ptl_event_t event;
    uint64_t *word = (uint64_t *)spin.to;
    if (spin_next_event(&event) != 0) {
        return -1;
    }
    const struct graph_record *record = event.start;
    for (uint64_t i = 0; i < event.mlength / sizeof(*record); i++) {
        uint64_t v = record[i].vertex, way = (uint64_t)record[i].distance << 32 | record[i].parent;
        if (way < word[v]) {
            word[v] = way;
            if ((in_frontier[v / 64] >> v % 64 & 1) == 0) {
                in_frontier[v / 64] |= UINT64_C(1) << v % 64;
                taken[frontier_size++] = (uint32_t)v;
            }
        }
    }
    return 0;
}

static int take_round(void)
{
    uint64_t found;
    int rc = 0;
    if (spin.way == WAY_HANDLERS) {
        rc = link_wait(&spin.arrived, BATCHES);
        found = graph_take(frontier, VERTICES, taken);
    } else {
        for (int i = 0; i < BATCHES && rc == 0; i++) {
            rc = relax_by_cpu();
        }
        found = frontier_size;
        frontier_size = 0;
        memset(in_frontier, 0, sizeof(in_frontier));
    }
    return rc != 0 ? rc
           : found != VERTICES
               ? turn_fail("the frontier has %lu vertices, not %d", (unsigned long)found, VERTICES)
               : spin_say();
}

static int run_graph(const struct turn_work *work, uint64_t iterations)
{
    static uint64_t round;
    int rc = 0;
    if (work->check && turn_rank() == 0) {
        round = 0;
    }
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        rc = turn_rank() == 0 ? relax_all(round++) : take_round();
    }
    return rc;
}

static int end_graph(const struct turn_work *work, struct turn_result *result)
{
    return spin_unlink();
}

static const struct turn_duty duties[] = {
    {BENCH_SPIN_GRAPH, NULL, begin_graph, run_graph, end_graph},
};

const struct spin_family spin_graph = {duties, 1, 1u << WAY_HANDLERS | 1u << WAY_CPU};
