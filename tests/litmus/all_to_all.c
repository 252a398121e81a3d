/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No deadlock (invariant set 2): puts, gets and handler puts from all to all, over rings
 * and cells of two, with queues of all sizes; see exchange.h for the traffic.
 */
#include "exchange.h"
#include "port.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOT_ARRIVED = 40, SLOT_DONE, LIMIT_S = 40 };

struct setting {
    const char *ring, *cells, *packet, *large, *send_queue, *handler_queue, *patience;
    unsigned ops;
    bool may_lose; /* a queue so short that handlers may have to give up */
};

static void run(const struct setting *s, int rank, int size)
{
    struct port p;
    struct exchange x = {.me = rank, .nodes = size, .ops = s->ops, .seed = 42};
    const char *failure;
    uint64_t missing;
    setenv("PINWHEEL_SHM_RING", s->ring, 1);
    setenv("PINWHEEL_SHM_CELLS", s->cells, 1);
    setenv("PINWHEEL_PACKET_SIZE", s->packet, 1);
    setenv("PINWHEEL_SHM_LARGE", s->large, 1);
    setenv("PINWHEEL_SEND_QUEUE", s->send_queue, 1);
    setenv("PINWHEEL_HANDLER_QUEUE", s->handler_queue, 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", s->patience, 1);
    x.packet = strtoul(s->packet, NULL, 10);
    port_open(&p, KIND_MP, rank, size);
    OK(PtlPTFree(p.ni, p.pt));
    x.ni = p.ni;
    for (int i = 0; i < size; i++) {
        x.id[i] = p.phys[i];
    }
    failure = exchange_open(&x);
    if (failure != NULL) {
        FAIL("seed %llu: %s", (unsigned long long)x.seed, failure);
    }
    BARRIER();
    failure = exchange_start(&x);
    bool done = false;
    uint64_t still = ptest_now_ms();
    uint64_t seen = 0;
    while (failure == NULL && !done) {
        done = exchange_serve(&x, &failure);
        if (x.arrivals + x.answers != seen) {
            seen = x.arrivals + x.answers;
            still = ptest_now_ms();
        }
        if (ptest_now_ms() - still > (uint64_t)EXCHANGE_PATIENCE_MS * (unsigned)ptest_slow()) {
            failure = "nothing moves any more";
        }
        /* Nobody waits for what handlers have given up. */
        if (s->may_lose && x.answers == x.answered) {
            ptest_show(SLOT_DONE, 1);
            int others = 0;
            for (int r = 0; r < size; r++) {
                others += ptest_look(r, SLOT_DONE) != 0;
            }
            done = others == size && ptest_now_ms() - still > 500;
        }
    }
    if (failure != NULL) {
        FAIL("seed %llu: %s (%llu of %llu arrived, %llu of %llu answered)",
             (unsigned long long)x.seed, failure, (unsigned long long)x.arrivals,
             (unsigned long long)x.expected, (unsigned long long)x.answers,
             (unsigned long long)x.answered);
    }
    BARRIER();
    failure = exchange_check(&x, &missing);
    if (failure != NULL) {
        FAIL("seed %llu: %s", (unsigned long long)x.seed, failure);
    }
    if (missing != 0 && !s->may_lose) {
        FAIL("seed %llu: %llu messages are missing", (unsigned long long)x.seed,
             (unsigned long long)missing);
    }
    port_close(&p);
    exchange_close(&x);
}

static const struct setting two_slots = {"2",     "2",     "512", "cells", "1024",
                                         "16384", "60000", 400,   false};
static const struct setting two_slots_vm = {"4",     "2",     "512", "vm", "1024",
                                            "16384", "60000", 400,   false};
static const struct setting short_send_queue = {"2",     "2",     "512", "cells", "1",
                                                "16384", "60000", 300,   false};
static const struct setting short_handler_queue = {"2", "2",  "512", "cells", "16",
                                                   "2", "20", 200,   true};
static const struct setting small_packets = {"2",     "2",     "64", "cells", "8",
                                             "16384", "60000", 200,  false};

PTEST_LIMIT(two_slots_2, 2, LIMIT_S)
{
    run(&two_slots, rank, size);
}

PTEST_LIMIT(two_slots_3, 3, LIMIT_S)
{
    run(&two_slots, rank, size);
}

PTEST_LIMIT(two_slots_4, 4, LIMIT_S)
{
    run(&two_slots, rank, size);
}

PTEST_LIMIT(two_slots_8, 8, LIMIT_S)
{
    run(&two_slots, rank, size);
}

PTEST_LIMIT(by_reference_4, 4, LIMIT_S)
{
    run(&two_slots_vm, rank, size);
}

PTEST_LIMIT(short_send_queue_2, 2, LIMIT_S)
{
    run(&short_send_queue, rank, size);
}

PTEST_LIMIT(short_send_queue_4, 4, LIMIT_S)
{
    run(&short_send_queue, rank, size);
}

PTEST_LIMIT(small_packets_4, 4, LIMIT_S)
{
    run(&small_packets, rank, size);
}

PTEST_LIMIT(short_handler_queue_2, 2, LIMIT_S)
{
    run(&short_handler_queue, rank, size);
}

PTEST_LIMIT(short_handler_queue_4, 4, LIMIT_S)
{
    run(&short_handler_queue, rank, size);
}
