/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code made ready to run: decoded once, with its fixed costs summed up.
 *
 *   code   | c.beqz | c.slli | add         | lw          | ...      bytes
 *   cells  |  [0]   |  [1]   |  [2]        |  [3]        | ...      16 bytes each
 *   then   | cells of instructions that begin inside others, each run ended by GOTO
 *
 * Instructions are laid out as a sweep from the first byte finds them, so that the next
 * one is the next cell. Code may jump into the middle of what the sweep took for one
 * instruction; for every even address that the sweep did not stop at there is a cell
 * behind, and a GOTO to where the two ways meet. Some instructions have a second cell, for those
 * who jump to them: what follows is fetched later then.
 *
 * Costs are charged when control arrives somewhere, for everything from there to the
 * next jump that must be taken: rest[c]. A branch that is taken gives back what was
 * charged for the way not taken, so its cell holds one sum for cycles and one for
 * instructions, and an instruction that does not jump adds nothing at run time. What has
 * really been used when control is at c is therefore what was charged minus rest[c].
 */
#ifndef HPU_RV32_PROGRAM_H
#define HPU_RV32_PROGRAM_H

#include "hpu/rv32/image.h"
#include "hpu/rv32/timing.h"

/* Steps of a cell that are no operations of spec.h. */
enum rv32_cell_op {
    RV32_CELL_LI = RV32_OPS, /* rd = imm */
    RV32_CELL_MV,            /* rd = rs1 */
    RV32_CELL_CSR,           /* rd = the counter imm */
    RV32_CELL_GOTO,          /* control goes on at imm, `cycles` later (add_late_entries()) */
    RV32_CELL_OUTSIDE,       /* control left the code, by the instruction at imm */
    RV32_CELL_OPS
};

enum { RV32_SINK = 32 }; /* the register that writes to zero go to */

struct rv32_cell {
    uint8_t op;           /* enum rv32_op or rv32_cell_op */
    uint8_t rd, rs1, rs2; /* of jumps, rs2 is the length */
    int32_t imm;          /* of branches and JAL: how many cells on */
    int32_t cycles;       /* of branches and JAL: what taking them charges */
    int32_t instructions; /* the same */
};

_Static_assert(sizeof(struct rv32_cell) == 16, "four cells in a cache line");

struct rv32_sum {
    int32_t cycles, instructions;
};

struct rv32_program {
    const struct rv32_timing *timing;
    uint32_t base, size; /* of the code */
    struct rv32_cell *cells;
    uint32_t *pcs;          /* by cell */
    struct rv32_sum *rest;  /* by cell: what is charged on arrival */
    struct rv32_sum *enter; /* by cell: what a JALR to it charges */
    uint32_t count;
    uint32_t *at;     /* by half-word of the code: the cell to jump to */
    uint8_t *lengths; /* by half-word: of an instruction there; NULL: fetching is not counted */
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

/* rv32_program_insn() decodes the instruction at an even address of the code. One that the
 * end of the code cuts off is illegal. */
struct rv32_insn rv32_program_insn(const struct rv32_segment *code, uint32_t pc);

#endif
