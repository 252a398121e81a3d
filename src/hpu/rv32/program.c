/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making programs (program.h), in three passes: lay out a cell for every even address, sum up the
 * costs from the end backwards, link jumps. Until it is linked, the imm of a jump is the distance
 * in bytes that its instruction has.
 */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { NOWHERE = 0xffffffff };

struct maker {
    struct rv32_program *p;
    const struct rv32_segment *code;
    struct rv32_insn *insns; /* by cell; the op is RV32_ILLEGAL for GOTO and OUTSIDE */
};

/* The extensions F and D. */
static bool is_real(const struct rv32_insn *i)
{
    return i->op >= RV32_FLW && i->op <= RV32_REAL_LAST;
}

struct rv32_insn rv32_program_insn(const struct rv32_segment *code, uint32_t pc)
{
    uint32_t word = 0, offset = pc - code->base, left = code->size - offset;
    memcpy(&word, code->bytes + offset, left < 4 ? left : 4);
    struct rv32_insn i = rv32_decode(word);
    if (i.length > left) {
        i = (struct rv32_insn){.op = RV32_ILLEGAL, .length = (uint8_t)left, .bits = word};
    }
    return i;
}

/* ---- First pass: layout ---- */

static struct rv32_cell *add_cell(struct maker *m, uint32_t pc, uint8_t op)
{
    struct rv32_program *p = m->p;
    struct rv32_cell *c = &p->cells[p->count];
    *c = (struct rv32_cell){.op = op};
    p->pcs[p->count] = pc;
    m->insns[p->count++] = (struct rv32_insn){.op = RV32_ILLEGAL};
    return c;
}

static bool reads_counter(const struct rv32_insn *i)
{
    /* These instructions set or clear bits, and none if rs1 is zero: then they only read. A write
     * to a counter is illegal. */
    bool reads = (i->op == RV32_CSRRS || i->op == RV32_CSRRC || i->op == RV32_CSRRSI ||
                  i->op == RV32_CSRRCI) &&
                 i->rs1 == 0;
    bool low = i->imm >= RV32_CSR_CYCLE && i->imm <= RV32_CSR_INSTRET;
    bool high = i->imm >= RV32_CSR_CYCLEH && i->imm <= RV32_CSR_INSTRETH;
    return reads && (low || high);
}

/* Whether it reads or writes the rounding mode or the flags of reals. */
static bool rules_reals(const struct rv32_insn *i)
{
    return i->imm >= RV32_CSR_FFLAGS && i->imm <= RV32_CSR_FCSR;
}

static void add_insn(struct maker *m, uint32_t pc, const struct rv32_insn *i)
{
    bool real = is_real(i);
    struct rv32_cell *c = add_cell(m, pc, real && !m->p->reals ? RV32_ILLEGAL : i->op);
    m->insns[m->p->count - 1] = *i;
    c->rd = i->rd != 0 ? i->rd % RV32_REALS_AT : RV32_SINK;
    c->rs1 = i->rs1 % RV32_REALS_AT;
    c->rs2 = i->rs2 % RV32_REALS_AT;
    c->imm = i->imm;
    if (real && i->op >= RV32_REAL_FIRST) {
        c->imm = i->rs3 % RV32_REALS_AT | i->rounding << 8;
    }
    switch (rv32_traits[i->op].class) {
    case RV32_CLASS_ALU:
        if (i->op == RV32_LUI || (i->op == RV32_ADDI && i->rs1 == 0)) {
            c->op = RV32_CELL_LI;
        } else if (i->op == RV32_AUIPC) {
            c->op = RV32_CELL_LI;
            c->imm = (int32_t)(pc + (uint32_t)i->imm);
        } else if (i->op == RV32_ADDI && i->imm == 0) {
            c->op = RV32_CELL_MV;
        } else if (i->op == RV32_ADD && i->rs1 == 0) {
            c->op = RV32_CELL_MV;
            c->rs1 = i->rs2;
        }
        break;
    case RV32_CLASS_JAL:
    case RV32_CLASS_JALR:
        c->rs2 = i->length;
        break;
    case RV32_CLASS_CSR:
        c->op = reads_counter(i)                ? RV32_CELL_CSR
                : m->p->reals && rules_reals(i) ? i->op
                                                : RV32_ILLEGAL;
        break;
    default:
        break;
    }
}

/* Lays out instructions from `offset` on, until one that has a cell already, or the end. */
static void lay_out(struct maker *m, uint32_t offset)
{
    struct rv32_program *p = m->p;
    uint32_t last = p->base + offset;
    while (offset + 1 < p->size && p->at[offset / 2] == NOWHERE) {
        uint32_t pc = p->base + offset;
        struct rv32_insn i = rv32_program_insn(m->code, pc);
        p->at[offset / 2] = p->count;
        last = pc;
        add_insn(m, pc, &i);
        offset += i.length;
    }
    if (offset + 1 < p->size) {
        struct rv32_cell *c = add_cell(m, p->base + offset, RV32_CELL_GOTO);
        c->imm = (int32_t)(p->at[offset / 2] - (uint32_t)(c - p->cells));
    } else {
        add_cell(m, p->base + p->size, RV32_CELL_OUTSIDE)->imm = (int32_t)last;
    }
}

/* Notes the length of the instruction at each address at which the prefetch buffer may look. */
static void note_lengths(struct maker *m)
{
    struct rv32_program *p = m->p;
    for (uint32_t offset = 0; offset + 1 < p->size; offset += 2) {
        p->lengths[offset / 2] = rv32_program_insn(m->code, p->base + offset).length;
    }
}

/* ---- Second pass: costs ---- */

static const struct rv32_insn *next_insn(const struct maker *m, uint32_t cell)
{
    const struct rv32_program *p = m->p;
    for (cell++; p->cells[cell].op == RV32_CELL_GOTO;) {
        cell += (uint32_t)p->cells[cell].imm;
    }
    return &m->insns[cell];
}

/* Sums up the costs of cells from the last to the first, since the sum of a cell includes that of
 * the next one. The sum of a GOTO is that of its target, always an earlier cell: so the caller sums
 * up the sweep, which has no GOTO, before the cells that were added behind it. */
static void sum_up(struct maker *m, uint32_t first, uint32_t end)
{
    struct rv32_program *p = m->p;
    for (uint32_t c = end; c-- > first;) {
        struct rv32_sum *rest = &p->rest[c];
        uint8_t op = p->cells[c].op;
        unsigned class = rv32_traits[m->insns[c].op].class;
        if (op == RV32_CELL_GOTO) {
            *rest = p->rest[c + (uint32_t)p->cells[c].imm];
        } else if (op != RV32_CELL_OUTSIDE && op != RV32_ILLEGAL) {
            rest->cycles = (int32_t)rv32_cost_fixed(p->timing, &m->insns[c], next_insn(m, c));
            rest->instructions = 1;
            if (class != RV32_CLASS_JAL && class != RV32_CLASS_JALR) {
                rest->cycles += p->rest[c + 1].cycles;
                rest->instructions += p->rest[c + 1].instructions;
            }
        }
    }
}

static void sum_entries(struct maker *m)
{
    struct rv32_program *p = m->p;
    for (uint32_t c = 0; c < p->count; c++) {
        p->enter[c] = p->rest[c];
        if (m->insns[c].length != 0 && p->lengths == NULL) {
            p->enter[c].cycles +=
                (int32_t)rv32_cost_straddle(p->timing, p->pcs[c], m->insns[c].length);
        }
    }
}

/* Adds entries for jumps where the instruction after the target is fetched late (timing.h). Such
 * jumps lead to a cell of their own for the target, followed by a GOTO, which takes that time, to
 * the instruction after it. */
static void add_late_entries(struct maker *m)
{
    struct rv32_program *p = m->p;
    for (uint32_t offset = 0; offset + 1 < p->size; offset += 2) {
        uint32_t c = p->at[offset / 2], entry = p->count;
        const struct rv32_insn *insn = &m->insns[c];
        if (insn->length == 0 || p->cells[c].op == RV32_ILLEGAL) {
            continue;
        }
        unsigned late = rv32_cost_late(p->timing, insn, p->pcs[c], next_insn(m, c));
        if (late == 0) {
            continue;
        }
        *add_cell(m, p->pcs[c], 0) = p->cells[c];
        m->insns[entry] = *insn;
        struct rv32_cell *on = add_cell(m, p->pcs[c] + insn->length, RV32_CELL_GOTO);
        on->imm = (int32_t)(c + 1 - (entry + 1));
        on->cycles = (int32_t)late;
        p->rest[entry + 1] = p->rest[c + 1];
        p->rest[entry + 1].cycles += (int32_t)late;
        p->rest[entry] = p->rest[c];
        p->rest[entry].cycles += (int32_t)late;
        p->at[offset / 2] = entry;
    }
}

/* ---- Third pass: branches ---- */

static void link_jump(struct maker *m, uint32_t c)
{
    struct rv32_program *p = m->p;
    struct rv32_cell *cell = &p->cells[c];
    uint32_t target = p->pcs[c] + (uint32_t)cell->imm, offset = target - p->base, to;
    if (offset < p->size && offset + 1 < p->size) {
        to = p->at[offset / 2];
    } else {
        to = p->count;
        add_cell(m, target, RV32_CELL_OUTSIDE)->imm = (int32_t)p->pcs[c];
    }
    struct rv32_sum not_taken = {0, 0};
    int32_t taken = 0;
    if (rv32_traits[cell->op].class == RV32_CLASS_BRANCH) {
        not_taken = p->rest[c + 1];
        taken = p->timing->taken;
    }
    cell->imm = (int32_t)(to - c);
    cell->cycles = taken + p->enter[to].cycles - not_taken.cycles;
    cell->instructions = p->enter[to].instructions - not_taken.instructions;
}

static void make(struct maker *m)
{
    struct rv32_program *p = m->p;
    if (p->lengths != NULL) {
        note_lengths(m);
    }
    lay_out(m, 0);
    uint32_t sweep = p->count;
    sum_up(m, 0, sweep);
    for (uint32_t offset = 0; offset + 1 < p->size; offset += 2) {
        if (p->at[offset / 2] == NOWHERE) {
            uint32_t first = p->count;
            lay_out(m, offset);
            sum_up(m, first, p->count);
        }
    }
    if (p->lengths == NULL) {
        add_late_entries(m);
    }
    sum_entries(m);
    uint32_t count = p->count;
    for (uint32_t c = 0; c < count; c++) {
        unsigned class = rv32_traits[m->insns[c].op].class;
        if (class == RV32_CLASS_BRANCH || class == RV32_CLASS_JAL) {
            link_jump(m, c);
        }
    }
}

int rv32_program_make(struct rv32_program *p, const struct rv32_image *image,
                      const struct rv32_timing *timing, enum rv32_program_kind kind,
                      struct rv32_error *error)
{
    if (image->reals && !rv32_timing_reals(timing)) {
        return rv32_fail(error,
                         "%s: has instructions of the extensions F and D, and the cores of the "
                         "table %s do not: choose another one (PINWHEEL_HPU_TIMING=arm), or "
                         "compile without --reals",
                         image->name, timing->name);
    }
    *p = (struct rv32_program){.timing = timing,
                               .base = image->code.base,
                               .size = image->code.size,
                               .reals = image->reals};
    struct maker m = {.p = p, .code = &image->code};
    /* Room: for each half-word its instruction, the GOTO that ends a run, and a jump out of the
     * code; and for each eighth of them the two cells of a late entry. */
    size_t halves = p->size / 2 + 1, room = 4 * halves + 1;
    p->cells = calloc(room, sizeof(*p->cells));
    p->pcs = calloc(room, sizeof(*p->pcs));
    p->rest = calloc(room, sizeof(*p->rest));
    p->enter = calloc(room, sizeof(*p->enter));
    p->at = malloc(halves * sizeof(*p->at));
    p->lengths = kind == RV32_CACHE ? calloc(halves, 1) : NULL;
    m.insns = calloc(room, sizeof(*m.insns));
    int rc = 0;
    if ((kind == RV32_CACHE && p->lengths == NULL) || p->cells == NULL || p->pcs == NULL ||
        p->rest == NULL || p->enter == NULL || p->at == NULL || m.insns == NULL) {
        rv32_program_free(p);
        rc = rv32_fail(error, "%s: no memory for %u bytes of code", image->name, image->code.size);
    } else {
        memset(p->at, 0xff, halves * sizeof(*p->at));
        make(&m);
    }
    free(m.insns);
    return rc;
}

void rv32_program_free(struct rv32_program *p)
{
    free(p->cells);
    free(p->pcs);
    free(p->rest);
    free(p->enter);
    free(p->at);
    free(p->lengths);
    *p = (struct rv32_program){0};
}
