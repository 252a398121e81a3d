/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching from an instruction cache that may not hold the code: the core's prefetch buffer and
 * the cache behind it, as the public sources of RI5CY (riscv_prefetch_L0_buffer.sv,
 * riscv_L0_buffer.sv) and of its cluster's cache (icache_mp_128_pf) have them.
 *
 *     cache ──line──► buffer (one line) ──instruction──► ID ──► EX
 *
 *     asked   in cycle r; the line is there in r + 1, or `miss` cycles later
 *     handed  an instruction leaves the buffer when it is there and ID is free
 *     begun   it begins in EX two cycles later, or when the one before has done
 *
 * timing.h says when the buffer asks for the next line. It has one request at a time: a jump waits
 * until the line of an earlier request has come, needed or not, and asks then. No other line is
 * fetched ahead: the cache's own prefetcher works on command only.
 *
 * The interpreter charges the cycles that instructions take when all code is in the cache. The
 * functions of this file return how much later each begins because it had to be fetched.
 */
#ifndef HPU_RV32_FETCH_H
#define HPU_RV32_FETCH_H

#include "hpu/rv32/program.h"

enum { RV32_CACHE_LINES_MAX = 1024 };

struct rv32_fetch {
    /* The instruction shown last: its address, the cycle in which it was handed out, that in which
     * it came to EX, and that in which it began there. */
    uint32_t pc;
    unsigned length, class;
    unsigned class_before; /* of the instruction before that */
    int64_t handed, in_ex, begun;
    /* The core sets it: how long the next instruction waits in EX for a memory bank. Those cycles
     * are charged to the instruction that keeps the bank busy. */
    unsigned bank_wait;
    /* Cycles: the line in the buffer is there since `here`; if `next` is set, the line behind it
     * was asked for in `next_asked`, and is there in `next_here`. */
    int64_t here, next_asked, next_here;
    bool next;
    unsigned victim; /* way to be replaced next in a set that is full */
    /* numbers of lines, plus 1; the ways of a set are adjacent */
    uint32_t cached[RV32_CACHE_LINES_MAX];
};

/* rv32_fetch_cool() empties the cache. */
void rv32_fetch_cool(struct rv32_fetch *f);

/* rv32_fetch_line() puts the line of an address into the cache, as if other code in it had run. */
void rv32_fetch_line(struct rv32_fetch *f, const struct rv32_timing *t, uint32_t pc);

/* rv32_fetch_begin() leads control to `pc`, where the instruction would begin in `cycle` if its
 * line was cached. The next call is rv32_fetch_next() for that instruction. */
void rv32_fetch_begin(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc,
                      int64_t cycle);

/* The core calls rv32_fetch_next() for each instruction in turn, with its address, its operation,
 * and the cycle in which it would begin if nothing had to be fetched since the last one began. It
 * returns the cycle in which the instruction begins. A pc outside the program is one of other code,
 * which counts as cached. */
int64_t rv32_fetch_next(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc, uint8_t op,
                        int64_t cycle);

#endif
