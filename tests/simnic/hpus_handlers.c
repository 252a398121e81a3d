/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of simnic_hpus; see hpus.c. */
#include "hpus_handlers.h"

static void transfers(struct orders *o)
{
    uint64_t word = 7;
    switch (o->task) {
    case TASK_WRITE:
        PtlHandlerDMAToHostB(&word, 0, 8, PTL_ME_HOST_MEM);
        word = 8; /* the host gets 7 */
        break;
    case TASK_READ:
        PtlHandlerDMAFromHostB(8, &word, 8, PTL_ME_HOST_MEM);
        o->wrong = word != 99;
        break;
    case TASK_ADD:
        PtlHandlerDMAFetchAddB(8, 1, &word, PTL_UINT64_T, PTL_ME_HOST_MEM);
        o->wrong = word != 99;
        break;
    case TASK_CAS:
        word = 98;
        PtlHandlerDMACASB(8, &word, 1, PTL_ME_HOST_MEM);
        o->wrong = word != 99;
        break;
    case TASK_READ_WAIT:
        PtlHandlerDMAWait(PtlHandlerDMAFromHostNB(8, &word, 8, PTL_ME_HOST_MEM));
        o->wrong = word != 99;
        break;
    default:
        break;
    }
}

__handler int order_header(const ptl_header_t h, void *state)
{
    struct orders *o = state;
    ptl_dma_h handle;
    uint64_t word = 0;
    transfers(o);
    switch (o->task) {
    case TASK_READ_TEST:
        handle = PtlHandlerDMAFromHostNB(8, &word, 8, PTL_ME_HOST_MEM);
        while (!PtlHandlerDMATest(handle)) {
        }
        o->wrong = word != 99;
        break;
    case TASK_READ_LEAVE:
        PtlHandlerDMAFromHostNB(8, &o->bytes[0], 8, PTL_ME_HOST_MEM);
        break;
    case TASK_WRITES:
        PtlHandlerDMAToHostNB(o->bytes, 0, 4096, PTL_ME_HOST_MEM);
        PtlHandlerDMAToHostNB(o->bytes, 4096, 4096, PTL_ME_HOST_MEM);
        break;
    case TASK_WRITE_READ:
        word = 5;
        PtlHandlerDMAToHostB(&word, 8, 8, PTL_ME_HOST_MEM);
        PtlHandlerDMAFromHostB(8, &word, 8, PTL_ME_HOST_MEM);
        o->wrong = word != 5;
        break;
    case TASK_PUTS:
        for (int i = 0; i < 3; i++) {
            o->wrong |= PtlHandlerPutFromDevice(o->bytes, sizeof(o->bytes), PTL_NO_ACK_REQ,
                                                h.source_id, 0, 0, NULL, 0) != PTL_OK;
        }
        break;
    case TASK_YIELD:
        PtlHandlerYield();
        break;
    default:
        break;
    }
    return DROP;
}
PTL_HANDLER(order_header);

static void work(unsigned rounds)
{
    for (volatile unsigned i = 0; i < rounds; i++) {
    }
}

/* A counter under a lock, which is held for longer than a scheduling point is away. */
__handler int locked_payload(const ptl_payload_t p, void *state)
{
    struct shared *s = state;
    volatile uint32_t *inside = &s->inside, *count = &s->count;
    (void)p;
    uint32_t spins = 0;
    while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE) != 0) {
        spins++;
    }
    uint32_t now = ++*inside;
    s->most = now > s->most ? now : s->most;
    uint32_t value = *count;
    work(100);
    *count = value + 1;
    --*inside;
    s->spins += spins;
    __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
    return DROP;
}
PTL_HANDLER(locked_payload);

/* The same without the lock: additions that others overwrite. */
__handler int losing_payload(const ptl_payload_t p, void *state)
{
    struct shared *s = state;
    volatile uint32_t *count = &s->count;
    (void)p;
    uint32_t value = *count;
    work(100);
    *count = value + 1;
    return DROP;
}
PTL_HANDLER(losing_payload);
