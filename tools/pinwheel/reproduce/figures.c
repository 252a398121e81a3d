/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry of figures; see figures.h. Each has a file of its own, or that of its paper. */
#include "figures.h"

const struct figure *const figures[] = {
    &figure_spin_3b,   &figure_spin_3c,    &figure_spin_3d,         &figure_spin_4,
    &figure_spin_5a,   &figure_spin_5b,    &figure_spin_5c,         &figure_spin_7a,
    &figure_spin_7c,   &figure_firehose_3, &figure_firehose_3_live, &figure_firehose_7,
    &figure_firehose_8};

const size_t figure_count = sizeof(figures) / sizeof(figures[0]);
