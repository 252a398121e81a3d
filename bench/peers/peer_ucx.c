/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX (its protocol layer, UCP) as a subject, in three ways; see peer_ucx.h:
 *
 *   peer_ucx [tag]  tagged messages; reads of memory of the program's own
 *   peer_ucx am     active messages; likewise
 *   peer_ucx put    puts into memory that UCX allocated, found by polling it; reads of it
 *
 * The transports are those of UCX_TLS.
 */
#include "peer_ucx.h"

#include <stdio.h>
#include <string.h>

struct ucx ucx;

enum { LINE_READS = 0 }; /* rank 0 tells there how many runs of reads are over */

/* Rank 1 makes progress meanwhile, which reads need that are done by messages. */
static int get(const struct turn_work *work, uint64_t iterations)
{
    static uint64_t runs;
    volatile uint64_t *over = turn_line(LINE_READS);
    runs++;
    while (turn_rank() == 1 && *over < runs) {
        ucp_worker_progress(ucx.worker);
    }
    if (turn_rank() == 1) {
        return 0;
    }
    ucp_request_param_t param = {.op_attr_mask = 0};
    int failed = 0;
    for (uint64_t i = 0; i < iterations && failed == 0; i++) {
        failed = ucx_finish("ucp_get_nbx", ucp_get_nbx(ucx.endpoint, ucx.slots.to, work->size,
                                                       ucx.remote, ucx.key, &param));
    }
    *over = runs;
    return failed;
}

static const struct ucx_way *way_named(const char *name)
{
    static const struct ucx_way *const ways[] = {&ucx_tag, &ucx_am, &ucx_put};
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(ways[i]->name, name) == 0) {
            return ways[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct ucx_way *way = argc == 1 ? &ucx_tag : argc == 2 ? way_named(argv[1]) : NULL;
    if (way == NULL) {
        fprintf(stderr, "usage: %s [tag|am|put]\n", argv[0]);
        return 2;
    }
    if (turn_join(-1) < 0 || ucx_open(way) != 0) {
        return 1;
    }
    const struct turn_duty duties[] = {
        {BENCH_LATENCY, slots_fit, way->begin, way->latency, way->end},
        {BENCH_GET, slots_fit, way->begin, get, way->end},
        {BENCH_RATE, slots_fit, way->begin, way->windows, way->end},
        {BENCH_BANDWIDTH, slots_fit, way->begin, way->windows, way->end},
    };
    int served = turn_serve(duties, sizeof(duties) / sizeof(duties[0]));
    ucx_close();
    return served == 0 ? 0 : 1;
}
