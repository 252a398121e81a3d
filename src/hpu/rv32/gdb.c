/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program under GDB (gdb.h): when it stops, and how GDB learns of that. The core calls on_insn()
 * before each instruction; if the program is to stop there, on_insn() talks with GDB and returns
 * when the program is to go on.
 */
#include "gdb_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY = 1 << 16 }; /* instructions between two looks whether GDB has sent a Ctrl-C */

/* Numbers of signals in GDB's protocol, the same on any system. */
enum {
    SIGNAL_INT = 2,
    SIGNAL_ILL = 4,
    SIGNAL_TRAP = 5,
    SIGNAL_SEGV = 11,
    SIGNAL_FPE = 8,
    SIGNAL_SYS = 12,
    SIGNAL_XCPU = 24
};

/* Sends text for the user of GDB while the program runs. */
static void console(struct gdb_session *s, const char *text)
{
    char packet[GDB_PACKET_MAX];
    size_t length = strlen(text), most = sizeof(packet) / 2 - 1;
    length = length < most ? length : most;
    packet[0] = 'O';
    gdb_wire_send(&s->wire, packet, 1 + gdb_hex_write(packet + 1, text, length));
}

static void stopped_by_watch(struct gdb_session *s)
{
    static const char *const kinds[] = {
        [RV32_READ] = "rwatch", [RV32_WRITE] = "watch", [RV32_READ | RV32_WRITE] = "awatch"};
    char text[64];
    snprintf(text, sizeof(text), "T%02x%s:%x;", SIGNAL_TRAP, kinds[s->hit->access], s->hit_address);
    gdb_answer(s, text);
}

/* Returns the signal with which the program stops before this instruction; 0: it does not stop. */
static unsigned why_stop(struct gdb_session *s)
{
    if (!s->told_once || s->hit != NULL || gdb_points_break(&s->points, s->pc)) {
        return SIGNAL_TRAP;
    }
    if (s->stepping && s->pc - s->range_begin >= s->range_end - s->range_begin) {
        return SIGNAL_TRAP;
    }
    if (++s->since_look % LOOK_EVERY == 0 && gdb_wire_interrupted(&s->wire)) {
        return SIGNAL_INT;
    }
    return 0;
}

static enum rv32_turn stop(struct gdb_session *s, unsigned signal)
{
    if (s->hit != NULL) {
        stopped_by_watch(s);
    } else if (s->told_once) {
        gdb_answer_signal(s, signal);
    }
    s->told_once = true;
    if (!gdb_converse(s, signal) && s->killed) {
        return RV32_HALT;
    }
    if (s->wanted_pc != s->pc) {
        s->arrived = true;
        s->g->core->go_to = s->wanted_pc;
        return RV32_GO_TO;
    }
    return RV32_GO_ON;
}

static enum rv32_turn on_insn(void *context, struct rv32_core *core, uint32_t pc, uint64_t cycles)
{
    struct gdb_session *s = context;
    if (s->detached) {
        return RV32_GO_ON;
    }
    const struct rv32_program *p = core->program;
    s->pc = pc;
    s->cycles = cycles;
    s->instructions =
        (uint64_t)(core->instructions - p->rest[p->at[(pc - p->base) / 2]].instructions);
    unsigned signal = s->arrived ? 0 : why_stop(s);
    s->arrived = false;
    enum rv32_turn turn = signal != 0 ? stop(s, signal) : RV32_GO_ON;
    if (turn == RV32_GO_ON && s->wire.gone) {
        s->killed = true;
        return RV32_HALT;
    }
    if (turn == RV32_GO_ON) {
        s->hit = gdb_points_watch(&s->points, core, pc, &s->hit_address);
    }
    return turn;
}

static unsigned signal_of(const struct gdb_session *s, const struct rv32_result *r)
{
    switch (r->end) {
    case RV32_FAULT_ILLEGAL:
        return SIGNAL_ILL;
    case RV32_FAULT_EBREAK:
        return SIGNAL_TRAP;
    case RV32_FAULT_ECALL:
        return SIGNAL_SYS;
    case RV32_FAULT_DIVIDE:
        return SIGNAL_FPE;
    case RV32_TIMEOUT:
        return SIGNAL_XCPU;
    case RV32_FAULT_JUMP:
        return gdb_points_break(&s->points, r->pc) ? SIGNAL_TRAP : SIGNAL_SEGV;
    default:
        return SIGNAL_SEGV;
    }
}

/* Tells GDB that the program has left the core; true: GDB has it go on nevertheless. */
static bool on_end(struct gdb_session *s, const struct rv32_result *r)
{
    struct rv32_error text;
    char line[640];
    rv32_result_text(r, s->g->image, s->g->lines, &text);
    snprintf(line, sizeof(line), "%s\n%llu instructions, %llu cycles\n", text.text,
             (unsigned long long)r->instructions, (unsigned long long)r->cycles);
    if (r->end == RV32_RETURNED) {
        console(s, line);
        gdb_answer(s, "W00");
        return false;
    }
    unsigned signal = signal_of(s, r);
    /* The target of a wild jump is in no function's frame, so the pc that GDB gets is that of the
     * jump. */
    bool wild = r->end == RV32_FAULT_JUMP && signal == SIGNAL_SEGV;
    s->pc = wild ? r->from : r->pc;
    s->cycles = r->cycles;
    s->instructions = r->instructions;
    if (signal != SIGNAL_TRAP || r->end == RV32_FAULT_EBREAK) {
        console(s, line);
    }
    gdb_answer_signal(s, signal);
    if (!gdb_converse(s, signal)) {
        return false;
    }
    if (s->wanted_pc == s->pc) {
        char dead[8];
        snprintf(dead, sizeof(dead), "X%02x", signal);
        gdb_answer(s, dead);
        return false;
    }
    s->arrived = true;
    return true;
}

enum rv32_gdb_end rv32_gdb_call(const struct rv32_gdb *g, const struct rv32_call *call)
{
    struct gdb_session *s = calloc(1, sizeof(*s));
    if (s == NULL || !gdb_points_open(&s->points, g->image)) {
        free(s);
        return RV32_GDB_FAILED;
    }
    s->g = g;
    s->wire.link = g->link;
    const struct rv32_result *r = rv32_core_trace(g->core, call, on_insn, s);
    while (!s->killed && !s->detached && on_end(s, r)) {
        r = rv32_core_resume(g->core, s->wanted_pc, on_insn, s);
    }
    enum rv32_gdb_end end = s->killed     ? RV32_GDB_KILLED
                            : s->detached ? RV32_GDB_DETACHED
                                          : RV32_GDB_TOLD;
    gdb_points_close(&s->points);
    free(s);
    return end;
}
