/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a program under GDB stops: breakpoints by half-word of the code, watched memory. */
#include "gdb_session.h"

#include <stdlib.h>

bool gdb_points_open(struct gdb_points *p, const struct rv32_image *image)
{
    *p = (struct gdb_points){.image = image};
    p->breaks = calloc(1, image->code.size / 16 + 1);
    return p->breaks != NULL;
}

void gdb_points_close(struct gdb_points *p)
{
    free(p->breaks);
    p->breaks = NULL;
}

static bool change_break(struct gdb_points *p, bool set, uint32_t address)
{
    uint32_t offset = address - p->image->code.base;
    if (address % 2 != 0) {
        return false;
    }
    if (offset >= p->image->code.size) {
        /* An address outside the code: the return address of the program, where it ends anyway, or
         * the place in data to which a function that GDB calls returns. */
        p->outside = set ? address : 0;
        return true;
    }
    uint8_t bit = (uint8_t)(1u << (offset / 2 % 8));
    if (set) {
        p->breaks[offset / 16] |= bit;
    } else {
        p->breaks[offset / 16] &= (uint8_t)~bit;
    }
    return true;
}

static bool change_watch(struct gdb_points *p, unsigned access, bool set, uint32_t address,
                         uint32_t bytes)
{
    struct gdb_watch *room = NULL;
    for (int i = 0; i < GDB_WATCHES; i++) {
        struct gdb_watch *w = &p->watches[i];
        if (w->access == 0) {
            room = room == NULL ? w : room;
        } else if (w->address == address && w->bytes == bytes && w->access == access) {
            room = w;
            break;
        }
    }
    if (room == NULL || bytes == 0) {
        return false;
    }
    if (room->access == 0 && !set) {
        return true; /* there was none to clear */
    }
    p->watch_count += (int)set - (room->access != 0);
    *room = set ? (struct gdb_watch){address, bytes, access} : (struct gdb_watch){0};
    return true;
}

bool gdb_points_change(struct gdb_points *p, char kind, bool set, uint32_t address, uint32_t bytes)
{
    static const unsigned accesses[] = {RV32_WRITE, RV32_READ, RV32_READ | RV32_WRITE};
    return kind < '2' ? change_break(p, set, address)
                      : change_watch(p, accesses[kind - '2'], set, address, bytes);
}

bool gdb_points_break(const struct gdb_points *p, uint32_t pc)
{
    uint32_t offset = pc - p->image->code.base;
    if (offset >= p->image->code.size) {
        return p->outside != 0 && pc == p->outside;
    }
    return (p->breaks[offset / 16] >> (offset / 2 % 8) & 1) != 0;
}

static unsigned access_of(const struct rv32_insn *i)
{
    switch (rv32_traits[i->op].class) {
    case RV32_CLASS_LOAD:
        return RV32_READ;
    case RV32_CLASS_STORE:
        return RV32_WRITE;
    default:
        return i->op == RV32_LR ? RV32_READ : RV32_READ | RV32_WRITE;
    }
}

const struct gdb_watch *gdb_points_watch(const struct gdb_points *p, const struct rv32_core *core,
                                         uint32_t pc, uint32_t *address)
{
    if (p->watch_count == 0) {
        return NULL;
    }
    struct rv32_insn i = rv32_program_insn(&p->image->code, pc);
    uint32_t bytes = rv32_traits[i.op].bytes;
    if (bytes == 0) {
        return NULL;
    }
    bool offset = rv32_traits[i.op].class != RV32_CLASS_AMO;
    uint32_t begin = core->x[i.rs1] + (offset ? (uint32_t)i.imm : 0);
    for (int n = 0; n < GDB_WATCHES; n++) {
        const struct gdb_watch *w = &p->watches[n];
        bool meets = w->address - begin < bytes || begin - w->address < w->bytes;
        if ((w->access & access_of(&i)) != 0 && meets) {
            *address = w->address;
            return w;
        }
    }
    return NULL;
}
