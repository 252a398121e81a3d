/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of timing.h, and the functions that apply them. */
#include "timing.h"

#include <string.h>

/* A command is a load (ISSUE), and a store for INFO and for each word, one cycle each; to wait is a
 * store (WAIT), and the time of the command. docs/rv32-handlers.md derives each row. */
#define PSPIN_CALLS                                                                                \
    .call = {[RV32_COST_SEND] = {17, 0},                                                           \
             [RV32_COST_TO_HOST] = {7, 0},                                                         \
             [RV32_COST_TO_HOST_WAIT] = {26, 1},                                                   \
             [RV32_COST_FROM_HOST] = {7, 0},                                                       \
             [RV32_COST_FROM_HOST_WAIT] = {26, 1},                                                 \
             [RV32_COST_HOST_ATOMIC] = {7, 0},                                                     \
             [RV32_COST_HOST_ATOMIC_WAIT] = {27, 0},                                               \
             [RV32_COST_TEST] = {2, 0},                                                            \
             [RV32_COST_WAIT] = {1, 0},                                                            \
             [RV32_COST_LOCAL_ATOMIC] = {12, 0},                                                   \
             [RV32_COST_REGISTER] = {1, 0},                                                        \
             [RV32_COST_COUNTER] = {54, 0},                                                        \
             [RV32_COST_PRINT] = {4, 0},                                                           \
             [RV32_COST_HEADER] = {36, 0}}

#define RI5CY                                                                                      \
    .class = {[RV32_CLASS_ALU] = 1,   [RV32_CLASS_MUL] = 1,    [RV32_CLASS_MULH] = 5,              \
              [RV32_CLASS_DIV] = 3,   [RV32_CLASS_BRANCH] = 1, [RV32_CLASS_JAL] = 2,               \
              [RV32_CLASS_JALR] = 2,  [RV32_CLASS_LOAD] = 1,   [RV32_CLASS_STORE] = 1,             \
              [RV32_CLASS_AMO] = 1,   [RV32_CLASS_CSR] = 1,    [RV32_CLASS_FENCE] = 1,             \
              [RV32_CLASS_SYSTEM] = 1},                                                            \
    .divide_zero = 1, .taken = 2, .straddle = 1, .load_use = 1, .load_jalr = 2, .amo_use = 1,      \
    .alu_jalr = 1, .amo_busy = 1, .waited_jalr = 1, .load = {1, 22, 21, 20, 21},                   \
    .store = {1, 23, 21, 21, 21}, .amo = {1, 24, 27, 27, 27}, .banks = 64, .line_shift = 4,        \
    .cache_lines = 256, .cache_ways = 4, .miss = 8, .around = 3, PSPIN_CALLS

/* A Cortex-A15, as GCC's description of it for scheduling (cortex-a15-neon.md) has it: for how long
 * an operation takes its pipeline, and how much longer it is until its result can be used. */
#define ARM_REALS                                                                                  \
    [RV32_CLASS_REAL_MOVE] = 1, [RV32_CLASS_REAL_CONVERT] = 1, [RV32_CLASS_REAL_ADD] = 1,          \
    [RV32_CLASS_REAL_ADD_D] = 2, [RV32_CLASS_REAL_MUL] = 1, [RV32_CLASS_REAL_MUL_D] = 2,           \
    [RV32_CLASS_REAL_FMA] = 1, [RV32_CLASS_REAL_FMA_D] = 2, [RV32_CLASS_REAL_DIV] = 10,            \
    [RV32_CLASS_REAL_DIV_D] = 18
#define ARM_REALS_USED                                                                             \
    [RV32_CLASS_REAL_MOVE] = 4, [RV32_CLASS_REAL_CONVERT] = 5, [RV32_CLASS_REAL_ADD] = 5,          \
    [RV32_CLASS_REAL_ADD_D] = 8, [RV32_CLASS_REAL_MUL] = 6, [RV32_CLASS_REAL_MUL_D] = 10,          \
    [RV32_CLASS_REAL_FMA] = 5, [RV32_CLASS_REAL_FMA_D] = 9

const struct rv32_timing rv32_timings[] = {
    {.name = "pspin", .clock_mhz = 1000, RI5CY},
    {.name = "fpspin",
     .label = "L2 latencies of PsPIN, whose interconnect has fewer stages",
     .clock_mhz = 40,
     RI5CY},
    /* A core that predicts branches, at the clock of the sPIN paper's simulations. */
    {.name = "arm",
     .label = "uncalibrated",
     .clock_mhz = 2500,
     .class = {[RV32_CLASS_ALU] = 1,
               [RV32_CLASS_MUL] = 3,
               [RV32_CLASS_MULH] = 4,
               [RV32_CLASS_DIV] = 4,
               [RV32_CLASS_BRANCH] = 1,
               [RV32_CLASS_JAL] = 1,
               [RV32_CLASS_JALR] = 1,
               [RV32_CLASS_LOAD] = 1,
               [RV32_CLASS_STORE] = 1,
               [RV32_CLASS_AMO] = 8,
               [RV32_CLASS_CSR] = 1,
               [RV32_CLASS_FENCE] = 1,
               [RV32_CLASS_SYSTEM] = 1,
               ARM_REALS},
     .real_use = {ARM_REALS_USED},
     .taken = 0,
     .load_use = 2,
     .load_jalr = 3,
     .amo_use = 2,
     .load = {1, 50, 50, 50, 50},
     .store = {1, 50, 50, 50, 50},
     .amo = {8, 60, 60, 60, 60},
     .banks = 64,
     .line_shift = 6,
     .cache_lines = 512,
     .cache_ways = 2,
     .miss = 20,
     PSPIN_CALLS},
};

const int rv32_timing_count = sizeof(rv32_timings) / sizeof(rv32_timings[0]);

const struct rv32_timing *rv32_timing_find(const char *name)
{
    for (int i = 0; i < rv32_timing_count; i++) {
        if (strcmp(rv32_timings[i].name, name) == 0) {
            return &rv32_timings[i];
        }
    }
    return NULL;
}

unsigned rv32_cost_fixed(const struct rv32_timing *t, const struct rv32_insn *i,
                         const struct rv32_insn *next)
{
    unsigned class = rv32_traits[i->op].class, cycles = t->class[class];
    bool used = rv32_reads(next, rv32_writes(i)), jalr = next->op == RV32_JALR;
    if (used && class == RV32_CLASS_LOAD) {
        cycles += jalr ? t->load_jalr : t->load_use;
    } else if (used && class == RV32_CLASS_AMO) {
        cycles += t->amo_use;
    } else if (used && class >= RV32_CLASS_REAL_MOVE) {
        cycles += t->real_use[class];
    } else if (used && jalr && class >= RV32_CLASS_ALU && class <= RV32_CLASS_DIV) {
        cycles += t->alu_jalr;
    }
    return cycles;
}

unsigned rv32_cost_straddle(const struct rv32_timing *t, uint32_t pc, unsigned length)
{
    uint32_t line = 1u << t->line_shift;
    return pc % line + length > line ? t->straddle : 0;
}

unsigned rv32_cost_late(const struct rv32_timing *t, const struct rv32_insn *i, uint32_t pc,
                        const struct rv32_insn *next)
{
    enum { WORD = 4, HALF = 2 };
    uint32_t line = 1u << t->line_shift, end = pc % line + i->length;
    bool unforeseen = end == line - HALF && pc % line < line - WORD && next->length > HALF;
    /* An instruction of several cycles hides the wait for the straddling one; behind a jump the
     * core does not come to that. */
    return unforeseen && rv32_cost_fixed(t, i, next) == 1 ? t->straddle : 0;
}

unsigned rv32_cost_access(const struct rv32_timing *t, enum rv32_class class, enum rv32_area area,
                          uint32_t address, unsigned bytes)
{
    const uint8_t *cycles = class == RV32_CLASS_LOAD    ? t->load
                            : class == RV32_CLASS_STORE ? t->store
                                                        : t->amo;
    /* the second access of one that crosses a word, or of a double that crosses two */
    unsigned word = bytes > 4 ? 8 : 4;
    unsigned crossing = address % word + bytes > word ? cycles[area] : 0;
    return cycles[area] - cycles[RV32_AREA_L1] + crossing;
}

static bool accesses(const struct rv32_insn *i)
{
    return rv32_traits[i->op].bytes > 0;
}

/* Returns the cycles for which this instruction waits for the memory bank that the last one still
 * uses. */
static unsigned bank_wait(const struct rv32_replay *r, const struct rv32_timing *t,
                          const struct rv32_retired *now)
{
    bool busy = r->begun && rv32_traits[r->before.insn.op].class == RV32_CLASS_AMO &&
                r->before.area == RV32_AREA_L1 && accesses(&now->insn) &&
                now->area == RV32_AREA_L1 && rv32_same_bank(t, r->before.address, now->address);
    /* An instruction that uses the atomic's result has waited for that already, and so for the
     * bank. */
    return busy && !rv32_reads(&now->insn, rv32_writes(&r->before.insn)) ? t->amo_busy : 0;
}

unsigned rv32_replay_step(struct rv32_replay *r, const struct rv32_timing *t,
                          const struct rv32_retired *now, const struct rv32_retired *next)
{
    static const struct rv32_insn nothing = {.op = RV32_ILLEGAL};
    unsigned class = rv32_traits[now->insn.op].class;
    unsigned cycles = rv32_cost_fixed(t, &now->insn, next != NULL ? &next->insn : &nothing);
    bool waited = false;
    if (accesses(&now->insn)) {
        unsigned more =
            rv32_cost_access(t, class, now->area, now->address, rv32_traits[now->insn.op].bytes) +
            bank_wait(r, t, now);
        waited = more > 0 && class != RV32_CLASS_LOAD;
        cycles += more;
    } else if (class == RV32_CLASS_DIV) {
        cycles += rv32_cost_divide(t, now->divisor);
    }
    bool jumped = next != NULL && next->pc != now->pc + now->insn.length;
    if (class == RV32_CLASS_BRANCH && jumped) {
        cycles += t->taken;
    }
    if (next != NULL && (jumped || class == RV32_CLASS_JAL || class == RV32_CLASS_JALR)) {
        cycles += rv32_cost_straddle(t, next->pc, next->insn.length);
    }
    if (class == RV32_CLASS_JALR && r->waited) {
        cycles -= t->waited_jalr;
    }
    if (r->jumped && next != NULL && !jumped && cycles == 1) {
        cycles += rv32_cost_late(t, &now->insn, now->pc, &next->insn);
    }
    *r = (struct rv32_replay){.before = *now, .begun = true, .jumped = jumped, .waited = waited};
    return cycles;
}

enum rv32_area rv32_pspin_area(uint32_t address)
{
    if (address >> 28 == 1 && address < 0x1b000000u) {
        return address < 0x10400000u ? RV32_AREA_L1 : RV32_AREA_REMOTE;
    }
    if (address >> 22 == 0x1b000000u >> 22) {
        return RV32_AREA_L1; /* the address that PsPIN maps to the core's own cluster, too */
    }
    if (address >> 22 == 0x1c000000u >> 22) {
        return RV32_AREA_HANDLER;
    }
    return address >> 22 == 0x1c400000u >> 22 ? RV32_AREA_PACKET : RV32_AREA_PROGRAM;
}
