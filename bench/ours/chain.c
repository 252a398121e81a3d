/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains of triggered operations of rank 0 on itself: each link waits for a counter
 * of its own and counts in the next one's.
 *
 *   PtlCTInc ──► counter[0] ──► link 0 ──► counter[1] ──► ... ──► counter[LINKS] ──► PtlCTWait
 *
 *   inc      PtlTriggeredCTInc on the next counter
 *   put      PtlTriggeredPut of 8 bytes into an entry that counts in it
 *   atomic   PtlTriggeredAtomic of 8 bytes, likewise
 *
 * `extra` is what a link takes from the first count to the last; the links are set up
 * before, which is not in it.
 */
#include "link.h"

enum { LINKS = 1000 };

static struct link_count counters[LINKS + 1];
static ptl_size_t fired; /* how often chains have run: the value of every counter */
static int64_t operand = 1, target;
static ptl_handle_md_t md;
static double extra;

static int link_inc(unsigned i, ptl_size_t threshold)
{
    return PtlTriggeredCTInc(counters[i + 1].ct, (ptl_ct_event_t){1, 0}, counters[i].ct, threshold);
}

static int link_of_put(unsigned i, ptl_size_t threshold)
{
    return PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, self.me, LINK_CHAIN, i, 0, NULL, 0,
                           counters[i].ct, threshold);
}

static int link_of_atomic(unsigned i, ptl_size_t threshold)
{
    return PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, self.me, LINK_CHAIN, i, 0, NULL, 0, PTL_SUM,
                              PTL_INT64_T, counters[i].ct, threshold);
}

static int fire(double *seconds)
{
    double start = turn_now();
    if (!link_ok(PtlCTInc(counters[0].ct, (ptl_ct_event_t){1, 0}), "PtlCTInc") ||
        link_wait(&counters[LINKS], 1) != 0) {
        return -1;
    }
    *seconds += turn_now() - start;
    return 0;
}

static int chain(uint64_t iterations, int (*arm)(unsigned i, ptl_size_t threshold))
{
    double seconds = 0;
    for (uint64_t n = 0; turn_rank() == 0 && n < iterations; n++) {
        fired++;
        for (unsigned i = 0; i < LINKS; i++) {
            if (!link_ok(arm(i, fired), "a triggered operation")) {
                return -1;
            }
        }
        if (fire(&seconds) != 0) {
            return -1;
        }
    }
    extra = seconds / ((double)iterations * LINKS);
    return 0;
}

static int incs(const struct turn_work *work, uint64_t iterations)
{
    return chain(iterations, link_inc);
}

static int put_links(const struct turn_work *work, uint64_t iterations)
{
    target = 0;
    return chain(iterations, link_of_put) != 0 ? -1
           : turn_rank() == 1 || target == operand
               ? 0
               : turn_fail("a chain of puts left %ld in its target", (long)target);
}

static int atomics(const struct turn_work *work, uint64_t iterations)
{
    target = 0;
    return chain(iterations, link_of_atomic) != 0 ? -1
           : turn_rank() == 1 || target == (int64_t)(iterations * LINKS)
               ? 0
               : turn_fail("a chain of atomics made %ld of %lu links", (long)target,
                           (unsigned long)(iterations * LINKS));
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    result->extra = extra;
    return 0;
}

static int open_entries(void)
{
    ptl_md_t m = {
        .start = &operand, .length = 8, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    if (link_index(LINK_CHAIN, PTL_EQ_NONE) != 0 || link_counter(&counters[0]) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < LINKS; i++) {
        if (link_counter(&counters[i + 1]) != 0 ||
            link_memory(LINK_CHAIN, i, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE, &target, 8,
                        &counters[i + 1]) != 0) {
            return -1;
        }
    }
    return link_ok(PtlMDBind(self.ni, &m, &md), "PtlMDBind") ? 0 : -1;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_CHAIN_INC, .run = incs, .end = end},
    {.bench = BENCH_CHAIN_PUT, .run = put_links, .end = end},
    {.bench = BENCH_CHAIN_ATOMIC, .run = atomics, .end = end},
};

const struct family family_chain = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
