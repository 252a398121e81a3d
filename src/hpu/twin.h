/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RV32 back end: handlers run as their twins, on cores of hpu/rv32, where they would run
 * as native code. The context is the same (exec.h): it runs the interpreter.
 *
 *      PTL_HANDLER(h) ──► {address, name, image}      found by address, in the program's notes
 *                                 │
 *      hpu_twin_find() ──► image: decoded once ──► struct hpu_twin: where `name` begins in it
 *                                 │
 *      hpu_twin_run()  ──► core of the context's slot, with the memory of this call
 *                                 │ ecall
 *      twin_calls.c    ──► pointers checked, cycles charged ──► calls.c, as of native handlers
 *
 * What a twin sees (docs/rv32-handlers.md):
 *
 *      10004400  its packet, or user header      1b000000  its stack
 *      10014400  HPU memory of up to 943 KiB     1c000000  constants of the image
 *      30000000  larger HPU memory (L2)          1d000000  code
 *
 * Images and cores belong to a struct hpu_twins, one for each NIC. It has no lock of its own:
 * images are found under the NIC's, a core is used by who has the context of its slot.
 */
#ifndef HPU_TWIN_H
#define HPU_TWIN_H

#include "base/list.h"
#include "hpu/exec.h"
#include "hpu/rv32/core.h"
#include "hpu/rv32/table.h"

struct hpu_image {
    struct list link;
    struct rv32_image image;
    struct rv32_program program;
    struct rv32_lines lines;
    struct rv32_table table;
};

struct hpu_twin {
    struct hpu_twins *twins;
    const struct hpu_image *image;
    const char *name; /* as registered, in the image */
    uint32_t pc;
};

struct hpu_twins {
    struct list images;
    const struct rv32_timing *timing;
    uint32_t stack_size;                  /* of a twin */
    int64_t budget;                       /* cycles between two suspensions */
    struct hpu_core *cores[PTL_NUM_HPUS]; /* by slot, made when first needed */
};

/* A core, and what a call on it has. */
enum { TWIN_USER_HEADER_MAX = 1024, TWIN_TRANSFERS = 64, TWIN_USERS = 16 };

struct hpu_core {
    struct rv32_core rv32;
    const struct hpu_image *image; /* that it is set up for */
    const struct hpu_twin *twin;   /* that runs */
    int stack, packet, state;      /* regions */
    const char *call;              /* the handler call made last; NULL: none, or an unknown one */
    int64_t rearmed;               /* cycles used when the budget began anew */
    uint64_t user[TWIN_USERS];     /* of PtlHandlerUserPtr() */
    unsigned users;
    uint64_t done[TWIN_TRANSFERS]; /* when transfers are done, by handle */
    _Alignas(64) uint8_t user_header[TWIN_USER_HEADER_MAX];
    _Alignas(64) uint8_t stack_bytes[];
};

/* hpu_twins_create() makes an empty one, NULL: no memory. budget_us 0 is no budget. */
struct hpu_twins *hpu_twins_create(size_t stack_size, int64_t budget_us);

/* hpu_twins_destroy() frees images and cores; no twin may be running. NULL is legal. */
void hpu_twins_destroy(struct hpu_twins *t);

/* hpu_twin_find(), locked, finds the twin of a handler of this program. It gives -1, and says
 * what to do, when there is none. */
int hpu_twin_find(struct hpu_twins *t, void (*handler)(void), struct hpu_twin *twin,
                  struct rv32_error *error);

/* ---- On a context ---- */

/* hpu_twin_run() runs the twin of the call and gives what it returned. One that strays is
 * ended: this does not return. */
int hpu_twin_run(struct hpu_exec *exec, const struct hpu_twin *twin);

/* hpu_twin_serve() serves the ecall of a twin; `context` is the exec. */
int hpu_twin_serve(struct rv32_core *core, void *context);

/* hpu_twin_ended() writes into the log that a handler call ends the twin that called it, and
 * where; `why` may be NULL. Nothing happens for native handlers. */
void hpu_twin_ended(struct hpu_exec *exec, int result, const char *why);

/* hpu_twin_resumed() begins the budget anew, after a suspension. */
void hpu_twin_resumed(struct hpu_exec *exec);

#endif
