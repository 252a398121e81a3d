/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of what handlers do, on the stats page (telemetry.c). */
#ifndef NIC_SPIN_TELEMETRY_H
#define NIC_SPIN_TELEMETRY_H

#include "nic/objects.h"

/* telemetry_call() counts a call that has ended; `h` is NULL if its entry is gone. */
void telemetry_call(struct nic *nic, struct handlers *h, const struct hpu_exec *exec, int code);

#endif
