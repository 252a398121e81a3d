/* SPDX-License-Identifier: BSD-3-Clause */
/* More code than the program memory of the cores holds. */
#include "spin_handler.h"

__handler static int size_payload(const ptl_payload_t p, void *state)
{
    uint32_t *word = state;
#ifdef __riscv
    __asm__ volatile(".fill 9000, 4, 0x13");
#endif
    return word[0] == 0 ? SUCCESS : DROP;
}
PTL_HANDLER(size_payload);
