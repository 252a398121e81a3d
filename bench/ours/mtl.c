/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the latency of a message library over Portals goes: the ping-pong of full
 * events that are polled (put_latency_eqget), with what Open MPI's mtl/portals4 adds
 * to each short message, one at a time and together:
 *
 *   ack      the sender asks for an acknowledgement and waits for SEND and ACK
 *   append   the receiver appends a use-once entry for each message
 *   mtl      both, with two queues looked at by PtlEQPoll without waiting; a message
 *            may come before its entry and then lies in the overflow list
 *
 * The rate of messages is that of such: a window is sent and all its events are taken; the other
 * side appends an entry for each message, takes them, and answers with an empty one. A message
 * goes to the same offset of its entry or of the overflow memory as it has in its window.
 */
#include "link.h"
#include "masks.h"

#include <string.h>

enum { EVENTS = 1024, SENT = 0, RECEIVED = 1, SHORT_MOST = 4096 };

static ptl_handle_eq_t queues[2]; /* of the MD, of the table's index */
static ptl_handle_md_t md;
static uint8_t early[65536]; /* memory of the overflow list */

#define BITS masks_bits(1)

/* ---- Ways to look ---- */

static inline int get(int which, ptl_event_t *event)
{
    int code;
    do {
        code = PtlEQGet(queues[which], event);
    } while (code == PTL_EQ_EMPTY);
    return code;
}

static int wrong(int code, const ptl_event_t *event)
{
    return link_ok(code, "PtlEQGet or PtlEQPoll")
               ? turn_fail("an event of type %d, failure %d", (int)event->type,
                           (int)event->ni_fail_type)
               : -1;
}

/* ---- Sending and receiving ---- */

/* Message i of a window. */
static inline int put(unsigned index, uint64_t size, unsigned i)
{
    uint64_t at = i * link_stride(size);
    int code = PtlPut(md, at, size, PTL_ACK_REQ, self.peer, index, BITS, at, NULL, 0);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

static inline int append(unsigned index)
{
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = self.in,
                   .length = LINK_BUFFERS,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id = self.peer,
                   .match_bits = BITS,
                   .ignore_bits = MASKS_PROTOCOL};
    int code = PtlMEAppend(self.ni, index, &me, PTL_PRIORITY_LIST, NULL, &handle);
    return link_ok(code, "PtlMEAppend") ? 0 : -1;
}

static inline int take_put(void)
{
    ptl_event_t event;
    int code = get(RECEIVED, &event);
    return code == PTL_OK && event.type == PTL_EVENT_PUT && event.ni_fail_type == PTL_NI_OK
               ? 0
               : wrong(code, &event);
}

/* ---- ack ---- */

static inline int send_acked(uint64_t size)
{
    ptl_event_t event;
    if (put(LINK_ACK, size, 0) != 0) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        int code = get(SENT, &event);
        if (code != PTL_OK || event.ni_fail_type != PTL_NI_OK) {
            return wrong(code, &event);
        }
    }
    return 0;
}

static int by_ack(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        if ((turn_rank() == 0 && send_acked(work->size) != 0) || take_put() != 0 ||
            (turn_rank() == 1 && send_acked(work->size) != 0)) {
            return -1;
        }
    }
    return 0;
}

/* ---- append ---- */

/* Each rank appends the entry for a message before it sends the one that this answers;
 * rank 1 begins with one, and ends with one for the next turn. */
static int send_plain(uint64_t size)
{
    return append(LINK_APPEND) != 0 || !link_ok(link_put(size, 0, LINK_APPEND, BITS), "PtlPut") ? -1
                                                                                                : 0;
}

static int by_append(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        if ((turn_rank() == 0 && send_plain(work->size) != 0) || take_put() != 0 ||
            (turn_rank() == 1 && send_plain(work->size) != 0)) {
            return -1;
        }
    }
    return 0;
}

/* ---- mtl ---- */

static inline int next_event(ptl_event_t *event)
{
    unsigned which;
    int code;
    do {
        code = PtlEQPoll(queues, 2, 0, event, &which);
    } while (code == PTL_EQ_EMPTY);
    return code == PTL_OK && event->ni_fail_type == PTL_NI_OK ? 0 : wrong(code, event);
}

/* SEND and ACK of so many; nothing was appended that could be received now. */
static int await_sent(unsigned messages)
{
    ptl_event_t event;
    for (unsigned i = 0; i < 2 * messages; i++) {
        if (next_event(&event) != 0) {
            return -1;
        }
        if (event.type != PTL_EVENT_SEND && event.type != PTL_EVENT_ACK) {
            return wrong(PTL_OK, &event);
        }
    }
    return 0;
}

/* One message for which there is an entry. */
static int take_as_mtl(void)
{
    ptl_event_t event;
    if (next_event(&event) != 0) {
        return -1;
    }
    if (event.type == PTL_EVENT_PUT_OVERFLOW) {
        memcpy(self.in + ((uint8_t *)event.start - early), event.start, event.mlength);
    } else if (event.type != PTL_EVENT_PUT) {
        return wrong(PTL_OK, &event);
    }
    return 0;
}

static int send_as_mtl(uint64_t size)
{
    return put(LINK_MTL, size, 0) != 0 ? -1 : await_sent(1);
}

static int receive_as_mtl(void)
{
    return append(LINK_MTL) != 0 ? -1 : take_as_mtl();
}

static int as_mtl(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        if ((turn_rank() == 0 && send_as_mtl(work->size) != 0) || receive_as_mtl() != 0 ||
            (turn_rank() == 1 && send_as_mtl(work->size) != 0)) {
            return -1;
        }
    }
    return 0;
}

/* ---- rate ---- */

static int send_window(uint64_t size)
{
    for (unsigned i = 0; i < TURN_WINDOW_RATE; i++) {
        if (put(LINK_MTL, size, i) != 0) {
            return -1;
        }
    }
    return await_sent(TURN_WINDOW_RATE) != 0 ? -1 : receive_as_mtl();
}

static int receive_window(void)
{
    for (unsigned i = 0; i < TURN_WINDOW_RATE; i++) {
        if (append(LINK_MTL) != 0) {
            return -1;
        }
    }
    for (unsigned i = 0; i < TURN_WINDOW_RATE; i++) {
        if (take_as_mtl() != 0) {
            return -1;
        }
    }
    return send_as_mtl(0);
}

static int windows(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        if ((turn_rank() == 0 ? send_window(work->size) : receive_window()) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- Family ---- */

static int open_entries(void)
{
    ptl_handle_me_t handle;
    ptl_me_t overflow = {.start = early,
                         .length = sizeof(early),
                         .ct_handle = PTL_CT_NONE,
                         .uid = PTL_UID_ANY,
                         .options =
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE,
                         .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                         .match_bits = BITS,
                         .ignore_bits = MASKS_PROTOCOL};
    if (!link_ok(PtlEQAlloc(self.ni, EVENTS, &queues[SENT]), "PtlEQAlloc") ||
        !link_ok(PtlEQAlloc(self.ni, EVENTS, &queues[RECEIVED]), "PtlEQAlloc") ||
        link_index(LINK_ACK, queues[RECEIVED]) != 0 ||
        link_index(LINK_APPEND, queues[RECEIVED]) != 0 ||
        link_index(LINK_MTL, queues[RECEIVED]) != 0) {
        return -1;
    }
    ptl_md_t m = {.start = self.out,
                  .length = LINK_BUFFERS,
                  .eq_handle = queues[SENT],
                  .ct_handle = PTL_CT_NONE};
    return !link_ok(PtlMDBind(self.ni, &m, &md), "PtlMDBind") ||
                   link_memory(LINK_ACK, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE, self.in,
                               LINK_BUFFERS, NULL) != 0 ||
                   !link_ok(
                       PtlMEAppend(self.ni, LINK_MTL, &overflow, PTL_OVERFLOW_LIST, NULL, &handle),
                       "PtlMEAppend") ||
                   (turn_rank() == 1 && append(LINK_APPEND) != 0)
               ? -1
               : 0;
}

static bool small(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size <= SHORT_MOST;
}

static bool small_window(const struct turn_work *work)
{
    return small(work) && TURN_WINDOW_RATE * link_stride(work->size) <= sizeof(early);
}

static int begin(const struct turn_work *work)
{
    return link_prepare(work, 1);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return link_verify(work, 1);
}

static int begin_window(const struct turn_work *work)
{
    return link_prepare(work, TURN_WINDOW_RATE);
}

static int end_window(const struct turn_work *work, struct turn_result *result)
{
    return turn_rank() == 1 ? link_verify(work, TURN_WINDOW_RATE) : 0;
}

static const struct turn_duty duties[] = {
    {BENCH_LATENCY_ACK, small, begin, by_ack, end},
    {BENCH_LATENCY_APPEND, small, begin, by_append, end},
    {BENCH_LATENCY_MTL, small, begin, as_mtl, end},
    {BENCH_RATE_MTL, small_window, begin_window, windows, end_window},
};

const struct family family_mtl = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
