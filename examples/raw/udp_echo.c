/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends datagrams back to where they came from: pinwheel raw run --rules udp-echo --image ...
 * A sender on this machine leaves the checksum to its card, so the answer has none (RFC 768).
 */
#include <spin_handler.h>

enum { ETH = 14, IP = 20, UDP = ETH + IP, LEAST = UDP + 8 };

static void swap_bytes(uint8_t *a, uint8_t *b, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

__handler int raw_payload(const ptl_payload_t p, void *state)
{
    uint8_t *f = p.base;
    (void)state;
    if (p.length < LEAST) {
        return DROP;
    }
    unsigned length = (unsigned)f[ETH + 2] << 8 | f[ETH + 3];
    unsigned datagram = (unsigned)f[UDP + 4] << 8 | f[UDP + 5];
    if (ETH + length > p.length || datagram < 8 || IP + datagram > length) {
        return DROP;
    }
    swap_bytes(f, f + 6, 6);
    swap_bytes(f + ETH + 12, f + ETH + 16, 4);
    swap_bytes(f + UDP, f + UDP + 2, 2);
    f[UDP + 6] = 0;
    f[UDP + 7] = 0;
    return PtlHandlerFrameReply(ETH + length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(raw_payload);
