/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of handlers have in common: entries with handlers, a log that
 * handlers keep in handler_host_mem, and the usual round of one message,
 *
 *      rank 0, or rank 1 itself ──put or get──► entry with handlers at rank 1
 */
#ifndef HANDLER_H
#define HANDLER_H

#include "port.h"

#include "spin.h"
#include "spin_handler.h"

#include <stdlib.h>
#include <string.h>

#define HANDLER_BITS 0x123456789abcdef0u /* match bits of the messages */

enum { HANDLER_LONGEST = (1 << 20) + 3 };

/* Lengths around lines, the inline limit, packets, and several of these. */
static const size_t handler_sizes[] = {0,    1,    8,    63,   64,   65,    1000,           1024,
                                       1025, 4095, 4096, 4097, 8192, 65537, HANDLER_LONGEST};
enum { HANDLER_SIZES = sizeof(handler_sizes) / sizeof(handler_sizes[0]) };

static const size_t handler_user_lengths[] = {0, 1, 8, 63, 64, 100, 1024};
enum { HANDLER_USER_LENGTHS = sizeof(handler_user_lengths) / sizeof(handler_user_lengths[0]) };

/* The start of handler_host_mem. */
struct handler_log {
    uint64_t headers, payloads, completions; /* calls */
    uint64_t bytes;                          /* that payload handlers were given */
    uint64_t dropped, flow_control;          /* what the completion handler was told */
    uint64_t disorder;                       /* calls out of order */
};

/* For handlers: adds to a field of the log and returns what it was. */
#define LOG(field, n) handler_log_add(offsetof(struct handler_log, field), n)
static inline uint64_t handler_log_add(size_t field, uint64_t n)
{
    uint64_t before = 0;
    PtlHandlerDMAFetchAddB(field, n, &before, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    return before;
}

/* Handlers that log one message. They leave what is to be returned to others. */
static inline void handler_log_header(void)
{
    if (LOG(headers, 1) != 0 || LOG(payloads, 0) != 0 || LOG(completions, 0) != 0) {
        LOG(disorder, 1);
    }
}

static inline void handler_log_payload(const ptl_payload_t *p)
{
    LOG(payloads, 1);
    LOG(bytes, p->length);
    if (LOG(headers, 0) != 1 || LOG(completions, 0) != 0) {
        LOG(disorder, 1);
    }
}

static inline void handler_log_completion(ptl_size_t dropped, bool flow_control)
{
    if (LOG(completions, 1) != 0) {
        LOG(disorder, 1);
    }
    LOG(dropped, dropped);
    LOG(flow_control, flow_control);
}

/* Whether HPUs are threads: else whoever makes progress runs handlers. */
static inline bool handler_threads(struct port *p)
{
    ptl_spin_limits_t limits;
    OK(PtlSpinLimits(p->ni, &limits));
    return limits.num_hpus < PTL_NUM_HPUS;
}

/* handler_set() describes handlers with HPU memory of their own, which begins as
 * the `state_length` bytes at `state` (NULL: zeroed), and results to `host`. */
static inline ptl_handlers_t handler_set(ptl_header_handler_t header, ptl_payload_handler_t payload,
                                         ptl_completion_handler_t completion, const void *state,
                                         size_t state_length, void *host, size_t host_length)
{
    return (ptl_handlers_t){
        .header_handler = header,
        .payload_handler = payload,
        .completion_handler = completion,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = state_length,
        .handler_host_mem = host,
        .handler_host_length = host_length,
    };
}

static inline int handler_append_code(struct port *p, ptl_pt_index_t pt, const ptl_me_t *me,
                                      const ptl_handlers_t *handlers, void *user_ptr,
                                      ptl_handle_me_t *handle)
{
    if (port_matching(p)) {
        return PtlMEAppendHandlers(p->ni, pt, me, handlers, PTL_PRIORITY_LIST, user_ptr, handle);
    }
    ptl_le_t le = {me->start, me->length, me->ct_handle, me->uid, me->options};
    return PtlLEAppendHandlers(p->ni, pt, &le, handlers, PTL_PRIORITY_LIST, user_ptr, handle);
}

static inline ptl_handle_me_t handler_append(struct port *p, const ptl_me_t *me,
                                             const ptl_handlers_t *handlers)
{
    ptl_handle_me_t handle;
    OK(handler_append_code(p, p->pt, me, handlers, NULL, &handle));
    return handle;
}

/* An entry for puts and gets, without link event; `ct`, unless none, counts. */
static inline ptl_handle_me_t handler_target(struct port *p, void *start, size_t length,
                                             unsigned options, ptl_handle_ct_t ct,
                                             const ptl_handlers_t *handlers)
{
    ptl_me_t me = port_entry(p, start, length,
                             options | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    if (ct != PTL_CT_NONE) {
        me.options |= PTL_ME_EVENT_CT_COMM;
        me.ct_handle = ct;
    }
    return handler_append(p, &me, handlers);
}

/* Whether this rank sends in a round of rank 0, or of rank 1 to itself. */
static inline bool handler_sends(const struct port *p, bool self)
{
    return p->rank == (self ? 1 : 0);
}

static inline void handler_check_ct(ptl_handle_ct_t ct, uint64_t success, uint64_t failure)
{
    ptl_ct_event_t value;
    OK(PtlCTGet(ct, &value));
    CHECK_EQ(value.success, success);
    CHECK_EQ(value.failure, failure);
}

/* handler_put() puts to rank 1 and waits for the ACK, which must end that way and be
 * counted that way; handler_get() gets, and waits for the REPLY. */
static inline ptl_event_t handler_put(struct port *p, void *buffer, size_t length,
                                      ptl_size_t offset, ptl_hdr_data_t hdr_data, int fail)
{
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_md_t md =
        port_md(p, buffer, length, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK, ct);
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, p->id[1], p->pt, HANDLER_BITS, offset, buffer, hdr_data));
    ptl_event_t ack = EVENT_FAIL(p->mdeq, PTL_EVENT_ACK, fail);
    CHECK_EQ(ack.user_ptr, buffer);
    handler_check_ct(ct, fail == PTL_NI_OK, fail != PTL_NI_OK);
    port_release(md);
    OK(PtlCTFree(ct));
    return ack;
}

static inline ptl_event_t handler_get(struct port *p, void *buffer, size_t length,
                                      ptl_size_t offset, int fail)
{
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_md_t md = port_md(p, buffer, length, PTL_MD_EVENT_CT_REPLY, ct);
    OK(PtlGet(md, 0, length, p->id[1], p->pt, HANDLER_BITS, offset, buffer));
    ptl_event_t reply = EVENT_FAIL(p->mdeq, PTL_EVENT_REPLY, fail);
    CHECK_EQ(reply.user_ptr, buffer);
    handler_check_ct(ct, fail == PTL_NI_OK, fail != PTL_NI_OK);
    port_release(md);
    OK(PtlCTFree(ct));
    return reply;
}

/* Every counted call of one message, with nothing out of order. */
static inline void handler_check_log(const struct handler_log *log, uint64_t headers,
                                     uint64_t completions, uint64_t dropped)
{
    CHECK_EQ(log->headers, headers);
    CHECK_EQ(log->completions, completions);
    CHECK_EQ(log->dropped, dropped);
    CHECK_EQ(log->flow_control, 0);
    CHECK_EQ(log->disorder, 0);
}

#endif
