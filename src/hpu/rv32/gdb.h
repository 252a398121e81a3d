/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program under GDB: a stub of its remote protocol, for one core.
 *
 *   gdb ──packets──► gdb_wire ──► gdb (what to do) ──► gdb_points, gdb_state ──► core
 *
 * GDB sees 32 registers, pc and the counters; the regions of the core, with the rights that the
 * program has; and one thread, stopped at its first instruction. It may step, continue, break,
 * watch memory, change registers, call functions, detach and kill. The end of the program is
 * reported as a signal: SIGSEGV, SIGILL, SIGTRAP for ebreak, SIGSYS for an ecall that is not
 * served, SIGXCPU for the budget. The program goes on even then if GDB sets pc into the code.
 * `monitor` takes cycles, where, regions.
 *
 * Whatever comes over the link, the stub does no more than that: it is for programs that are not
 * trusted, and for a debugger at the other end of a socket.
 */
#ifndef HPU_RV32_GDB_H
#define HPU_RV32_GDB_H

#include "hpu/rv32/core.h"
#include "hpu/rv32/gdb_wire.h"

struct rv32_gdb {
    struct rv32_core *core;         /* of the program of `image` */
    const struct rv32_image *image; /* with its lines, to describe what has happened */
    const struct rv32_lines *lines;
    const struct gdb_link *link;
};

enum rv32_gdb_end {
    RV32_GDB_TOLD,     /* the program ended, and GDB was told */
    RV32_GDB_DETACHED, /* GDB has detached, and the program ran to its end */
    RV32_GDB_KILLED,   /* GDB has killed the program, or closed the link */
    RV32_GDB_FAILED,   /* no memory: the program has not run */
};

/* rv32_gdb_call() is rv32_core_call() under GDB; core->result says how the program ended. */
enum rv32_gdb_end rv32_gdb_call(const struct rv32_gdb *g, const struct rv32_call *call);

#endif
