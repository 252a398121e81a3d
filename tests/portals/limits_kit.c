/* SPDX-License-Identifier: BSD-3-Clause */
/* Wishes for the programs about limits; see limits_kit.h. */
#include "limits_kit.h"

#include <string.h>

ptl_ni_limits_t limits_room(void)
{
    return (ptl_ni_limits_t){.max_entries = 1000,
                             .max_unexpected_headers = 1000,
                             .max_mds = 1000,
                             .max_cts = 1000,
                             .max_eqs = 100,
                             .max_pt_index = 63,
                             .max_iovecs = 100,
                             .max_list_size = 1000,
                             .max_triggered_ops = 1000,
                             .max_msg_size = 1 << 20,
                             .max_atomic_size = 512,
                             .max_fetch_atomic_size = 512,
                             .max_waw_ordered_size = 64,
                             .max_war_ordered_size = 8,
                             .max_volatile_size = 64};
}

ptl_ni_limits_t limits_with(size_t offset, int value)
{
    ptl_ni_limits_t l = limits_room();
    memcpy((char *)&l + offset, &value, sizeof(value));
    return l;
}
