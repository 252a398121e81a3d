/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For cases in which processes come and go: an interface that a process opens alone, when it
 * likes, with an entry that takes all puts and an MD whose acks are counted.
 */
#ifndef LONE_H
#define LONE_H

#include "port.h"

#include <malloc.h>
#include <stdlib.h>

enum { LONE_BYTES = 64, LONE_MS = 10000, LONE_SLOT = 0 };

struct lone {
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct, arrived; /* acks; puts of others */
    ptl_handle_md_t md;
    ptl_process_t id;
};

static inline void lone_open(struct lone *o)
{
    static unsigned char memory[LONE_BYTES], source[LONE_BYTES];
    ptl_pt_index_t pt;
    ptl_handle_me_t handle;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &o->ni));
    OK(PtlGetPhysId(o->ni, &o->id));
    OK(PtlCTAlloc(o->ni, &o->ct));
    OK(PtlCTAlloc(o->ni, &o->arrived));
    ptl_md_t md = {.start = source,
                   .length = sizeof(source),
                   .options = PTL_MD_EVENT_CT_ACK,
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = o->ct};
    OK(PtlMDBind(o->ni, &md, &o->md));
    OK(PtlPTAlloc(o->ni, 0, PTL_EQ_NONE, 0, &pt));
    ptl_me_t me = {.start = memory,
                   .length = sizeof(memory),
                   .ct_handle = o->arrived,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                   .ignore_bits = ~0ULL};
    OK(PtlMEAppend(o->ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

static inline void lone_show(const struct lone *o)
{
    ptest_show(LONE_SLOT, (uint64_t)o->id.phys.nid << 32 | o->id.phys.pid);
}

static inline ptl_process_t lone_look(int rank)
{
    uint64_t both = ptest_look(rank, LONE_SLOT);
    return (ptl_process_t){.phys = {(ptl_nid_t)(both >> 32), (ptl_pid_t)both}};
}

static inline void lone_close(struct lone *o)
{
    OK(PtlNIFini(o->ni));
    PtlFini();
}

static inline void lone_put(struct lone *o, ptl_process_t to)
{
    OK(PtlPut(o->md, 0, 8, PTL_CT_ACK_REQ, to, 0, 0, 0, NULL, 0));
}

/* lone_ended() waits until so many puts have ended, well or not: less long than silence takes to
 * be death. */
static inline ptl_ct_event_t lone_ended(struct lone *o, uint64_t many)
{
    ptl_ct_event_t v = {0};
    uint64_t end = ptest_now_ms() + LONE_MS * (uint64_t)ptest_slow();
    while (v.success + v.failure < many) {
        OK(PtlCTGet(o->ct, &v));
        if (ptest_now_ms() > end) {
            FAIL("%llu puts have ended of %llu", (unsigned long long)(v.success + v.failure),
                 (unsigned long long)many);
        }
    }
    return v;
}

/* How many are to come; bytes that this process has allocated. */
static inline int lone_churn(int usual)
{
    const char *text = getenv("TEST_CHURN");
    return text != NULL ? atoi(text) : usual;
}
static inline size_t lone_memory(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

#endif
