/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program under GDB: a stub of its remote protocol, for one core.
 *
 *   gdb ──packets──► gdb_wire ──► gdb (what to do) ──► gdb_points, gdb_state ──► core
 *
 * GDB sees 32 registers, pc and the counters, the regions of the core with the rights that the
 * program has, and its one thread, which stands at its first instruction. It may step, go on,
 * break, watch memory, change registers, call functions, let go and kill. What ends the
 * program is a signal: SIGSEGV, SIGILL, SIGTRAP for ebreak, SIGSYS for an ecall that nobody
 * serves, SIGXCPU for its budget; with pc set into the code again it goes on even then.
 * `monitor` takes cycles, where, regions.
 *
 * Nothing that comes over the link makes the stub do more than that: it is for programs that
 * one does not trust, and for a debugger on the other end of a socket.
 */
#ifndef HPU_RV32_GDB_H
#define HPU_RV32_GDB_H

#include "hpu/rv32/core.h"
#include "hpu/rv32/gdb_wire.h"

struct rv32_gdb {
    struct rv32_core *core;         /* of the image's program */
    const struct rv32_image *image; /* and its lines, for words on what happened */
    const struct rv32_lines *lines;
    const struct gdb_link *link;
};

enum rv32_gdb_end {
    RV32_GDB_TOLD,     /* the program ended, and GDB knows */
    RV32_GDB_DETACHED, /* GDB let it go; it ran to its end */
    RV32_GDB_KILLED,   /* GDB ended it, or went away */
    RV32_GDB_FAILED,   /* no memory: nothing has run */
};

/* rv32_gdb_call() is rv32_core_call() under GDB; how it ended is in core->result. */
enum rv32_gdb_end rv32_gdb_call(const struct rv32_gdb *g, const struct rv32_call *call);

#endif
