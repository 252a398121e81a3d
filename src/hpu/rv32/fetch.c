/* SPDX-License-Identifier: BSD-3-Clause */
/* The prefetch buffer and the instruction cache (fetch.h). */
#include "fetch.h"

#include <string.h>

enum { WORD = 4, HALF = 2 };

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint32_t line_of(const struct rv32_timing *t, uint32_t pc)
{
    return pc >> t->line_shift;
}

/* ---- The cache ---- */

/* Returns whether a line is in the cache, and puts it there if not. */
static bool find_line(struct rv32_fetch *f, const struct rv32_timing *t, uint32_t line)
{
    uint32_t sets = t->cache_lines / t->cache_ways;
    uint32_t *way = &f->cached[line % sets * t->cache_ways], *free_way = NULL;
    for (unsigned i = 0; i < t->cache_ways; i++) {
        if (way[i] == line + 1) {
            return true;
        }
        if (way[i] == 0) {
            free_way = &way[i];
        }
    }
    if (free_way == NULL) {
        free_way = &way[f->victim++ % t->cache_ways];
    }
    *free_way = line + 1;
    return false;
}

void rv32_fetch_cool(struct rv32_fetch *f)
{
    *f = (struct rv32_fetch){.victim = 0};
}

void rv32_fetch_line(struct rv32_fetch *f, const struct rv32_timing *t, uint32_t pc)
{
    find_line(f, t, line_of(t, pc));
}

/* ---- The buffer ---- */

/* Returns when a line is in the buffer that is asked for in this cycle. */
static int64_t ask(struct rv32_fetch *f, const struct rv32_timing *t, uint32_t line, int64_t cycle)
{
    return cycle + 1 + (find_line(f, t, line) ? 0 : t->miss);
}

static unsigned length_at(const struct rv32_program *p, uint32_t pc)
{
    uint32_t offset = pc - p->base;
    return offset < p->size ? p->lengths[offset / 2] : HALF;
}

static void ask_next(struct rv32_fetch *f, const struct rv32_timing *t, uint32_t pc, int64_t cycle)
{
    if (!f->next) {
        f->next = true;
        f->next_asked = cycle;
        f->next_here = ask(f, t, line_of(t, pc) + 1, cycle);
    }
}

/* Asks for the next line, if the instruction at `pc` makes the buffer do so: the buffer has looked
 * at that since `at`, and hands it out in `handed`. It does not ask in the cycle `end` or later. */
static void look_ahead(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc, int64_t at,
                       int64_t handed, int64_t end)
{
    uint32_t size = 1u << p->timing->line_shift, offset = pc % size;
    unsigned length = length_at(p, pc);
    bool before_straddling =
        offset < size - WORD && offset + length == size - HALF && length_at(p, pc + length) > HALF;
    int64_t cycle = offset >= size - WORD ? at : before_straddling ? handed : end;
    if (cycle < end) {
        ask_next(f, p->timing, pc, cycle);
    }
}

/* Asks for the line of a jump's target in `cycle`. A line that was asked for before has to arrive
 * first; one to be asked for in the same cycle is not. */
static void jump(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc, int64_t cycle)
{
    int64_t asks = f->next && f->next_asked < cycle ? later(cycle, f->next_here) : cycle;
    f->next = false;
    /* An address outside the program belongs to other code, which counts as cached. */
    f->here = pc - p->base < p->size ? ask(f, p->timing, line_of(p->timing, pc), asks) : asks + 1;
}

/* Returns the cycle in which the last instruction, a jump or taken branch, redirects the buffer. A
 * branch is decided in EX; a jump in ID, where it may have to wait for its register, or for a store
 * or atomic in EX. Until then the buffer looks ahead at the code behind it. */
static int64_t leave(struct rv32_fetch *f, const struct rv32_program *p)
{
    bool branch = f->class == RV32_CLASS_BRANCH;
    bool early = f->class == RV32_CLASS_JAL || f->class_before == RV32_CLASS_STORE ||
                 f->class_before == RV32_CLASS_AMO;
    int64_t cycle = branch ? f->begun : early ? f->handed + 1 : f->begun - 1;
    uint32_t behind = f->pc + f->length;
    int64_t at = f->handed + 1;
    if (line_of(p->timing, behind) == line_of(p->timing, f->pc + f->length - 1)) {
        look_ahead(f, p, behind, at, branch ? later(at, f->begun - 1) : cycle, cycle);
    }
    return cycle;
}

void rv32_fetch_begin(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc,
                      int64_t cycle)
{
    unsigned straddle = rv32_cost_straddle(p->timing, pc, length_at(p, pc));
    f->next = false;
    f->length = 0; /* no instruction was shown before */
    f->class = RV32_CLASS_NONE;
    f->bank_wait = 0;
    jump(f, p, pc, cycle - 3 - (straddle != 0));
}

int64_t rv32_fetch_next(struct rv32_fetch *f, const struct rv32_program *p, uint32_t pc, uint8_t op,
                        int64_t cycle)
{
    const struct rv32_timing *t = p->timing;
    unsigned class = op < RV32_OPS ? rv32_traits[op].class : RV32_CLASS_ALU;
    bool first = f->length == 0, branch = f->class == RV32_CLASS_BRANCH;
    bool jumped = !first && (f->class == RV32_CLASS_JAL || f->class == RV32_CLASS_JALR ||
                             pc != f->pc + f->length || (branch && cycle > f->begun + 1));
    int64_t at; /* cycle since which the buffer looks at this instruction */
    if (jumped) {
        jump(f, p, pc, leave(f, p));
    }
    if (first || jumped) {
        at = f->here;
    } else {
        at = f->handed + 1;
        if (line_of(t, pc) != line_of(t, f->pc)) {
            /* false: the line came with an instruction that begins in the line before */
            if (f->next) {
                f->here = f->next_here;
                f->next = false;
            }
            at = later(at, f->here);
        }
    }
    unsigned length = length_at(p, pc);
    int64_t handed = at;
    if (line_of(t, pc) != line_of(t, pc + length - 1)) {
        ask_next(f, t, pc, at);
        handed = later(at, f->next_here);
        f->here = f->next_here;
        f->next = false;
    }
    /* ID is free when the instruction before has come to EX. */
    handed = first ? handed : later(handed, f->in_ex - 1);
    if (line_of(t, pc) == line_of(t, pc + length - 1)) {
        look_ahead(f, p, pc, at, handed + (first || jumped), INT64_MAX);
    }
    f->class_before = first ? (unsigned)RV32_CLASS_NONE : f->class;
    f->begun = later(cycle, handed + 2);
    f->in_ex = later(cycle - f->bank_wait, handed + 2);
    f->bank_wait = 0;
    f->handed = handed;
    f->pc = pc;
    f->length = length;
    f->class = class;
    return f->begun;
}
