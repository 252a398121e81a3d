/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of beside.c, and what they share with their host. */
#ifndef BESIDE_HANDLERS_H
#define BESIDE_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

enum { BESIDE_BYTES = 4 << 20 };

/* What a handler does with a transfer of BESIDE_BYTES under way, said in hdr_data. */
enum beside_what {
    BESIDE_COMPUTE, /* to the host; computes, and asks now and then whether it is done */
    BESIDE_BACK,    /* the same from the host */
    BESIDE_RETURN,  /* to the host; returns at once */
    BESIDE_FAULT,   /* to the host; writes where nothing is */
    BESIDE_LOOP,    /* to the host; never ends, and says so first */
    BESIDE_CALLS,   /* as BESIDE_LOOP, while it makes calls */
    BESIDE_YIELDS,  /* as BESIDE_LOOP, while others run */
    BESIDE_FAR      /* one byte more than the host has */
};

struct beside_state {
    uint32_t asked; /* how often, until it was done */
    uint32_t early; /* it was done when it was asked first */
    uint8_t data[BESIDE_BYTES];
};

extern const ptl_handlers_t beside_handlers;

#endif
