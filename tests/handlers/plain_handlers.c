/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that divide, and that use the atomics of C11 and of the compilers (plain.c). */
#include "plain_handlers.h"

#include <stdatomic.h>

#ifdef __riscv
#define UNCHECKED __attribute__((noinline))
#else
#define UNCHECKED __attribute__((no_sanitize("undefined"), noinline))
#endif

/* ---- Divisions ---- */

#define DIVIDE(type)                                                                               \
    do {                                                                                           \
        volatile type a = (type)s->a, b = (type)s->b;                                              \
        s->result = (uint64_t)((s->kind & PLAIN_REMAINDER) != 0 ? a % b : a / b);                  \
    } while (0)

UNCHECKED static void divide(struct plain_division *s)
{
    switch (s->kind & (PLAIN_SIGNED | PLAIN_LONG)) {
    case 0:
        DIVIDE(uint32_t);
        break;
    case PLAIN_SIGNED:
        DIVIDE(int32_t);
        break;
    case PLAIN_LONG:
        DIVIDE(uint64_t);
        break;
    default:
        DIVIDE(int64_t);
    }
}

__handler static int dividing_payload(const ptl_payload_t p, void *state)
{
    divide(state);
    return SUCCESS;
}
PTL_HANDLER(dividing_payload);

/* ---- Atomics, one after another ---- */

#define OPERATIONS(type, i)                                                                        \
    do {                                                                                           \
        _Atomic type *cell = (_Atomic type *)&s->cell[i];                                          \
        type *word = (type *)&s->cell[i], expected = 0, x = (type)(s->seed * 0x9e3779b97f4a7c15);  \
        uint64_t *found = s->found[i];                                                             \
        atomic_store(cell, x);                                                                     \
        *found++ = atomic_load(cell);                                                              \
        *found++ = atomic_exchange(cell, (type)(x + 1));                                           \
        *found++ = atomic_compare_exchange_strong(cell, &expected, 5);                             \
        *found++ = expected;                                                                       \
        *found++ = atomic_compare_exchange_strong(cell, &expected, (type)(x * 3));                 \
        *found++ = atomic_fetch_add(cell, (type)(x | 1));                                          \
        *found++ = atomic_fetch_sub(cell, (type)(x >> 1));                                         \
        *found++ = atomic_fetch_or(cell, (type)(x << 3));                                          \
        *found++ = atomic_fetch_and(cell, (type) ~(x >> 2));                                       \
        *found++ = atomic_fetch_xor(cell, (type)(x >> 3));                                         \
        *found++ = __atomic_fetch_nand(word, (type)(x << 1), __ATOMIC_SEQ_CST);                    \
        *found++ = __atomic_add_fetch(word, (type)(x + 7), __ATOMIC_RELAXED);                      \
        *found++ = __atomic_sub_fetch(word, (type)(x + 9), __ATOMIC_RELEASE);                      \
        *found++ = __atomic_or_fetch(word, (type)(x & 0x55), __ATOMIC_ACQ_REL);                    \
        *found++ = __atomic_and_fetch(word, (type)(x | 0xfffe), __ATOMIC_ACQUIRE);                 \
        *found++ = __atomic_xor_fetch(word, x, __ATOMIC_SEQ_CST);                                  \
        *found++ = __atomic_nand_fetch(word, (type)(x | 0x3c), __ATOMIC_SEQ_CST);                  \
        *found++ = __sync_fetch_and_add(word, (type)(x * 5));                                      \
        *found++ = __sync_fetch_and_sub(word, (type)(x * 7));                                      \
        *found++ = __sync_fetch_and_or(word, (type)(x >> 4));                                      \
        *found++ = __sync_fetch_and_and(word, (type) ~(x << 4));                                   \
        *found++ = __sync_fetch_and_xor(word, (type)(x * 9));                                      \
        *found++ = __sync_add_and_fetch(word, (type)(x * 11));                                     \
        *found++ = __sync_sub_and_fetch(word, (type)(x * 13));                                     \
        *found++ = __sync_or_and_fetch(word, (type)(x & 0xf0));                                    \
        *found++ = __sync_and_and_fetch(word, (type)(x | 0x0f));                                   \
        *found++ = __sync_xor_and_fetch(word, (type)(x * 17));                                     \
        *found++ = __sync_val_compare_and_swap(word, *word, (type)(x * 19));                       \
        *found++ = __sync_bool_compare_and_swap(word, (type)(*word + 1), x);                       \
        *found++ = __sync_lock_test_and_set(word, (type)(x * 21));                                 \
        *found++ = atomic_is_lock_free(cell);                                                      \
    } while (0)

void plain_operations(struct plain_atomics *s)
{
    OPERATIONS(uint8_t, 0);
    OPERATIONS(uint16_t, 1);
    OPERATIONS(uint32_t, 2);
    OPERATIONS(uint64_t, 3);
    s->cell[3] += __atomic_test_and_set((uint8_t *)&s->cell[2] + 7, __ATOMIC_SEQ_CST);
}

__handler static int counting_payload(const ptl_payload_t p, void *state)
{
    plain_operations(state);
    return SUCCESS;
}
PTL_HANDLER(counting_payload);

/* ---- Atomics of many handlers at once ---- */

static void share(struct plain_shared *s, uint64_t number)
{
    uint64_t twice = (number & UINT32_MAX) << 32 | (number & UINT32_MAX);
    uint64_t found = __atomic_load_n(&s->swapped, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->sum, number, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&s->swapped, &found, found + number, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_or(&s->bits, UINT64_C(1) << number % 64, __ATOMIC_RELAXED);
    found = __atomic_load_n(&s->low, __ATOMIC_RELAXED);
    while (number < found && !__atomic_compare_exchange_n(&s->low, &found, number, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    __atomic_store_n(&s->pair, twice, __ATOMIC_RELEASE);
    found = __atomic_load_n(&s->pair, __ATOMIC_ACQUIRE);
    if (found >> 32 != (found & UINT32_MAX)) {
        __atomic_fetch_add(&s->torn, 1, __ATOMIC_RELAXED);
    }
    found = __atomic_exchange_n(&s->ticket, number, __ATOMIC_ACQ_REL);
    __atomic_fetch_sub(&s->left, found - number, __ATOMIC_RELAXED);
    __atomic_fetch_add((uint16_t *)&s->short_sums + number % 4, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add((uint8_t *)&s->byte_sums + number % 8, 1, __ATOMIC_RELAXED);
}

__handler static int sharing_payload(const ptl_payload_t p, void *state)
{
    for (uint64_t i = 0; i + 8 <= p.length; i += 8) {
        share(state, *(const uint64_t *)(const void *)(p.base + i));
    }
    return SUCCESS;
}
PTL_HANDLER(sharing_payload);

/* ---- Host memory ---- */

/* What is no memory, and no constant to compilers. */
UNCHECKED static uint8_t *nowhere(void)
{
    volatile uintptr_t at = 0x20;
    return (uint8_t *)at;
}

UNCHECKED static void touch(struct plain_touching *s)
{
    uint64_t word = 0;
    const uint32_t large = sizeof(s->room), me = PTL_ME_HOST_MEM;
    switch (s->how) {
    case PLAIN_TO_HOST:
        PtlHandlerDMAToHostB(s->room, 0, 64, me);
        break;
    case PLAIN_TO_HOST_LATER:
        PtlHandlerDMAWait(PtlHandlerDMAToHostNB(s->room, 0, 64, me));
        break;
    case PLAIN_LARGE_TO_HOST:
        PtlHandlerDMAWait(PtlHandlerDMAToHostNB(s->room, 0, large, me));
        break;
    case PLAIN_LARGE_TO_HOST_LEFT:
        PtlHandlerDMAToHostNB(s->room, 0, large, me);
        break;
    case PLAIN_FROM_HOST:
        PtlHandlerDMAFromHostB(0, s->room, 64, me);
        break;
    case PLAIN_FROM_HOST_LATER:
        for (ptl_dma_h h = PtlHandlerDMAFromHostNB(0, s->room, 64, me); !PtlHandlerDMATest(h);) {
        }
        break;
    case PLAIN_LARGE_FROM_HOST:
        PtlHandlerDMAWait(PtlHandlerDMAFromHostNB(0, s->room, large, me));
        break;
    case PLAIN_CAS:
        PtlHandlerDMACASB(0, &word, 1, me);
        break;
    case PLAIN_ADD:
        PtlHandlerDMAFetchAddB(0, 1, &word, PTL_UINT32_T, me);
        break;
    case PLAIN_OUTSIDE:
        PtlHandlerDMAToHostB(s->room, UINT64_C(1) << 40, 8, me);
        break;
    case PLAIN_LOCAL_READ:
        PtlHandlerDMAToHostB(nowhere(), 0, 8, me);
        break;
    case PLAIN_LOCAL_WRITTEN:
        PtlHandlerDMAFromHostB(0, nowhere(), 8, me);
        break;
    default:
        (void)*(volatile uint8_t *)nowhere();
    }
}

__handler static int touching_payload(const ptl_payload_t p, void *state)
{
    touch(state);
    return SUCCESS;
}
PTL_HANDLER(touching_payload);

const ptl_handlers_t plain_touching = {.payload_handler = touching_payload,
                                       .hpu_initial_length = sizeof(struct plain_touching)};
const ptl_handlers_t plain_dividing = {.payload_handler = dividing_payload,
                                       .hpu_initial_length = sizeof(struct plain_division)};
const ptl_handlers_t plain_counting = {.payload_handler = counting_payload,
                                       .hpu_initial_length = sizeof(struct plain_atomics)};
const ptl_handlers_t plain_sharing = {.payload_handler = sharing_payload,
                                      .hpu_initial_length = sizeof(struct plain_shared)};
