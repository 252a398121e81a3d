/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of an SLMP session as the benchmark uses it: engine, socket, and an application
 * that copies what comes into a buffer and counts.
 */
#ifndef BENCH_SLMP_LINK_H
#define BENCH_SLMP_LINK_H

#include "pinwheel/slmp/udp.h"

enum { LINK_WINDOW = 64, LINK_LARGE = 1 << 20, LINK_PORTS = 64 };

struct link;

/* When a receiver answers: never, after each message, or after each window of them. */
enum link_answer { ANSWER_NONE, ANSWER_EACH, ANSWER_WINDOW };

struct link {
    struct slmp *engine;
    struct slmp_udp udp;
    struct slmp_message message[LINK_WINDOW];
    bool busy[LINK_WINDOW];
    unsigned next, outstanding;
    uint64_t received, bytes, sent, failed;
    enum link_answer answer;
    uint8_t *from, *to; /* LINK_LARGE bytes each */
};

struct link_options {
    uint32_t packet; /* bytes of a packet */
    const struct slmp_key *key;
    bool cover;    /* checksums of the payload as well */
    unsigned loss; /* of 10,000 packets that come */
    uint32_t peers;
};

/* link_open() opens a socket of loopback and an engine; ends the program if it cannot. */
struct link *link_open(const struct link_options *);
uint16_t link_port(const struct link *);

/* link_send() sends `length` bytes to a port, waiting for one of the LINK_WINDOW messages
 * to be the caller's again if need be. */
void link_send(struct link *, uint16_t port, size_t length);

/* link_turn() moves what there is to move, without sleeping. */
void link_turn(struct link *);

#endif
