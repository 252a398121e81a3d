/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits: UDP sockets of loopback without a protocol. A ping-pong of 8 bytes, and a
 * stream of segments that the kernel cuts and joins, 32 batches ahead at most, so that
 * nothing is lost.
 */
#ifndef BENCH_SLMP_RAW_UDP_H
#define BENCH_SLMP_RAW_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct raw {
    int fd;
    uint8_t *buffer;
};

/* raw_open() ends the program if it cannot. */
void raw_open(struct raw *);
uint16_t raw_port(const struct raw *);
void raw_connect(struct raw *, uint16_t port);

void raw_ping(struct raw *, bool first, unsigned trips);

/* Both sides move `bytes`, at least, in segments of `segment`. */
void raw_send(struct raw *, uint32_t segment, uint64_t bytes);
void raw_receive(struct raw *, uint32_t segment, uint64_t bytes);

#endif
