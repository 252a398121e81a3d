/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session, as the files of the GDB stub share it. The program is in one of three states:
 *
 *   stopped   before the instruction at `pc`; it has used `cycles`
 *   running   in the core; gdb_points.c says where to stop
 *   ended     the core has left its loop; registers and memory stay as they were then
 */
#ifndef HPU_RV32_GDB_SESSION_H
#define HPU_RV32_GDB_SESSION_H

#include "hpu/rv32/gdb.h"
#include "hpu/rv32/gdb_hex.h"

enum { GDB_WATCHES = 16, GDB_CSRS = 6, GDB_PC = 32, GDB_REGISTERS = GDB_PC + 1 + GDB_CSRS };
enum { GDB_TARGET_MAX = 4096, GDB_ANSWER_MAX = 2 * GDB_PACKET_MAX };

struct gdb_watch {
    uint32_t address, bytes;
    unsigned access; /* enum rv32_access; 0: not in use */
};

/* Where the program stops. */
struct gdb_points {
    const struct rv32_image *image;
    uint8_t *breaks; /* one bit for each half-word of the code */
    /* a breakpoint outside the code, to which a function called by GDB returns; 0: none */
    uint32_t outside;
    struct gdb_watch watches[GDB_WATCHES];
    int watch_count;
};

struct gdb_session {
    const struct rv32_gdb *g;
    struct gdb_wire wire;
    struct gdb_points points;
    uint32_t pc, wanted_pc; /* where the program stands; where GDB has it go on */
    uint64_t cycles, instructions;
    /* stepping goes on while pc is in this range; both 0: one step */
    uint32_t range_begin, range_end;
    bool stepping, told_once, arrived, detached, killed;
    const struct gdb_watch *hit; /* the watchpoint that the last instruction has touched */
    uint32_t hit_address;
    uint32_t since_look; /* instructions since the stub last looked for a Ctrl-C */
};

/* ---- gdb_packets.c ---- */

/* gdb_converse() talks with GDB about a program that has stopped. True: the program goes on, at
 * wanted_pc; false: GDB has killed it or detached. */
bool gdb_converse(struct gdb_session *s, unsigned signal);

void gdb_answer(struct gdb_session *s, const char *text);

/* gdb_answer_signal() tells GDB that the program has stopped. */
void gdb_answer_signal(struct gdb_session *s, unsigned signal);

/* ---- gdb_points.c ---- */

bool gdb_points_open(struct gdb_points *p, const struct rv32_image *image);
void gdb_points_close(struct gdb_points *p);

/* gdb_points_change() sets or clears a breakpoint (kind '0', '1') or a watchpoint ('2' to '4');
 * false: it cannot be set. */
bool gdb_points_change(struct gdb_points *p, char kind, bool set, uint32_t address, uint32_t bytes);

bool gdb_points_break(const struct gdb_points *p, uint32_t pc);

/* gdb_points_watch() returns the watchpoint that the instruction at pc will touch, and at which
 * address; NULL: none. */
const struct gdb_watch *gdb_points_watch(const struct gdb_points *p, const struct rv32_core *core,
                                         uint32_t pc, uint32_t *address);

/* ---- gdb_state.c ---- */

/* gdb_target() writes the XML description of the target; returns its length. */
size_t gdb_target(char text[GDB_TARGET_MAX]);

/* Read or write one register, by GDB's number; false: it does not exist, or cannot be written. */
bool gdb_register_read(const struct gdb_session *s, uint32_t number, uint32_t *value);
bool gdb_register_write(struct gdb_session *s, uint32_t number, uint32_t value);

/* Read or write memory, as far as the program may access it; return the number of bytes. */
uint32_t gdb_memory_read(struct rv32_core *core, uint32_t address, void *bytes, uint32_t size);
uint32_t gdb_memory_write(struct rv32_core *core, uint32_t address, const void *bytes,
                          uint32_t size);

/* gdb_monitor() answers a `monitor` command of the user in words. */
void gdb_monitor(const struct gdb_session *s, const char *command, char *text, size_t size);

#endif
