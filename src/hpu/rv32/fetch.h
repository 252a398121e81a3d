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
 * When the next line is asked for, timing.h says. One request is under way at a time: a jump that
 * finds one waits until its line has come, wanted or not, and asks then. Nothing is fetched ahead
 * but that one line: the cache's own prefetcher moves on command only.
 *
 * What instructions take when all code is there is charged by the interpreter. This here adds what
 * fetching makes them wait: with everything in the cache, nothing.
 */
#ifndef HPU_RV32_FETCH_H
#define HPU_RV32_FETCH_H

#include "hpu/rv32/program.h"

enum { RV32_CACHE_LINES_MAX = 1024 };

struct rv32_fetch {
    /* The instruction that was shown last: where it is, when it was handed out and came to EX, and
     * when it began there. */
    uint32_t pc;
    unsigned length, class;
    unsigned class_before; /* of the one before it */
    int64_t handed, in_ex, begun;
    /* Set by the core: so long the next instruction waits in EX for a bank of memory, which is
     * charged to the one that keeps it busy. */
    unsigned bank_wait;
    /* Cycles: since `here` the line in the buffer is there; if `next` is set, the line behind it
     * was asked for in `next_asked` and is there in `next_here`. */
    int64_t here, next_asked, next_here;
    bool next;
    unsigned victim;                       /* of a set that is full */
    uint32_t cached[RV32_CACHE_LINES_MAX]; /* lines, plus 1; the ways of a set side by side */
};

/* rv32_fetch_cool() empties the cache. */
void rv32_fetch_cool(struct rv32_fetch *f);

/* rv32_fetch_line() puts the line of an address into the cache: other code has run there. */
void rv32_fetch_line(struct rv32_fetch *f, const struct rv32_timing *t, uint32_t pc);

/* rv32_fetch_begin() leads control to `pc`; it would begin there in `cycle` if the line is cached.
 * rv32_fetch_next() for that instruction comes next. */
void rv32_fetch_begin(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc,
                      int64_t cycle);

/* rv32_fetch_next() is told of each instruction in turn, by its place and operation, and of the
 * cycle in which it would begin if nothing had to be fetched since the one before began. It gives
 * the cycle in which it begins. A pc that is not in the code is of others, whose code is there. */
int64_t rv32_fetch_next(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc, uint8_t op,
                        int64_t cycle);

#endif
