/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of instructions, as tables: one for each kind of core. docs/rv32.md has the rules in
 * words, the sources of the numbers, and what was never measured.
 *
 * The cost of an instruction has a fixed part, by the instruction and its neighbours in the code
 * (rv32_cost_fixed()), and parts that depend on the run: a branch taken, the divisor, the memory
 * that an access goes to. Each part is a function of this file, so that the interpreter and the
 * replay of a trace count by the same rules:
 *
 *   interpreter   sums up fixed parts when it decodes, adds the others as it runs
 *   replay        rv32_replay_step(), one instruction at a time
 *
 * In two cases, where one instruction waits for another, the two charge the same cycles to
 * different ones: for a bank that an atomic keeps busy the interpreter charges the atomic; and for
 * a jump whose target was computed during a wait, the access that waited.
 */
#ifndef HPU_RV32_TIMING_H
#define HPU_RV32_TIMING_H

#include "hpu/rv32/spec.h"

/* Where an address is, seen from the core. */
enum rv32_area {
    /* the scratchpad of the core's own cluster: an access costs only its fixed part */
    RV32_AREA_L1,
    RV32_AREA_REMOTE,  /* the scratchpad of another cluster */
    RV32_AREA_HANDLER, /* L2 handler memory */
    RV32_AREA_PACKET,  /* L2 packet buffer */
    RV32_AREA_PROGRAM, /* L2 program memory, read as data */
    RV32_AREAS
};

/* Kinds of handler calls, by the cycles for which they make the core wait, besides their stub
 * (runtime/calls.h): a number of cycles, and more for each beat of 64 bytes moved. */
enum rv32_call_cost {
    RV32_COST_SEND,         /* NIC send */
    RV32_COST_TO_HOST,      /* host DMA: begun */
    RV32_COST_TO_HOST_WAIT, /* ... and done */
    RV32_COST_FROM_HOST,    /* host DMA in the other direction */
    RV32_COST_FROM_HOST_WAIT,
    RV32_COST_HOST_ATOMIC,
    RV32_COST_HOST_ATOMIC_WAIT,
    RV32_COST_TEST,
    RV32_COST_WAIT,         /* for a transfer that is done */
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
    /* how far its numbers can be trusted, to be shown in every output; NULL: they were measured */
    const char *label;
    uint32_t clock_mhz;
    /* cycles by class; of branches those not taken, of accesses those to L1, of divisions those
     * without the share of the divisor */
    uint8_t class[RV32_CLASSES];
    uint8_t divide_zero; /* for each leading zero of the divisor */
    uint8_t taken;       /* how much more a branch costs if it is taken */
    /* an instruction that lies in two lines, and whose second one was not prefetched */
    uint8_t straddle;
    uint8_t load_use;  /* the next instruction uses the value that was loaded */
    uint8_t load_jalr; /* ... and is a JALR */
    uint8_t amo_use;   /* the next instruction uses the value that an atomic returned */
    /* the next instruction uses what an operation on reals has computed, by its class */
    uint8_t real_use[RV32_CLASSES];
    uint8_t alu_jalr; /* a JALR by a register that the instruction before computed */
    uint8_t amo_busy; /* an atomic in L1, then an access to the same bank */
    /* by how much less a JALR waits behind a store or atomic that has waited */
    uint8_t waited_jalr;
    uint8_t load[RV32_AREAS], store[RV32_AREAS], amo[RV32_AREAS]; /* cycles of an access */
    /* banks of L1, which take turns by 4 bytes */
    uint8_t banks;
    uint8_t line_shift;   /* a line of instructions has 1 << line_shift bytes */
    uint16_t cache_lines; /* of the instruction cache: a power of two */
    uint8_t cache_ways;   /* of a set: a power of two */
    uint8_t miss;         /* by how many cycles a line comes later that is not cached (fetch.h) */
    /* cycles of an HPU from one handler to the next, besides the wait for a packet */
    uint8_t around;
    struct rv32_call_cycles call[RV32_COSTS];
};

extern const struct rv32_timing rv32_timings[];
extern const int rv32_timing_count;

/* rv32_timing_find() returns the table of that name, NULL if there is none. */
const struct rv32_timing *rv32_timing_find(const char *name);

/* rv32_timing_reals() tells whether the cores have the extensions F and D. */
static inline bool rv32_timing_reals(const struct rv32_timing *t)
{
    return t->class[RV32_CLASS_REAL_ADD] != 0;
}

/* rv32_cost_fixed() returns the cycles of an instruction whose successor in the code is `next`, as
 * far as they are known without a run: branches not taken, accesses to L1, divisions without the
 * share of the divisor. */
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

/* rv32_cost_straddle() returns how many cycles more a jump to this instruction costs. */
unsigned rv32_cost_straddle(const struct rv32_timing *t, uint32_t pc, unsigned length);

/* rv32_cost_late() returns by how many cycles the instruction `next`, behind `i` at `pc`, is
 * fetched late after a jump to `i`. A longer wait of `next` for another reason hides this. */
unsigned rv32_cost_late(const struct rv32_timing *t, const struct rv32_insn *i, uint32_t pc,
                        const struct rv32_insn *next);

static inline unsigned rv32_cost_divide(const struct rv32_timing *t, uint32_t divisor)
{
    return t->divide_zero * (divisor != 0 ? (unsigned)__builtin_clz(divisor) : 32u);
}

/* rv32_cost_access() returns how many cycles an access costs more than an aligned one to L1. */
unsigned rv32_cost_access(const struct rv32_timing *t, enum rv32_class class, enum rv32_area area,
                          uint32_t address, unsigned bytes);

/* rv32_cost_call() returns the cycles of a handler call that moves `bytes` bytes. */
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
    uint32_t address;    /* of its memory access */
    enum rv32_area area; /* area of that address */
    uint32_t divisor;
};

/* State of a replay. It begins as zeros, and again after each gap in the trace. */
struct rv32_replay {
    struct rv32_retired before;
    bool begun;
    bool jumped; /* a jump leads to the next instruction; true at first, since a call leads there */
    bool waited; /* `before` took longer than the one cycle of an access */
};

/* rv32_replay_step() returns the cycles from one retired instruction to the next. At the end of a
 * trace, where `next` is NULL, a branch counts as not taken, and the result as not used. */
unsigned rv32_replay_step(struct rv32_replay *r, const struct rv32_timing *t,
                          const struct rv32_retired *now, const struct rv32_retired *next);

/* rv32_pspin_area() returns the area of an address in PsPIN's map, seen from cluster 0. */
enum rv32_area rv32_pspin_area(uint32_t address);

#endif
