/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of instructions, as tables: one a core. docs/rv32.md has the rules in words,
 * where the numbers come from, and what was never measured.
 *
 * The cost of an instruction has a fixed part, which its neighbours in the code decide
 * (rv32_cost_fixed), and parts that a run adds: a branch taken, the divisor, where in
 * memory an access goes. Each is a function here, so that the interpreter and the
 * replay of a trace count by the same rules:
 *
 *   interpreter   sums up fixed parts when it decodes, adds the others as they happen
 *   replay        rv32_replay_step(), one instruction at a time
 *
 * The two charge the same cycles to different instructions in two cases, where one
 * waits for another: a bank that an atomic keeps busy (the interpreter charges the
 * atomic), and the jump whose target was fetched during a wait (the access).
 */
#ifndef HPU_RV32_TIMING_H
#define HPU_RV32_TIMING_H

#include "hpu/rv32/spec.h"

/* Where memory is, seen from the core. */
enum rv32_area {
    RV32_AREA_L1,      /* the scratchpad of the own cluster: the fixed part */
    RV32_AREA_REMOTE,  /* that of another cluster */
    RV32_AREA_HANDLER, /* L2 handler memory */
    RV32_AREA_PACKET,  /* L2 packet buffer */
    RV32_AREA_PROGRAM, /* L2 program memory, read as data */
    RV32_AREAS
};

/* The cycles for which a handler call makes the core wait, besides its stub (runtime/calls.h): so
 * many cycles, and more for each beat of 64 bytes that it moves. */
enum rv32_call_cost {
    RV32_COST_SEND,         /* NIC send */
    RV32_COST_TO_HOST,      /* host DMA: begun */
    RV32_COST_TO_HOST_WAIT, /* ... and done */
    RV32_COST_FROM_HOST,    /* the same, the other way */
    RV32_COST_FROM_HOST_WAIT,
    RV32_COST_HOST_ATOMIC,
    RV32_COST_HOST_ATOMIC_WAIT,
    RV32_COST_TEST,
    RV32_COST_WAIT,         /* for what is done */
    RV32_COST_LOCAL_ATOMIC, /* 64 bits of L1 */
    RV32_COST_REGISTER,     /* one access to the HPU's registers */
    RV32_COST_COUNTER,      /* two sums in L2 */
    RV32_COST_PRINT,        /* one byte of text */
    RV32_COST_HEADER,       /* 18 words of the message's header, read and written */
    RV32_COSTS
};

struct rv32_call_cycles {
    uint16_t fixed, beat;
};

struct rv32_timing {
    const char *name;
    const char *label; /* how far to trust it, for every output; NULL: measured */
    uint32_t clock_mhz;
    uint8_t class[RV32_CLASSES]; /* cycles; branches not taken, accesses to L1, divisions without
                                    what the divisor adds */
    uint8_t divide_zero;         /* for each leading zero of the divisor */
    uint8_t taken;               /* a branch taken, more than one not taken */
    uint8_t straddle;            /* an instruction in two lines that was not foreseen */
    uint8_t load_use;            /* the next instruction uses what was loaded */
    uint8_t load_jalr;           /* the same, if it is a JALR */
    uint8_t amo_use;             /* the next instruction uses the value that an atomic returned */
    uint8_t alu_jalr;            /* a JALR by a register that the instruction before computed */
    uint8_t amo_busy;            /* an atomic in L1, then an access to the same bank */
    uint8_t waited_jalr;         /* a JALR behind a store or atomic that waited: so much less */
    uint8_t load[RV32_AREAS], store[RV32_AREAS], amo[RV32_AREAS]; /* cycles of an access */
    uint8_t banks;                                                /* of L1, 4 bytes each in turn */
    uint8_t line_shift;   /* a line of instructions has 1 << line_shift bytes */
    uint16_t cache_lines; /* of the instruction cache: a power of two */
    uint8_t cache_ways;   /* of a set: a power of two */
    uint8_t miss;         /* a line that is not there comes so many cycles later (fetch.h) */
    uint8_t around;       /* an HPU from one handler to the next, besides waiting for a packet */
    struct rv32_call_cycles call[RV32_COSTS];
};

extern const struct rv32_timing rv32_timings[];
extern const int rv32_timing_count;

/* rv32_timing_find() gives the table of that name, NULL if there is none. */
const struct rv32_timing *rv32_timing_find(const char *name);

/* rv32_cost_fixed() gives the cycles of an instruction whose successor in the code is
 * `next`, as far as they are known without running it: not taken, L1, no divisor. */
unsigned rv32_cost_fixed(const struct rv32_timing *t, const struct rv32_insn *i,
                         const struct rv32_insn *next);

/*
 * Fetching. The core's prefetch buffer holds one line of code, and asks for the next one
 *
 *   when it comes to the line's last word;
 *   when it hands out the instruction before one that begins in the line's last two bytes
 *   and ends in the next line, but not in the cycle after a jump.
 *
 * A line that is asked for is there a cycle later: in time, except behind a jump to an instruction
 * in two lines (rv32_cost_straddle()), or to the one before it if that one is not in the last word
 * (rv32_cost_late()).
 */

/* rv32_cost_straddle() gives what a jump to this instruction costs more. */
unsigned rv32_cost_straddle(const struct rv32_timing *t, uint32_t pc, unsigned length);

/* rv32_cost_late() gives how much later the instruction `next` behind `i`, at `pc`, comes if a jump
 * led to `i`. What makes `next` wait longer hides it. */
unsigned rv32_cost_late(const struct rv32_timing *t, const struct rv32_insn *i, uint32_t pc,
                        const struct rv32_insn *next);

static inline unsigned rv32_cost_divide(const struct rv32_timing *t, uint32_t divisor)
{
    return t->divide_zero * (divisor != 0 ? (unsigned)__builtin_clz(divisor) : 32u);
}

/* rv32_cost_access() gives what an access costs more than one to aligned L1. */
unsigned rv32_cost_access(const struct rv32_timing *t, enum rv32_class class, enum rv32_area area,
                          uint32_t address, unsigned bytes);

/* rv32_cost_call() gives the cycles of a handler call that moves so many bytes. */
static inline uint32_t rv32_cost_call(const struct rv32_timing *t, enum rv32_call_cost cost,
                                      uint64_t bytes)
{
    uint64_t beats = (bytes + 63) / 64;
    return t->call[cost].fixed + t->call[cost].beat * (uint32_t)beats;
}

/* rv32_same_bank() tells whether two accesses go to the same bank of L1. */
static inline bool rv32_same_bank(const struct rv32_timing *t, uint32_t a, uint32_t b)
{
    return (a >> 2) % t->banks == (b >> 2) % t->banks;
}

/* One instruction of a trace. */
struct rv32_retired {
    struct rv32_insn insn;
    uint32_t pc;
    uint32_t address;    /* of its access to memory */
    enum rv32_area area; /* of that */
    uint32_t divisor;
};

/* Begin with zeros; a gap in the trace begins a new one. */
struct rv32_replay {
    struct rv32_retired before;
    bool begun;
    bool jumped; /* a jump leads to the next instruction; true in the beginning: a call does */
    bool waited; /* `before` took more than the one cycle of an access */
};

/* rv32_replay_step() gives the cycles from one retired instruction to the next one. At the
 * end of a run, where `next` is NULL, a branch counts as not taken and nothing is used. */
unsigned rv32_replay_step(struct rv32_replay *r, const struct rv32_timing *t,
                          const struct rv32_retired *now, const struct rv32_retired *next);

/* rv32_pspin_area() tells where an address of PsPIN's map is, seen from cluster 0. */
enum rv32_area rv32_pspin_area(uint32_t address);

#endif
