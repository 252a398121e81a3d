/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions as text, by the table of spec.c. */
#include "spec.h"

#include <stdio.h>
#include <string.h>

static const char *csr_name(uint32_t csr, char number[16])
{
    switch (csr) {
    case RV32_CSR_FFLAGS:
        return "fflags";
    case RV32_CSR_FRM:
        return "frm";
    case RV32_CSR_FCSR:
        return "fcsr";
    case RV32_CSR_CYCLE:
        return "cycle";
    case RV32_CSR_TIME:
        return "time";
    case RV32_CSR_INSTRET:
        return "instret";
    case RV32_CSR_CYCLEH:
        return "cycleh";
    case RV32_CSR_TIMEH:
        return "timeh";
    case RV32_CSR_INSTRETH:
        return "instreth";
    default:
        snprintf(number, 16, "0x%x", csr);
        return number;
    }
}

/* Writes the set of a fence: which of input, output, reads, writes it orders. */
static const char *fence_set(uint32_t set, char text[5])
{
    size_t n = 0;
    for (int b = 3; b >= 0; b--) {
        if (set >> b & 1) {
            text[n++] = "wroi"[b];
        }
    }
    text[n] = '\0';
    return n > 0 ? text : "unknown";
}

/* Returns the rounding mode as the last operand; "" if that is the one of frm, or an operation that
 * is exact has the mode that compilers write there. */
static const char *rounding(const struct rv32_insn *i)
{
    static const char *const modes[] = {",rne", ",rtz", ",rdn", ",rup", ",rmm", "", "", ""};
    bool exact = i->op == RV32_FCVT_D_W || i->op == RV32_FCVT_D_WU || i->op == RV32_FCVT_D_S;
    return (rv32_traits[i->op].reals & RV32_REAL_ROUNDS) == 0 || (exact && i->rounding == 0)
               ? ""
               : modes[i->rounding];
}

void rv32_disassemble(const struct rv32_insn *i, uint32_t pc, char text[RV32_TEXT])
{
    if (i->spec == NULL) {
        snprintf(text, RV32_TEXT, i->length == 4 ? ".word\t0x%08x" : ".short\t0x%04x", i->bits);
        return;
    }
    const char *name = i->spec->name;
    const char *rd = rv32_register_names[i->rd], *rs1 = rv32_register_names[i->rs1],
               *rs2 = rv32_register_names[i->rs2];
    static const char *const orders[] = {"", ".rl", ".aq", ".aqrl"};
    const char *order = orders[i->bits >> 25 & 3];
    uint32_t target = pc + (uint32_t)i->imm, upper = (uint32_t)i->imm >> 12;
    char number[16], before[5], after[5];
    switch (i->spec->format) {
    case RV32_FORMAT_R:
        snprintf(text, RV32_TEXT, "%s\t%s,%s,%s%s", name, rd, rs1, rs2, rounding(i));
        break;
    case RV32_FORMAT_R2:
        snprintf(text, RV32_TEXT, "%s\t%s,%s%s", name, rd, rs1, rounding(i));
        break;
    case RV32_FORMAT_R4:
        snprintf(text, RV32_TEXT, "%s\t%s,%s,%s,%s%s", name, rd, rs1, rs2,
                 rv32_register_names[i->rs3], rounding(i));
        break;
    case RV32_FORMAT_I:
    case RV32_FORMAT_CIW:
        snprintf(text, RV32_TEXT, "%s\t%s,%s,%d", name, rd, rs1, i->imm);
        break;
    case RV32_FORMAT_SHIFT:
        snprintf(text, RV32_TEXT, "%s\t%s,%s,0x%x", name, rd, rs1, (uint32_t)i->imm);
        break;
    case RV32_FORMAT_LOAD:
    case RV32_FORMAT_CL:
    case RV32_FORMAT_CLWSP:
    case RV32_FORMAT_CLD:
    case RV32_FORMAT_CLDSP:
        snprintf(text, RV32_TEXT, "%s\t%s,%d(%s)", name, rd, i->imm, rs1);
        break;
    case RV32_FORMAT_STORE:
    case RV32_FORMAT_CS:
    case RV32_FORMAT_CSWSP:
    case RV32_FORMAT_CSD:
    case RV32_FORMAT_CSDSP:
        snprintf(text, RV32_TEXT, "%s\t%s,%d(%s)", name, rs2, i->imm, rs1);
        break;
    case RV32_FORMAT_BRANCH:
        snprintf(text, RV32_TEXT, "%s\t%s,%s,%x", name, rs1, rs2, target);
        break;
    case RV32_FORMAT_U:
    case RV32_FORMAT_CLUI:
        snprintf(text, RV32_TEXT, "%s\t%s,0x%x", name, rd, upper);
        break;
    case RV32_FORMAT_J:
        snprintf(text, RV32_TEXT, "%s\t%s,%x", name, rd, target);
        break;
    case RV32_FORMAT_AMO:
        snprintf(text, RV32_TEXT, "%s%s\t%s,%s,(%s)", name, order, rd, rs2, rs1);
        break;
    case RV32_FORMAT_LR:
        snprintf(text, RV32_TEXT, "%s%s\t%s,(%s)", name, order, rd, rs1);
        break;
    case RV32_FORMAT_CSR:
        snprintf(text, RV32_TEXT, "%s\t%s,%s,%s", name, rd, csr_name((uint32_t)i->imm, number),
                 rs1);
        break;
    case RV32_FORMAT_CSRI:
        snprintf(text, RV32_TEXT, "%s\t%s,%s,%u", name, rd, csr_name((uint32_t)i->imm, number),
                 i->rs1);
        break;
    case RV32_FORMAT_FENCE:
        snprintf(text, RV32_TEXT, "%s\t%s,%s", name, fence_set((uint32_t)i->imm >> 4 & 15, before),
                 fence_set((uint32_t)i->imm & 15, after));
        break;
    case RV32_FORMAT_CI:
    case RV32_FORMAT_CLI:
    case RV32_FORMAT_C16SP:
    case RV32_FORMAT_CANDI:
        snprintf(text, RV32_TEXT, "%s\t%s,%d", name, rd, i->imm);
        break;
    case RV32_FORMAT_CSLLI:
    case RV32_FORMAT_CSHIFT:
        snprintf(text, RV32_TEXT, i->imm != 0 ? "%s\t%s,0x%x" : "%s\t%s", name, rd,
                 (uint32_t)i->imm);
        break;
    case RV32_FORMAT_CA:
    case RV32_FORMAT_CMV:
    case RV32_FORMAT_CADD:
        snprintf(text, RV32_TEXT, "%s\t%s,%s", name, rd, rs2);
        break;
    case RV32_FORMAT_CJ:
    case RV32_FORMAT_CJAL:
        snprintf(text, RV32_TEXT, "%s\t%x", name, target);
        break;
    case RV32_FORMAT_CB:
        snprintf(text, RV32_TEXT, "%s\t%s,%x", name, rs1, target);
        break;
    case RV32_FORMAT_CJR:
    case RV32_FORMAT_CJALR:
        snprintf(text, RV32_TEXT, "%s\t%s", name, rs1);
        break;
    default:
        snprintf(text, RV32_TEXT, "%s", name);
        break;
    }
}
