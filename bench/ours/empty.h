/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that do nothing, in a file of their own so that they can run on RV32 cores as well. */
#ifndef BENCH_OURS_EMPTY_H
#define BENCH_OURS_EMPTY_H

#include "spin_handler.h"

int empty_header(const ptl_header_t header, void *state);
int empty_payload(const ptl_payload_t payload, void *state);

#endif
