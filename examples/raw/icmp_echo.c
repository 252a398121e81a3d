/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers pings in the NIC: pinwheel raw run --rules icmp-echo --image icmp_echo.so ...
 *
 *      gcc -shared -fPIC -O2 icmp_echo.c -o icmp_echo.so       or       pinwheel cc --image
 *
 * The rules say that an echo request is whole, in an IPv4 header of 20 bytes; that its lengths are
 * true they do not say. Exchanged addresses leave the IP checksum as it is; that of ICMP is updated
 * for the changed type (RFC 1624).
 */
#include <spin_handler.h>

enum { ETH = 14, IP = 20, TYPE = ETH + IP, SUM = TYPE + 2, LEAST = TYPE + 8 };

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
    if (length < LEAST - ETH || ETH + length > p.length) {
        return DROP;
    }
    swap_bytes(f, f + 6, 6);
    swap_bytes(f + ETH + 12, f + ETH + 16, 4);
    f[TYPE] = 0;
    unsigned sum = ((unsigned)f[SUM] << 8 | f[SUM + 1]) + 0x0800;
    sum += sum >> 16;
    f[SUM] = (uint8_t)(sum >> 8);
    f[SUM + 1] = (uint8_t)sum;
    return PtlHandlerFrameReply(ETH + length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(raw_payload);
