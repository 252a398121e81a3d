/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pinwheel_sim.h: what a program may say to the simulated NIC (`pinwheel sim`, docs/sim-nic.md).
 * Outside of a simulation PtlSimNow() is the monotonic clock, and the others do nothing, so a
 * program is the same in both.
 *
 * Threads. As in portals4.h. None of these calls needs PtlInit().
 */
#ifndef PINWHEEL_SIM_H
#define PINWHEEL_SIM_H

#include <stdint.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PtlSimNow() returns the time in picoseconds: of the virtual clock from the start of the job on,
 * or of the monotonic clock. */
PTL_EXPORT uint64_t PtlSimNow(void);

/* PtlSimCompute() says that the host computes for so many nanoseconds; the NIC works meanwhile. */
PTL_EXPORT void PtlSimCompute(uint64_t ns);

/* PtlSimTouch() says that the host reads and writes so many bytes of its memory, one after the
 * other. It waits until the memory is free of what the NIC moves, and takes its latency and the
 * time of the bytes; it does not touch them. */
PTL_EXPORT void PtlSimTouch(uint64_t read, uint64_t written);

/* PtlSimPause() is for loops that look at memory until the NIC, a handler or another thread has
 * changed it: it takes the time of a look at nothing, as PtlEQGet() does that finds no event. */
PTL_EXPORT void PtlSimPause(void);

/* PtlSimMark() begins a phase of the calling rank, and ends the one before; NULL begins none.
 * Phases of one name are one phase. Reports tell what took which of them how long. */
PTL_EXPORT void PtlSimMark(const char *phase);

/* PtlSimFence() returns when all ranks of the simulated job have called it, at the virtual time of
 * the last one. pinwheel_job_barrier() calls it. */
PTL_EXPORT void PtlSimFence(void);

#ifdef __cplusplus
}
#endif

#endif
