/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong with a target that sends back what it gets:
 *
 *   handlers   handlers/pingpong: streamed, packet by packet, or stored, when all is there
 *   cpu        rank 1's program waits for the put and puts the memory back
 *
 * An iteration is a round trip, complete when all of the answer is in rank 0's memory.
 */
#include "jobs.h"

#include "pingpong.h"

#include <string.h>

static struct pingpong_state state;

/* Counts of an answer at rank 0. */
static uint64_t pieces(const struct turn_work *work)
{
    bool streamed = spin.way == WAY_HANDLERS && work->bench == BENCH_SPIN_PINGPONG;
    return streamed ? (work->size + self.packet - 1) / self.packet : 1;
}

static int begin(const struct turn_work *work)
{
    ptl_handlers_t handlers;
    int rc;
    if (turn_rank() == 0) {
        turn_fill(spin.from, work->size, work->size);
        memset(spin.to, 0, work->size);
        rc = spin_append_answer(0);
    } else {
        pingpong_handlers(work->bench == BENCH_SPIN_PINGPONG ? PINGPONG_STREAMED : PINGPONG_STORED,
                          work->size, self.packet, SPIN_ANSWER, &state, &handlers);
        rc = spin_append(LINK_COUNTED, spin.from, SPIN_FROM,
                         spin.way == WAY_HANDLERS ? &handlers : NULL);
    }
    return rc != 0 ? rc : spin_ready();
}

static int answer(uint64_t size)
{
    int code =
        PtlPut(spin.md, 0, size, PTL_NO_ACK_REQ, self.peer, LINK_COUNTED, SPIN_ANSWER, 0, NULL, 0);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    uint64_t counts = pieces(work);
    for (uint64_t i = 0; i < iterations; i++) {
        int rc = turn_rank() == 0 ? spin_send(work->size) || link_wait(&spin.answered, counts)
                                  : link_wait(&spin.arrived, 1) ||
                                        (spin.way == WAY_CPU && answer(work->size) != 0);
        if (rc != 0) {
            return -1;
        }
    }
    return 0;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    int rc = turn_rank() == 0 && work->check ? turn_check(spin.to, work->size, work->size) : 0;
    return spin_unlink() != 0 ? -1 : rc;
}

static bool fits(const struct turn_work *work)
{
    return spin_on(work) && work->size > 0 && work->size <= SPIN_FROM;
}

static const struct turn_duty duties[] = {
    {BENCH_SPIN_PINGPONG, fits, begin, run, end},
    {BENCH_SPIN_PINGPONG_STORED, fits, begin, run, end},
};

const struct spin_family spin_pingpong = {duties, 2, 1u << WAY_HANDLERS | 1u << WAY_CPU};
