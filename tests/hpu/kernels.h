/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The measured kernels of golden/, with a core for them in PsPIN's address map:
 *
 *   10000000  L1 of the own cluster: stack, packet, scratchpad      1c300000  handler memory
 *   10400000  L1 of the other one                                   1c400000  packet buffer
 */
#ifndef TESTS_HPU_KERNELS_H
#define TESTS_HPU_KERNELS_H

#include "hpu/rv32/core.h"

enum { KERNELS_MEMORY = 0x20000, KERNELS_CALLS = 64 };

struct kernels_call {
    char function[32];
    int number; /* of this function's calls */
    bool runs;  /* false: only replayed */
    uint32_t arguments[RV32_ARGUMENTS];
    /* As measured, from cycles.csv. */
    unsigned instructions, cold, warm;
};

struct kernels {
    struct rv32_image image;
    struct rv32_program program;
    struct rv32_core core;
    uint8_t own[KERNELS_MEMORY], other[KERNELS_MEMORY], handler[4096], packet[4096];
    struct kernels_call calls[KERNELS_CALLS];
    int call_count;
};

/* kernels_open() loads golden/ from a folder, for one kind of program; NULL, with a word on
 * stderr, if that fails. */
struct kernels *kernels_open(const char *folder, enum rv32_program_kind kind);
void kernels_close(struct kernels *k);

/* kernels_run() makes a call, with memory as the measured program had it. */
const struct rv32_result *kernels_run(struct kernels *k, const struct kernels_call *call);

#endif
