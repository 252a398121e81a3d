/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers pings by NIC and host together, as FPsPIN's ping-pong does: the handler exchanges
 * addresses, the host computes the checksum of the answer. The host is ping_host.c.
 *
 *      gcc -shared -fPIC -O2 icmp_host.c -o icmp_host.so        or        pinwheel cc --image
 */
#include <spin_handler.h>
#include <spin_queue.h>

enum { ETH = 14, IP = 20, TYPE = ETH + IP, SUM = TYPE + 2, LEAST = TYPE + 8, PATIENCE = 100000000 };

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
    const struct spin_queue_end *host = state;
    uint8_t *f = p.base, sum[2];
    uint64_t answer = sizeof(sum);
    if (p.length < LEAST) {
        return DROP;
    }
    unsigned length = (unsigned)f[ETH + 2] << 8 | f[ETH + 3];
    if (length < LEAST - ETH || ETH + length > p.length) {
        return DROP;
    }
    f[TYPE] = 0;
    f[SUM] = f[SUM + 1] = 0;
    if (spin_queue_ask(host, f + TYPE, length - IP, sum, &answer, PATIENCE) != PTL_OK ||
        answer != sizeof(sum)) {
        return FAIL;
    }
    f[SUM] = sum[0];
    f[SUM + 1] = sum[1];
    swap_bytes(f, f + 6, 6);
    swap_bytes(f + ETH + 12, f + ETH + 16, 4);
    return PtlHandlerFrameReply(ETH + length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(raw_payload);
