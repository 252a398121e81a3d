/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected messages beside expected ones. Rank 0 sends `size` puts of 8 bytes, each
 * with match bits of its own; rank 1 times what an iteration takes it, with one
 * use-once entry and one full event for each message:
 *
 *   expected     appends all entries, then takes the messages as they come
 *   unexpected   lets all land in the overflow list, then appends entries that claim
 *                them: in order, in reverse, or each with wildcards for all
 *   claim        the appends alone, in order
 *
 * Messages go when rank 1 asks for them; until it does so again, rank 0 waits inside the
 * library, which sends what did not fit into the ring. `extra` of rank 1 is seconds a
 * message. The sum of what the events point at must be that of what was sent.
 */
#include "link.h"

enum { MOST = 16384, EVENTS = 2 * MOST, GO = LINK_ANSWERS + BENCH_EXPECTED };

#define USED_ONCE                                                                                  \
    (PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE)

static uint64_t early[MOST];      /* of the entry in the overflow list */
static struct link_count arrived; /* there */
static struct link_count go;      /* rank 0: what rank 1 has asked for */
static ptl_handle_eq_t eq;
static double extra;

static ptl_me_t entry(ptl_match_bits_t bits, ptl_match_bits_t ignore)
{
    ptl_me_t me = {.start = self.in,
                   .length = LINK_BUFFERS,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = USED_ONCE,
                   .match_id = self.peer,
                   .match_bits = bits,
                   .ignore_bits = ignore};
    if (ignore != 0) {
        me.match_id.phys = (typeof(me.match_id.phys)){PTL_NID_ANY, PTL_PID_ANY};
    }
    return me;
}

static int append(ptl_match_bits_t bits, ptl_match_bits_t ignore)
{
    ptl_handle_me_t handle;
    ptl_me_t me = entry(bits, ignore);
    int code = PtlMEAppend(self.ni, LINK_UNEXPECTED, &me, PTL_PRIORITY_LIST, NULL, &handle);
    return link_ok(code, "PtlMEAppend") ? 0 : -1;
}

/* Adds the data of the next message, which must be there now or come. */
static int take(int (*next)(ptl_handle_eq_t eq, ptl_event_t *event), ptl_event_kind_t wanted,
                uint64_t *sum)
{
    ptl_event_t event;
    int code = next(eq, &event);
    if (code != PTL_OK || event.type != wanted || event.ni_fail_type != PTL_NI_OK ||
        event.mlength != 8) {
        return link_ok(code, "PtlEQGet or PtlEQWait")
                   ? turn_fail("an event of type %d, failure %d, %lu bytes", (int)event.type,
                               (int)event.ni_fail_type, (unsigned long)event.mlength)
                   : -1;
    }
    *sum += *(const uint64_t *)event.start;
    return 0;
}

/* ---- Rank 0 ---- */

static int send_all(uint64_t messages)
{
    if (link_wait(&go, 1) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < messages; i++) {
        if (!link_ok(link_put(8, i, LINK_UNEXPECTED, i), "PtlPut")) {
            return -1;
        }
    }
    return 0;
}

/* ---- Rank 1 ---- */

static int let_go(void)
{
    return link_ok(link_answer(GO), "PtlPut") ? 0 : -1;
}

static int take_expected(uint64_t messages, uint64_t *sum)
{
    for (uint64_t i = 0; i < messages; i++) {
        if (append(i, 0) != 0) {
            return -1;
        }
    }
    if (let_go() != 0) {
        return -1;
    }
    for (uint64_t i = 0; i < messages; i++) {
        if (take(PtlEQWait, PTL_EVENT_PUT, sum) != 0) {
            return -1;
        }
    }
    return 0;
}

static int claim(const struct turn_work *work, uint64_t *sum)
{
    ptl_match_bits_t ignore = work->bench == BENCH_UNEXPECTED_WILD ? ~(ptl_match_bits_t)0 : 0;
    bool reverse = work->bench == BENCH_UNEXPECTED_REVERSE;
    for (uint64_t i = 0; i < work->size; i++) {
        if (append(reverse ? work->size - 1 - i : i, ignore) != 0 ||
            take(PtlEQGet, PTL_EVENT_PUT_OVERFLOW, sum) != 0) {
            return -1;
        }
    }
    return 0;
}

static int receive_all(const struct turn_work *work)
{
    uint64_t sum = 0, wanted = work->size * (work->size + 1) / 2;
    double start = turn_now();
    if (work->bench == BENCH_EXPECTED) {
        if (take_expected(work->size, &sum) != 0) {
            return -1;
        }
    } else {
        if (let_go() != 0 || link_wait(&arrived, work->size) != 0) {
            return -1;
        }
        start = work->bench == BENCH_UNEXPECTED_CLAIM ? turn_now() : start;
        if (claim(work, &sum) != 0) {
            return -1;
        }
    }
    extra += turn_now() - start;
    return sum == wanted
               ? 0
               : turn_fail("the data of %lu messages adds up to %lu, not %lu",
                           (unsigned long)work->size, (unsigned long)sum, (unsigned long)wanted);
}

/* ---- Family ---- */

static int begin(const struct turn_work *work)
{
    uint64_t *words = (uint64_t *)(void *)self.out;
    for (uint64_t i = 0; i < work->size; i++) {
        words[i] = i + 1;
    }
    return 0;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    extra = 0;
    for (uint64_t n = 0; n < iterations; n++) {
        if (turn_rank() == 0 ? send_all(work->size) != 0 : receive_all(work) != 0) {
            return -1;
        }
    }
    extra /= (double)(iterations * work->size);
    return 0;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    result->extra = extra;
    return 0;
}

static bool supports(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size <= MOST;
}

static int open_entries(void)
{
    ptl_handle_me_t handle;
    if (!link_ok(PtlEQAlloc(self.ni, EVENTS, &eq), "PtlEQAlloc") ||
        link_index(LINK_UNEXPECTED, eq) != 0 || link_counter(&arrived) != 0 ||
        link_entry(LINK_COUNTED, GO, 0, &go, NULL) != 0) {
        return -1;
    }
    ptl_me_t me = entry(0, ~(ptl_match_bits_t)0);
    me.start = early;
    me.length = sizeof(early);
    me.ct_handle = arrived.ct;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                 PTL_ME_EVENT_CT_COMM;
    int code = PtlMEAppend(self.ni, LINK_UNEXPECTED, &me, PTL_OVERFLOW_LIST, NULL, &handle);
    return link_ok(code, "PtlMEAppend") ? 0 : -1;
}

static const struct turn_duty duties[] = {
    {BENCH_EXPECTED, supports, begin, run, end},
    {BENCH_UNEXPECTED, supports, begin, run, end},
    {BENCH_UNEXPECTED_REVERSE, supports, begin, run, end},
    {BENCH_UNEXPECTED_WILD, supports, begin, run, end},
    {BENCH_UNEXPECTED_CLAIM, supports, begin, run, end},
};

const struct family family_unexpected = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
