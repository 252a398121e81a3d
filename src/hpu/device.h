/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RV32 back end: handlers run as device code, on cores of hpu/rv32, where they would run
 * as native code. The context is the same (exec.h): it runs the interpreter.
 *
 *      PTL_HANDLER(h) ──► {address, name, image}      found by address, in the program's notes
 *                                 │
 *      hpu_device_find() ──► image: decoded once ──► struct hpu_device_code: where `name` begins
 *                                 │
 *      hpu_device_run()  ──► core of the context's slot, with the memory of this call
 *                                 │ ecall
 *      device_calls.c    ──► pointers checked, cycles charged ──► calls.c, as of native handlers
 *
 * What device code sees (docs/rv32-handlers.md):
 *
 *      10001000  its message's own memory        1b000000  its stack
 *      10002000  the user header that is kept    1c000000  constants of the image
 *      10004400  its packet, or user header      1d000000  code
 *      10014400  HPU memory of up to 943 KiB     30000000  larger HPU memory (L2)
 *
 * Images and cores belong to a struct hpu_device, one for each NIC. It has no lock of its own:
 * images are found under the NIC's, a core is used by who has the context of its slot.
 */
#ifndef HPU_DEVICE_H
#define HPU_DEVICE_H

#include "base/list.h"
#include "hpu/exec.h"
#include "hpu/rv32/core.h"
#include "hpu/rv32/table.h"

enum {
    DEVICE_USER_HEADER_MAX = 1024,
    DEVICE_TRANSFERS = 64,
    DEVICE_USERS = 16,
    DEVICE_ARGUMENTS = 12
};

/* HPU memory lies in the scratchpad of L1 as in PsPIN, if it fits in there. */
enum { DEVICE_STATE_BASE = 0x10014400, DEVICE_STATE_MAX = 0x10100000 - DEVICE_STATE_BASE };

struct hpu_image {
    struct list link;
    struct rv32_image image;
    struct rv32_program program;
    struct rv32_lines lines;
    struct rv32_table table;
};

struct hpu_device_code {
    struct hpu_device *device;
    const struct hpu_image *image;
    const char *name; /* as registered, in the image */
    uint32_t pc;
};

/* A handler call that device code makes. Values are the device code's: pointers are not followed.
 */
enum hpu_device_kind { HPU_DEVICE_NUMBER, HPU_DEVICE_PROCESS, HPU_DEVICE_POINTER };

struct hpu_device_call {
    const char *name;
    uint64_t cycle, cycles; /* when it began, and what it took besides its stub */
    uint32_t pc;            /* of the jump to its stub; of another one's, if that was the last thing
                               that a function did */
    int count;
    enum hpu_device_kind kind[DEVICE_ARGUMENTS];
    uint64_t argument[DEVICE_ARGUMENTS];
    bool gives;      /* something: */
    uint32_t result; /* when it has returned */
};

/* The observer of device code that runs (`pinwheel hpu`). */
struct hpu_device_observer {
    /* run() runs the core in place of rv32_core_call(). */
    const struct rv32_result *(*run)(void *context, struct rv32_core *core,
                                     const struct rv32_call *call);
    /* called() is told of each handler call before it is made, returned() after it. */
    void (*called)(void *context, const struct hpu_device_call *call);
    void (*returned)(void *context, const struct hpu_device_call *call);
    /* ended() is told why device code has not returned, in place of the log. */
    void (*ended)(void *context, int result, const char *text);
    void *context;
};

struct hpu_device {
    struct list images;
    const struct rv32_timing *timing;
    const char *beside; /* files of images for handlers that carry none, by ":"; NULL: none */
    const struct hpu_device_observer *observer; /* NULL: nobody */
    uint32_t stack_size;                        /* of device code */
    int64_t budget;                             /* cycles between two suspensions */
    struct hpu_core *cores[PTL_NUM_HPUS];       /* by slot, made when first needed */
};

/* A core, and what a call on it has. */
struct hpu_core {
    struct rv32_core rv32;
    const struct hpu_image *image;      /* that it is set up for */
    const struct hpu_device_code *code; /* that runs */
    int stack, packet, state;           /* regions of each call */
    int message, kept_header;           /* regions that a call is lent when it asks */
    bool lent;                          /* the call, or the one before, was lent one */
    const char *call;    /* the handler call made last; NULL: none, or an unknown one */
    void *end[5];        /* leads out of the handler call that is being served, ... */
    int ended;           /* ... with this result */
    int64_t rearmed;     /* cycles used when the budget began anew */
    int64_t slice, kept; /* cycles of its budget that the core has at once; those it gets later */
    uint64_t user[DEVICE_USERS]; /* of PtlHandlerUserPtr() */
    unsigned users;
    uint64_t done[DEVICE_TRANSFERS]; /* when transfers are done, by handle */
    uint64_t done_before; /* when the last of those is done whose place was taken since */
    _Alignas(64) uint8_t user_header[DEVICE_USER_HEADER_MAX];
    _Alignas(64) uint8_t stack_bytes[];
};

/* hpu_image_ready() makes an image with its lines ready to run: its handlers, its program. */
int hpu_image_ready(struct hpu_image *i, const struct rv32_timing *timing,
                    enum rv32_program_kind kind, struct rv32_error *error);

/* hpu_image_close() frees what it holds; zeros hold nothing. */
void hpu_image_close(struct hpu_image *i);

/* hpu_device_create() makes an empty one, NULL: no memory. budget_us 0 is no budget. */
struct hpu_device *hpu_device_create(size_t stack_size, const struct rv32_timing *timing,
                                     int64_t budget_us);

/* hpu_device_destroy() frees images and cores; no device code may be running. NULL is legal. */
void hpu_device_destroy(struct hpu_device *t);

/* hpu_registered() is the entry that PTL_HANDLER() made of a handler of this process, or NULL. */
const struct ptl_handler_entry *hpu_registered(void (*handler)(void));

/* hpu_device_find(), locked, finds the device code of a handler of this program, in the image that
 * it carries, else in one beside it. It gives -1, and says what to do, when there is none. */
int hpu_device_find(struct hpu_device *t, void (*handler)(void), struct hpu_device_code *code,
                    struct rv32_error *error);

/* ---- On a context ---- */

/* hpu_device_run() runs the device code of the call and gives what it returned. One that strays is
 * ended: this does not return. */
int hpu_device_run(struct hpu_exec *exec, const struct hpu_device_code *code);

/* hpu_device_serve() serves the ecall of device code; `context` is the exec. Numbers of handler
 * calls are 1 to hpu_device_last_call. */
extern const uint32_t hpu_device_last_call;
int hpu_device_serve(struct rv32_core *core, void *context);

/* hpu_device_now() is what the handler has taken so far, in cycles. */
static inline uint64_t hpu_device_now(const struct rv32_core *core)
{
    return (uint64_t)(core->budget - core->left);
}

/* hpu_device_begun() notes a transfer if the call, which has returned its handle, has begun one. */
void hpu_device_begun(struct hpu_core *c, enum rv32_call_cost cost, uint32_t handle,
                      uint64_t bytes);

/* hpu_device_test() and hpu_device_wait() are device code's PtlHandlerDMATest() and
 * PtlHandlerDMAWait(). */
uint64_t hpu_device_test(uint64_t handle);
void hpu_device_wait(uint64_t handle);

/* hpu_device_header() and hpu_device_message_state() are device code's PtlHandlerHeader() and
 * PtlHandlerMessageState(): addresses that they give are its own. */
uint64_t hpu_device_header(uint64_t header);
uint64_t hpu_device_message_state(void);

/* Atomics by address in this process (device_atomics.c); each gives what was there. */
uint64_t hpu_device_load_8(uint64_t address);
uint64_t hpu_device_exchange_8(uint64_t address, uint64_t value);
uint64_t hpu_device_cas_1(uint64_t address, uint64_t expected, uint64_t desired);
uint64_t hpu_device_cas_2(uint64_t address, uint64_t expected, uint64_t desired);
uint64_t hpu_device_cas_8(uint64_t address, uint64_t expected, uint64_t desired);

/* hpu_device_end() ends the device code out of the handler call that it has made, and says so;
 * `why` may be NULL. */
_Noreturn void hpu_device_end(struct hpu_exec *exec, int result, const char *why)
    __attribute__((cold));

/* hpu_device_ended() says that a handler call ends the device code that made it, and where. */
void hpu_device_ended(const struct hpu_exec *exec, int result, const char *why)
    __attribute__((cold));

/* Why device code is ended that hpu_exec_end() is called for. */
extern const char hpu_device_closed[];

/* hpu_device_resumed() begins the budget anew, after a suspension. */
void hpu_device_resumed(struct hpu_exec *exec);

#endif
