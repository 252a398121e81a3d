/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that stray, tell what they were called with, and look at their clock (twins.c). */
#include "twins_handlers.h"

#define APART __attribute__((noinline))

static const uint32_t constant = 7;

/* ---- What may not be done ---- */

APART static uint32_t deep(uint32_t n)
{
    volatile uint32_t room[256];
    room[n % 256] = n;
    return n == UINT32_MAX ? 0 : deep(n + 1) + room[0];
}

APART static void stray(const ptl_payload_t *p, const struct twins_state *s)
{
    volatile uint32_t *nowhere = (volatile uint32_t *)(uintptr_t)(s->length & 12);
    switch (s->what) {
    case TWINS_LOAD:
        (void)*nowhere;
        break;
    case TWINS_STORE_CODE:
        *(volatile uint16_t *)(uintptr_t)stray = 0;
        break;
    case TWINS_STORE_CONSTANT:
        *(volatile uint32_t *)(uintptr_t)&constant = s->what;
        break;
    case TWINS_BEYOND_STATE:
        (void)((const volatile uint8_t *)s)[s->length];
        break;
    case TWINS_BEYOND_PACKET:
        p->base[p->length] = 1;
        break;
    case TWINS_STACK:
        (void)deep(s->what);
        break;
    case TWINS_ILLEGAL:
#ifdef __riscv
        __asm__ volatile(".half 0");
#endif
        break;
    case TWINS_JUMP:
        ((void (*)(void))(uintptr_t)nowhere)();
        break;
    case TWINS_DIVIDE:
        (void)(volatile uint32_t){s->what / *(const volatile uint32_t *)&s->header[12]};
        break;
    default:
        for (;;) {
            __asm__ volatile("");
        }
    }
}

APART static void stray_in_call(void *state)
{
    const struct twins_state *s = state;
    switch (s->what) {
    case TWINS_CALL_POINTER:
        PtlHandlerDMAToHostB((const void *)(uintptr_t)0x20, 0, 8, PTL_ME_HOST_MEM);
        break;
    case TWINS_CALL_LENGTH:
        PtlHandlerDMAFromHostB(0, state, s->length + 1, PTL_ME_HOST_MEM);
        break;
    case TWINS_CALL_HOST:
        PtlHandlerDMAToHostB(state, UINT64_C(1) << 40, 8, PTL_ME_HOST_MEM);
        break;
    case TWINS_CALL_FORMAT:
        PtlHandlerPrintf((const char *)s + s->length - 1, 0); /* ends nowhere */
        break;
    case TWINS_CALL_STRING:
        PtlHandlerPrintf("%s", (const char *)(uintptr_t)0x20);
        break;
    case TWINS_CALL_OPERAND:
        PtlHandlerSwapFromDevice(state, state, 8, (ptl_process_t){.rank = 0}, 0, 0, 0,
                                 (const uint8_t *)state + s->length - 7, PTL_CSWAP, PTL_UINT64_T);
        break;
    default:
#ifdef __riscv
        __asm__ volatile("li t0, 4000; ecall" ::: "t0", "memory");
#endif
        break;
    }
    __asm__ volatile(""); /* so that the calls return to here */
}

__handler static int faulty_payload(const ptl_payload_t p, void *state)
{
    const struct twins_state *s = state;
    if (s->what >= TWINS_CALL_POINTER && s->what != TWINS_DIVIDE) {
        stray_in_call(state);
    } else {
        stray(&p, s);
    }
    return SUCCESS;
}
PTL_HANDLER(faulty_payload);

/* ---- What handlers are called with ---- */

__handler static int telling_header(const ptl_header_t h, void *state)
{
    struct twins_state *s = state;
    const uint8_t *user = h.user_hdr;
    s->result[0] = h.length;
    s->result[1] = h.match_bits;
    s->result[2] = h.offset;
    s->result[3] = h.hdr_data;
    s->result[4] = h.user_hdr_length;
    s->result[5] = (uint64_t)h.source_id.rank << 32 | h.target_id.rank;
    s->result[6] = h.type;
    for (uint32_t i = 0; i < h.user_hdr_length && i < sizeof(s->header); i++) {
        s->header[i] = user[i];
    }
    return PROCESS_DATA;
}
PTL_HANDLER(telling_header);

__handler static int telling_payload(const ptl_payload_t p, void *state)
{
    struct twins_state *s = state;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < p.length; i++) {
        sum += (p.offset + i) * p.base[i] % 251;
    }
    PtlHandlerFAdd(&s->result[7], NULL, sum);
    return p.offset == 0 ? SUCCESS : DROP;
}
PTL_HANDLER(telling_payload);

__handler static int telling_completion(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                        void *state)
{
    struct twins_state *s = state;
    s->result[8] = dropped_bytes;
    s->result[9] = flow_control_triggered;
    return SUCCESS;
}
PTL_HANDLER(telling_completion);

/* ---- The clock ---- */

static uint64_t from_host(struct twins_state *s, void *to, uint64_t length)
{
    uint64_t start = PtlHandlerCycles();
    PtlHandlerDMAFromHostB(0, to, length, PTL_ME_HOST_MEM);
    s->what++;
    return PtlHandlerCycles() - start;
}

__handler static int timing_payload(const ptl_payload_t p, void *state)
{
    struct twins_state *s = state;
    uint64_t start = PtlHandlerCycles();
    for (volatile uint32_t i = 0; i < 1000; i++) {
    }
    s->result[0] = PtlHandlerCycles() - start;
    s->result[1] = from_host(s, p.base, 64);
    s->result[2] = from_host(s, p.base, 640);
    start = PtlHandlerCycles();
    ptl_dma_h h = PtlHandlerDMAFromHostNB(0, p.base, 640, PTL_ME_HOST_MEM);
    s->result[3] = PtlHandlerCycles() - start;
    PtlHandlerDMAWait(h);
    s->result[4] = PtlHandlerCycles() - start;
    return SUCCESS;
}
PTL_HANDLER(timing_payload);

/* A transfer of each kind, and how long the call that waits for it takes. */
static ptl_dma_h begin(uint32_t kind, void *local, uint64_t *word)
{
    switch (kind) {
    case 0:
        return PtlHandlerDMAFromHostNB(0, local, 640, PTL_ME_HOST_MEM);
    case 1:
        return PtlHandlerDMAToHostNB(local, 0, 640, PTL_ME_HOST_MEM);
    case 2:
        return PtlHandlerDMAFetchAddNB(0, 1, word, PTL_UINT64_T, PTL_ME_HOST_MEM);
    default:
        return PtlHandlerDMACASNB(0, word, 1, PTL_ME_HOST_MEM);
    }
}

static void wait_for(uint32_t kind, void *local, uint64_t *word)
{
    switch (kind) {
    case 0:
        PtlHandlerDMAFromHostB(0, local, 640, PTL_ME_HOST_MEM);
        break;
    case 1:
        PtlHandlerDMAToHostB(local, 0, 640, PTL_ME_HOST_MEM);
        break;
    case 2:
        PtlHandlerDMAFetchAddB(0, 1, word, PTL_UINT64_T, PTL_ME_HOST_MEM);
        break;
    default:
        PtlHandlerDMACASB(0, word, 1, PTL_ME_HOST_MEM);
    }
}

__handler static int polling_payload(const ptl_payload_t p, void *state)
{
    struct twins_state *s = state;
    uint64_t word = 0, start;
    for (uint32_t kind = 0; kind < 4; kind++) {
        start = PtlHandlerCycles();
        wait_for(kind, p.base, &word);
        s->result[2 * kind] = PtlHandlerCycles() - start;
        start = PtlHandlerCycles();
        ptl_dma_h h = begin(kind, p.base, &word);
        bool early = PtlHandlerDMATest(h);
        while (!PtlHandlerDMATest(h)) {
            if (s->length != 0) {
                PtlHandlerYield();
            }
        }
        s->result[2 * kind + 1] = PtlHandlerCycles() - start;
        s->what |= (uint32_t)early << kind | (uint32_t)!PtlHandlerDMATest(h) << (kind + 4);
    }
    /* One that is done long ago is not mistaken for one of those that have begun since. */
    ptl_dma_h old = begin(0, p.base, &word), last = old;
    PtlHandlerDMAWait(old);
    for (int i = 0; i < 128; i++) {
        last = begin(0, p.base, &word);
        s->what |= (uint32_t)!PtlHandlerDMATest(old) << 8 | (uint32_t)PtlHandlerDMATest(last) << 9;
    }
    start = PtlHandlerCycles();
    PtlHandlerDMAWait(old);
    s->result[8] = PtlHandlerCycles() - start;
    PtlHandlerDMAWait(last);
    s->what |= (uint32_t)!PtlHandlerDMATest(last) << 10;
    return SUCCESS;
}
PTL_HANDLER(polling_payload);

/* Works twice for most of its budget, and lets others run in between. */
__handler static int yielding_payload(const ptl_payload_t p, void *state)
{
    const struct twins_state *s = state;
    for (int i = 0; i < 3; i++) {
        uint64_t start = PtlHandlerCycles();
        while (PtlHandlerCycles() - start < s->length) {
            __asm__ volatile("");
        }
        PtlHandlerYield();
    }
    return SUCCESS;
}
PTL_HANDLER(yielding_payload);

/* ---- Counters, and what others hold ---- */

/* `what` is a counter, `length` match bits of an entry of rank 0 with two numbers. */
__handler static int asking_payload(const ptl_payload_t p, void *state)
{
    struct twins_state *s = state;
    ptl_process_t to = {.rank = 0};
    ptl_ct_event_t value;
    uint64_t five = 5, pair[2];
    s->result[0] = (uint64_t)PtlHandlerCTInc(s->what, (ptl_ct_event_t){.success = 3});
    s->result[1] = (uint64_t)PtlHandlerCTGet(s->what, &value);
    s->result[2] = value.success << 32 | value.failure;
    s->result[3] = (uint64_t)PtlHandlerCTSet(s->what, (ptl_ct_event_t){.success = 7, .failure = 1});
    s->result[4] = (uint64_t)PtlHandlerFetchAtomicFromDevice(&s->result[5], &five, 8, to, s->length,
                                                             0, 0, PTL_SUM, PTL_UINT64_T);
    s->result[6] = (uint64_t)PtlHandlerGetToDeviceEx(pair, 16, to, s->header[0], s->length, 0);
    s->result[7] = pair[0];
    s->result[8] = pair[1];
    s->result[9] = (uint64_t)PtlHandlerAtomicFromDevice(&five, 8, PTL_NO_ACK_REQ, to, s->length, 8,
                                                        NULL, 0, PTL_SUM, PTL_UINT64_T);
    return SUCCESS;
}
PTL_HANDLER(asking_payload);

int twins_unregistered(const ptl_payload_t p, void *state)
{
    return SUCCESS;
}

#define COMMON                                                                                     \
    .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = sizeof(struct twins_state),                 \
    .user_hdr_length = 0

const ptl_handlers_t twins_faulty = {.payload_handler = faulty_payload, COMMON};
const ptl_handlers_t twins_telling = {.header_handler = telling_header,
                                      .payload_handler = telling_payload,
                                      .completion_handler = telling_completion,
                                      COMMON};
const ptl_handlers_t twins_timing = {.payload_handler = timing_payload, COMMON};
const ptl_handlers_t twins_polling = {.payload_handler = polling_payload, COMMON};
const ptl_handlers_t twins_yielding = {.payload_handler = yielding_payload, COMMON};
const ptl_handlers_t twins_asking = {.payload_handler = asking_payload, COMMON};
