/* SPDX-License-Identifier: BSD-3-Clause */
/* PsPIN's kernels; see pspin.h. */
#include "pspin.h"

#include "bytes.h"
#include "chunk.h"
#include "host_lock.h"
#include "spin_handler.h"

static ptl_handlers_t handlers_of(ptl_payload_handler_t payload, void *host, uint64_t length)
{
    return (ptl_handlers_t){.payload_handler = payload,
                            .hpu_mem = PTL_HPU_MEM_NONE,
                            .handler_host_mem = host,
                            .handler_host_length = length};
}

static void host_add(uint64_t at, uint64_t n)
{
    if (n != 0) {
        PtlHandlerDMAFetchAddB(at, n, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    }
}

/* ---- copy ---- */

__handler static int pspin_copy(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(pspin_copy);

void pspin_copy_handlers(ptl_handlers_t *handlers)
{
    *handlers = handlers_of(pspin_copy, NULL, 0);
}

/* ---- aggregate ---- */

__handler static int pspin_aggregate(const ptl_payload_t p, void *state)
{
    const uint32_t *word = (const uint32_t *)p.base;
    uint64_t sum = 0, words = p.length / sizeof(*word);
    for (uint64_t i = 0; i < words; i++) {
        sum += word[i];
    }
    host_add(offsetof(struct pspin_sum, sum), sum);
    host_add(offsetof(struct pspin_sum, words), words);
    return p.length % sizeof(*word) == 0 ? SUCCESS : FAIL;
}
PTL_HANDLER(pspin_aggregate);

void pspin_aggregate_handlers(struct pspin_sum *sum, ptl_handlers_t *handlers)
{
    *handlers = handlers_of(pspin_aggregate, sum, sizeof(*sum));
}

/* ---- histogram ---- */

/* Adds counts to the host's bins, some at a time: two transfers cost less than an atomic for each
 * bin. */
static void add_counts(const uint32_t count[PSPIN_BINS + 1])
{
    enum { BINS = PSPIN_BINS + 1, PART = 128 };
    uint64_t bin[PART];
    for (uint64_t at = 0; at < BINS; at += PART) {
        uint64_t n = smaller(PART, BINS - at);
        PtlHandlerDMAFromHostB(at * sizeof(bin[0]), bin, n * sizeof(bin[0]), PTL_HANDLER_HOST_MEM);
        for (uint64_t i = 0; i < n; i++) {
            bin[i] += count[at + i];
        }
        PtlHandlerDMAToHostB(bin, at * sizeof(bin[0]), n * sizeof(bin[0]), PTL_HANDLER_HOST_MEM);
    }
}

/* Counts the words of a packet on the handler's stack, and adds the counts to the host's bins
 * once. */
__handler static int pspin_histogram(const ptl_payload_t p, void *state)
{
    const uint32_t *word = (const uint32_t *)p.base;
    uint32_t count[PSPIN_BINS + 1]; /* the last one counts larger words */
    uint64_t words = p.length / sizeof(*word);
    for (unsigned i = 0; i <= PSPIN_BINS; i++) {
        count[i] = 0;
    }
    for (uint64_t i = 0; i < words; i++) {
        count[smaller(word[i], PSPIN_BINS)]++;
    }
    if (!host_lock(offsetof(struct pspin_histogram, lock), PTL_HANDLER_HOST_MEM, HOST_LOCK_TRIES)) {
        return FAIL;
    }
    add_counts(count);
    host_unlock(offsetof(struct pspin_histogram, lock), PTL_HANDLER_HOST_MEM);
    return p.length % sizeof(*word) == 0 ? SUCCESS : FAIL;
}
PTL_HANDLER(pspin_histogram);

_Static_assert(offsetof(struct pspin_histogram, beyond) == PSPIN_BINS * sizeof(uint64_t),
               "it is the bin behind the last");

void pspin_histogram_handlers(struct pspin_histogram *histogram, ptl_handlers_t *handlers)
{
    *handlers = handlers_of(pspin_histogram, histogram, sizeof(*histogram));
}

/* ---- reduce ---- */

static uint64_t *vector_of(struct pspin_reduce_state *s)
{
    return (uint64_t *)(s + 1);
}

__handler static int pspin_reduce_header(const ptl_header_t h, void *state)
{
    const struct pspin_reduce_state *s = state;
    return h.length == s->elements * sizeof(uint64_t) ? PROCESS_DATA : FAIL;
}
PTL_HANDLER(pspin_reduce_header);

/* A packet is added to its place in the vector. The same packet of another message may be added at
 * the same time, so packets take a lock, of which there are a few for all packets. */
__handler static int pspin_reduce_payload(const ptl_payload_t p, void *state)
{
    struct pspin_reduce_state *s = state;
    const uint64_t *element = (const uint64_t *)p.base;
    uint64_t *sum = vector_of(s) + p.offset / sizeof(*sum);
    uint64_t *lock = &s->lock[p.offset / CHUNK_PACKET % PSPIN_REDUCE_LOCKS];
    for (unsigned i = 0; !PtlHandlerCAS(lock, 0, 1); i++) {
        if (i == HOST_LOCK_TRIES) {
            return FAIL;
        }
        PtlHandlerYield();
    }
    for (uint64_t i = 0; i < p.length / sizeof(*sum); i++) {
        sum[i] += element[i];
    }
    PtlHandlerCAS(lock, 1, 0);
    return SUCCESS;
}
PTL_HANDLER(pspin_reduce_payload);

/* The completion handler of a message runs after all its payload handlers; so the one of the last
 * message runs after the payload handlers of all messages. */
__handler static int pspin_reduce_completion(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                             void *state)
{
    struct pspin_reduce_state *s = state;
    uint64_t before = 0;
    if (dropped_bytes != 0 || flow_control_triggered) {
        return FAIL;
    }
    PtlHandlerFAdd(&s->complete, &before, 1);
    if (before + 1 == s->messages) {
        PtlHandlerDMAToHostB(vector_of(s), 0, s->elements * sizeof(uint64_t), PTL_HANDLER_HOST_MEM);
    }
    return SUCCESS;
}
PTL_HANDLER(pspin_reduce_completion);

uint64_t pspin_reduce_memory(uint64_t elements)
{
    uint64_t size;
    if (__builtin_mul_overflow(elements, sizeof(uint64_t), &size) ||
        __builtin_add_overflow(size, sizeof(struct pspin_reduce_state), &size)) {
        return UINT64_MAX;
    }
    return size;
}

void pspin_reduce_handlers(uint64_t elements, uint64_t messages, ptl_handle_hpu_mem_t memory,
                           uint64_t *result, struct pspin_reduce_state *state,
                           ptl_handlers_t *handlers)
{
    *state = (struct pspin_reduce_state){.elements = elements, .messages = messages};
    *handlers = (ptl_handlers_t){
        .header_handler = pspin_reduce_header,
        .payload_handler = pspin_reduce_payload,
        .completion_handler = pspin_reduce_completion,
        .hpu_mem = memory,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
        .handler_host_mem = result,
        .handler_host_length = elements * sizeof(*result),
    };
}

/* ---- filter ---- */

/* Returns the slot at which the search for a key begins. */
static uint64_t home(uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15u) >> 54;
}

_Static_assert(PSPIN_SLOTS == 1 << 10, "a hash has 10 bits");

static bool in_set(const struct pspin_filter_state *s, uint64_t key)
{
    uint64_t at = home(key);
    if (key == 0) {
        return s->zero != 0;
    }
    while (s->slot[at] != 0 && s->slot[at] != key) { /* ends, since at least one slot is empty */
        at = (at + 1) % PSPIN_SLOTS;
    }
    return s->slot[at] == key;
}

/* Reserves places for `n` records in host memory, and writes those for which there is room. */
static void keep(const struct pspin_filter_state *s, const uint8_t *records, uint64_t n)
{
    uint64_t first = 0;
    PtlHandlerDMAFetchAddB(offsetof(struct pspin_kept, records), n, &first, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    if (first < s->room) {
        PtlHandlerDMAToHostB(records, sizeof(struct pspin_kept) + first * s->record,
                             smaller(n, s->room - first) * s->record, PTL_HANDLER_HOST_MEM);
    }
}

/* Moves records that pass to the front of the packet buffer, which a handler may change. */
__handler static int pspin_filter(const ptl_payload_t p, void *state)
{
    const struct pspin_filter_state *s = state;
    uint64_t kept = 0;
    for (uint64_t at = 0; at + s->record <= p.length; at += s->record) {
        uint64_t key;
        bytes_copy(&key, p.base + at, sizeof(key));
        if (in_set(s, key)) {
            if (at != kept * s->record) {
                bytes_copy(p.base + kept * s->record, p.base + at, s->record);
            }
            kept++;
        }
    }
    if (kept != 0) {
        keep(s, p.base, kept);
    }
    return p.length % s->record != 0 ? FAIL : kept != 0 ? SUCCESS : DROP;
}
PTL_HANDLER(pspin_filter);

int pspin_filter_start(struct pspin_filter_state *state, uint64_t record)
{
    bytes_zero(state, sizeof(*state));
    state->record = record;
    return record == 8 || record == 16 || record == 32 || record == PSPIN_RECORD ? PTL_OK
                                                                                 : PTL_ARG_INVALID;
}

int pspin_filter_add(struct pspin_filter_state *state, uint64_t key)
{
    uint64_t at = home(key);
    if (in_set(state, key)) {
        return PTL_OK;
    }
    if (state->keys == PSPIN_KEYS) {
        return PTL_NO_SPACE;
    }
    state->keys++;
    if (key == 0) {
        state->zero = 1;
        return PTL_OK;
    }
    while (state->slot[at] != 0) {
        at = (at + 1) % PSPIN_SLOTS;
    }
    state->slot[at] = key;
    return PTL_OK;
}

void pspin_filter_handlers(struct pspin_filter_state *state, struct pspin_kept *kept, uint64_t room,
                           ptl_handlers_t *handlers)
{
    state->room = room;
    *handlers = handlers_of(pspin_filter, kept, sizeof(*kept) + room * state->record);
    handlers->hpu_initial_state = state;
    handlers->hpu_initial_length = sizeof(*state);
}
