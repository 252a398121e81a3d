/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of figure_4.c: takes the time that a call takes, and nothing of the packet goes on.
 */
#include "figure_4_handlers.h"

__handler int consume_packet(const ptl_payload_t p, void *state)
{
    (void)p;
    (void)state;
    return DROP;
}
PTL_HANDLER(consume_packet);
