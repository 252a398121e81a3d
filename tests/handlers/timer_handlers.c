/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that are run by timers, and by their host (timer.c). */
#include "timer_handlers.h"

static void count_tick(struct timer_state *s, const ptl_header_t *h)
{
    PtlHandlerFAdd(&s->ticks, NULL, 1);
    if (h->length != 0 || h->offset != 0 || h->user_hdr_length != 0 ||
        h->source_id.rank != s->rank || h->target_id.rank != s->rank) {
        PtlHandlerFAdd(&s->wrong, NULL, 1);
    }
}

__handler static int counting_header(const ptl_header_t h, void *state)
{
    struct timer_state *s = state;
    if (h.type == PTL_REQUEST_TIMER) {
        count_tick(s, &h);
        PtlHandlerCTInc(s->ct, (ptl_ct_event_t){.success = 1});
    } else if (h.hdr_data == TIMER_COUNT) {
        PtlHandlerFAdd(&s->puts, NULL, 1);
        PtlHandlerFAdd(&s->unready, NULL, __atomic_load_n(&s->ready, __ATOMIC_ACQUIRE) == 0);
    }
    switch (h.hdr_data) {
    case TIMER_FAIL:
        return FAIL;
    case TIMER_STAY:
        return PROCESS_DATA_PENDING;
    case TIMER_BUSY:
        while (__atomic_load_n(&s->go, __ATOMIC_ACQUIRE) == 0) {
            PtlHandlerYield();
        }
        break;
    case TIMER_SET_UP:
        __atomic_store_n(&s->ready, h.length, __ATOMIC_RELEASE);
        return DROP_PENDING;
    default:
        break;
    }
    return PROCESS_DATA;
}
PTL_HANDLER(counting_header);

__handler static int counting_completion(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                         void *state)
{
    struct timer_state *s = state;
    uint64_t ticks = __atomic_load_n(&s->ticks, __ATOMIC_RELAXED);
    PtlHandlerFAdd(&s->completions, NULL, 1);
    PtlHandlerDMAToHostB(&ticks, 0, sizeof(ticks), PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(counting_completion);

const ptl_handlers_t timer_counting = {.header_handler = counting_header,
                                       .completion_handler = counting_completion,
                                       .hpu_mem = PTL_HPU_MEM_NONE,
                                       .hpu_initial_length = sizeof(struct timer_state)};
