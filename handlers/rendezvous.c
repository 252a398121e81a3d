/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous by the NICs; see rendezvous.h.
 *
 * Every message has its kind in hdr_data. The announcement of a long message has 16 bytes, which
 * are sPIN's user header: the length, and the match bits of the source entry. Source and landing
 * entries are at the portal table index `data`, each with match bits that no other entry has.
 */
#include "rendezvous.h"

#include "bytes.h"
#include "spin_handler.h"

/* Kinds of messages, in hdr_data. A clearance has the match bits of the landing entry there, which
 * are at least FIRST_BITS. */
enum { KIND_EAGER, KIND_LONG, KIND_DATA, FIRST_BITS = 16 };

/* This bit is set in the user_ptr of an announcement, to tell its ACK from that of the data. */
enum { ANNOUNCEMENT = 1 };

_Static_assert(_Alignof(struct rendezvous_request) > ANNOUNCEMENT, "that bit is free");

/* ---- On the NICs ---- */

/* Sends a clearance. Its 8 bytes of data are the room of the receive. */
static int clear_to_send(const struct rendezvous_match_state *s, ptl_process_t to, uint64_t source)
{
    return PtlHandlerPutFromDeviceEx(&s->room, sizeof(s->room), PTL_NO_ACK_REQ, to, s->index,
                                     source, 0, NULL, s->landing);
}

__handler static int rendezvous_match(const ptl_header_t h, void *state)
{
    const struct rendezvous_match_state *s = state;
    uint64_t announced[2];
    if (h.hdr_data == KIND_EAGER) {
        return PROCEED;
    }
    if (h.user_hdr_length != sizeof(announced)) {
        return FAIL;
    }
    bytes_copy(announced, h.user_hdr, sizeof(announced));
    return clear_to_send(s, h.source_id, announced[1]) == PTL_OK ? DROP : FAIL;
}
PTL_HANDLER(rendezvous_match);

__handler static int rendezvous_source(const ptl_header_t h, void *state)
{
    const struct rendezvous_source_state *s = state;
    uint64_t room;
    if (h.user_hdr_length != sizeof(room)) {
        return FAIL;
    }
    bytes_copy(&room, h.user_hdr, sizeof(room));
    int rc = PtlHandlerPutFromHost(0, smaller(s->length, room), PTL_ACK_REQ, h.source_id,
                                   h.hdr_data, 0, PtlHandlerUserPtr(s->user), KIND_DATA);
    return rc == PTL_OK ? DROP : FAIL;
}
PTL_HANDLER(rendezvous_source);

/* ---- The host's functions ---- */

static int put(const struct rendezvous *r, const void *start, uint64_t length, ptl_ack_req_t ack,
               ptl_process_t to, ptl_pt_index_t index, uint64_t bits, void *user, uint64_t hdr_data)
{
    return PtlPut(r->md, (ptl_size_t)(uintptr_t)start, length, ack, to, index, bits, 0, user,
                  hdr_data);
}

static int append_buffer(const struct rendezvous *r, const struct rendezvous_buffer *b)
{
    ptl_handle_me_t handle;
    const ptl_me_t me = {.start = b->start,
                         .length = b->length,
                         .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN |
                                    PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_COMM_DISABLE |
                                    PTL_ME_EVENT_LINK_DISABLE,
                         .match_id = r->any,
                         .ignore_bits = ~(ptl_match_bits_t)0,
                         .min_free = r->eager};
    return PtlMEAppend(r->ni, r->matching, &me, PTL_OVERFLOW_LIST, (void *)b, &handle);
}

int rendezvous_open(struct rendezvous *r, ptl_handle_ni_t ni, ptl_pt_index_t matching,
                    ptl_pt_index_t data, ptl_handle_eq_t eq, ptl_process_t any, uint64_t eager,
                    void *memory, uint64_t length)
{
    const ptl_md_t md = {NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
    *r = (struct rendezvous){.ni = ni,
                             .matching = matching,
                             .data = data,
                             .any = any,
                             .eager = eager,
                             .next = FIRST_BITS};
    uint64_t part = length / RENDEZVOUS_BUFFERS / 64 * 64;
    if (eager < sizeof(uint64_t[2]) || part < eager) {
        return PTL_ARG_INVALID;
    }
    int rc = PtlMDBind(ni, &md, &r->md);
    for (unsigned i = 0; i < RENDEZVOUS_BUFFERS && rc == PTL_OK; i++) {
        r->buffer[i].start = (uint8_t *)memory + i * part;
        r->buffer[i].length = part;
        rc = append_buffer(r, &r->buffer[i]);
    }
    return rc;
}

static ptl_me_t once(void *start, uint64_t length, ptl_process_t from, ptl_match_bits_t bits,
                     ptl_match_bits_t ignore)
{
    return (ptl_me_t){.start = start,
                      .length = length,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_UNLINK_DISABLE,
                      .match_id = from,
                      .match_bits = bits,
                      .ignore_bits = ignore};
}

static ptl_handlers_t header_only(ptl_header_handler_t header, const void *state, uint64_t length,
                                  uint64_t user_header)
{
    return (ptl_handlers_t){.header_handler = header,
                            .hpu_mem = PTL_HPU_MEM_NONE,
                            .hpu_initial_state = state,
                            .hpu_initial_length = length,
                            .user_hdr_length = user_header};
}

static int send_long(struct rendezvous *r, struct rendezvous_request *q, ptl_process_t to,
                     ptl_match_bits_t bits)
{
    uint64_t source = r->next++;
    ptl_me_t me = once(q->start, q->length, to, source, 0);
    ptl_handlers_t h =
        header_only(rendezvous_source, &q->source_state, sizeof(q->source_state), sizeof(uint64_t));
    q->source_state.length = q->length;
    q->source_state.user = (uintptr_t)q;
    q->announced[0] = q->length;
    q->announced[1] = source;
    int rc = PtlMEAppendHandlers(r->ni, r->data, &me, &h, PTL_PRIORITY_LIST, q, &q->entry);
    if (rc != PTL_OK) {
        return rc;
    }
    q->awaited = 2;
    rc = put(r, q->announced, sizeof(q->announced), PTL_ACK_REQ, to, r->matching, bits,
             (void *)((uintptr_t)q | ANNOUNCEMENT), KIND_LONG);
    if (rc != PTL_OK) {
        (void)PtlMEUnlink(q->entry);
    }
    return rc;
}

int rendezvous_send(struct rendezvous *r, struct rendezvous_request *request, const void *start,
                    uint64_t length, ptl_process_t to, ptl_match_bits_t bits)
{
    *request = (struct rendezvous_request){.length = length, .start = (void *)start, .awaited = 1};
    if (length > r->eager) {
        return send_long(r, request, to, bits);
    }
    return put(r, start, length, PTL_ACK_REQ, to, r->matching, bits, request, KIND_EAGER);
}

int rendezvous_receive(struct rendezvous *r, struct rendezvous_request *request, void *start,
                       uint64_t room, ptl_process_t from, ptl_match_bits_t bits,
                       ptl_match_bits_t ignore)
{
    ptl_handle_me_t matching;
    uint64_t landing = r->next++;
    *request = (struct rendezvous_request){
        .length = room, .start = start, .match_state = {room, landing, r->data, 0}};
    ptl_me_t me = once(start, room, from, landing, 0);
    int rc = PtlMEAppend(r->ni, r->data, &me, PTL_PRIORITY_LIST, request, &request->entry);
    if (rc != PTL_OK) {
        return rc;
    }
    me = once(start, room, from, bits, ignore);
    ptl_handlers_t h = header_only(rendezvous_match, &request->match_state,
                                   sizeof(request->match_state), sizeof(uint64_t[2]));
    rc = PtlMEAppendHandlers(r->ni, r->matching, &me, &h, PTL_PRIORITY_LIST, request, &matching);
    if (rc != PTL_OK) {
        (void)PtlMEUnlink(request->entry);
    }
    return rc;
}

/* ---- Events ---- */

static void finish(struct rendezvous_request *q, uint64_t length, ptl_ni_fail_t fail)
{
    q->length = length;
    q->fail = fail;
    q->done = true;
}

/* Sends the clearance for an announcement that came before its receive, as rendezvous_match() does
 * for later ones. */
static int clear_early(const struct rendezvous *r, struct rendezvous_request *q,
                       const ptl_event_t *e)
{
    uint64_t announced[2];
    bytes_copy(announced, e->start, sizeof(announced));
    return put(r, &q->match_state.room, sizeof(q->match_state.room), PTL_NO_ACK_REQ, e->initiator,
               r->data, announced[1], NULL, q->match_state.landing);
}

/* Handles the message that a receive has matched, or its announcement. `early`: it came before the
 * receive and is in an overflow buffer. */
static int matched(const struct rendezvous *r, struct rendezvous_request *q, const ptl_event_t *e,
                   bool early)
{
    q->source = e->initiator;
    q->bits = e->match_bits;
    if (e->hdr_data == KIND_LONG && e->ni_fail_type == PTL_NI_OK) {
        return early ? clear_early(r, q, e) : PTL_OK;
    }
    uint64_t length = smaller(e->mlength, q->length);
    if (early) {
        bytes_copy(q->start, e->start, length);
    }
    finish(q, length, e->ni_fail_type);
    return PtlMEUnlink(q->entry);
}

/* Handles the event that ends a put, with or without success: of a short message, of the
 * announcement of a long one, or of its data. A send is done when its last acknowledgement has
 * come. */
static int acknowledged(const ptl_event_t *e)
{
    bool announcement = ((uintptr_t)e->user_ptr & ANNOUNCEMENT) != 0;
    struct rendezvous_request *q =
        (struct rendezvous_request *)((uintptr_t)e->user_ptr & ~(uintptr_t)ANNOUNCEMENT);
    if (announcement && e->ni_fail_type != PTL_NI_OK) {
        finish(q, 0, e->ni_fail_type);
        return PtlMEUnlink(q->entry);
    }
    if (!announcement) {
        q->length = e->mlength;
        q->fail = e->ni_fail_type;
    }
    q->done = --q->awaited == 0;
    return PTL_OK;
}

int rendezvous_event(struct rendezvous *r, const ptl_event_t *event)
{
    struct rendezvous_request *q = event->user_ptr;
    switch (event->type) {
    case PTL_EVENT_PUT_OVERFLOW:
        return matched(r, q, event, true);
    case PTL_EVENT_PUT:
        if (event->pt_index == r->matching) {
            return matched(r, q, event, false);
        }
        if (event->hdr_data == KIND_DATA || event->ni_fail_type != PTL_NI_OK) {
            finish(q, event->mlength, event->ni_fail_type);
        }
        return PTL_OK; /* else it is the clearance of a long send, which its handler has handled */
    case PTL_EVENT_ACK:
        return acknowledged(event);
    case PTL_EVENT_AUTO_FREE:
        return append_buffer(r, event->user_ptr);
    default:
        return PTL_OK;
    }
}
