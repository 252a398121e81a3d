/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instruction set RV32IMAFDC with Zicsr as data: one row an encoding, with its
 * name, the bits that tell it from others, how its operands lie in the word, and
 * its operation. The 16-bit encodings are rows of their own, with the operation that they
 * abbreviate. Decoder, disassembler, timing and interpreter all use this table.
 *
 *   word ──rv32_decode()──► struct rv32_insn { operation, registers, immediate, row }
 *
 * A row matches when (word & mask) == match; the first match wins, so special
 * cases come before the general one. A word without a row is illegal.
 */
#ifndef HPU_RV32_SPEC_H
#define HPU_RV32_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rv32_op {
    RV32_ILLEGAL,
    RV32_LUI,
    RV32_AUIPC,
    RV32_JAL,
    RV32_JALR,
    RV32_BEQ,
    RV32_BNE,
    RV32_BLT,
    RV32_BGE,
    RV32_BLTU,
    RV32_BGEU,
    RV32_LB,
    RV32_LH,
    RV32_LW,
    RV32_LBU,
    RV32_LHU,
    RV32_SB,
    RV32_SH,
    RV32_SW,
    RV32_ADDI,
    RV32_SLTI,
    RV32_SLTIU,
    RV32_XORI,
    RV32_ORI,
    RV32_ANDI,
    RV32_SLLI,
    RV32_SRLI,
    RV32_SRAI,
    RV32_ADD,
    RV32_SUB,
    RV32_SLL,
    RV32_SLT,
    RV32_SLTU,
    RV32_XOR,
    RV32_SRL,
    RV32_SRA,
    RV32_OR,
    RV32_AND,
    RV32_FENCE,
    RV32_ECALL,
    RV32_EBREAK,
    RV32_MUL,
    RV32_MULH,
    RV32_MULHSU,
    RV32_MULHU,
    RV32_DIV,
    RV32_DIVU,
    RV32_REM,
    RV32_REMU,
    RV32_LR,
    RV32_SC,
    RV32_AMOSWAP,
    RV32_AMOADD,
    RV32_AMOXOR,
    RV32_AMOAND,
    RV32_AMOOR,
    RV32_AMOMIN,
    RV32_AMOMAX,
    RV32_AMOMINU,
    RV32_AMOMAXU,
    RV32_CSRRW,
    RV32_CSRRS,
    RV32_CSRRC,
    RV32_CSRRWI,
    RV32_CSRRSI,
    RV32_CSRRCI,
    /* reals: loads and stores, then from the first to the last what real.c computes; of a pair the
     * even one is that of floats */
    RV32_FLW,
    RV32_FLD,
    RV32_FSW,
    RV32_FSD,
    RV32_FADD_S,
    RV32_FADD_D,
    RV32_FSUB_S,
    RV32_FSUB_D,
    RV32_FMUL_S,
    RV32_FMUL_D,
    RV32_FDIV_S,
    RV32_FDIV_D,
    RV32_FSQRT_S,
    RV32_FSQRT_D,
    RV32_FMADD_S,
    RV32_FMADD_D,
    RV32_FMSUB_S,
    RV32_FMSUB_D,
    RV32_FNMSUB_S,
    RV32_FNMSUB_D,
    RV32_FNMADD_S,
    RV32_FNMADD_D,
    RV32_FSGNJ_S,
    RV32_FSGNJ_D,
    RV32_FSGNJN_S,
    RV32_FSGNJN_D,
    RV32_FSGNJX_S,
    RV32_FSGNJX_D,
    RV32_FMIN_S,
    RV32_FMIN_D,
    RV32_FMAX_S,
    RV32_FMAX_D,
    RV32_FEQ_S,
    RV32_FEQ_D,
    RV32_FLT_S,
    RV32_FLT_D,
    RV32_FLE_S,
    RV32_FLE_D,
    RV32_FCLASS_S,
    RV32_FCLASS_D,
    RV32_FCVT_W_S,
    RV32_FCVT_W_D,
    RV32_FCVT_WU_S,
    RV32_FCVT_WU_D,
    RV32_FCVT_S_W,
    RV32_FCVT_D_W,
    RV32_FCVT_S_WU,
    RV32_FCVT_D_WU,
    RV32_FCVT_S_D,
    RV32_FCVT_D_S,
    RV32_FMV_X_W,
    RV32_FMV_W_X,
    RV32_OPS,
    RV32_REAL_FIRST = RV32_FADD_S,
    RV32_REAL_LAST = RV32_FMV_W_X
};

/* Classes of operations: an operation's class decides what it costs (timing.h), and which unit it
 * needs. */
enum rv32_class {
    RV32_CLASS_NONE, /* never executed */
    RV32_CLASS_ALU,
    RV32_CLASS_MUL,
    RV32_CLASS_MULH,
    RV32_CLASS_DIV,
    RV32_CLASS_BRANCH,
    RV32_CLASS_JAL,
    RV32_CLASS_JALR,
    RV32_CLASS_LOAD,
    RV32_CLASS_STORE,
    RV32_CLASS_AMO,
    RV32_CLASS_CSR,
    RV32_CLASS_FENCE,
    RV32_CLASS_SYSTEM,
    RV32_CLASS_REAL_MOVE, /* signs, extremes, comparisons, moves between the files of registers */
    RV32_CLASS_REAL_CONVERT,
    RV32_CLASS_REAL_ADD, /* of floats; behind each that of doubles */
    RV32_CLASS_REAL_ADD_D,
    RV32_CLASS_REAL_MUL,
    RV32_CLASS_REAL_MUL_D,
    RV32_CLASS_REAL_FMA,
    RV32_CLASS_REAL_FMA_D,
    RV32_CLASS_REAL_DIV, /* and roots */
    RV32_CLASS_REAL_DIV_D,
    RV32_CLASSES
};

/* How operands lie in a word, and how the disassembler writes them. */
enum rv32_format {
    RV32_FORMAT_NONE,
    RV32_FORMAT_R,      /* rd,rs1,rs2 */
    RV32_FORMAT_I,      /* rd,rs1,imm */
    RV32_FORMAT_SHIFT,  /* rd,rs1,0xshamt */
    RV32_FORMAT_LOAD,   /* rd,imm(rs1) */
    RV32_FORMAT_STORE,  /* rs2,imm(rs1) */
    RV32_FORMAT_BRANCH, /* rs1,rs2,target */
    RV32_FORMAT_U,      /* rd,0xupper */
    RV32_FORMAT_J,      /* rd,target */
    RV32_FORMAT_AMO,    /* rd,rs2,(rs1), with .aq and .rl in the name */
    RV32_FORMAT_LR,     /* rd,(rs1) */
    RV32_FORMAT_CSR,    /* rd,csr,rs1 */
    RV32_FORMAT_CSRI,   /* rd,csr,uimm, which lies in the bits of rs1 */
    RV32_FORMAT_FENCE,  /* predecessors,successors */
    RV32_FORMAT_R2,     /* rd,rs1 */
    RV32_FORMAT_R4,     /* rd,rs1,rs2,rs3 */
    RV32_FORMAT_CIW,    /* 16 bits from here on: rd',sp,imm */
    RV32_FORMAT_CL,     /* rd',imm(rs1') */
    RV32_FORMAT_CS,     /* rs2',imm(rs1') */
    RV32_FORMAT_CI,     /* rd,imm with rs1 = rd */
    RV32_FORMAT_CLI,    /* rd,imm with rs1 = zero */
    RV32_FORMAT_C16SP,  /* sp,imm in steps of 16 */
    RV32_FORMAT_CLUI,   /* rd,0xupper */
    RV32_FORMAT_CSLLI,  /* rd,0xshamt; rd alone if that is 0 */
    RV32_FORMAT_CSHIFT, /* as CSLLI, of rd' */
    RV32_FORMAT_CANDI,  /* rd',imm */
    RV32_FORMAT_CA,     /* rd',rs2' */
    RV32_FORMAT_CJ,     /* target, linking to zero */
    RV32_FORMAT_CJAL,   /* target, linking to ra */
    RV32_FORMAT_CB,     /* rs1',target */
    RV32_FORMAT_CLWSP,  /* rd,imm(sp) */
    RV32_FORMAT_CSWSP,  /* rs2,imm(sp) */
    RV32_FORMAT_CJR,    /* rs1, linking to zero */
    RV32_FORMAT_CJALR,  /* rs1, linking to ra */
    RV32_FORMAT_CMV,    /* rd,rs2 with rs1 = zero */
    RV32_FORMAT_CADD,   /* rd,rs2 with rs1 = rd */
    RV32_FORMAT_CLD,    /* as CL, CS, CLWSP, CSWSP, of doubles */
    RV32_FORMAT_CSD,
    RV32_FORMAT_CLDSP,
    RV32_FORMAT_CSDSP,
};

struct rv32_spec {
    const char *name;
    uint32_t mask, match;
    uint8_t op;     /* enum rv32_op */
    uint8_t format; /* enum rv32_format */
};

/* Properties of an operation, in any encoding. */
struct rv32_traits {
    uint8_t class;       /* enum rv32_class */
    uint8_t bytes;       /* bytes of memory that it accesses; 0: none */
    bool reads1, reads2; /* it reads register rs1; rs2 */
    bool writes;         /* it writes register rd */
    uint8_t reals;       /* enum rv32_reals */
};

/* Which registers of an operation hold reals, and whether its word has a rounding mode. */
enum rv32_reals {
    RV32_REAL_RD = 1,
    RV32_REAL_RS1 = 2,
    RV32_REAL_RS2 = 4,
    RV32_REAL_RS3 = 8, /* no other operation reads rs3 */
    RV32_REAL_ROUNDS = 16
};

/* Registers of reals are numbered behind those of integers. */
enum { RV32_REALS_AT = 32 };

/* Rounding modes, as the word and the register frm have them. */
enum rv32_rounding {
    RV32_ROUND_NEAR,
    RV32_ROUND_ZERO,
    RV32_ROUND_DOWN,
    RV32_ROUND_UP,
    RV32_ROUND_AWAY, /* to the nearest, halves away from zero */
    RV32_ROUND_DYNAMIC = 7
};

struct rv32_insn {
    uint8_t op;     /* enum rv32_op */
    uint8_t length; /* 2 or 4 */
    uint8_t rd, rs1, rs2, rs3;
    uint8_t rounding; /* enum rv32_rounding */
    /* sign-extended; LUI and AUIPC: shifted; jumps: distance from this instruction; CSR: its
     * number */
    int32_t imm;
    uint32_t bits;
    const struct rv32_spec *spec; /* NULL: illegal */
};

/* The rows, in the order in which the decoder tries them: 32-bit encodings, then 16-bit ones. */
extern const struct rv32_spec rv32_specs[];
extern const size_t rv32_spec_count;

extern const struct rv32_traits rv32_traits[RV32_OPS];

/* rv32_length() returns the number of bytes of an instruction, from its first 16 bits. */
static inline unsigned rv32_length(uint16_t low)
{
    return (low & 3) == 3 ? 4 : 2;
}

/* rv32_decode() decodes the instruction at the start of `word`; the upper half is ignored for a
 * 16-bit one. A word that has no row becomes RV32_ILLEGAL, with the length that its lowest bits
 * tell. */
struct rv32_insn rv32_decode(uint32_t word);

/* rv32_reads() tells whether the instruction reads register `r`; false for r = 0. */
static inline bool rv32_reads(const struct rv32_insn *i, unsigned r)
{
    const struct rv32_traits *t = &rv32_traits[i->op];
    return r != 0 && ((t->reads1 && i->rs1 == r) || (t->reads2 && i->rs2 == r) ||
                      ((t->reals & RV32_REAL_RS3) != 0 && i->rs3 == r));
}

/* rv32_writes() returns the register that the instruction writes; 0: none. */
static inline unsigned rv32_writes(const struct rv32_insn *i)
{
    return rv32_traits[i->op].writes ? i->rd : 0;
}

enum { RV32_TEXT = 64 }; /* room for the text of any instruction */

/* rv32_disassemble() writes the instruction as text, by the name of its encoding ("c.lw a5,0(a0)"),
 * with a tab between name and operands, and jump targets as addresses; `pc` is the address of the
 * instruction. */
void rv32_disassemble(const struct rv32_insn *i, uint32_t pc, char text[RV32_TEXT]);

extern const char *const rv32_register_names[2 * RV32_REALS_AT];

/* The CSRs that handlers may read, and with reals those that they may write. */
enum rv32_csr {
    RV32_CSR_FFLAGS = 1,
    RV32_CSR_FRM = 2,
    RV32_CSR_FCSR = 3,
    RV32_CSR_CYCLE = 0xc00,
    RV32_CSR_TIME = 0xc01,
    RV32_CSR_INSTRET = 0xc02,
    RV32_CSR_CYCLEH = 0xc80,
    RV32_CSR_TIMEH = 0xc81,
    RV32_CSR_INSTRETH = 0xc82,
};

#endif
