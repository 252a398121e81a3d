/* SPDX-License-Identifier: BSD-3-Clause */
/* A struct that the two compilers lay out differently, named by PTL_HANDLER_STATE. */
#include "spin_handler.h"

struct packed_here {
    uint8_t first;
#ifdef __riscv
    uint32_t gap;
#endif
    uint64_t second;
};
PTL_HANDLER_STATE(struct packed_here);

struct other_here {
    uint32_t words[sizeof(void *)];
    uint32_t last;
};
PTL_HANDLER_STATE(struct other_here);

/* A handler's own affair, since the file says which structs are state. */
struct cursor {
    const uint8_t *at;
};

__handler static int layout_payload(const ptl_payload_t p, void *state)
{
    struct cursor c = {p.base}, *at = &c;
    struct packed_here *s = state;
    s->second = *at->at;
    return SUCCESS;
}
PTL_HANDLER(layout_payload);
