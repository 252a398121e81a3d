/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that print, and that swap (calls.c). */
#include "calls_handlers.h"

/* ---- Text ---- */

static const char word[] = "constant";

__handler static int printing_header(const ptl_header_t h, void *state)
{
    const char *user = h.user_hdr;
    char own[8] = {'s', 't', 'a', 'c', 'k'};
    long small = -7;
    unsigned long large = 4000000000u;
    int codes[] = {
        PtlHandlerPrintf("%d %i %u %x %X %o|%5d|%-5d|%05d|%+d|%#x\n", -1, 2, 3u, 0xabcu, 0xABCu, 8u,
                         42, 42, 42, 42, 255u),
        PtlHandlerPrintf("%ld %lu %lld %llu %llx\n", small, large, (long long)INT64_MIN,
                         (unsigned long long)UINT64_MAX, 0x123456789abcdefull),
        PtlHandlerPrintf("%hhd %hd %zu %jd %td\n", (signed char)-3, (short)-300, (size_t)12,
                         (intmax_t)-13, (ptrdiff_t)-14),
        PtlHandlerPrintf("%d %f %d %.3e %g %c\n", 1, 1.5, 2, 12345.678, 1e-5, 'x'),
        PtlHandlerPrintf("%d %d %d %d %d %d %d %llu %d %f\n", 1, 2, 3, 4, 5, 6, 7, 8ull, 9, 10.0),
        PtlHandlerPrintf("%s|%8s|%-8s|%.3s|%.*s|%s|%%\n", word, own, own, own, 2, own, user),
        PtlHandlerPrintf("lost %n\n", (int *)state),
        PtlHandlerPrintf("lost %65d\n", 1),
        PtlHandlerPrintf("%p %lc", (void *)0, 'y'),
        PtlHandlerPrintf("end\n"),
    };
    int right = 0;
    for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        right += codes[i] == (i == 6 || i == 7 ? PTL_ARG_INVALID : PTL_OK);
    }
    return right == sizeof(codes) / sizeof(codes[0]) ? DROP : FAIL;
}
PTL_HANDLER(printing_header);

/* ---- Swaps ---- */

__handler static int swapping_payload(const ptl_payload_t p, void *state)
{
    struct calls_state *s = state;
    ptl_process_t to = {.rank = 0};
    for (uint32_t i = 0; i < CALLS_SWAPS; i++) {
        const struct calls_swap *w = &s->swap[i];
        s->code[i] =
            i % 2 == 0
                ? PtlHandlerSwapFromDevice(&s->before[i], &w->data, w->length, to, CALLS_TARGET,
                                           16 * i, 0, &w->operand, w->op, w->type)
                : PtlHandlerSwapFromDeviceEx(&s->before[i], &w->data, w->length, to, s->pt,
                                             CALLS_TARGET, 16 * i, 0, &w->operand, w->op, w->type);
    }
    return p.length != 0 ? DROP : FAIL;
}
PTL_HANDLER(swapping_payload);

__handler static int swapping_host_payload(const ptl_payload_t p, void *state)
{
    struct calls_state *s = state;
    ptl_process_t to = {.rank = 0};
    for (uint32_t i = 0; i < CALLS_SWAPS; i++) {
        const struct calls_swap *w = &s->swap[i];
        s->code[i] =
            i % 2 == 0
                ? PtlHandlerSwapFromHost(16 * i + 8, 16 * i, w->length, to, CALLS_TARGET, 16 * i,
                                         NULL, 0, &w->operand, w->op, w->type)
                : PtlHandlerSwapFromHostEx(16 * i + 8, 16 * i, w->length, to, s->pt, CALLS_TARGET,
                                           16 * i, NULL, 0, &w->operand, w->op, w->type);
    }
    return p.length != 0 ? DROP : FAIL;
}
PTL_HANDLER(swapping_host_payload);

#define COMMON .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = sizeof(struct calls_state)

const ptl_handlers_t calls_printing = {.header_handler = printing_header, COMMON};
const ptl_handlers_t calls_swapping = {.payload_handler = swapping_payload, COMMON};
const ptl_handlers_t calls_swapping_host = {.payload_handler = swapping_host_payload, COMMON};
