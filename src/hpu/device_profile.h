/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the cycles of device code go: by handler, function and source line. Whoever wants to know
 * gives a row for each of these, and cycles are added to it while the code runs, which is slower
 * then, and takes the same cycles.
 */
#ifndef HPU_DEVICE_PROFILE_H
#define HPU_DEVICE_PROFILE_H

#include "hpu/device.h"

/* A place in device code; file NULL: its line is not known. */
struct hpu_code_place {
    const char *handler, *function, *file;
    int line;
};

/* Who wants to know. row() gives the two numbers of a place, cycles and instructions, which last as
 * long as the device; it is called once for each instruction that runs at all. */
struct hpu_device_rows {
    uint64_t *(*row)(void *arg, const struct hpu_code_place *p);
    void *arg;
};

/* hpu_device_profile() runs the core in place of rv32_core_call(). hpu_device_forget() frees what
 * the device knows of rows. */
const struct rv32_result *hpu_device_profile(const struct hpu_device_code *code,
                                             struct rv32_core *core, const struct rv32_call *call);
void hpu_device_forget(struct hpu_device *t);

#endif
