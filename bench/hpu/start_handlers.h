/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of start_bench.c. */
#ifndef START_HANDLERS_H
#define START_HANDLERS_H

#include "spin_handler.h"

int start_empty(const ptl_payload_t p, void *state);

#endif
