/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines of `pinwheel sim`, as schedules know them; see machine.h. */
#include "machine.h"

#include "pinwheel/sim/profile.h"
#include "sim/nic/machine.h"

#include <stdio.h>

int goal_machine_find(const char *name, struct nic_machine *m, char *error, size_t size)
{
    struct sim_machine of;
    char why[PROFILE_ERROR];
    if (profile_find(name, &of, why) != 0) {
        snprintf(error, size, "%s", why);
        return -1;
    }
    *m = (struct nic_machine){.o = of.o,
                              .o_receive = of.o_receive,
                              .g = of.g,
                              .byte = of.byte,
                              .match = of.match,
                              .cam = of.cam,
                              .dma = of.dma,
                              .dma_byte = of.dma_byte,
                              .host_byte = of.host_byte,
                              .look = of.look,
                              .hpus = of.hpus,
                              .clock_mhz = (uint32_t)of.clock_mhz,
                              .hpu_queue = of.hpu_queue,
                              .egress_queue = of.egress_queue,
                              .entry_messages = of.entry_messages,
                              .host = of.host,
                              .handler = of.handler,
                              .loggops = of.loggops != 0};
    return 0;
}
