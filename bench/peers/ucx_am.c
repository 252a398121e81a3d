/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX's active messages; see peer_ucx.h. A handler copies what came into its slot; of
 * a message that only announces itself (rendezvous) it posts the receive.
 *
 * Messages are counted as they begin, which names their slot, and as their data are
 * there, which is what the receiver waits for.
 */
#include <string.h>

#include "peer_ucx.h"

enum { AM_MESSAGE = 1, AM_ANSWER = 2 };

static struct {
    uint64_t window;          /* messages of an iteration of this turn */
    uint64_t begun, complete; /* messages received this turn */
    uint64_t expected;        /* of which the program has waited for */
    uint64_t answers;
    ucs_status_t status; /* of the first that failed, or UCS_OK */
} am;

static void count_complete(ucs_status_t status)
{
    am.complete++;
    if (am.status == UCS_OK) {
        am.status = status;
    }
}

static void on_received(void *request, ucs_status_t status, size_t length, void *unused)
{
    ucp_request_free(request);
    count_complete(status);
}

static ucs_status_t on_message(void *unused, const void *header, size_t header_length, void *data,
                               size_t length, const ucp_am_recv_param_t *about)
{
    char *to = slots_to(&ucx.slots, am.begun++ % am.window);
    if ((about->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
        memcpy(to, data, length);
        count_complete(UCS_OK);
        return UCS_OK;
    }
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
                                 .cb.recv_am = on_received};
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(ucx.worker, data, to, length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        count_complete(UCS_PTR_STATUS(request));
    }
    return UCS_INPROGRESS;
}

static ucs_status_t on_answer(void *unused, const void *header, size_t header_length, void *data,
                              size_t length, const ucp_am_recv_param_t *about)
{
    am.answers++;
    return UCS_OK;
}

static int set_handler(unsigned id, ucp_am_recv_callback_t handler)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                  UCP_AM_HANDLER_PARAM_FIELD_CB,
                                    .id = id,
                                    .cb = handler};
    ucs_status_t status = ucp_worker_set_am_recv_handler(ucx.worker, &param);
    return status == UCS_OK ? 0 : ucx_failed("ucp_worker_set_am_recv_handler", status);
}

static int open_handlers(void)
{
    return set_handler(AM_MESSAGE, on_message) != 0 || set_handler(AM_ANSWER, on_answer) != 0 ? -1
                                                                                              : 0;
}

static ucs_status_ptr_t post_send(unsigned id, const void *from, size_t size, uint32_t flags)
{
    ucp_request_param_t param = {.op_attr_mask = flags};
    return ucp_am_send_nbx(ucx.endpoint, id, NULL, 0, from, size, &param);
}

static int wait_messages(uint64_t messages)
{
    am.expected += messages;
    while (am.complete < am.expected) {
        ucp_worker_progress(ucx.worker);
    }
    return am.status == UCS_OK ? 0 : ucx_failed("ucp_am_recv_data_nbx", am.status);
}

static int send_one(const struct turn_work *work)
{
    return ucx_finish("ucp_am_send_nbx", post_send(AM_MESSAGE, ucx.slots.from, work->size, 0));
}

static int latency(const struct turn_work *work, uint64_t iterations)
{
    int failed = 0;
    for (uint64_t i = 0; i < iterations && failed == 0; i++) {
        if (turn_rank() == 0) {
            failed = send_one(work) != 0 || wait_messages(1) != 0;
        } else {
            failed = wait_messages(1) != 0 || send_one(work) != 0;
        }
    }
    return failed ? -1 : 0;
}

static int send_window(size_t size, int messages)
{
    ucs_status_ptr_t requests[TURN_WINDOW_RATE];
    uint64_t answers = am.answers;
    for (int i = 0; i < messages; i++) {
        requests[i] = post_send(AM_MESSAGE, slots_from(&ucx.slots, (uint64_t)i), size,
                                UCP_OP_ATTR_FLAG_MULTI_SEND);
    }
    if (ucx_finish_all("ucp_am_send_nbx", requests, messages) != 0) {
        return -1;
    }
    while (am.answers == answers) {
        ucp_worker_progress(ucx.worker);
    }
    return 0;
}

static int receive_window(int messages)
{
    if (wait_messages((uint64_t)messages) != 0) {
        return -1;
    }
    return ucx_finish("ucp_am_send_nbx", post_send(AM_ANSWER, NULL, 0, 0));
}

static int windows(const struct turn_work *work, uint64_t iterations)
{
    int messages = ucx_window(work), failed = 0;
    for (uint64_t i = 0; i < iterations && failed == 0; i++) {
        failed = turn_rank() == 0 ? send_window(work->size, messages) : receive_window(messages);
    }
    return failed;
}

static int begin(const struct turn_work *work)
{
    am.window = (uint64_t)ucx_window(work);
    am.begun = am.complete = am.expected = 0;
    am.status = UCS_OK;
    return slots_begin(&ucx.slots, work);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return slots_end(&ucx.slots, work);
}

const struct ucx_way ucx_am = {.name = "am",
                               .open = open_handlers,
                               .begin = begin,
                               .latency = latency,
                               .windows = windows,
                               .end = end};
