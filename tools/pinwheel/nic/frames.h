/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that have frames of interfaces (`pinwheel raw`), in `pinwheel nic`. */
#ifndef PINWHEEL_NIC_FRAMES_H
#define PINWHEEL_NIC_FRAMES_H

#include "pinwheel/util/json.h"

#include <stdint.h>

/* nic_frames_print() prints a table of the contexts of these processes, of one process unless it is
 * 0, and returns how many there are. nic_frames_json() adds them as the array "frames". */
unsigned nic_frames_print(const char *folder, int32_t process);
void nic_frames_json(struct json *j, const char *folder, int32_t process);

#endif
