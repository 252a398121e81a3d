/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program whose handlers have the RV32 image that is in `live` at the moment. Natively they must
 * not run.
 */
#ifndef LIVE_IMAGES_H
#define LIVE_IMAGES_H

#include "strays.h"

#include "spin.h"

#include <stdbool.h>

enum { LIVE_MAX = 1 << 18 };

/* As spin_handler.h puts images into programs; this one changes. */
struct live {
    char magic[8];
    uint64_t size;
    _Alignas(16) uint8_t bytes[LIVE_MAX];
};

extern struct live live;

/* live_open() reads the images of the handler library, of which live_make() makes some. */
void live_open(void);

/* live_make() makes image `number`, a good one but for its code. It gives which handlers it has:
 * bits for header, payload and completion handler. */
unsigned live_make(uint64_t number);

/* live_handlers() gives those of the handlers that have a bit in `which`. */
ptl_handlers_t live_handlers(unsigned which);

/* live_is_new() tells whether it is made of nothing. */
bool live_is_new(uint64_t number);

#endif
