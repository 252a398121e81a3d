/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the instructions of code.h in this process, as the kernel would: for tests, which need no
 * privilege by it, and for sources of frames that no kernel looks at (files, tap devices).
 *
 * It is as strict as the kernel's verifier, but only on the way that a frame takes: what reads a
 * register that has no value, an address outside frame, metadata, stack or counter, an address as a
 * number, or jumps backwards, ends with RAW_BROKEN.
 */
#ifndef RAW_INTERPRET_H
#define RAW_INTERPRET_H

#include "raw/rules/code.h"

/* What a frame meets, and what the program does with it. */
struct raw_interpreted {
    const uint8_t *frame;
    size_t length;
    uint32_t queue;
    bool no_meta;                 /* the driver has no place for metadata */
    uint64_t sockets;             /* bit i: the XSKMAP has a socket at i */
    struct raw_counter *counters; /* RAW_COUNTERS of them; NULL: the map has none */
    /* results */
    int action;      /* XDP_PASS, XDP_DROP, XDP_REDIRECT */
    int verdict;     /* RAW_NONE unless it was stored */
    uint32_t socket; /* index in the XSKMAP that the program asked for */
    size_t steps;    /* instructions that were run */
    size_t broken;   /* the instruction that ended it */
};

enum { RAW_BROKEN = -1 };

/* raw_interpret() returns 0, or RAW_BROKEN. */
int raw_interpret(const struct raw_code *code, struct raw_interpreted *run);

#endif
