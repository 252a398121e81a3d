/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that ask about their message, and compare what they hear; see identity.c. */
#include "identity_handlers.h"

#define LOG(field, n)                                                                              \
    PtlHandlerDMAFetchAddB(offsetof(struct identity_log, field), n, NULL, PTL_UINT64_T,            \
                           PTL_HANDLER_HOST_MEM)

static void wrong(enum identity_wrong what)
{
    PtlHandlerDMAFetchAddB(offsetof(struct identity_log, wrong) + what * sizeof(uint64_t), 1, NULL,
                           PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
}

static void wait_for_host(void)
{
    uint64_t go = 0;
    LOG(waiting, 1);
    do {
        PtlHandlerYield();
        PtlHandlerDMAFromHostB(offsetof(struct identity_log, go), &go, sizeof(go),
                               PTL_HANDLER_HOST_MEM);
    } while (go == 0);
}

static void misbehave(uint64_t hdr_data)
{
    if ((hdr_data & IDENTITY_YIELD) != 0) {
        PtlHandlerYield();
    }
    if ((hdr_data & IDENTITY_WAIT) != 0) {
        wait_for_host();
    }
    if ((hdr_data & IDENTITY_FAULT) != 0) {
        PtlHandlerDMAToHostB(&hdr_data, UINT64_MAX / 2, 8, PTL_ME_HOST_MEM);
    }
    while ((hdr_data & IDENTITY_SPIN) != 0) {
        __asm__ volatile("");
    }
}

static bool is_user_header(const ptl_header_t *h)
{
    const uint8_t *user = h->user_hdr;
    for (uint32_t i = 0; i < h->user_hdr_length; i++) {
        if (user[i] != identity_byte(h->hdr_data, i)) {
            return false;
        }
    }
    return true;
}

static bool same_process(ptl_process_t a, ptl_process_t b)
{
    return a.phys.nid == b.phys.nid && a.phys.pid == b.phys.pid;
}

static bool same_header(const ptl_header_t *a, const ptl_header_t *b)
{
    return a->type == b->type && a->length == b->length &&
           same_process(a->source_id, b->source_id) && same_process(a->target_id, b->target_id) &&
           a->match_bits == b->match_bits && a->offset == b->offset && a->hdr_data == b->hdr_data &&
           a->user_hdr == b->user_hdr && a->user_hdr_length == b->user_hdr_length;
}

static struct identity_own *own_of(const struct identity_state *s, const ptl_header_t *h)
{
    struct identity_own *own = PtlHandlerMessageState();
    if ((own != NULL) != (s->length != 0 && h->type != PTL_REQUEST_TIMER)) {
        wrong(WRONG_NO_STATE);
    }
    return own;
}

static void fill(const struct identity_state *s, struct identity_own *own, const ptl_header_t *h)
{
    uint8_t *bytes = (uint8_t *)own;
    for (uint32_t i = 0; i < s->length; i++) {
        if (bytes[i] != 0) {
            wrong(WRONG_NOT_ZERO);
            break;
        }
    }
    for (uint32_t i = sizeof(*own); i < s->length; i++) {
        bytes[i] = identity_byte(h->hdr_data, i);
    }
    own->source_id = h->source_id;
    own->length = h->length;
    own->match_bits = h->match_bits;
    own->offset = h->offset;
    own->hdr_data = h->hdr_data;
    own->type = h->type;
}

/* Header and state are of one message, and all of the state is. */
static void compare(const struct identity_state *s, const struct identity_own *own,
                    const ptl_header_t *h)
{
    const uint8_t *bytes = (const uint8_t *)own;
    if (!same_process(own->source_id, h->source_id) || own->length != h->length ||
        own->match_bits != h->match_bits || own->offset != h->offset ||
        own->hdr_data != h->hdr_data || own->type != (uint32_t)h->type) {
        wrong(WRONG_MESSAGE);
    }
    for (uint32_t i = sizeof(*own); i < s->length; i++) {
        if (bytes[i] != identity_byte(h->hdr_data, i)) {
            wrong(WRONG_MESSAGE);
            return;
        }
    }
}

/* What payload and completion handlers ask, and find. */
static struct identity_own *ask(const struct identity_state *s, ptl_header_t *h)
{
    if (PtlHandlerHeader(h) != PTL_OK) {
        wrong(WRONG_MESSAGE);
    }
    if ((h->user_hdr != NULL) != (s->keeps != 0 && h->user_hdr_length != 0) ||
        (h->user_hdr != NULL && !is_user_header(h))) {
        wrong(WRONG_USER);
    }
    return own_of(s, h);
}

__handler static int identity_header(const ptl_header_t h, void *state)
{
    const struct identity_state *s = state;
    ptl_header_t asked;
    LOG(headers, 1);
    if (PtlHandlerHeader(&asked) != PTL_OK || !same_header(&h, &asked)) {
        wrong(WRONG_HEADER);
    }
    if (h.type == PTL_REQUEST_TIMER) {
        LOG(ticks, 1);
        return own_of(s, &h) == NULL && h.length == 0 ? PROCESS_DATA : FAIL;
    }
    if (!is_user_header(&h)) {
        wrong(WRONG_USER);
    }
    struct identity_own *own = own_of(s, &h);
    if (own != NULL) {
        fill(s, own, &h);
    }
    if ((h.hdr_data & IDENTITY_FAIL) != 0) {
        return FAIL;
    }
    misbehave(h.hdr_data);
    return PROCESS_DATA;
}
PTL_HANDLER(identity_header);

__handler static int identity_payload(const ptl_payload_t p, void *state)
{
    const struct identity_state *s = state;
    ptl_header_t h;
    LOG(payloads, 1);
    struct identity_own *own = ask(s, &h);
    if (own != NULL && own->length != 0) {
        compare(s, own, &h);
        PtlHandlerFAdd(&own->bytes, NULL, p.length);
    }
    for (uint32_t i = 0; i < p.length; i++) {
        if (p.base[i] != identity_byte(h.hdr_data, h.user_hdr_length + p.offset + i)) {
            wrong(WRONG_BYTES);
            break;
        }
    }
    LOG(bytes, p.length);
    if (p.offset != 0) {
        misbehave(h.hdr_data);
    }
    return SUCCESS;
}
PTL_HANDLER(identity_payload);

__handler static int identity_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    const struct identity_state *s = state;
    ptl_header_t h;
    (void)flow_control;
    struct identity_own *own = ask(s, &h);
    if (h.type == PTL_REQUEST_TIMER) {
        LOG(completions, 1);
        return SUCCESS;
    }
    if (own != NULL && own->length != 0) {
        compare(s, own, &h);
        if (own->bytes + dropped != h.length - h.user_hdr_length && s->partial == 0) {
            wrong(WRONG_SUM);
        }
    }
    LOG(completions, 1);
    return SUCCESS;
}
PTL_HANDLER(identity_completion);

const ptl_handlers_t identity_handlers = {.header_handler = identity_header,
                                          .payload_handler = identity_payload,
                                          .completion_handler = identity_completion,
                                          .hpu_mem = PTL_HPU_MEM_NONE,
                                          .hpu_initial_length = sizeof(struct identity_state)};
const ptl_handlers_t identity_headless = {.payload_handler = identity_payload,
                                          .completion_handler = identity_completion,
                                          .hpu_mem = PTL_HPU_MEM_NONE,
                                          .hpu_initial_length = sizeof(struct identity_state)};

/* ---- Strays ---- */

__handler static int identity_stray_header(const ptl_header_t h, void *state)
{
    struct identity_stray_state *s = state;
    uint8_t *own = PtlHandlerMessageState();
    s->pointer = (uint32_t)(uintptr_t)own;
    own[0] = 1;
    switch (s->what) {
    case STRAY_HEADER_NULL:
        PtlHandlerHeader(NULL);
        break;
    case STRAY_HEADER_READ:
        PtlHandlerHeader((ptl_header_t *)(uintptr_t) "constant, and long enough for a header: "
                                                     "72 bytes or, natively, 80 ......");
        break;
    case STRAY_BEHIND:
        own[64] = 1;
        break;
    case STRAY_BEFORE:
        own[-1] = 1;
        break;
    default:
        return PROCESS_DATA;
    }
    return h.length != 0 ? DROP : PROCESS_DATA;
}
PTL_HANDLER(identity_stray_header);

__handler static int identity_stray_payload(const ptl_payload_t p, void *state)
{
    const struct identity_stray_state *s = state;
    ptl_header_t h;
    (void)p;
    if (s->what == STRAY_NOT_ASKED) {
        *(volatile uint8_t *)(uintptr_t)s->pointer = 2;
    }
    PtlHandlerHeader(&h);
    volatile uint8_t *user = (volatile uint8_t *)(uintptr_t)h.user_hdr;
    if (s->what == STRAY_USER_WRITE) {
        user[0] = 1;
    }
    return user[s->what == STRAY_USER_BEHIND ? h.user_hdr_length : 0] == 255 ? FAIL : SUCCESS;
}
PTL_HANDLER(identity_stray_payload);

const ptl_handlers_t identity_strays = {.header_handler = identity_stray_header,
                                        .payload_handler = identity_stray_payload,
                                        .hpu_mem = PTL_HPU_MEM_NONE,
                                        .hpu_initial_length = sizeof(struct identity_stray_state),
                                        .user_hdr_length = 8,
                                        .options = PTL_HANDLER_KEEP_USER_HDR |
                                                   PTL_HANDLER_MESSAGE_STATE(64)};
