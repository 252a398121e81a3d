/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of figure_7c_handlers.c and the programs of figure_7c.c have in common. */
#ifndef BENCH_FIGURES_FIGURE_7C_HANDLERS_H
#define BENCH_FIGURES_FIGURE_7C_HANDLERS_H

#include <spin.h>
#include <spin_handler.h>

enum stripe_rank { STRIPE_CLIENT, STRIPE_PARITY, STRIPE_DATA, STRIPE_RANKS = STRIPE_DATA + 4 };

/* Match bits. */
enum stripe_bits { STRIPE_NEW = 1, STRIPE_DIFFERENCE, STRIPE_APPLIED, STRIPE_DONE };

enum { STRIPE_UNIT = 4096, STRIPE_LOCKS = 64 };

/* HPU memory of the parity server's entry: what has been applied of each data server's part, and
 * who works on which units of the parity. */
struct stripe_parity {
    uint64_t applied[STRIPE_RANKS];
    uint64_t lock[STRIPE_LOCKS];
};

int stripe_data(const ptl_payload_t p, void *state);
int stripe_parity(const ptl_payload_t p, void *state);
int stripe_applied(const ptl_header_t h, void *state);

#endif
