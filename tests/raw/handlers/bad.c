/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers for what is bad or too much; bad.sh and flood.sh run them. */
#include <spin_handler.h>

enum { UDP = 34, DATA = UDP + 8, SLMP_DATA = DATA + 10 };

static void swap_bytes(uint8_t *a, uint8_t *b, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* Sends each frame back, of whatever length. */
__handler int echo_payload(const ptl_payload_t p, void *state)
{
    (void)state;
    if (p.length < 14) {
        return FAIL;
    }
    swap_bytes(p.base, p.base + 6, 6);
    return PtlHandlerFrameReply(p.length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(echo_payload);

/* Frames of lengths that cannot be sent, and what the calls say to each. */
__handler int sizes_payload(const ptl_payload_t p, void *state)
{
    static const uint32_t lengths[] = {0, 1, 13, 9019, 10000, 65536};
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        if (PtlHandlerFrameSend(state, lengths[i]) != PTL_ARG_INVALID ||
            PtlHandlerFrameReply(lengths[i]) != PTL_ARG_INVALID) {
            return FAIL;
        }
    }
    if (PtlHandlerFrameReply(p.length + 1) != PTL_ARG_INVALID) {
        return FAIL;
    }
    return PtlHandlerFrameSend(p.base, p.length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(sizes_payload);

/* Is slow: some milliseconds for each frame. */
__handler int slow_payload(const ptl_payload_t p, void *state)
{
    (void)p;
    (void)state;
    for (volatile unsigned i = 0; i < 2000000; i++) {
    }
    return SUCCESS;
}
PTL_HANDLER(slow_payload);

/* Answers each datagram of a message of SLMP with how many have come, in its data. */
__handler int spread_payload(const ptl_payload_t p, void *state)
{
    uint32_t *count = PtlHandlerMessageState();
    uint8_t *f = p.base;
    (void)state;
    if (p.length < SLMP_DATA + 4) {
        return FAIL;
    }
    ++*count;
    for (int i = 0; i < 4; i++) {
        f[SLMP_DATA + i] = (uint8_t)(*count >> (24 - 8 * i));
    }
    swap_bytes(f, f + 6, 6);
    swap_bytes(f + 26, f + 30, 4);
    swap_bytes(f + UDP, f + UDP + 2, 2);
    f[UDP + 6] = f[UDP + 7] = 0;
    return PtlHandlerFrameReply(p.length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(spread_payload);
