/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks: PtlSetMap, PtlGetMap, and what ranks look like to either side. */
#include "port.h"

#include <string.h>

PTEST(map_rules, 3)
{
    struct port p = {.rank = rank, .size = size, .kind = KIND_MP};
    ptl_handle_ni_t physical, logical;
    ptl_process_t map[4], wrong[4];
    ptl_process_t id;
    ptl_size_t n = 99;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &p.ni));
    port_ids(&p);
    physical = p.ni;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_ML, PTL_PID_ANY, NULL, NULL, &logical));

    INVALID(PtlSetMap(physical, 3, p.phys));
    INVALID(PtlGetMap(physical, 4, map, &n));
    CHECK_CODE(PtlGetMap(logical, 4, map, &n), PTL_NO_SPACE);
    OK(PtlGetPhysId(logical, &id));
    CHECK_EQ(id.phys.pid, p.phys[rank].phys.pid);
    OK(PtlGetId(logical, &id));
    CHECK_EQ(id.rank, PTL_RANK_ANY);

    INVALID(PtlSetMap(logical, 0, p.phys));
    INVALID(PtlSetMap(logical, 3, NULL));
    memcpy(wrong, p.phys, sizeof(wrong));
    wrong[rank].phys.pid = 0; /* without this process, with an id that is none */
    INVALID(PtlSetMap(logical, 3, wrong));
    wrong[rank] = p.phys[(rank + 1) % size]; /* without this process */
    INVALID(PtlSetMap(logical, 3, wrong));
    memcpy(wrong, p.phys, sizeof(wrong));
    wrong[(rank + 1) % size].phys.pid = PTL_PID_ANY;
    INVALID(PtlSetMap(logical, 3, wrong));
    CHECK_CODE(PtlGetMap(logical, 4, map, &n), PTL_NO_SPACE); /* none of them counts */

    OK(PtlSetMap(logical, 3, p.phys));
    OK(PtlGetId(logical, &id));
    CHECK_EQ(id.rank, rank);

    memset(map, 0, sizeof(map));
    OK(PtlGetMap(logical, 4, map, &n));
    CHECK_EQ(n, 3);
    CHECK(memcmp(map, p.phys, 3 * sizeof(map[0])) == 0);
    CHECK_EQ(map[3].phys.pid, 0);
    memset(map, 0, sizeof(map));
    OK(PtlGetMap(logical, 2, map, &n));
    CHECK_EQ(n, 3);
    CHECK(memcmp(map, p.phys, 2 * sizeof(map[0])) == 0);
    CHECK_EQ(map[2].phys.pid, 0);
    OK(PtlGetMap(logical, 0, NULL, &n));
    CHECK_EQ(n, 3);
    INVALID(PtlGetMap(logical, 3, NULL, &n));
    INVALID(PtlGetMap(logical, 3, map, NULL));

    int code = PtlSetMap(logical, 3, p.phys);
    CHECK(code == PTL_OK || code == PTL_IGNORED);
    OK(PtlGetMap(logical, 4, map, &n));
    CHECK_EQ(n, 3);
    BARRIER();
    PtlFini();
}

/* Rank r of the map is process size - 1 - r: nothing may confuse the two. */
PTEST(reversed_ranks, 4)
{
    enum { NID, PID };
    struct port p = {.rank = rank, .size = size, .kind = KIND_MP};
    ptl_process_t mine, map[4], to, id;
    uint64_t from = 0, at[4] = {0};
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_ML, PTL_PID_ANY, NULL, &p.limits, &p.ni));
    OK(PtlGetPhysId(p.ni, &mine));
    ptest_show(NID, mine.phys.nid);
    ptest_show(PID, mine.phys.pid);
    BARRIER();
    for (int r = 0; r < size; r++) {
        map[size - 1 - r].phys.nid = (ptl_nid_t)ptest_look(r, NID);
        map[size - 1 - r].phys.pid = (ptl_pid_t)ptest_look(r, PID);
    }
    OK(PtlSetMap(p.ni, (ptl_size_t)size, map));
    p.kind = KIND_ML;
    OK(PtlGetId(p.ni, &id));
    int me = size - 1 - rank;
    CHECK_EQ(id.rank, me);
    OK(PtlEQAlloc(p.ni, 64, &p.eq));
    OK(PtlEQAlloc(p.ni, 64, &p.mdeq));
    OK(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY, &p.pt));
    ptl_handle_me_t handle[4];
    for (int r = 0; r < size; r++) {
        ptl_me_t entry =
            port_entry(&p, &at[r], sizeof(at[r]), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        entry.match_id.rank = (ptl_rank_t)r; /* an entry for each rank */
        handle[r] = port_append(&p, &entry, &at[r]);
    }
    BARRIER();
    from = (uint64_t)me + 1000;
    ptl_handle_md_t md = port_md(&p, &from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (int r = 0; r < size; r++) {
        memset(&to, 0, sizeof(to));
        to.rank = (ptl_rank_t)r;
        OK(PtlPut(md, 0, sizeof(from), PTL_ACK_REQ, to, p.pt, 0, 0, NULL, (ptl_hdr_data_t)r));
    }
    for (int r = 0; r < size; r++) {
        EVENT(p.mdeq, PTL_EVENT_ACK);
        ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(event.hdr_data, me);
        CHECK(event.initiator.rank < (ptl_rank_t)size);
        CHECK_EQ(event.user_ptr, &at[event.initiator.rank]);
    }
    for (int r = 0; r < size; r++) {
        CHECK_EQ(at[r], r + 1000);
        port_unlink(&p, handle[r]);
    }
    to.rank = (ptl_rank_t)size; /* one too many */
    INVALID(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
    INVALID(PtlGet(md, 0, 8, to, p.pt, 0, 0, NULL));
    to.rank = PTL_RANK_ANY;
    INVALID(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
    port_close(&p);
}

/* The four interfaces of a process know messages for each other apart. */
PTEST(four_interfaces_at_once, 2)
{
    static const unsigned kinds[] = {KIND_ML, KIND_MP, KIND_NL, KIND_NP};
    struct port p[4];
    uint64_t from[4], to[4] = {0};
    ptl_handle_md_t md[4];
    int other = 1 - rank;
    for (int i = 0; i < 4; i++) {
        port_open(&p[i], kinds[i], rank, size);
        CHECK_EQ(p[i].pt, 0); /* the same index on each of them */
        from[i] = (uint64_t)(100 * i + rank);
        port_target(&p[i], &to[i], sizeof(to[i]), PTL_ME_OP_PUT, &to[i]);
        md[i] = port_md(&p[i], &from[i], sizeof(from[i]), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    }
    BARRIER();
    for (int i = 0; i < 4; i++) {
        OK(PtlPut(md[i], 0, 8, PTL_ACK_REQ, p[i].id[other], 0, 0, 0, &from[i], (ptl_hdr_data_t)i));
    }
    for (int i = 0; i < 4; i++) {
        ptl_event_t event = EVENT(p[i].eq, PTL_EVENT_PUT);
        CHECK_EQ(event.hdr_data, i);
        CHECK_EQ(event.user_ptr, &to[i]);
        CHECK(port_is_from(&p[i], &event, other));
        CHECK_EQ(to[i], 100 * i + other);
        event = EVENT(p[i].mdeq, PTL_EVENT_ACK);
        CHECK_EQ(event.user_ptr, &from[i]);
    }
    for (int i = 3; i >= 0; i--) {
        port_close(&p[i]);
    }
}
