/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An HPU of PsPIN with what is around it, for one packet at a time: a core of src/hpu/rv32,
 * the driver's registers (pspin.h), the packet in L1, host memory and the network.
 *
 *   arrival ─4+B─► request ─16+B─► the run time reads the function ... the doorbell ─► feedback
 *
 * B is the packet's length in beats of 64 bytes. Feedback comes a cycle after the doorbell, or
 * when the last command is done. What stages take was measured on the same machine as
 * golden/pspin_handlers.csv; machine.c derives from it what a command takes.
 *
 *   10000000  L1: the stack, 1 KiB      1c300000  handler memory      1b205000  the driver
 *   10004400      the packet            1d000000  code
 *   10014400      the scratchpad        host address 1 << 60: 64 KiB
 */
#ifndef TESTS_HPU_PSPIN_MACHINE_H
#define TESTS_HPU_PSPIN_MACHINE_H

#include "hpu/rv32/core.h"

enum {
    PSPIN_STACK = 0x10000000,
    PSPIN_STACK_BYTES = 1024,
    PSPIN_PACKET = 0x10004400,
    PSPIN_PACKET_MAX = 2048,
    PSPIN_SCRATCHPAD = 0x10014400,
    PSPIN_SCRATCHPAD_BYTES = 4096,
    PSPIN_HANDLER_MEMORY = 0x1c300000,
    PSPIN_HANDLER_BYTES = 4096,
    PSPIN_DRIVER = 0x1b205000,
    PSPIN_HOST_BYTES = 65536,
    PSPIN_COMMANDS = 4, /* that may be on their way at once */
};

#define PSPIN_HOST (1ull << 60)

struct pspin {
    struct rv32_image image;
    struct rv32_program program;
    struct rv32_core core;
    struct rv32_device driver;
    uint8_t stack[PSPIN_STACK_BYTES], packet[PSPIN_PACKET_MAX];
    uint8_t scratchpad[PSPIN_SCRATCHPAD_BYTES], handler_memory[PSPIN_HANDLER_BYTES];
    uint8_t host[PSPIN_HOST_BYTES];
    uint32_t packet_size;
    /* The driver. */
    uint32_t window[0x50 / 4];
    uint32_t info, words[7];
    uint64_t done[PSPIN_COMMANDS]; /* the cycle in which a command is over; 0: never used */
    uint64_t began, doorbell;      /* cycles; doorbell 0: not rung */
    /* The network: what was sent last. */
    uint8_t sent[PSPIN_PACKET_MAX];
    uint32_t sent_size, sent_count;
};

struct pspin_outcome {
    const struct rv32_result *result;
    uint64_t handler; /* cycles between the two nops of the run time */
    uint64_t latency; /* cycles from the packet's arrival to its feedback */
};

/* pspin_open() makes the machine from an image that has hpu_run; false: it said why. */
bool pspin_open(struct pspin *m, const char *image, enum rv32_program_kind kind);
void pspin_close(struct pspin *m);

/* pspin_serve() runs a handler on m->packet, with an empty instruction cache if that is counted;
 * memory and host stay as the last one left them. */
struct pspin_outcome pspin_serve(struct pspin *m, const char *handler);

#endif
