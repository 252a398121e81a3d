/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of this room that run handlers outside of Portals messages (src/raw), by a table
 * that libportals exports. A process has one such room, that of libportals: the calls that native
 * handlers make are its, and ask which handler runs on its contexts. So whoever runs handlers must
 * do so by this table, and not by a copy of the room.
 *
 * Both sides are of one build: `exec_size` and `size` tell if they are not.
 */
#ifndef HPU_SHARED_H
#define HPU_SHARED_H

#include "hpu/device.h"
#include "hpu/exec.h"
#include "hpu/memory.h"
#include "hpu/watchdog.h"

struct hpu_shared {
    size_t size, exec_size;
    int (*fault_install)(void);
    void (*fault_remove)(void);
    struct hpu_pool *(*pool_create)(unsigned contexts, size_t stack_size);
    void (*pool_destroy)(struct hpu_pool *pool);
    struct hpu_watchdog *(*watchdog_start)(struct hpu_pool *pool, int64_t budget_ns);
    void (*watchdog_stop)(struct hpu_watchdog *watchdog);
    struct hpu_mem *(*mem_create)(size_t length);
    void (*mem_destroy)(struct hpu_mem *mem);
    void (*exec_header)(struct hpu_pool *pool, struct hpu_exec *exec, ptl_header_handler_t handler,
                        const ptl_header_t *arg);
    void (*exec_payload)(struct hpu_pool *pool, struct hpu_exec *exec,
                         ptl_payload_handler_t handler, const ptl_payload_t *arg);
    void (*exec_completion)(struct hpu_pool *pool, struct hpu_exec *exec,
                            ptl_completion_handler_t handler, ptl_size_t dropped, bool flow);
    bool (*exec_take)(struct hpu_exec *exec);
    int (*exec_run)(struct hpu_exec *exec);
    void (*exec_give)(struct hpu_exec *exec);
    void (*exec_cancel)(struct hpu_exec *exec);
    struct hpu_device *(*device_create)(size_t stack_size, const struct rv32_timing *timing,
                                        int64_t budget_us);
    void (*device_destroy)(struct hpu_device *device);
    int (*device_open)(struct hpu_device *device, const char *path, const char *const names[3],
                       struct hpu_device_code code[3], struct rv32_error *error);
    const struct rv32_timing *(*timing_find)(const char *name);
};

extern const struct hpu_shared pinwheel_hpu_shared;

#endif
