/* SPDX-License-Identifier: BSD-3-Clause */
/* State that `pinwheel cc` refuses, field by field; cc.sh expects each message. */
#include "spin_handler.h"

struct inner {
    uint32_t fine;
    long deep;
};

struct bad_state {
    uint32_t fine;
    size_t length;
    uint64_t also_fine;
    struct inner inner[2];
    const char *text;
    unsigned long bits;
    long double real;
    enum { SOME, THING } kind;
    void (*call)(void);
};

__handler static int bad_payload(const ptl_payload_t p, void *state)
{
    struct bad_state *s = state;
    s->fine += (uint32_t)p.length;
    return SUCCESS;
}
PTL_HANDLER(bad_payload);
