/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX's puts, into memory that UCX allocated, found by polling it; see peer_ucx.h.
 *
 *   region:  | slots, SLOTS_SPACE bytes | number of the last message or window |
 *
 * The bytes of one put may land in any order, so data are followed by a fence and a
 * put of the number. A ping-pong of 8 bytes sends the number alone: it is the data,
 * and the poll is the check.
 */
#include "peer_ucx.h"

enum { NUMBER_SIZE = sizeof(uint64_t), POLLS_PER_PROGRESS = 1024 };

static struct {
    char *own;     /* memory that is not UCX's */
    uint64_t sent; /* number of the last message or window */
    uint64_t seen; /* of the last from the other rank */
} put;

static ucs_status_ptr_t post_put(const void *from, size_t size, uint64_t at)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    return ucp_put_nbx(ucx.endpoint, from, size, ucx.remote + at, ucx.key, &param);
}

static int put_number(void)
{
    put.sent++;
    return ucx_finish("ucp_put_nbx", post_put(&put.sent, NUMBER_SIZE, SLOTS_SPACE));
}

static int fence_and_put_number(void)
{
    ucs_status_t status = ucp_worker_fence(ucx.worker);
    return status == UCS_OK ? put_number() : ucx_failed("ucp_worker_fence", status);
}

/* Transports that move data without the other process need no progress; one that
 * does gets some. */
static int wait_number(void)
{
    const volatile uint64_t *number = (const volatile uint64_t *)(ucx.region + SLOTS_SPACE);
    put.seen++;
    for (unsigned polls = 1; *number != put.seen; polls++) {
        if (polls % POLLS_PER_PROGRESS == 0) {
            ucp_worker_progress(ucx.worker);
        }
    }
    return 0;
}

static bool number_is_all(const struct turn_work *work)
{
    return work->bench == BENCH_LATENCY && work->size == NUMBER_SIZE;
}

static int send_one(const struct turn_work *work)
{
    if (number_is_all(work)) {
        return put_number();
    }
    if (ucx_finish("ucp_put_nbx", post_put(ucx.slots.from, work->size, 0)) != 0) {
        return -1;
    }
    return fence_and_put_number();
}

static int latency(const struct turn_work *work, uint64_t iterations)
{
    int failed = 0;
    for (uint64_t i = 0; i < iterations && failed == 0; i++) {
        if (turn_rank() == 0) {
            failed = send_one(work) != 0 || wait_number() != 0;
        } else {
            failed = wait_number() != 0 || send_one(work) != 0;
        }
    }
    return failed ? -1 : 0;
}

static int send_window(size_t size, int messages)
{
    ucs_status_ptr_t requests[TURN_WINDOW_RATE];
    for (int i = 0; i < messages; i++) {
        requests[i] =
            post_put(slots_from(&ucx.slots, (uint64_t)i), size, (uint64_t)i * ucx.slots.stride);
    }
    if (ucx_finish_all("ucp_put_nbx", requests, messages) != 0 || fence_and_put_number() != 0) {
        return -1;
    }
    return wait_number();
}

static int windows(const struct turn_work *work, uint64_t iterations)
{
    int messages = ucx_window(work), failed = 0;
    for (uint64_t i = 0; i < iterations && failed == 0; i++) {
        if (turn_rank() == 0) {
            failed = send_window(work->size, messages);
        } else {
            failed = wait_number() != 0 || put_number() != 0 ? -1 : 0;
        }
    }
    return failed;
}

/* Puts go from own memory into UCX's, reads from UCX's into own. */
static int begin(const struct turn_work *work)
{
    if (put.own == NULL) {
        put.own = ucx.slots.from;
    }
    bool read = work->bench == BENCH_GET;
    ucx.slots.from = read ? ucx.region : put.own;
    ucx.slots.to = read ? put.own : ucx.region;
    return slots_begin(&ucx.slots, work);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return number_is_all(work) ? 0 : slots_end(&ucx.slots, work);
}

const struct ucx_way ucx_put = {.name = "put",
                                .begin = begin,
                                .latency = latency,
                                .windows = windows,
                                .end = end,
                                .allocate = SLOTS_SPACE + NUMBER_SIZE};
