/* SPDX-License-Identifier: BSD-3-Clause */
/* The portal table: allocating, freeing, disabling, and what arrives for an
 * index that is disabled or not there. */
#include "port.h"

PTEST_KINDS(pt_alloc, 1)
{
    struct port p = {.rank = rank, .size = size, .kind = kind};
    ptl_pt_index_t pt;
    unsigned char memory[64];
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, kind, PTL_PID_ANY, NULL, &p.limits, &p.ni));
    port_ids(&p);
    OK(PtlEQAlloc(p.ni, 64, &p.eq));
    OK(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY, &pt));
    CHECK_EQ(pt, 0); /* run times count on it */
    OK(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY, &pt));
    CHECK_EQ(pt, 1);
    static const ptl_pt_index_t fixed[] = {2, 4, 8, 9, 12, 13, 14, 15, 16, 63};
    for (int i = 0; i < 10; i++) {
        OK(PtlPTAlloc(p.ni, 0, p.eq, fixed[i], &pt));
        CHECK_EQ(pt, fixed[i]);
        CHECK_CODE(PtlPTAlloc(p.ni, 0, p.eq, fixed[i], &pt), PTL_PT_IN_USE);
    }
    ptl_pt_index_t beyond = (ptl_pt_index_t)p.limits.max_pt_index + 1;
    if (beyond > 64) {
        OK(PtlPTAlloc(p.ni, 0, p.eq, beyond - 1, &pt));
        CHECK_EQ(pt, beyond - 1);
    }
    INVALID(PtlPTAlloc(p.ni, 0, p.eq, beyond, &pt));
    INVALID(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY - 1, &pt));
    INVALID(PtlPTAlloc(p.ni, 1u << 5, p.eq, PTL_PT_ANY, &pt));
    INVALID(PtlPTAlloc(p.ni, 1u << 31, p.eq, PTL_PT_ANY, &pt));
    OK(PtlPTAlloc(p.ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED, p.eq,
                  PTL_PT_ANY, &pt));
    OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));

    OK(PtlPTFree(p.ni, 2));
    INVALID(PtlPTFree(p.ni, 2));
    INVALID(PtlPTEnable(p.ni, 2));
    INVALID(PtlPTDisable(p.ni, 2));
    INVALID(PtlPTFree(p.ni, beyond));
    INVALID(PtlPTFree(p.ni, PTL_PT_ANY));
    INVALID(PtlPTEnable(p.ni, PTL_PT_ANY));
    INVALID(PtlPTDisable(p.ni, PTL_PT_ANY));
    OK(PtlPTAlloc(p.ni, 0, p.eq, 2, &pt));
    CHECK_EQ(pt, 2);

    ptl_me_t me = port_entry(&p, memory, sizeof(memory), PTL_ME_OP_PUT);
    ptl_handle_me_t handle;
    INVALID(port_append_code(&p, beyond, &me, NULL, &handle));
    OK(PtlPTFree(p.ni, 2));
    INVALID(port_append_code(&p, 2, &me, NULL, &handle));
    OK(PtlNIFini(p.ni));
    PtlFini();
}

/* With entries on its list an index cannot be freed. */
PTEST_KINDS(pt_free_with_entries, 1)
{
    struct port p;
    unsigned char memory[64];
    port_open(&p, kind, rank, size);
    ptl_handle_me_t one = port_target(&p, memory, 32, PTL_ME_OP_PUT, NULL);
    ptl_handle_me_t two = port_target(&p, memory + 32, 32, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
    CHECK_CODE(PtlPTFree(p.ni, p.pt), PTL_PT_IN_USE);
    port_unlink(&p, one);
    CHECK_CODE(PtlPTFree(p.ni, p.pt), PTL_PT_IN_USE);
    ptl_handle_md_t md = port_md(&p, memory, 8, 0, PTL_CT_NONE);
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
    EVENT(p.eq, PTL_EVENT_PUT);
    EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
    INVALID(port_unlink_code(&p, two));
    OK(PtlPTFree(p.ni, p.pt));
    INVALID(PtlPTFree(p.ni, p.pt));
    port_close(&p);
}

/* Entries of one index do not see the messages of another. */
PTEST_KINDS(pt_are_apart, 2)
{
    struct port p;
    ptl_pt_index_t pt[20];
    ptl_handle_eq_t eq[20];
    uint64_t to[20] = {0}, from[20];
    int other = 1 - rank;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < 20; i++) {
        OK(PtlEQAlloc(p.ni, 16, &eq[i]));
        OK(PtlPTAlloc(p.ni, 0, eq[i], PTL_PT_ANY, &pt[i]));
        ptl_me_t me = port_entry(&p, &to[i], 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        ptl_handle_me_t handle;
        OK(port_append_code(&p, pt[i], &me, &to[i], &handle));
        from[i] = (uint64_t)i + 500;
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, from, sizeof(from), 0, PTL_CT_NONE);
    for (int i = 19; i >= 0; i--) {
        OK(PtlPut(md, (ptl_size_t)i * 8, 8, PTL_NO_ACK_REQ, p.id[other], pt[i], 0, 0, NULL, 0));
    }
    for (int i = 0; i < 20; i++) {
        ptl_event_t event = EVENT(eq[i], PTL_EVENT_PUT);
        CHECK_EQ(event.pt_index, pt[i]);
        CHECK_EQ(event.user_ptr, &to[i]);
        CHECK_EQ(to[i], i + 500);
        NO_EVENT(eq[i]);
    }
    port_close(&p);
}

/* Rank 1 switches its index off and on, rank 0 sends to it. */
PTEST_KINDS(pt_disable, 2)
{
    struct port p;
    uint64_t word = 0;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        port_target(&p, &word, 8, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
        OK(PtlPTDisable(p.ni, p.pt));
        OK(PtlPTDisable(p.ni, p.pt));
    }
    int drops = port_status(&p, PTL_SR_DROP_COUNT);
    BARRIER();
    if (rank == 0) {
        word = 7;
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_ct_event_t value;
        ptl_handle_md_t md = port_md(&p, &word, 8, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, &word, 0));
        EVENT(p.mdeq, PTL_EVENT_SEND);
        ptl_event_t event = EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_PT_DISABLED);
        CHECK_EQ(event.user_ptr, &word);
        OK(PtlGet(md, 0, 8, p.id[1], p.pt, 0, 0, &word));
        EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED);
        OK(PtlCTGet(ct, &value));
        CHECK_EQ(value.success, 0);
        CHECK_EQ(value.failure, 2);
    }
    BARRIER();
    if (rank == 1) {
        CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), drops + 2);
        CHECK_EQ(word, 0);
        NO_EVENT(p.eq);
        OK(PtlPTEnable(p.ni, p.pt));
        OK(PtlPTEnable(p.ni, p.pt));
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, &word, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK);
    } else {
        EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(word, 7);
        CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), drops + 2);
    }
    port_close(&p);
}

PTEST_KINDS(pt_alloc_disabled, 1)
{
    struct port p;
    uint64_t from = 9, to = 0;
    ptl_pt_index_t pt;
    ptl_handle_me_t handle;
    port_open(&p, kind, rank, size);
    OK(PtlPTAlloc(p.ni, PTL_PT_ALLOC_DISABLED, p.eq, PTL_PT_ANY, &pt));
    ptl_me_t me = port_entry(&p, &to, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    OK(port_append_code(&p, pt, &me, NULL, &handle));
    ptl_handle_md_t md = port_md(&p, &from, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[0], pt, 0, 0, NULL, 0));
    EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_PT_DISABLED);
    CHECK_EQ(to, 0);
    OK(PtlPTEnable(p.ni, pt));
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[0], pt, 0, 0, NULL, 0));
    EVENT(p.mdeq, PTL_EVENT_ACK);
    CHECK_EQ(to, 9);
    port_close(&p);
}

/* What is sent to an index that nobody has allocated is dropped. */
PTEST_KINDS(pt_not_there, 2)
{
    struct port p;
    uint64_t word = 1;
    port_open(&p, kind, rank, size);
    int drops = port_status(&p, PTL_SR_DROP_COUNT);
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, &word, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        for (ptl_pt_index_t pt = 1; pt < 64; pt += 31) {
            OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], pt, 0, 0, NULL, 0));
            EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_DROPPED);
            OK(PtlGet(md, 0, 8, p.id[1], pt, 0, 0, NULL));
            EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
        }
        CHECK_EQ(word, 1);
    }
    BARRIER();
    CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), drops + (rank == 1 ? 6 : 0));
    port_close(&p);
}

/* Disabling waits for deliveries under way: once it has returned, nothing lands. */
PTEST(pt_disable_is_a_barrier, 3)
{
    enum { BYTES = 200000, STOP = 0 };
    static unsigned char memory[BYTES], seen[BYTES];
    struct port p;
    port_open(&p, KIND_NP, rank, size);
    if (rank == 0) {
        port_target(&p, memory, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
        BARRIER();
        for (int i = 0; i < 30; i++) {
            ptest_sleep_ms(2);
            OK(PtlPTDisable(p.ni, p.pt));
            for (int k = 0; k < BYTES; k++) {
                seen[k] = memory[k];
            }
            ptest_sleep_ms(2);
            for (int k = 0; k < BYTES; k++) {
                CHECK_EQ(memory[k], seen[k]);
            }
            OK(PtlPTEnable(p.ni, p.pt));
        }
        ptest_show(STOP, 1);
    } else {
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md = port_quiet_md(&p, memory, BYTES, PTL_MD_EVENT_CT_ACK, ct);
        BARRIER();
        for (unsigned char n = 0; ptest_look(0, STOP) == 0; n++) {
            ptl_ct_event_t value, zero = {0, 0};
            for (int k = 0; k < BYTES; k++) {
                memory[k] = (unsigned char)(n + rank);
            }
            OK(PtlPut(md, 0, BYTES, PTL_CT_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
            OK(PtlCTWait(ct, 1, &value)); /* accepted or refused */
            CHECK_EQ(value.success + value.failure, 1);
            OK(PtlCTSet(ct, zero));
        }
    }
    port_close(&p);
}
