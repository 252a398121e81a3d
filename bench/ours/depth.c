/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ping-pong of put_latency into lists of many entries: `size` of them, of the
 * eight masks of masks.h in turns, which all count in one counter. Each message is
 * for one of them, drawn at random, so neither the first nor the last one found helps.
 */
#include "link.h"
#include "masks.h"

enum { ENTRIES_MAX = 4096, DRAWN = 8192 };

static struct link_count counted;
static ptl_handle_me_t entries[ENTRIES_MAX];
static uint64_t posted; /* entries */
static ptl_match_bits_t drawn[DRAWN];
static unsigned next;

static int unpost(void)
{
    for (; posted > 0; posted--) {
        int code;
        do {
            code = PtlMEUnlink(entries[posted - 1]);
        } while (code == PTL_IN_USE);
        if (!link_ok(code, "PtlMEUnlink")) {
            return -1;
        }
    }
    return 0;
}

static int post(uint64_t count)
{
    for (; posted < count; posted++) {
        ptl_me_t me = {.start = self.in,
                       .length = LINK_BUFFERS,
                       .ct_handle = counted.ct,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM,
                       .match_id = self.peer,
                       .match_bits = masks_bits(posted),
                       .ignore_bits = masks_eight[posted % MASKS]};
        if ((me.ignore_bits & MASKS_SOURCE) != 0) {
            me.match_id.phys = (typeof(me.match_id.phys)){PTL_NID_ANY, PTL_PID_ANY};
        }
        int code = PtlMEAppend(self.ni, LINK_DEPTH, &me, PTL_PRIORITY_LIST, NULL, &entries[posted]);
        if (!link_ok(code, "PtlMEAppend")) {
            return -1;
        }
    }
    return 0;
}

/* A list of another length is posted by both before either sends. */
static int begin(const struct turn_work *work)
{
    char byte = 0;
    if (posted != work->size) {
        uint64_t state = 88172645463325252u;
        if (unpost() != 0 || post(work->size) != 0) {
            return -1;
        }
        for (unsigned i = 0; i < DRAWN; i++) {
            drawn[i] = masks_bits(masks_random(&state) % work->size);
        }
        if (turn_exchange(&byte, 1, &byte, 1) != 1) {
            return -1;
        }
    }
    next = 0;
    return 0;
}

static int send_one(void)
{
    int code = link_put(8, 0, LINK_DEPTH, drawn[next++ % DRAWN]);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        if ((turn_rank() == 0 && send_one() != 0) || link_wait(&counted, 1) != 0 ||
            (turn_rank() == 1 && send_one() != 0)) {
            return -1;
        }
    }
    return 0;
}

static bool supports(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size >= 1 && work->size <= ENTRIES_MAX;
}

static int open_entries(void)
{
    return link_index(LINK_DEPTH, PTL_EQ_NONE) != 0 || link_counter(&counted) != 0 ? -1 : 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_LATENCY_DEPTH, .supports = supports, .begin = begin, .run = run},
};

const struct family family_depth = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
