/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes a word: its operation and operands, by the table of spec.c. */
#include "spec.h"

/* Returns bits high..low of the word, shifted to the bottom. */
static uint32_t bits(uint32_t word, unsigned high, unsigned low)
{
    return word >> low & (0xffffffffu >> (31 - (high - low)));
}

/* Returns the lowest `width` bits of `value` as a signed number. */
static int32_t extend(uint32_t value, unsigned width)
{
    return (int32_t)(value << (32 - width)) >> (32 - width);
}

static int32_t branch_offset(uint32_t w)
{
    return extend(bits(w, 31, 31) << 12 | bits(w, 7, 7) << 11 | bits(w, 30, 25) << 5 |
                      bits(w, 11, 8) << 1,
                  13);
}

static int32_t jump_offset(uint32_t w)
{
    return extend(bits(w, 31, 31) << 20 | bits(w, 19, 12) << 12 | bits(w, 20, 20) << 11 |
                      bits(w, 30, 21) << 1,
                  21);
}

static void operands_32(struct rv32_insn *i, uint32_t w)
{
    i->rd = (uint8_t)bits(w, 11, 7);
    i->rs1 = (uint8_t)bits(w, 19, 15);
    i->rs2 = (uint8_t)bits(w, 24, 20);
    i->rs3 = (uint8_t)bits(w, 31, 27);
    switch (i->spec->format) {
    case RV32_FORMAT_I:
    case RV32_FORMAT_LOAD:
        i->imm = extend(bits(w, 31, 20), 12);
        break;
    case RV32_FORMAT_STORE:
        i->imm = extend(bits(w, 31, 25) << 5 | bits(w, 11, 7), 12);
        break;
    case RV32_FORMAT_BRANCH:
        i->imm = branch_offset(w);
        break;
    case RV32_FORMAT_U:
        i->imm = (int32_t)(w & 0xfffff000u);
        break;
    case RV32_FORMAT_J:
        i->imm = jump_offset(w);
        break;
    case RV32_FORMAT_SHIFT:
        i->imm = i->rs2;
        break;
    case RV32_FORMAT_CSR:
    case RV32_FORMAT_CSRI:
    case RV32_FORMAT_FENCE:
        i->imm = (int32_t)bits(w, 31, 20);
        break;
    default:
        break;
    }
}

static int32_t compressed_jump(uint32_t w)
{
    return extend(bits(w, 12, 12) << 11 | bits(w, 8, 8) << 10 | bits(w, 10, 9) << 8 |
                      bits(w, 6, 6) << 7 | bits(w, 7, 7) << 6 | bits(w, 2, 2) << 5 |
                      bits(w, 11, 11) << 4 | bits(w, 5, 3) << 1,
                  12);
}

static int32_t compressed_branch(uint32_t w)
{
    return extend(bits(w, 12, 12) << 8 | bits(w, 6, 5) << 6 | bits(w, 2, 2) << 5 |
                      bits(w, 11, 10) << 3 | bits(w, 4, 3) << 1,
                  9);
}

/* Returns the offset in a c.lw or c.sw. */
static int32_t compressed_word(uint32_t w)
{
    return (int32_t)(bits(w, 5, 5) << 6 | bits(w, 12, 10) << 3 | bits(w, 6, 6) << 2);
}

/* Returns the offset in a c.fld or c.fsd. */
static int32_t compressed_double(uint32_t w)
{
    return (int32_t)(bits(w, 6, 5) << 6 | bits(w, 12, 10) << 3);
}

enum { ZERO = 0, RA = 1, SP = 2, SMALL = 8 /* the first register of three-bit fields */ };

static void set(struct rv32_insn *i, uint32_t rd, uint32_t rs1, uint32_t rs2, int32_t imm)
{
    i->rd = (uint8_t)rd;
    i->rs1 = (uint8_t)rs1;
    i->rs2 = (uint8_t)rs2;
    i->imm = imm;
}

/* Operands of compressed loads and stores of doubles. */
static void operands_double(struct rv32_insn *i, uint32_t w)
{
    uint32_t high = bits(w, 11, 7), low = bits(w, 6, 2);
    uint32_t first = SMALL + bits(w, 9, 7), second = SMALL + bits(w, 4, 2);
    switch (i->spec->format) {
    case RV32_FORMAT_CLD:
        set(i, second, first, ZERO, compressed_double(w));
        break;
    case RV32_FORMAT_CSD:
        set(i, ZERO, first, second, compressed_double(w));
        break;
    case RV32_FORMAT_CLDSP:
        set(i, high, SP, ZERO,
            (int32_t)(bits(w, 4, 2) << 6 | bits(w, 12, 12) << 5 | bits(w, 6, 5) << 3));
        break;
    case RV32_FORMAT_CSDSP:
        set(i, ZERO, SP, low, (int32_t)(bits(w, 9, 7) << 6 | bits(w, 12, 10) << 3));
        break;
    default:
        break;
    }
}

static void operands_16(struct rv32_insn *i, uint32_t w)
{
    uint32_t high = bits(w, 11, 7), low = bits(w, 6, 2);
    uint32_t first = SMALL + bits(w, 9, 7), second = SMALL + bits(w, 4, 2);
    int32_t imm = extend(bits(w, 12, 12) << 5 | low, 6);
    switch (i->spec->format) {
    case RV32_FORMAT_CIW:
        set(i, second, SP, ZERO,
            (int32_t)(bits(w, 10, 7) << 6 | bits(w, 12, 11) << 4 | bits(w, 5, 5) << 3 |
                      bits(w, 6, 6) << 2));
        break;
    case RV32_FORMAT_CL:
        set(i, second, first, ZERO, compressed_word(w));
        break;
    case RV32_FORMAT_CS:
        set(i, ZERO, first, second, compressed_word(w));
        break;
    case RV32_FORMAT_CI:
        set(i, high, high, ZERO, imm);
        break;
    case RV32_FORMAT_CLI:
        set(i, high, ZERO, ZERO, imm);
        break;
    case RV32_FORMAT_C16SP:
        set(i, SP, SP, ZERO,
            extend(bits(w, 12, 12) << 9 | bits(w, 4, 3) << 7 | bits(w, 5, 5) << 6 |
                       bits(w, 2, 2) << 5 | bits(w, 6, 6) << 4,
                   10));
        break;
    case RV32_FORMAT_CLUI:
        set(i, high, ZERO, ZERO, (int32_t)((uint32_t)imm << 12));
        break;
    case RV32_FORMAT_CSLLI:
        set(i, high, high, ZERO, (int32_t)low);
        break;
    case RV32_FORMAT_CSHIFT:
        set(i, first, first, ZERO, (int32_t)low);
        break;
    case RV32_FORMAT_CANDI:
        set(i, first, first, ZERO, imm);
        break;
    case RV32_FORMAT_CA:
        set(i, first, first, second, 0);
        break;
    case RV32_FORMAT_CJ:
        set(i, ZERO, ZERO, ZERO, compressed_jump(w));
        break;
    case RV32_FORMAT_CJAL:
        set(i, RA, ZERO, ZERO, compressed_jump(w));
        break;
    case RV32_FORMAT_CB:
        set(i, ZERO, first, ZERO, compressed_branch(w));
        break;
    case RV32_FORMAT_CLWSP:
        set(i, high, SP, ZERO,
            (int32_t)(bits(w, 3, 2) << 6 | bits(w, 12, 12) << 5 | bits(w, 6, 4) << 2));
        break;
    case RV32_FORMAT_CSWSP:
        set(i, ZERO, SP, low, (int32_t)(bits(w, 8, 7) << 6 | bits(w, 12, 9) << 2));
        break;
    case RV32_FORMAT_CJR:
        set(i, ZERO, high, ZERO, 0);
        break;
    case RV32_FORMAT_CJALR:
        set(i, RA, high, ZERO, 0);
        break;
    case RV32_FORMAT_CMV:
        set(i, high, ZERO, low, 0);
        break;
    case RV32_FORMAT_CADD:
        set(i, high, high, low, 0);
        break;
    default:
        set(i, ZERO, ZERO, ZERO, 0);
        operands_double(i, w);
        break;
    }
}

/* Numbers registers of reals behind the others. */
static void number_reals(struct rv32_insn *i)
{
    unsigned reals = rv32_traits[i->op].reals;
    i->rd += (reals & RV32_REAL_RD) != 0 ? RV32_REALS_AT : 0;
    i->rs1 += (reals & RV32_REAL_RS1) != 0 ? RV32_REALS_AT : 0;
    i->rs2 += (reals & RV32_REAL_RS2) != 0 ? RV32_REALS_AT : 0;
    i->rs3 += (reals & RV32_REAL_RS3) != 0 ? RV32_REALS_AT : 0;
}

static bool is_reserved(const struct rv32_insn *i, const struct rv32_spec *s)
{
    bool rounding = i->rounding > RV32_ROUND_AWAY && i->rounding != RV32_ROUND_DYNAMIC;
    return s->name == NULL || ((rv32_traits[s->op].reals & RV32_REAL_ROUNDS) != 0 && rounding);
}

struct rv32_insn rv32_decode(uint32_t word)
{
    struct rv32_insn i = {.op = RV32_ILLEGAL, .length = (uint8_t)rv32_length((uint16_t)word)};
    i.bits = i.length == 4 ? word : word & 0xffff;
    for (size_t n = 0; n < rv32_spec_count; n++) {
        const struct rv32_spec *s = &rv32_specs[n];
        if ((i.bits & s->mask) != s->match || ((s->match & 3) == 3) != (i.length == 4)) {
            continue;
        }
        i.rounding = (uint8_t)bits(word, 14, 12);
        if (is_reserved(&i, s)) {
            return i;
        }
        i.op = s->op;
        i.spec = s;
        if (i.length == 4) {
            operands_32(&i, word);
        } else {
            operands_16(&i, i.bits);
        }
        number_reals(&i);
        return i;
    }
    return i;
}
