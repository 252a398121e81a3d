/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core: runs a program of decoded cells on the memory regions that it was given, counts its
 * cycles, and ends the program at an access or instruction that is not allowed.
 *
 *   rv32_core_init() ─► rv32_core_map()... ─► rv32_core_call() ─► struct rv32_result
 *
 * A core can access only its regions; each access is checked, as a whole, against the bounds and
 * rights of one region. The core remembers for each base register the region that it pointed to
 * last, so that the check is one subtraction and one comparison. All rarer accesses (another
 * region, memory other than L1, a misaligned word) go through rv32_core_reach() and its like.
 *
 * A region may be a device: each access is a call to the host, which may make the core wait. A
 * device has no bytes for plain accesses, so devices cost other memory nothing.
 *
 * A core belongs to one thread at a time. No core writes to a program, so many
 * cores share one. Cores may share memory; their atomics are atomic towards each other.
 */
#ifndef HPU_RV32_CORE_H
#define HPU_RV32_CORE_H

#include "hpu/rv32/fetch.h"

enum { RV32_REGIONS = 12, RV32_ARGUMENTS = 8 };

/* The return address of a function that rv32_core_call() calls. */
#define RV32_RETURN 0xfffffff0u

enum rv32_access { RV32_READ = 1, RV32_WRITE = 2 };

/* A device: registers of a word each. access() gets the offset of a register, the cycle in which
 * the access begins, and the word to read into or to write. It returns how many cycles longer than
 * one to L1 the access takes, or -1 if there is no register to be read, or written, at the
 * offset. */
struct rv32_device {
    int64_t (*access)(void *context, enum rv32_access access, uint32_t offset, uint64_t cycle,
                      uint32_t *word);
    void *context;
};

struct rv32_region {
    const char *name;
    uint8_t *host;
    uint32_t base, size;
    unsigned rights; /* enum rv32_access */
    enum rv32_area area;
    /* How many bytes, half-words, words, doubles, counted from `base` on, plain accesses may read
     * or write. */
    uint32_t read[4], write[4];
    const struct rv32_device *device; /* NULL: memory, at `host` */
};

enum rv32_end {
    RV32_RETURNED,
    RV32_STOPPED, /* by the host, in an ecall */
    RV32_TIMEOUT, /* more cycles than allowed */
    RV32_FAULT_LOAD,
    RV32_FAULT_STORE,
    RV32_FAULT_ATOMIC,
    RV32_FAULT_STACK, /* an access with base register sp, outside of all regions */
    RV32_FAULT_ILLEGAL,
    RV32_FAULT_JUMP,  /* control left the code */
    RV32_FAULT_ECALL, /* there is no function to serve it */
    RV32_FAULT_EBREAK,
    RV32_FAULT_DIVIDE, /* by 0, or the quotient overflows; only on a core that is `exact` */
};

/* The memory beside which an access has failed; name NULL: none is near. */
struct rv32_near {
    const char *name;
    uint32_t base, size;
    bool device;
};

struct rv32_result {
    enum rv32_end end;
    uint32_t value;          /* a0; or the value with which the host has stopped the program */
    uint32_t pc;             /* of a fault; of a jump out of the code, its target */
    uint32_t from;           /* of RV32_FAULT_JUMP: the instruction that has jumped, or pc */
    uint32_t ra, sp;         /* of a fault: these registers */
    uint32_t address, bytes; /* of an access that has failed */
    struct rv32_near near;
    uint64_t cycles, instructions;
};

struct rv32_core;

/* A function that serves ecalls. It may read and change registers and charge cycles. Any result but
 * 0 stops the program, with that value. */
typedef int rv32_ecall(struct rv32_core *core, void *context);

/* Called when the budget is used up, with the context of ecalls. True: it has given the program
 * more, by adding to core->budget and core->left. */
typedef bool rv32_late(struct rv32_core *core, void *context);

/* What a function that watches a program has the core do next. */
enum rv32_turn {
    RV32_GO_ON,
    RV32_GO_TO, /* continue at core->go_to, an address of the code */
    RV32_HALT,  /* end the program as RV32_STOPPED, with the value 0 */
};

/* rv32_core_trace() calls it before each instruction. It may change registers and memory. */
typedef enum rv32_turn rv32_watch(void *context, struct rv32_core *core, uint32_t pc,
                                  uint64_t cycles);

struct rv32_core {
    uint32_t x[RV32_SINK + 1];
    /* region that each base register pointed to last, never NULL; kept between calls */
    struct rv32_region *hint[RV32_SINK + 1];
    /* Registers of reals; a float is in the lower half, below ones. Of a program without reals
     * these are not set. */
    uint64_t f[RV32_REALS_AT];
    uint32_t fcsr; /* flags, and from bit 5 on the rounding mode */
    const struct rv32_program *program;
    int64_t budget, left; /* cycles; `left` is without those that are charged already (program.h) */
    int64_t instructions; /* those that are charged already */
    uint32_t waited;      /* cycles that the current access takes besides its fixed part */
    uint32_t device_word; /* word that an access reads from a device, or writes to it */
    uint32_t go_to;       /* where RV32_GO_TO leads */
    struct rv32_result result;
    rv32_ecall *ecall;
    rv32_late *late; /* NULL: the budget is never extended */
    /* called before each atomic, where core->left is the cycles that are left; NULL: not */
    void (*point)(struct rv32_core *core, void *context);
    void *ecall_context;
    bool exact;    /* a division whose result C leaves undefined ends the program */
    bool reserved; /* LR has made a reservation */
    uint32_t reservation, reserved_value;
    int region_count;
    struct rv32_region region[RV32_REGIONS + 1]; /* [0] is empty: hints point to it first */
    struct rv32_fetch fetch;                     /* if the program was made with RV32_CACHE */
};

/* rv32_core_init() makes a core without memory, its instruction cache empty. */
void rv32_core_init(struct rv32_core *core, const struct rv32_program *program);

/* rv32_core_map() gives the core a region, of bytes that the caller owns; base and host must be
 * multiples of 4. It fails if the region is misaligned, exceeds 32 bits, overlaps another, or is
 * one too many. */
int rv32_core_map(struct rv32_core *core, const char *name, uint32_t base, uint32_t size,
                  void *host, unsigned rights, enum rv32_area area, struct rv32_error *error);

/* rv32_core_move() moves and resizes region `index` (the first one mapped is 1). The rules of
 * rv32_core_map() hold but are not checked. With size 0 the core has no such region. */
void rv32_core_move(struct rv32_core *core, int index, uint32_t base, uint32_t size, void *host,
                    unsigned rights, enum rv32_area area);

/* rv32_core_map_image() gives the core the segments of an image: its code for reading, and its
 * data. */
int rv32_core_map_image(struct rv32_core *core, const struct rv32_image *image,
                        struct rv32_error *error);

/* rv32_core_map_device() gives the core a device that the caller owns. The core refuses atomics
 * there, and accesses other than of aligned words. */
int rv32_core_map_device(struct rv32_core *core, const char *name, uint32_t base, uint32_t size,
                         const struct rv32_device *device, struct rv32_error *error);

/* rv32_core_cool() empties the instruction cache. */
void rv32_core_cool(struct rv32_core *core);

/* rv32_core_share() puts the line with an address into the instruction cache, as if other code in
 * that line had run before. */
void rv32_core_share(struct rv32_core *core, uint32_t address);

struct rv32_call {
    uint32_t pc; /* of a function */
    uint32_t arguments[RV32_ARGUMENTS];
    uint32_t stack; /* the stack pointer */
    int64_t budget; /* cycles */
};

/* rv32_core_call() runs a function until it returns or is ended, and returns &core->result. */
const struct rv32_result *rv32_core_call(struct rv32_core *core, const struct rv32_call *call);

/* rv32_core_trace() does the same, slowly, and calls watch() before each instruction. */
const struct rv32_result *rv32_core_trace(struct rv32_core *core, const struct rv32_call *call,
                                          rv32_watch *watch, void *context);

/* rv32_core_resume() continues at `pc` after a traced call has ended, with the registers and the
 * budget that are left. */
const struct rv32_result *rv32_core_resume(struct rv32_core *core, uint32_t pc, rv32_watch *watch,
                                           void *context);

/* rv32_core_call_unchecked() measures what the checks cost: addresses are offsets into `arena`, 4
 * GiB of address space, of which the caller has made accessible what the program needs. A program
 * that leaves it crashes the process. Only bench/hpu builds this (RV32_UNCHECKED). */
const struct rv32_result *rv32_core_call_unchecked(struct rv32_core *core,
                                                   const struct rv32_call *call, uint8_t *arena);

/* rv32_core_charge() charges cycles; a function that serves an ecall may call it. */
static inline void rv32_core_charge(struct rv32_core *core, uint32_t cycles)
{
    core->left -= cycles;
}

/* rv32_core_reach() returns where in this process the `bytes` bytes at an address are; NULL if the
 * core may not access them so, or they are a device's. Handler calls check pointers with it. */
void *rv32_core_reach(struct rv32_core *core, uint32_t address, uint32_t bytes,
                      enum rv32_access access);

/* rv32_result_near() finds the region beside which the failed access of the core's result was: one
 * that it begins in, the stack if that has overflowed, or the nearest one. */
void rv32_result_near(struct rv32_core *core) __attribute__((cold));

/* rv32_result_place() describes that region, to follow "... bytes" in a text. */
enum { RV32_PLACE = 128 };
void rv32_result_place(const struct rv32_result *r, char text[RV32_PLACE]) __attribute__((cold));

/* rv32_result_run_time_caller() returns where the run-time function (runtime/, libgcc) that `pc` is
 * in was called from; 0 if `pc` is in the program itself, or the place is not known. A function
 * that itself calls others, as one that has just called a stub, has its return address in its
 * frame, the lowest on the core's stack, and not in `ra`. */
uint32_t rv32_result_run_time_caller(struct rv32_core *core, const struct rv32_image *image,
                                     uint32_t pc) __attribute__((cold));

/* rv32_result_text() describes how a call ended, and where in the source. `image` and `lines` may
 * be NULL. */
void rv32_result_text(const struct rv32_result *r, const struct rv32_image *image,
                      const struct rv32_lines *lines, struct rv32_error *text)
    __attribute__((cold));

#endif
