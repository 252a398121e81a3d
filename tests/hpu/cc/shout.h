/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of shout.c, or loud.cc, and the program of shout_main.c have in common. */
#ifndef SHOUT_H
#define SHOUT_H

#include "spin.h"
#include "spin_handler.h"

struct shout_state {
    uint64_t letters;
    uint32_t cycles, pointer; /* of the last packet; bytes of a pointer */
};

#ifdef __cplusplus
extern "C" {
#endif

int shout_payload(const ptl_payload_t p, void *state);

/* Of loud.cc, in loud_count.c: how many bytes of a packet are small letters. */
uint32_t shout_count(const uint8_t *bytes, ptl_size_t length);

#ifdef __cplusplus
}
#endif

#endif
