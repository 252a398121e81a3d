/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handler of figure_3d_handlers.c and the program of figure_3d.c have in common. */
#ifndef BENCH_FIGURES_FIGURE_3D_HANDLERS_H
#define BENCH_FIGURES_FIGURE_3D_HANDLERS_H

#include <spin.h>
#include <spin_handler.h>

struct multiply_number {
    double real, imaginary;
};

static inline struct multiply_number multiply_numbers(struct multiply_number a,
                                                      struct multiply_number b)
{
    return (struct multiply_number){a.real * b.real - a.imaginary * b.imaginary,
                                    a.real * b.imaginary + a.imaginary * b.real};
}

int multiply_packet(const ptl_payload_t p, void *state);

#endif
