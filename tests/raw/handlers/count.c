/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of messages: each completion sends a frame that says what the handlers of its message,
 * and those of all messages, have seen. frames.py reads it. */
#include <spin_handler.h>

struct totals {
    uint64_t messages, frames, ended;
};
PTL_HANDLER_STATE(struct totals);

struct seen {
    uint32_t frames, bytes, next, wrong;
};

enum { TAG = 42, ID = TAG + 2 }; /* as in SLMP: flags, id, offset */

__handler int raw_header(const ptl_header_t h, void *state)
{
    struct totals *t = state;
    const uint8_t *frame = h.user_hdr;
    struct seen *s = PtlHandlerMessageState();
    t->messages++;
    if (h.type != PTL_REQUEST_FRAME || s->frames != 0 || h.user_hdr_length != h.length) {
        return FAIL;
    }
    /* the first byte of the id says what is to become of the message */
    return frame[ID] == 0xdd ? DROP : frame[ID] == 0xee ? PROCEED : PROCESS_DATA;
}
PTL_HANDLER(raw_header);

__handler int raw_payload(const ptl_payload_t p, void *state)
{
    struct totals *t = state;
    struct seen *s = PtlHandlerMessageState();
    t->frames++;
    s->frames++;
    s->bytes += (uint32_t)p.length;
    s->wrong += p.offset != s->next;
    s->next += (uint32_t)p.length;
    if (p.base[ID] == 0xbb) {
        return DROP;
    }
    if (p.base[ID] == 0xff) { /* strays, once per frame of this id */
        volatile uint32_t *volatile nowhere = NULL;
        *nowhere = 1;
    }
    if (p.base[ID] == 0xaa) {
        for (volatile unsigned i = 0;; i++) { /* for ever */
        }
    }
    return SUCCESS;
}
PTL_HANDLER(raw_payload);

__handler int raw_completion(ptl_size_t dropped_bytes, bool flow_control_triggered, void *state)
{
    struct totals *t = state;
    const struct seen *s = PtlHandlerMessageState();
    uint8_t frame[64];
    ptl_header_t h;
    uint32_t said[10];
    t->ended++;
    if (PtlHandlerHeader(&h) != PTL_OK || PtlHandlerFrameReply(60) != PTL_FAIL ||
        PtlHandlerFramePass() != PTL_FAIL || PtlHandlerFrameSend(frame, 13) != PTL_ARG_INVALID ||
        PtlHandlerFrameSend(state, 10000) != PTL_ARG_INVALID) {
        return FAIL;
    }
    said[0] = (uint32_t)h.match_bits;
    said[1] = s->frames;
    said[2] = s->bytes;
    said[3] = s->wrong;
    said[4] = (uint32_t)dropped_bytes;
    said[5] = flow_control_triggered;
    said[6] = (uint32_t)t->messages;
    said[7] = (uint32_t)t->frames;
    said[8] = (uint32_t)t->ended;
    said[9] = (uint32_t)h.hdr_data;
    for (unsigned i = 0; i < sizeof(frame); i++) {
        frame[i] = i < 12 ? 2 : i < 14 ? 0x88 : 0;
    }
    for (unsigned i = 0; i < 40; i++) {
        frame[14 + i] = (uint8_t)(said[i / 4] >> (24 - 8 * (i % 4)));
    }
    return PtlHandlerFrameSend(frame, sizeof(frame)) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(raw_completion);

/* The same image has a second family: pings with an odd number are the kernel's. */
__handler int pass_payload(const ptl_payload_t p, void *state)
{
    (void)state;
    if (p.length < 42) {
        return DROP;
    }
    return (p.base[41] & 1) == 0 || PtlHandlerFramePass() == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(pass_payload);
