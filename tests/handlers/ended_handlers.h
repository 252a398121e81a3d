/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of ended.c, and the state that tells it what to do. */
#ifndef ENDED_HANDLERS_H
#define ENDED_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

enum ended_how {
    ENDED_OFFSET,
    ENDED_LENGTH,
    ENDED_OPTIONS,
    ENDED_NO_HANDLER_MEM,
    ENDED_ATOMIC,
    ENDED_HANDLE,
    ENDED_NO_HANDLE,
    ENDED_TYPE,
    ENDED_JUMP,
    ENDED_STACK,
    ENDED_TIME,
    ENDED_TIME_CALLS,
    ENDED_CODE,
    ENDED_DMA_ODD,
    ENDED_DMA_CAS_ODD,
    ENDED_FADD_ODD,
    ENDED_CAS_ODD,
    ENDED_SENDS,
    ENDED_HOWS,
    ENDED_C11_ODD_8 = ENDED_HOWS, /* natively these two end well */
    ENDED_C11_ODD_4,
    ENDED_MEMSET,
    ENDED_DIVIDE,
    ENDED_NO_ADDRESS, /* from here on natively only */
    ENDED_NO_CODE,
    ENDED_NO_RIGHT,
    ENDED_ODD_VECTOR
};

struct ended_state {
    uint32_t how, none;
    uint64_t word[4];
};

extern const ptl_handlers_t ended_handlers;

#endif
