/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subject that misbehaves. Usage: fake WAY [ANYTHING]; it offers the 8-byte ping-pong
 * and the bandwidth, and does at the ping-pong, by WAY:
 *
 *   well    all is done          hang    rank 1 stops, with a child that stops too
 *   crash   rank 1 aborts        error   rank 1 reports a failure
 *   leave   rank 1 exits         wrong   rank 0 finds wrong data
 *   mute    never gets ready     exit    ends before it is ready
 *   refuse  reports a failure before it is ready
 */
#include "harness/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *way;

static bool is(const char *name)
{
    return strcmp(way, name) == 0;
}

static void stop(void)
{
    for (;;) {
        pause();
    }
}

static bool small(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && (work->bench == BENCH_BANDWIDTH || work->size == 8);
}

static int nap(const struct turn_work *work, uint64_t iterations)
{
    for (double until = turn_now() + 1e-6 * (double)iterations; turn_now() < until;) {
    }
    return 0;
}

static int misbehave(const struct turn_work *work, uint64_t iterations)
{
    if (turn_rank() == 1 && is("hang")) {
        if (fork() == 0) {
            setpgid(0, 0); /* as launchers do */
        }
        stop();
    }
    if (turn_rank() == 1 && is("crash")) {
        abort();
    }
    if (turn_rank() == 1 && is("leave")) {
        fprintf(stderr, "fake: these are its last words\n");
        exit(7);
    }
    if (turn_rank() == 1 && is("error")) {
        return turn_fail("an error as ordered");
    }
    if (turn_rank() == 0 && is("wrong")) {
        uint64_t data[4] = {0};
        turn_fill(data, sizeof(data), 1);
        data[2] ^= 1;
        return turn_check(data, sizeof(data), 1);
    }
    return nap(work, iterations);
}

int main(int argc, char **argv)
{
    static const struct turn_duty duties[] = {
        {.bench = BENCH_LATENCY, .supports = small, .run = misbehave},
        {.bench = BENCH_BANDWIDTH, .supports = small, .run = nap},
    };
    way = argc > 1 ? argv[1] : "well";
    if (is("exit")) {
        return 3;
    }
    if (turn_join(-1) < 0) {
        return 1;
    }
    if (is("refuse")) {
        turn_fail("it does not feel like it");
        return 1;
    }
    if (is("mute")) {
        stop();
    }
    return turn_serve(duties, 2) == 0 ? 0 : 1;
}
