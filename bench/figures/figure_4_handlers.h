/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of figure_4.c. */
#ifndef BENCH_FIGURES_FIGURE_4_HANDLERS_H
#define BENCH_FIGURES_FIGURE_4_HANDLERS_H

#include <spin.h>
#include <spin_handler.h>

int consume_packet(const ptl_payload_t p, void *state);

#endif
