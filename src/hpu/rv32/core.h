/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core: runs a program of decoded cells on memory that it has been given, counts
 * its cycles, and ends it when it does what it may not.
 *
 *   rv32_core_init() ─► rv32_core_map()... ─► rv32_core_call() ─► struct rv32_result
 *
 * A core sees its regions and nothing else; each access is held against the bounds and
 * rights of one region, whole. Which region a base register pointed to last is kept by
 * register, so that the check of an access is one subtraction and one comparison; all
 * that is not plain (another region, memory that is not local, a misaligned word) is
 * decided in rv32_core_reach().
 *
 * A region may be a device: each access to it is a call to the host, which may make the core
 * wait. Devices lie beyond the bounds that plain accesses are held against, so they cost
 * other memory nothing.
 *
 * A core belongs to one thread at a time. Programs are not written to, so that many
 * cores share one; memory may be shared between cores, whose atomics then are atomic.
 */
#ifndef HPU_RV32_CORE_H
#define HPU_RV32_CORE_H

#include "hpu/rv32/fetch.h"

enum { RV32_REGIONS = 12, RV32_ARGUMENTS = 8 };

/* Where a function returns to that was called by rv32_core_call(). */
#define RV32_RETURN 0xfffffff0u

enum rv32_access { RV32_READ = 1, RV32_WRITE = 2 };

/* Registers of a word each. access() gets the offset of one, the cycle in which the access begins,
 * and the word to read into or to write; it gives how many cycles longer than in L1 the access
 * takes, or -1 if there is no such register to read or to write. */
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
    /* How many bytes, half-words, words may be read or written without more ado. */
    uint32_t read[3], write[3];
    const struct rv32_device *device; /* NULL: memory, at `host` */
};

enum rv32_end {
    RV32_RETURNED,
    RV32_STOPPED, /* by the host, in an ecall */
    RV32_TIMEOUT, /* more cycles than allowed */
    RV32_FAULT_LOAD,
    RV32_FAULT_STORE,
    RV32_FAULT_ATOMIC,
    RV32_FAULT_STACK, /* an access by sp to nothing */
    RV32_FAULT_ILLEGAL,
    RV32_FAULT_JUMP,  /* control left the code */
    RV32_FAULT_ECALL, /* nobody serves it */
    RV32_FAULT_EBREAK,
    RV32_FAULT_DIVIDE, /* by 0, or the quotient overflows; only on a core that is `exact` */
};

/* The memory that an access which failed went astray from; name NULL: none is near. */
struct rv32_near {
    const char *name;
    uint32_t base, size;
    bool device;
};

struct rv32_result {
    enum rv32_end end;
    uint32_t value;          /* a0, or what the host stopped it with */
    uint32_t pc;             /* of a fault; of a jump, where it led */
    uint32_t from;           /* of RV32_FAULT_JUMP: the instruction that led there, or pc */
    uint32_t ra, sp;         /* of a fault: registers */
    uint32_t address, bytes; /* of an access that failed */
    struct rv32_near near;
    uint64_t cycles, instructions;
};

struct rv32_core;

/* A function that serves ecalls: it may read and change registers and charge cycles. Giving
 * anything but 0 stops the program with that value. */
typedef int rv32_ecall(struct rv32_core *core, void *context);

/* Asked when the budget is used up, with the context of ecalls: true if it gives more, which it
 * adds to core->budget and core->left. */
typedef bool rv32_late(struct rv32_core *core, void *context);

/* The answer of a function that watches a program: how the core goes on. */
enum rv32_turn {
    RV32_GO_ON,
    RV32_GO_TO, /* core->go_to, an address of the code */
    RV32_HALT,  /* ends it as RV32_STOPPED, with the value 0 */
};

/* Called in front of each instruction by rv32_core_trace(). It may change registers and memory. */
typedef enum rv32_turn rv32_watch(void *context, struct rv32_core *core, uint32_t pc,
                                  uint64_t cycles);

struct rv32_core {
    uint32_t x[RV32_SINK + 1];
    struct rv32_region *hint[RV32_SINK + 1]; /* by base register, never NULL; kept between calls */
    const struct rv32_program *program;
    int64_t budget, left; /* cycles; left: less what is charged (program.h) */
    int64_t instructions; /* charged */
    uint32_t waited;      /* cycles that the current access costs besides */
    uint32_t device_word; /* word that the core reads from a device, or writes */
    uint32_t go_to;       /* where RV32_GO_TO leads */
    struct rv32_result result;
    rv32_ecall *ecall;
    rv32_late *late; /* NULL: the budget is all that there is */
    void *ecall_context;
    bool exact;    /* a division that C leaves undefined ends the program */
    bool reserved; /* by LR */
    uint32_t reservation, reserved_value;
    int region_count;
    struct rv32_region region[RV32_REGIONS + 1]; /* [0] is empty: hints begin there */
    struct rv32_fetch fetch;                     /* if the program was made with RV32_CACHE */
};

/* rv32_core_init() makes a core without memory, its instruction cache empty. */
void rv32_core_init(struct rv32_core *core, const struct rv32_program *program);

/* rv32_core_map() gives the core a region; base and host must be multiples of 4. Bytes stay the
 * caller's. It fails if the region is misaligned, beyond 32 bits, over another, or one too many. */
int rv32_core_map(struct rv32_core *core, const char *name, uint32_t base, uint32_t size,
                  void *host, unsigned rights, enum rv32_area area, struct rv32_error *error);

/* rv32_core_move() says where region `index` lies from now on (the first
 * that was mapped is 1). The rules of rv32_core_map() hold, and are not checked. A size of 0
 * takes it away. */
void rv32_core_move(struct rv32_core *core, int index, uint32_t base, uint32_t size, void *host,
                    unsigned rights, enum rv32_area area);

/* rv32_core_map_image() gives the core the segments of the image: its code to read, its data. */
int rv32_core_map_image(struct rv32_core *core, const struct rv32_image *image,
                        struct rv32_error *error);

/* rv32_core_map_device() gives the core a device, which stays the caller's. Accesses other than of
 * aligned words, and atomics, are refused. */
int rv32_core_map_device(struct rv32_core *core, const char *name, uint32_t base, uint32_t size,
                         const struct rv32_device *device, struct rv32_error *error);

/* rv32_core_cool() empties the instruction cache. */
void rv32_core_cool(struct rv32_core *core);

/* rv32_core_share() puts the line of the instruction cache into it that an address is in: that
 * line has also code of others, which ran before. */
void rv32_core_share(struct rv32_core *core, uint32_t address);

struct rv32_call {
    uint32_t pc; /* of a function */
    uint32_t arguments[RV32_ARGUMENTS];
    uint32_t stack; /* the stack pointer */
    int64_t budget; /* cycles */
};

/* rv32_core_call() runs a function until it returns or is ended, and gives core->result. */
const struct rv32_result *rv32_core_call(struct rv32_core *core, const struct rv32_call *call);

/* rv32_core_trace() does the same slowly, and tells of each instruction. */
const struct rv32_result *rv32_core_trace(struct rv32_core *core, const struct rv32_call *call,
                                          rv32_watch *watch, void *context);

/* rv32_core_resume() goes on after a traced call has ended, at `pc`, with the registers and the
 * rest of the budget as they are. */
const struct rv32_result *rv32_core_resume(struct rv32_core *core, uint32_t pc, rv32_watch *watch,
                                           void *context);

/* rv32_core_call_unchecked() is for measuring what checks cost: addresses are offsets into
 * `arena`, 4 GiB of address space of which the caller has made what is needed accessible.
 * A program that strays takes the process with it. Only bench/hpu builds it (RV32_UNCHECKED). */
const struct rv32_result *rv32_core_call_unchecked(struct rv32_core *core,
                                                   const struct rv32_call *call, uint8_t *arena);

/* rv32_core_charge() adds cycles from within an ecall. */
static inline void rv32_core_charge(struct rv32_core *core, uint32_t cycles)
{
    core->left -= cycles;
}

/* rv32_core_reach() gives where in the host `bytes` bytes at an address are, NULL if the core
 * may not access them so or they are a device's. Handler calls check pointers with it. */
void *rv32_core_reach(struct rv32_core *core, uint32_t address, uint32_t bytes,
                      enum rv32_access access);

/* rv32_result_near() finds what region a failed access of the core's result went astray from: one
 * that it lies in, the stack if that has overflowed, or one beside it. */
void rv32_result_near(struct rv32_core *core) __attribute__((cold));

/* rv32_result_place() says so in words, which follow "... bytes" of the access. */
enum { RV32_PLACE = 128 };
void rv32_result_place(const struct rv32_result *r, char text[RV32_PLACE]) __attribute__((cold));

/* rv32_result_run_time_caller() gives where the function of the run time (runtime/, libgcc) was
 * called from that `pc` is in; 0 if the program itself is at `pc`, or nothing says so. A function
 * that calls others, as the one that has just called a stub, has its return address in its frame,
 * the lowest on the core's stack, and not in `ra`. */
uint32_t rv32_result_run_time_caller(struct rv32_core *core, const struct rv32_image *image,
                                     uint32_t pc) __attribute__((cold));

/* rv32_result_text() says in words how a call ended, and where in the source. `image` and
 * `lines` may be NULL. */
void rv32_result_text(const struct rv32_result *r, const struct rv32_image *image,
                      const struct rv32_lines *lines, struct rv32_error *text)
    __attribute__((cold));

#endif
