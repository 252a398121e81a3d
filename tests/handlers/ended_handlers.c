/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that ends as its state says, natively and on RV32; see ended.c. */
#include "ended_handlers.h"

#define APART __attribute__((noinline))

/* Through a pointer, down the stack and out of it, which AddressSanitizer would tell of first. */
APART __attribute__((no_sanitize("address"))) static void walk(void)
{
    volatile uint32_t room[4];
    volatile uint32_t *at = room;
    for (;;) {
        *--at = 0;
    }
}

APART static uint32_t jump(uintptr_t to)
{
    return ((uint32_t(*)(void))to)() + 1;
}

/* Both in the run time, which is called from here. */
APART __attribute__((no_sanitize("undefined"))) static void clear(volatile void *at, uint32_t bytes)
{
    __builtin_memset((void *)(uintptr_t)at, 0, bytes);
    __asm__ volatile("");
}

APART __attribute__((no_sanitize("undefined"))) static uint64_t divide(uint64_t a, uint64_t b)
{
    uint64_t quotient = a / b;
    __asm__ volatile("" : "+r"(a));
    return quotient + 1;
}

/* Undefined by C: what processors make of it differs. */
APART __attribute__((no_sanitize("undefined"))) static void add_odd(struct ended_state *s)
{
    void *at = (char *)s->word + 2;
    if (s->how == ENDED_C11_ODD_8) {
        __atomic_fetch_add((uint64_t *)at, 1, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_add((uint32_t *)at, 1, __ATOMIC_RELAXED);
    }
}

__handler static int ended_payload(const ptl_payload_t p, void *state)
{
    struct ended_state *s = state;
    (void)p;
    switch (s->how) {
    case ENDED_OFFSET:
        PtlHandlerDMAToHostB(s->word, 1100, 8, PTL_ME_HOST_MEM);
        break;
    case ENDED_LENGTH:
        PtlHandlerDMAFromHostB(1020, s->word, 8, PTL_ME_HOST_MEM);
        break;
    case ENDED_OPTIONS:
        PtlHandlerDMAToHostNB(s->word, 0, 8, 7);
        break;
    case ENDED_NO_HANDLER_MEM:
        PtlHandlerDMAFromHostNB(0, s->word, 8, PTL_HANDLER_HOST_MEM);
        break;
    case ENDED_ATOMIC:
        PtlHandlerDMACASB(2048, s->word, 1, PTL_ME_HOST_MEM);
        break;
    case ENDED_HANDLE:
        PtlHandlerDMAToHostNB(s->word, 0, 8, PTL_ME_HOST_MEM);
        PtlHandlerDMAWait(9);
        break;
    case ENDED_NO_HANDLE:
        (void)PtlHandlerDMATest(s->none);
        break;
    case ENDED_TYPE:
        PtlHandlerDMAFetchAddB(0, 1, s->word, PTL_DOUBLE, PTL_ME_HOST_MEM);
        break;
    case ENDED_JUMP:
        return (int)jump(s->none);
    case ENDED_TIME:
        for (;;) {
            (*(volatile uint64_t *)&s->word[1])++;
        }
    case ENDED_TIME_CALLS:
        for (;;) {
            PtlHandlerCounterAdd(0, 1);
        }
    case ENDED_CODE:
        return 99;
    case ENDED_DMA_ODD:
        PtlHandlerDMAFetchAddB(4, 1, s->word, PTL_UINT64_T, PTL_ME_HOST_MEM);
        break;
    case ENDED_DMA_CAS_ODD:
        PtlHandlerDMACASNB(11, s->word, 1, PTL_ME_HOST_MEM);
        break;
    case ENDED_FADD_ODD:
        PtlHandlerFAdd((uint64_t *)(void *)((char *)s->word + 4), NULL, 1);
        break;
    case ENDED_CAS_ODD:
        PtlHandlerCAS((uint64_t *)(void *)((char *)s->word + 5), 0, 1);
        break;
    case ENDED_SENDS:
        PtlHandlerPutFromHost(1020, 8, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, 0, 0, 0, 0);
        break;
    case ENDED_C11_ODD_8:
    case ENDED_C11_ODD_4:
        add_odd(s);
        break;
    case ENDED_MEMSET:
        clear((void *)(uintptr_t)(s->none + 16), s->how * 100);
        break;
    case ENDED_DIVIDE:
        s->word[0] = divide(s->word[0], s->none);
        break;
#ifndef __riscv
    case ENDED_NO_ADDRESS: /* no address at all: bits 48 to 63 are not all like bit 47 */
        s->word[0] = *(volatile uint64_t *)(0xdeadULL << 48 | s->none);
        break;
    case ENDED_NO_CODE:
        return (int)jump(0xdeadULL << 48 | s->none);
    case ENDED_NO_RIGHT:
        __asm__ volatile("hlt");
        break;
    case ENDED_ODD_VECTOR:
        __asm__ volatile("movaps 1(%0), %%xmm0" : : "r"((uintptr_t)s->word & ~15UL) : "xmm0");
        break;
#endif
    default:
        walk();
    }
    __asm__ volatile("");
    return SUCCESS;
}
PTL_HANDLER(ended_payload);

#ifndef __riscv
const ptl_handlers_t ended_handlers = {.payload_handler = ended_payload,
                                       .hpu_mem = PTL_HPU_MEM_NONE,
                                       .hpu_initial_length = sizeof(struct ended_state)};
#endif
