/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of shout.c and the program of shout_main.c have in common. */
#ifndef SHOUT_H
#define SHOUT_H

#include "spin.h"
#include "spin_handler.h"

struct shout_state {
    uint64_t letters;
    uint32_t cycles, pointer; /* of the last packet; bytes of a pointer */
};

int shout_payload(const ptl_payload_t p, void *state);

#endif
