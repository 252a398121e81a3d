/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of twins.c, and the state that tells them what to do. */
#ifndef TWINS_HANDLERS_H
#define TWINS_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

/* What goes wrong. */
enum twins_fault {
    TWINS_LOAD,
    TWINS_STORE_CODE,
    TWINS_STORE_CONSTANT,
    TWINS_BEYOND_STATE,
    TWINS_BEYOND_PACKET,
    TWINS_STACK,
    TWINS_ILLEGAL,
    TWINS_JUMP,
    TWINS_SPIN,
    TWINS_CALL_POINTER,
    TWINS_CALL_LENGTH,
    TWINS_CALL_HOST,
    TWINS_CALL_FORMAT,
    TWINS_CALL_STRING,
    TWINS_CALL_OPERAND,
    TWINS_CALL_NUMBER,
    TWINS_DIVIDE, /* which is no call */
    TWINS_FAULTS
};

struct twins_state {
    uint32_t what, length;
    uint64_t result[10];
    uint8_t header[16];
};

extern const ptl_handlers_t twins_faulty, twins_telling, twins_timing, twins_polling,
    twins_yielding, twins_asking;

/* A handler that is not registered. */
int twins_unregistered(const ptl_payload_t p, void *state);

#endif
