/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the machine has room for the processes of a simulated job (room.c). */
#ifndef PINWHEEL_SIM_ROOM_H
#define PINWHEEL_SIM_ROOM_H

#include <stdbool.h>
#include <stdint.h>

enum { ROOM_ERROR = 256, ROOM_RANK_KIB = 1024 };

/* room_check() is false, with the limit, its value and the need in `error`, if the machine cannot
 * hold so many ranks. `root` is where /proc and /sys are: "" but in tests. */
bool room_check(const char *root, uint32_t ranks, char error[ROOM_ERROR]);

#endif
