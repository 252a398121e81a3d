/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code made ready to run: decoded once, with its fixed costs summed up.
 *
 *   code   | c.beqz | c.slli | add         | lw          | ...      bytes
 *   cells  |  [0]   |  [1]   |  [2]        |  [3]        | ...      16 bytes each
 *   then   | cells of instructions that begin inside others, each run ended by GOTO
 *
 * A sweep from the first byte on lays out the instructions, so that the next instruction is the
 * next cell. Code may jump into the middle of what the sweep took for one instruction: so behind
 * the sweep there are cells for every even address at which it did not stop, each run of them ended
 * by a GOTO to the cell of the sweep where both continue alike. Some instructions have a second
 * cell for jumps to them, after which the next instruction is fetched later.
 *
 * When control arrives at a cell c, the core charges all costs from there to the next jump that is
 * always taken: rest[c]. A branch that is taken gives back what was charged for the code that it
 * skips; its cell holds the difference, in cycles and in instructions. So an instruction that does
 * not jump charges nothing at run time. The cycles used when control is at c are those charged
 * minus rest[c].
 */
#ifndef HPU_RV32_PROGRAM_H
#define HPU_RV32_PROGRAM_H

#include "hpu/rv32/image.h"
#include "hpu/rv32/timing.h"

/* Operations of cells besides those of spec.h. */
enum rv32_cell_op {
    RV32_CELL_LI = RV32_OPS, /* rd = imm */
    RV32_CELL_MV,            /* rd = rs1 */
    RV32_CELL_CSR,           /* rd = the counter imm */
    RV32_CELL_GOTO,          /* control continues at imm, `cycles` later (add_late_entries()) */
    RV32_CELL_OUTSIDE,       /* control has left the code, by the instruction at imm */
    RV32_CELL_OPS
};

enum { RV32_SINK = 32 }; /* index of the register that takes writes to register zero */

struct rv32_cell {
    uint8_t op;           /* enum rv32_op or rv32_cell_op */
    uint8_t rd, rs1, rs2; /* of jumps, rs2 is the length of the instruction */
    /* of branches and JAL: distance to the target, in cells; of operations on reals: rs3, and from
     * bit 8 on the rounding mode */
    int32_t imm;
    int32_t cycles;       /* of branches and JAL: charged when it is taken */
    int32_t instructions; /* also charged when it is taken */
};

_Static_assert(sizeof(struct rv32_cell) == 16, "four cells in a cache line");

struct rv32_sum {
    int32_t cycles, instructions;
};

struct rv32_program {
    const struct rv32_timing *timing;
    uint32_t base, size; /* of the code */
    bool reals;          /* it has the extensions F and D */
    struct rv32_cell *cells;
    uint32_t *pcs;          /* by cell: address of its instruction */
    struct rv32_sum *rest;  /* by cell: what is charged when control arrives there */
    struct rv32_sum *enter; /* by cell: what a JALR to it charges */
    uint32_t count;
    uint32_t *at; /* by half-word of the code: the cell for a jump to it */
    /* by half-word: length of the instruction there; NULL: fetches are not counted */
    uint8_t *lengths;
};

enum rv32_program_kind {
    RV32_WARM, /* every instruction is in the cache */
    RV32_CACHE /* the core fetches through the instruction cache (fetch.h) */
};

/* rv32_program_make() decodes the code of an image. */
int rv32_program_make(struct rv32_program *p, const struct rv32_image *image,
                      const struct rv32_timing *timing, enum rv32_program_kind kind,
                      struct rv32_error *error);
void rv32_program_free(struct rv32_program *p);

/* rv32_program_insn() decodes the instruction at an even address of the code. An instruction that
 * is cut off by the end of the code is illegal. */
struct rv32_insn rv32_program_insn(const struct rv32_segment *code, uint32_t pc);

#endif
