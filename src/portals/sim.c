/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program says to the simulated NIC (pinwheel_sim.h). */
#include "pinwheel_sim.h"

#include "nic/timed.h"
#include "portals/api.h"

enum { PS_PER_NS = 1000 };

uint64_t PtlSimNow(void)
{
    return timed_now();
}

void PtlSimCompute(uint64_t ns)
{
    timed_compute(process_current(), ns * PS_PER_NS);
}

void PtlSimTouch(uint64_t read, uint64_t written)
{
    timed_touch(process_current(), read + written);
}

void PtlSimPause(void)
{
    timed_pause(process_current());
}

void PtlSimMark(const char *phase)
{
    timed_mark(process_current(), phase);
}

void PtlSimFence(void)
{
    timed_fence(process_current());
}
