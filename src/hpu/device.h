/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RV32 back end: handlers run as device code on cores of hpu/rv32, instead of as native
 * code on the processor. Each runs on a context as a native one does (exec.h), which runs the
 * interpreter.
 *
 *      PTL_HANDLER(h) ──► {address, name, image}      found by address, in the program's notes
 *                                 │
 *      hpu_device_find() ──► image: decoded once ──► struct hpu_device_code: where `name` begins
 *                                 │
 *      hpu_device_run()  ──► core of the context's slot, with the memory of this call
 *                                 │ ecall
 *      device_calls.c    ──► pointers checked, cycles charged ──► calls.c, as of native handlers
 *
 * The memory of device code (docs/rv32-handlers.md):
 *
 *      10001000  its message's own memory        1b000000  its stack
 *      10002000  the user header that is kept    1c000000  constants of the image
 *      10004400  its packet, or user header      1d000000  code
 *      10014400  HPU memory of up to 943 KiB     30000000  larger HPU memory (L2)
 *
 * Images and cores belong to a struct hpu_device, one for each NIC. It has no lock of its own:
 * the NIC's lock guards the images, and the call that has the context of a slot uses its core.
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

/* HPU memory that fits lies in the L1 scratchpad, as in PsPIN. */
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
    const char *name; /* as PTL_HANDLER() has registered it; the string is in the image */
    uint32_t pc;
};

/* A handler call that device code makes, as an observer sees it. Pointers among the arguments are
 * addresses of the device code. */
enum hpu_device_kind { HPU_DEVICE_NUMBER, HPU_DEVICE_PROCESS, HPU_DEVICE_POINTER };

struct hpu_device_call {
    const char *name;
    uint64_t cycle, cycles; /* when the call began, and how long it took, without its stub */
    /* address of the jump to the stub; if a function has made the call as its last step (tail
     * call), of the jump to that function */
    uint32_t pc;
    int count;
    enum hpu_device_kind kind[DEVICE_ARGUMENTS];
    uint64_t argument[DEVICE_ARGUMENTS];
    bool gives;      /* the call returns a result: */
    uint32_t result; /* the result, once it has returned */
};

/* An observer of device code (`pinwheel hpu`). */
struct hpu_device_observer {
    /* run() runs the core in place of rv32_core_call(). */
    const struct rv32_result *(*run)(void *context, struct rv32_core *core,
                                     const struct rv32_call *call);
    /* called() gets each handler call before it is made, returned() the same after it. */
    void (*called)(void *context, const struct hpu_device_call *call);
    void (*returned)(void *context, const struct hpu_device_call *call);
    /* ended() gets the reason if device code has not returned, instead of the log. */
    void (*ended)(void *context, int result, const char *text);
    void *context;
};

struct hpu_device {
    struct list images;
    const struct rv32_timing *timing;
    /* files with images for handlers that carry none, separated by ":"; NULL: none */
    const char *beside;
    const struct hpu_device_observer *observer; /* NULL: none */
    uint32_t stack_size;                        /* of device code */
    int64_t budget;                             /* cycles between two suspensions */
    bool timed;                                 /* its time is virtual (sched_virtual.c) */
    const struct hpu_device_rows *rows;   /* whoever wants to know where cycles go; NULL: nobody */
    struct hpu_device_seen *seen;         /* what that has given (device_profile.c) */
    struct hpu_core *cores[PTL_NUM_HPUS]; /* by slot, made when first needed */
};

/* A core, and the state of the call that it runs. */
struct hpu_core {
    struct rv32_core rv32;
    const struct hpu_image *image;      /* the image that it is set up for */
    const struct hpu_device_code *code; /* the code that it runs */
    int stack, packet, state;           /* numbers of the regions that each call has */
    /* numbers of the regions that a call gets only if it asks */
    int message, kept_header;
    bool lent;        /* this call, or the one before, got one of these */
    const char *call; /* name of the handler call made last; NULL: none, or an unknown one */
    /* stack position to leave the handler call in progress by, which then ends the handler, ... */
    void *end[5];
    int ended;       /* ... with this result */
    int64_t rearmed; /* cycles used when the budget last began anew */
    /* cycles of its budget that the core gets at a time; those of the budget that it does not have
     * yet */
    int64_t slice, kept;
    uint64_t user[DEVICE_USERS]; /* values of PtlHandlerUserPtr() */
    unsigned users;
    uint64_t done[DEVICE_TRANSFERS]; /* cycle at which a transfer is done, by handle */
    /* the latest such cycle among transfers whose place another one has taken */
    uint64_t done_before;
    _Alignas(64) uint8_t user_header[DEVICE_USER_HEADER_MAX];
    _Alignas(64) uint8_t stack_bytes[];
};

/* hpu_image_ready() makes an image, whose lines are read, ready to run: collects its handlers,
 * decodes its program. */
int hpu_image_ready(struct hpu_image *i, const struct rv32_timing *timing,
                    enum rv32_program_kind kind, struct rv32_error *error);

/* hpu_image_close() frees what an image holds; an image of zeros holds nothing. */
void hpu_image_close(struct hpu_image *i);

/* hpu_device_create() makes a device without images; NULL: no memory. budget_us 0: handlers have no
 * budget. */
struct hpu_device *hpu_device_create(size_t stack_size, const struct rv32_timing *timing,
                                     int64_t budget_us);

/* hpu_device_destroy() frees images and cores; no device code may be running. NULL is legal. */
void hpu_device_destroy(struct hpu_device *t);

/* hpu_registered() returns the entry that PTL_HANDLER() has made for a handler of this process, or
 * NULL. */
const struct ptl_handler_entry *hpu_registered(void (*handler)(void));

/* hpu_device_find() finds the device code of a handler of this program, in the image that the
 * program carries, else in one beside it; the NIC's lock is held. -1: there is none, and the error
 * says what to do. */
int hpu_device_find(struct hpu_device *t, void (*handler)(void), struct hpu_device_code *code,
                    struct rv32_error *error);

/* hpu_device_open() finds the device code of handlers by their names in an image of its own, the
 * file `path`; a name that the image does not have leaves its `code` with pc 0. -1: the image
 * cannot be read, or has none of them. */
int hpu_device_open(struct hpu_device *t, const char *path, const char *const names[3],
                    struct hpu_device_code code[3], struct rv32_error *error);

/* ---- Called on a context ---- */

/* hpu_device_run() runs the device code of the call and returns its result. If the device code has
 * to be ended, the function does not return. */
int hpu_device_run(struct hpu_exec *exec, const struct hpu_device_code *code);

/* hpu_device_serve() serves an ecall of device code; `context` is the exec. Handler calls have the
 * numbers 1 to hpu_device_last_call. */
extern const uint32_t hpu_device_last_call;
int hpu_device_serve(struct rv32_core *core, void *context);

/* hpu_device_now() returns the cycles that the handler has taken so far. */
static inline uint64_t hpu_device_now(const struct rv32_core *core)
{
    return (uint64_t)(core->budget - core->left);
}

/* hpu_device_begun() is called after a handler call that may begin a DMA transfer of `bytes` bytes
 * and go on without waiting for it. If it began one, `handle` is not 0, and the function notes the
 * cycle in which the core's DMA engine will be done with it. */
void hpu_device_begun(struct hpu_core *c, enum rv32_call_cost cost, uint32_t handle,
                      uint64_t bytes);

/* hpu_device_issue() is the cost of a call in virtual time: of a transfer that the handler waits
 * for it is that to begin it, and the wait takes what the DMA engine takes. */
static inline enum rv32_call_cost hpu_device_issue(enum rv32_call_cost cost)
{
    bool waits = cost == RV32_COST_TO_HOST_WAIT || cost == RV32_COST_FROM_HOST_WAIT ||
                 cost == RV32_COST_HOST_ATOMIC_WAIT;
    return waits ? (enum rv32_call_cost)(cost - 1) : cost;
}

/* hpu_device_test() and hpu_device_wait() are device code's PtlHandlerDMATest() and
 * PtlHandlerDMAWait(). */
uint64_t hpu_device_test(uint64_t handle);
void hpu_device_wait(uint64_t handle);

/* hpu_device_header() and hpu_device_message_state() are device code's PtlHandlerHeader() and
 * PtlHandlerMessageState(): the addresses that they return are those of the device code. */
uint64_t hpu_device_header(uint64_t header);
uint64_t hpu_device_message_state(void);

/* Atomics by address in this process (device_atomics.c); each returns the old value. */
uint64_t hpu_device_load_8(uint64_t address);
uint64_t hpu_device_exchange_8(uint64_t address, uint64_t value);
uint64_t hpu_device_cas_1(uint64_t address, uint64_t expected, uint64_t desired);
uint64_t hpu_device_cas_2(uint64_t address, uint64_t expected, uint64_t desired);
uint64_t hpu_device_cas_8(uint64_t address, uint64_t expected, uint64_t desired);

/* hpu_device_end() ends the device code that has made the handler call in progress, and logs so;
 * `why` may be NULL. */
_Noreturn void hpu_device_end(struct hpu_exec *exec, int result, const char *why)
    __attribute__((cold));

/* hpu_device_ended() logs that a handler call ends the device code that has made it, and where. */
void hpu_device_ended(const struct hpu_exec *exec, int result, const char *why)
    __attribute__((cold));

/* Reason in the log for device code that hpu_exec_end() ends. */
extern const char hpu_device_closed[];

/* hpu_device_resumed() gives the device code a new budget after a suspension. */
void hpu_device_resumed(struct hpu_exec *exec);

#endif
