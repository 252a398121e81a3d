/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of simnic_hpus (hpus.c), for this machine and for the RV32 cores. */
#ifndef SIMNIC_HPUS_HANDLERS_H
#define SIMNIC_HPUS_HANDLERS_H

#include <spin_handler.h>

enum task {
    TASK_NONE,
    TASK_WRITE, /* 8 bytes to the host */
    TASK_READ,  /* 8 bytes from it */
    TASK_ADD,   /* an atomic on it */
    TASK_CAS,
    TASK_READ_WAIT,  /* a read with a handle, and a wait */
    TASK_READ_TEST,  /* ... and tests */
    TASK_READ_LEAVE, /* ... and the end of the handler */
    TASK_WRITES,     /* two writes of 4096 bytes with handles */
    TASK_WRITE_READ, /* a write, and a read of what it wrote */
    TASK_YIELD,
    TASK_PUTS /* three puts of 4096 bytes to the sender, who has no entry for them */
};

struct orders {
    uint32_t task, wrong;
    uint64_t bytes[512];
};

/* What the payload handlers of a message share. */
struct shared {
    uint32_t lock, count, inside, most, lost;
    uint32_t spins;
};

int order_header(const ptl_header_t h, void *state);
int locked_payload(const ptl_payload_t p, void *state);
int losing_payload(const ptl_payload_t p, void *state);

#endif
