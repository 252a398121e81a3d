/* SPDX-License-Identifier: BSD-3-Clause */
/* The DMA engine of a simulated NIC, and host memory behind it (dma.c). */
#ifndef FABRIC_SIM_DMA_H
#define FABRIC_SIM_DMA_H

#include "fabric/sim/sim.h"

/* sim_dma_take() has the engine take so many bytes, as soon as it and host memory are free; returns
 * when it begins. *taken is how long that takes it. */
uint64_t sim_dma_take(struct sim_fabric *f, uint64_t bytes, uint64_t *taken);

/* sim_memory_take() has host memory move so many bytes, not before `at`; returns when that begins.
 */
uint64_t sim_memory_take(struct sim_clock *c, uint64_t at, uint64_t bytes);

/* Those of struct fabric_time. */
uint64_t sim_dma(struct fabric *fabric, uint64_t bytes, bool to_host);
uint64_t sim_dma_written(struct fabric *fabric, bool tells);
void sim_touch(uint64_t bytes);

#endif
