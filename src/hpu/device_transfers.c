/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking transfers of device code in the time of its core. The bytes move as those of native
 * handlers do (dma.h); for the device code a transfer is done exactly when the cycles have passed
 * that the blocking call would have taken, so that each run takes the same time:
 *
 *      NB ──► issued ──► the handler goes on        Test: no ... no, yes    Wait: charged the rest
 *             └────── cycles of the blocking call ──────────────┘
 */
#include "hpu/device.h"

/* Returns the cycle at which a transfer is done. The core remembers that of each of the last
 * DEVICE_TRANSFERS, and the latest one of those before. */
static uint64_t done_at(const struct hpu_exec *exec, uint64_t handle)
{
    const struct hpu_core *c = exec->core;
    return exec->dma_issued - handle < DEVICE_TRANSFERS ? c->done[handle % DEVICE_TRANSFERS]
                                                        : c->done_before;
}

/* Device code's PtlHandlerDMATest(). A transfer may have been copied before its time: then it is
 * not done yet. At its time it is done, even if this has to wait for the copy. Handles that do not
 * exist are left to the native call. */
uint64_t hpu_device_test(uint64_t handle)
{
    const struct hpu_exec *exec = hpu_exec_current();
    if (exec->env.timed != NULL) {
        return PtlHandlerDMATest((ptl_dma_h)handle);
    }
    bool good = handle != 0 && handle <= exec->dma_issued;
    if (good && done_at(exec, handle) > hpu_device_now(&exec->core->rv32)) {
        return false;
    }
    PtlHandlerDMAWait((ptl_dma_h)handle);
    return true;
}

/* Device code's PtlHandlerDMAWait(): charges the core for what is left of the transfer's time. */
void hpu_device_wait(uint64_t handle)
{
    const struct hpu_exec *exec = hpu_exec_current();
    struct rv32_core *core = &exec->core->rv32;
    PtlHandlerDMAWait((ptl_dma_h)handle);
    if (exec->env.timed != NULL) {
        return;
    }
    uint64_t done = done_at(exec, handle);
    if (done > hpu_device_now(core)) {
        rv32_core_charge(core, (uint32_t)(done - hpu_device_now(core)));
    }
}

/* Notes when a transfer is done that goes on beside the handler. */
void hpu_device_begun(struct hpu_core *c, enum rv32_call_cost cost, uint32_t handle, uint64_t bytes)
{
    const struct rv32_timing *t = c->rv32.program->timing;
    uint64_t *done = &c->done[handle % DEVICE_TRANSFERS];
    if (c->code->device->timed) {
        return;
    }
    if (cost != RV32_COST_TO_HOST && cost != RV32_COST_FROM_HOST && cost != RV32_COST_HOST_ATOMIC) {
        return;
    }
    if (handle <= DEVICE_TRANSFERS) { /* no transfer of this handler has had the place before */
        c->done_before = 0;
    } else if (*done > c->done_before) {
        c->done_before = *done;
    }
    *done = hpu_device_now(&c->rv32) + rv32_cost_call(t, cost + 1, bytes) -
            rv32_cost_call(t, cost, bytes);
}

_Static_assert(RV32_COST_TO_HOST_WAIT == RV32_COST_TO_HOST + 1 &&
                   RV32_COST_FROM_HOST_WAIT == RV32_COST_FROM_HOST + 1 &&
                   RV32_COST_HOST_ATOMIC_WAIT == RV32_COST_HOST_ATOMIC + 1,
               "hpu_device_begun");
