/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of shared.h. */
#include "hpu/shared.h"

#include "base/fault.h"

__attribute__((visibility("default"))) const struct hpu_shared pinwheel_hpu_shared = {
    .size = sizeof(struct hpu_shared),
    .exec_size = sizeof(struct hpu_exec),
    .fault_install = fault_install,
    .fault_remove = fault_remove,
    .pool_create = hpu_pool_create,
    .pool_destroy = hpu_pool_destroy,
    .watchdog_start = hpu_watchdog_start,
    .watchdog_stop = hpu_watchdog_stop,
    .mem_create = hpu_mem_create,
    .mem_destroy = hpu_mem_destroy,
    .exec_header = hpu_exec_header,
    .exec_payload = hpu_exec_payload,
    .exec_completion = hpu_exec_completion,
    .exec_take = hpu_exec_take,
    .exec_run = hpu_exec_run,
    .exec_give = hpu_exec_give,
    .exec_cancel = hpu_exec_cancel,
    .device_create = hpu_device_create,
    .device_destroy = hpu_device_destroy,
    .device_open = hpu_device_open,
    .timing_find = rv32_timing_find,
};
