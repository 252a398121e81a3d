/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers pings, and datagrams to port 7, in the three ways that FPsPIN compares. Its host is
 * pingpong_host.c.
 *
 *      nic_payload     the handler exchanges addresses and computes the checksum
 *      both_payload    the handler exchanges addresses, the host computes the checksum
 *      host_payload    the host gets the whole frame, and makes the answer
 *
 *      gcc -shared -fPIC -O2 pingpong.c -o pingpong.so        or        pinwheel cc --image
 */
#include <spin_handler.h>
#include <spin_queue.h>

#include "pingpong.h"

enum { PATIENCE = 100000000 };

/* The host's answer must not lie where the request does. */
struct pingpong {
    struct spin_queue_end host;
    uint8_t answer[9216];
};
PTL_HANDLER_STATE(struct pingpong);

/* The bytes of an answer to a request whose lengths are true; 0: they lie. */
static unsigned answer_length(const ptl_payload_t *p)
{
    const uint8_t *f = p->base;
    if (p->length < TRANSPORT + 8) {
        return 0;
    }
    unsigned length = (unsigned)f[IP + 2] << 8 | f[IP + 3];
    unsigned least = TRANSPORT + 8 - IP;
    bool fits = length >= least && IP + length <= p->length;
    if (f[PROTO] == UDP && (unsigned)f[TRANSPORT + 4] * 256 + f[TRANSPORT + 5] != length - 20) {
        return 0;
    }
    return fits ? IP + length : 0;
}

static int reply(unsigned length)
{
    return PtlHandlerFrameReply(length) == PTL_OK ? SUCCESS : FAIL;
}

__handler int nic_payload(const ptl_payload_t p, void *state)
{
    unsigned length = answer_length(&p);
    (void)state;
    if (length == 0) {
        return DROP;
    }
    pingpong_turn(p.base);
    pingpong_put_sum(p.base, pingpong_sum((const uint8_t *)p.base + PROTO - 1, length - PROTO + 1));
    return reply(length);
}
PTL_HANDLER(nic_payload);

__handler int both_payload(const ptl_payload_t p, void *state)
{
    unsigned length = answer_length(&p);
    uint8_t sum[2];
    uint64_t answer = sizeof(sum);
    if (length == 0) {
        return DROP;
    }
    pingpong_turn(p.base);
    if (spin_queue_ask(state, (const uint8_t *)p.base + PROTO - 1, length - PROTO + 1, sum, &answer,
                       PATIENCE) != PTL_OK ||
        answer != sizeof(sum)) {
        return FAIL;
    }
    pingpong_put_sum(p.base, (unsigned)sum[0] << 8 | sum[1]);
    return reply(length);
}
PTL_HANDLER(both_payload);

__handler int host_payload(const ptl_payload_t p, void *state)
{
    struct pingpong *s = state;
    unsigned length = answer_length(&p);
    uint64_t answer = length;
    if (length == 0) {
        return DROP;
    }
    if (spin_queue_ask(&s->host, p.base, length, s->answer, &answer, PATIENCE) != PTL_OK ||
        answer != length) {
        return FAIL;
    }
    return PtlHandlerFrameSend(s->answer, length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(host_payload);
