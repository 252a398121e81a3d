/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a core that GDB sees: registers, memory, and the answers to `monitor`. */
#include "gdb_session.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint16_t csr;
} counters[GDB_CSRS] = {{"cycle", RV32_CSR_CYCLE},     {"time", RV32_CSR_TIME},
                        {"instret", RV32_CSR_INSTRET}, {"cycleh", RV32_CSR_CYCLEH},
                        {"timeh", RV32_CSR_TIMEH},     {"instreth", RV32_CSR_INSTRETH}};

static void add(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t room, const char *format, ...)
{
    va_list arguments;
    size_t n = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + n, room - n, format, arguments);
    va_end(arguments);
}

static const char *register_type(int number)
{
    enum { RA = 1, SP, GP, TP, S0 = 8 };
    bool data = (number >= SP && number <= TP) || number == S0;
    return number == RA || number == GDB_PC ? "code_ptr" : data ? "data_ptr" : "int";
}

size_t gdb_target(char text[GDB_TARGET_MAX])
{
    enum { ROOM = GDB_TARGET_MAX };
    text[0] = '\0';
    add(text, ROOM,
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">"
        "<target version=\"1.0\"><architecture>riscv:rv32</architecture>"
        "<feature name=\"org.gnu.gdb.riscv.cpu\">");
    for (int i = 0; i <= GDB_PC; i++) {
        add(text, ROOM, "<reg name=\"%s\" bitsize=\"32\" type=\"%s\" regnum=\"%d\"/>",
            i < GDB_PC ? rv32_register_names[i] : "pc", register_type(i), i);
    }
    add(text, ROOM, "</feature><feature name=\"org.gnu.gdb.riscv.csr\">");
    for (int i = 0; i < GDB_CSRS; i++) {
        add(text, ROOM, "<reg name=\"%s\" bitsize=\"32\" type=\"int\" regnum=\"%d\"/>",
            counters[i].name, GDB_PC + 1 + i);
    }
    add(text, ROOM, "</feature></target>");
    return strlen(text);
}

static uint32_t counter(const struct gdb_session *s, uint16_t csr)
{
    uint64_t value =
        csr == RV32_CSR_INSTRET || csr == RV32_CSR_INSTRETH ? s->instructions : s->cycles;
    return (uint32_t)(csr >= RV32_CSR_CYCLEH ? value >> 32 : value);
}

bool gdb_register_read(const struct gdb_session *s, uint32_t number, uint32_t *value)
{
    if (number < GDB_PC) {
        *value = s->g->core->x[number];
    } else if (number == GDB_PC) {
        *value = s->wanted_pc;
    } else if (number < GDB_REGISTERS) {
        *value = counter(s, counters[number - GDB_PC - 1].csr);
    }
    return number < GDB_REGISTERS;
}

bool gdb_register_write(struct gdb_session *s, uint32_t number, uint32_t value)
{
    if (number > 0 && number < GDB_PC) {
        s->g->core->x[number] = value;
    } else if (number == GDB_PC) {
        s->wanted_pc = value;
    }
    return number <= GDB_PC;
}

uint32_t gdb_memory_read(struct rv32_core *core, uint32_t address, void *bytes, uint32_t size)
{
    uint32_t n = 0;
    const uint8_t *from;
    while (n < size && (from = rv32_core_reach(core, address + n, 1, RV32_READ)) != NULL) {
        ((uint8_t *)bytes)[n++] = *from;
    }
    return n;
}

uint32_t gdb_memory_write(struct rv32_core *core, uint32_t address, const void *bytes,
                          uint32_t size)
{
    uint32_t n = 0;
    uint8_t *to;
    while (n < size && (to = rv32_core_reach(core, address + n, 1, RV32_WRITE)) != NULL) {
        *to = ((const uint8_t *)bytes)[n++];
    }
    return n;
}

/* ---- monitor ---- */

static void tell_cycles(const struct gdb_session *s, char *text, size_t size)
{
    const struct rv32_timing *t = s->g->core->program->timing;
    add(text, size, "cycles        %" PRIu64 " of at most %" PRId64 "\n", s->cycles,
        s->g->core->budget);
    add(text, size, "instructions  %" PRIu64 "\n", s->instructions);
    add(text, size, "core          %s, %u MHz%s%s%s\n", t->name, t->clock_mhz,
        t->label != NULL ? " (" : "", t->label != NULL ? t->label : "",
        t->label != NULL ? ")" : "");
}

static void tell_where(const struct gdb_session *s, char *text, size_t size)
{
    const struct rv32_symbol *f = rv32_image_function(s->g->image, s->pc);
    const struct rv32_line *l = s->g->lines != NULL ? rv32_lines_at(s->g->lines, s->pc) : NULL;
    add(text, size, "%08x", s->pc);
    if (f != NULL) {
        add(text, size, " %s+0x%x", f->name, s->pc - f->address);
    }
    if (l != NULL) {
        add(text, size, " %s:%d", l->file, l->line);
    }
    add(text, size, "\n");
}

static void tell_regions(const struct gdb_session *s, char *text, size_t size)
{
    for (int i = 1; i <= s->g->core->region_count; i++) {
        const struct rv32_region *r = &s->g->core->region[i];
        add(text, size, "%08x %7u bytes  %c%c  %s\n", r->base, r->size,
            (r->rights & RV32_READ) != 0 ? 'r' : '-', (r->rights & RV32_WRITE) != 0 ? 'w' : '-',
            r->device != NULL ? "device" : r->name);
    }
}

void gdb_monitor(const struct gdb_session *s, const char *command, char *text, size_t size)
{
    static const struct {
        const char *name;
        void (*tell)(const struct gdb_session *s, char *text, size_t size);
        const char *what;
    } commands[] = {{"cycles", tell_cycles, "what the program has used so far"},
                    {"where", tell_where, "function and line that it stands in"},
                    {"regions", tell_regions, "the memory that it may access"}};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(command, commands[i].name) == 0) {
            commands[i].tell(s, text, size);
            return;
        }
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        add(text, size, "monitor %-8s %s\n", commands[i].name, commands[i].what);
    }
}
