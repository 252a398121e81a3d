/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX's tagged messages; see peer_ucx.h. */
#include "peer_ucx.h"

enum { TAG = 1, TAG_ANSWER = 2 };

static const uint64_t whole_tag = ~(uint64_t)0;

static ucs_status_ptr_t post_send(const void *from, size_t size, uint64_t tag, uint32_t flags)
{
    ucp_request_param_t param = {.op_attr_mask = flags};
    return ucp_tag_send_nbx(ucx.endpoint, from, size, tag, &param);
}

static ucs_status_ptr_t post_receive(void *to, size_t size, uint64_t tag)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    return ucp_tag_recv_nbx(ucx.worker, to, size, tag, whole_tag, &param);
}

static int send_one(const void *from, size_t size, uint64_t tag)
{
    return ucx_finish("ucp_tag_send_nbx", post_send(from, size, tag, 0));
}

static int receive_one(void *to, size_t size, uint64_t tag)
{
    return ucx_finish("ucp_tag_recv_nbx", post_receive(to, size, tag));
}

static int latency(const struct turn_work *work, uint64_t iterations)
{
    const struct slots *s = &ucx.slots;
    int failed = 0;
    for (uint64_t i = 0; i < iterations && failed == 0; i++) {
        if (turn_rank() == 0) {
            failed =
                send_one(s->from, work->size, TAG) != 0 || receive_one(s->to, work->size, TAG) != 0;
        } else {
            failed =
                receive_one(s->to, work->size, TAG) != 0 || send_one(s->from, work->size, TAG) != 0;
        }
    }
    return failed ? -1 : 0;
}

static int send_window(size_t size, int messages)
{
    ucs_status_ptr_t requests[TURN_WINDOW_RATE];
    for (int i = 0; i < messages; i++) {
        requests[i] =
            post_send(slots_from(&ucx.slots, (uint64_t)i), size, TAG, UCP_OP_ATTR_FLAG_MULTI_SEND);
    }
    if (ucx_finish_all("ucp_tag_send_nbx", requests, messages) != 0) {
        return -1;
    }
    return receive_one(NULL, 0, TAG_ANSWER);
}

static int receive_window(size_t size, int messages)
{
    ucs_status_ptr_t requests[TURN_WINDOW_RATE];
    for (int i = 0; i < messages; i++) {
        requests[i] = post_receive(slots_to(&ucx.slots, (uint64_t)i), size, TAG);
    }
    if (ucx_finish_all("ucp_tag_recv_nbx", requests, messages) != 0) {
        return -1;
    }
    return send_one(NULL, 0, TAG_ANSWER);
}

static int windows(const struct turn_work *work, uint64_t iterations)
{
    int messages = ucx_window(work), failed = 0;
    for (uint64_t i = 0; i < iterations && failed == 0; i++) {
        failed = turn_rank() == 0 ? send_window(work->size, messages)
                                  : receive_window(work->size, messages);
    }
    return failed;
}

static int begin(const struct turn_work *work)
{
    return slots_begin(&ucx.slots, work);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return slots_end(&ucx.slots, work);
}

const struct ucx_way ucx_tag = {
    .name = "tag", .begin = begin, .latency = latency, .windows = windows, .end = end};
