/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session, for the files of the GDB stub. Control is in one of three places:
 *
 *   stopped   in front of an instruction: `pc`; what it has used: `cycles`
 *   running   in the core; gdb_points.c says where to stop
 *   ended     the core has left its loop; registers and memory are as it left them
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

/* Where to stop. */
struct gdb_points {
    const struct rv32_image *image;
    uint8_t *breaks;  /* a bit a half-word of the code */
    uint32_t outside; /* a breakpoint out of the code, where a call from GDB returns to; 0: none */
    struct gdb_watch watches[GDB_WATCHES];
    int watch_count;
};

struct gdb_session {
    const struct rv32_gdb *g;
    struct gdb_wire wire;
    struct gdb_points points;
    uint32_t pc, wanted_pc; /* where it stands; where GDB wants it to go on */
    uint64_t cycles, instructions;
    uint32_t range_begin, range_end; /* stepping goes on within; both 0: one step */
    bool stepping, told_once, arrived, detached, killed;
    const struct gdb_watch *hit; /* by the instruction before */
    uint32_t hit_address;
    uint32_t since_look; /* instructions since we looked for a Ctrl-C */
};

/* ---- gdb_packets.c ---- */

/* gdb_converse() does what GDB asks of a program that has stopped; true: it is to go on, at
 * wanted_pc; false: it has been killed or detached. */
bool gdb_converse(struct gdb_session *s, unsigned signal);

void gdb_answer(struct gdb_session *s, const char *text);

/* gdb_answer_signal() says that the program has stopped. */
void gdb_answer_signal(struct gdb_session *s, unsigned signal);

/* ---- gdb_points.c ---- */

bool gdb_points_open(struct gdb_points *p, const struct rv32_image *image);
void gdb_points_close(struct gdb_points *p);

/* gdb_points_change() sets or clears a breakpoint (kind '0', '1') or watchpoint ('2' to '4');
 * false: there can be none. */
bool gdb_points_change(struct gdb_points *p, char kind, bool set, uint32_t address, uint32_t bytes);

bool gdb_points_break(const struct gdb_points *p, uint32_t pc);

/* gdb_points_watch() gives the watchpoint that the instruction at pc is about to touch, and
 * where; NULL: none. */
const struct gdb_watch *gdb_points_watch(const struct gdb_points *p, const struct rv32_core *core,
                                         uint32_t pc, uint32_t *address);

/* ---- gdb_state.c ---- */

/* gdb_target() writes the description of the target; gives its length. */
size_t gdb_target(char text[GDB_TARGET_MAX]);

/* One register, by GDB's number; false: there is none, or it cannot be written. */
bool gdb_register_read(const struct gdb_session *s, uint32_t number, uint32_t *value);
bool gdb_register_write(struct gdb_session *s, uint32_t number, uint32_t value);

/* Memory, as far as the program might access it; gives how many bytes. */
uint32_t gdb_memory_read(struct rv32_core *core, uint32_t address, void *bytes, uint32_t size);
uint32_t gdb_memory_write(struct rv32_core *core, uint32_t address, const void *bytes,
                          uint32_t size);

/* gdb_monitor() answers a command of the user, in words. */
void gdb_monitor(const struct gdb_session *s, const char *command, char *text, size_t size);

#endif
