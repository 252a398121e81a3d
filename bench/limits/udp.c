/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP sockets of loopback without a protocol: a ping-pong, and a stream of segments of
 * Ethernet's length that the kernel cuts and joins; ../slmp/raw_udp.h says how.
 */
#include "limits.h"
#include "raw_udp.h"

enum { SEGMENT = 1472, PING_MOST = 8 };

static struct raw raw;

static int open_sockets(void)
{
    uint16_t mine, theirs;
    raw_open(&raw);
    mine = raw_port(&raw);
    if (turn_exchange(&mine, sizeof(mine), &theirs, sizeof(theirs)) != sizeof(theirs)) {
        return turn_fail("the other rank has no port");
    }
    raw_connect(&raw, theirs);
    return 0;
}

static bool fits_ping(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size <= PING_MOST;
}

static int ping(const struct turn_work *work, uint64_t iterations)
{
    raw_ping(&raw, turn_rank() == 0, (unsigned)iterations);
    return 0;
}

static int stream(const struct turn_work *work, uint64_t iterations)
{
    uint64_t bytes = iterations * TURN_WINDOW_BANDWIDTH * work->size;
    (turn_rank() == 0 ? raw_send : raw_receive)(&raw, SEGMENT, bytes);
    return 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_LATENCY, .supports = fits_ping, .run = ping},
    {.bench = BENCH_BANDWIDTH, .run = stream},
};

const struct limit limit_udp = {"udp", open_sockets, duties, sizeof(duties) / sizeof(duties[0])};
