/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.5 to 3.9: initialisation, interfaces, their limits, maps, identities, handles. */
#include "rule_kit.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPEN_AS(options_, pid_, desired_, actual_, ni_)                                            \
    PtlNIInit(PTL_IFACE_DEFAULT, options_, pid_, desired_, actual_, ni_)

/* ---- PtlInit, PtlFini ------------------------------------------------------ */

CASE(init_counted, NO_KIND, BARE,
     "3.5: PtlInit and PtlFini are counted; the library lives until the last PtlFini")
{
    ptl_handle_ni_t ni;
    ptl_process_t id;
    OK(PtlInit());
    OK(PtlInit());
    OK(OPEN_AS(PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni));
    PtlFini();
    OK(PtlGetPhysId(ni, &id));
    PtlFini();
    CODE(PtlGetPhysId(ni, &id), PTL_NO_INIT);
}

CASE(init_missing, ALL_KINDS, BARE, "3.5: before PtlInit an interface cannot be opened")
{
    ptl_handle_ni_t ni;
    CODE(OPEN_AS(s->options, PTL_PID_ANY, NULL, NULL, &ni), PTL_NO_INIT);
}

CASE(init_unbalanced_fini, NO_KIND, BARE, "3.5: a PtlFini without PtlInit does nothing")
{
    ptl_handle_ni_t ni;
    PtlFini();
    OK(PtlInit());
    PtlFini();
    PtlFini();
    OK(PtlInit());
    OK(OPEN_AS(PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlNIFini(ni));
    PtlFini();
}

CASE(init_again, ALL_KINDS, BARE,
     "3.5: after the last PtlFini the library starts again, and messages move again")
{
    for (int round = 0; round < 4; round++) {
        char from[16] = "round", to[16] = "";
        from[5] = (char)('0' + round);
        rule_open(s, NULL);
        ptl_me_t me = suite_entry(s, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        ptl_handle_me_t entry;
        ptl_handle_md_t md;
        ptl_md_t bind = {from, sizeof(from), 0, s->mdeq, PTL_CT_NONE};
        OK(s->matching
               ? PtlMEAppend(s->ni, SUITE_PT, &me, PTL_PRIORITY_LIST, NULL, &entry)
               : PtlLEAppend(s->ni, SUITE_PT, (ptl_le_t *)&me, PTL_PRIORITY_LIST, NULL, &entry));
        OK(PtlMDBind(s->ni, &bind, &md));
        OK(PtlPut(md, 0, sizeof(from), PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        CHECK(strcmp(from, to) == 0);
        rule_close(s);
    }
}

CASE(init_fini_closes, ALL_KINDS, BARE,
     "3.5: the last PtlFini closes every interface, whatever is on it")
{
    static char memory[64];
    rule_open(s, NULL);
    ptl_handle_ct_t ct = suite_ct(s);
    suite_target(s, PTL_PRIORITY_LIST, memory, sizeof(memory), PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = suite_md(s, memory, sizeof(memory), 0);
    OK(PtlTriggeredPut(md, 0, 1, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, ct, 5));
    PtlFini();
    ptl_ct_event_t value;
    CODE(PtlCTGet(ct, &value), PTL_NO_INIT);
    OK(PtlInit());
    INVALID(PtlCTGet(ct, &value));
    PtlFini();
}

/* ---- Interfaces ------------------------------------------------------------ */

CASE(ni_counted, ALL_KINDS, BARE,
     "3.6.2: opening a kind again gives the same handle and limits and is counted; desired and "
     "pid are then not looked at")
{
    ptl_handle_ni_t first, again;
    ptl_ni_limits_t limits, same, other = rule_some_limits();
    ptl_process_t id;
    OK(PtlInit());
    OK(OPEN_AS(s->options, PTL_PID_ANY, NULL, &limits, &first));
    OK(PtlGetPhysId(first, &id));
    other.max_eqs = 7;
    for (int i = 0; i < 2; i++) {
        memset(&same, 0, sizeof(same));
        OK(OPEN_AS(s->options, id.phys.pid == 1 ? 2 : 1, &other, &same, &again));
        CHECK_EQ(again, first);
        CHECK(memcmp(&same, &limits, sizeof(limits)) == 0);
    }
    OK(PtlNIFini(first));
    OK(PtlNIFini(first));
    OK(PtlGetPhysId(first, &id));
    OK(PtlNIFini(first));
    INVALID(PtlGetPhysId(first, &id));
    INVALID(PtlNIFini(first));
}

CASE(ni_opened_anew, ALL_KINDS, BARE,
     "3.6.3: a closed interface is gone with all its objects; one opened behind it is another")
{
    ptl_ct_event_t value;
    rule_open(s, NULL);
    ptl_handle_ni_t old = s->ni;
    ptl_handle_ct_t ct = s->ct;
    OK(PtlNIFini(s->ni));
    rule_open(s, NULL);
    CHECK(s->ni != old);
    ptl_process_t id;
    INVALID(PtlGetPhysId(old, &id));
    OK(PtlCTGet(s->ct, &value));
    CHECK_EQ(value.success, 0);
    (void)ct; /* may be the number of a new one */
}

CASE(ni_four_kinds, NO_KIND, BARE,
     "3.6.2: the four kinds of an interface are open at a time, as four, with one physical id")
{
    ptl_handle_ni_t ni[4];
    ptl_process_t id[4];
    OK(PtlInit());
    for (int k = 0; k < 4; k++) {
        OK(OPEN_AS(suite_ni_options(1u << k), PTL_PID_ANY, NULL, NULL, &ni[k]));
        OK(PtlGetPhysId(ni[k], &id[k]));
        CHECK_EQ(id[k].phys.nid, id[0].phys.nid);
        CHECK_EQ(id[k].phys.pid, id[0].phys.pid);
        for (int j = 0; j < k; j++) {
            CHECK(!PtlHandleIsEqual(ni[j], ni[k]));
        }
    }
    for (int k = 3; k >= 0; k--) {
        OK(PtlNIFini(ni[k]));
        INVALID(PtlGetPhysId(ni[k], &id[0]));
    }
}

CASE(ni_kinds_apart, NO_KIND, BARE,
     "3.6: a message arrives at the kind of interface that it left from, and at no other")
{
    struct scene of[4];
    for (unsigned k = 0; k < 4; k++) {
        struct scene *one = &of[k];
        *one = *s;
        one->options = suite_ni_options(1u << k);
        one->matching = (1u << k & MATCHING_KINDS) != 0;
        one->logical = (1u << k & LOGICAL_KINDS) != 0;
        rule_open(one, NULL);
        suite_target(one, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT, NULL);
    }
    for (unsigned k = 0; k < 4; k++) {
        struct scene *s = &of[k];
        ptl_handle_md_t md = rule_md(s, NULL, 0);
        OK(PtlPut(md, 0, 0, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 100 + k));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(100 + k), .initiator = &s->from);
    }
    for (unsigned k = 0; k < 4; k++) {
        NO_EVENT(of[k].eq);
    }
}

CASE(ni_pid, ALL_KINDS, BARE,
     "3.6.2: PTL_PID_ANY gives a pid from 1 to PTL_PID_MAX; a pid that is asked for is given")
{
    ptl_handle_ni_t ni;
    ptl_process_t id;
    OK(PtlInit());
    OK(OPEN_AS(s->options, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlGetPhysId(ni, &id));
    ptl_pid_t pid = id.phys.pid;
    CHECK(pid >= 1 && pid <= PTL_PID_MAX && pid != PTL_PID_ANY);
    CHECK(id.phys.nid != PTL_NID_ANY);
    OK(PtlNIFini(ni));
    OK(OPEN_AS(s->options, pid, NULL, NULL, &ni));
    OK(PtlGetPhysId(ni, &id));
    CHECK_EQ(id.phys.pid, pid);
}

CASE(ni_pid_of_open_one, NO_KIND, BARE,
     "3.6.2: a second kind has the pid of the first; asking for another one is an error")
{
    ptl_handle_ni_t first, second;
    ptl_process_t id;
    OK(PtlInit());
    OK(OPEN_AS(PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &first));
    OK(PtlGetPhysId(first, &id));
    unsigned other = PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL;
    INVALID(OPEN_AS(other, id.phys.pid == 1 ? 2 : id.phys.pid - 1, NULL, NULL, &second));
    OK(OPEN_AS(other, id.phys.pid, NULL, NULL, &second));
}

static void take_the_pid(void *argument)
{
    const ptl_pid_t *pid = argument;
    ptl_handle_ni_t ni;
    OK(PtlInit());
    CODE(OPEN_AS(PTL_NI_MATCHING | PTL_NI_PHYSICAL, *pid, NULL, NULL, &ni), PTL_PID_IN_USE);
    OK(OPEN_AS(PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni));
    ptl_process_t id;
    OK(PtlGetPhysId(ni, &id));
    CHECK(id.phys.pid != *pid);
}

CASE(ni_pid_in_use, NO_KIND, BARE,
     "3.6.2: the pid of another process is refused with PTL_PID_IN_USE; PTL_PID_ANY never gives it")
{
    NEEDS_FORK_WITH_THREADS();
    rule_open(s, NULL);
    ptl_process_t id;
    OK(PtlGetPhysId(s->ni, &id));
    CHECK_EQ(suite_child(take_the_pid, &id.phys.pid), 0);
}

static void after_fork(void *argument)
{
    const ptl_handle_ni_t *ni = argument;
    ptl_process_t id;
    CODE(PtlGetPhysId(*ni, &id), PTL_NO_INIT);
    CODE(PtlNIFini(*ni), PTL_NO_INIT);
    PtlFini();
    PtlAbort();
}

CASE(init_fork, NO_KIND, BARE, "3.5: a forked child has none of its parent's interfaces")
{
    NEEDS_FORK_WITH_THREADS();
    rule_open(s, NULL);
    CHECK_EQ(suite_child(after_fork, &s->ni), 0);
    ptl_process_t id;
    OK(PtlGetPhysId(s->ni, &id));
}

CASE(ni_handle, ALL_KINDS, SELF, "3.6.5: PtlNIHandle gives the interface of every kind of object")
{
    ptl_handle_me_t entry = suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT, NULL);
    ptl_handle_any_t object[] = {s->ni, s->eq, s->ct, suite_md(s, NULL, 0, 0), entry};
    for (unsigned i = 0; i < sizeof(object) / sizeof(object[0]); i++) {
        ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
        OK(PtlNIHandle(object[i], &ni));
        CHECK_EQ(ni, s->ni);
    }
}

CASE(handle_is_equal, ALL_KINDS, SELF,
     "3.18: PtlHandleIsEqual compares any two handles, PTL_INVALID_HANDLE included")
{
    CHECK(PtlHandleIsEqual(s->ni, s->ni) != 0);
    CHECK(PtlHandleIsEqual(s->eq, s->eq) != 0);
    CHECK(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE) != 0);
    CHECK(PtlHandleIsEqual(s->eq, s->mdeq) == 0);
    CHECK(PtlHandleIsEqual(s->eq, s->ct) == 0);
    CHECK(PtlHandleIsEqual(s->ni, PTL_INVALID_HANDLE) == 0);
    CHECK(PtlHandleIsEqual(PTL_EQ_NONE, PTL_CT_NONE) == 0);
}

static void same_calls(struct scene *s)
{
    ptl_handle_me_t entry = suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT, NULL);
    ptl_handle_any_t all[] = {s->ni,          s->ct,       s->eq, suite_md(s, NULL, 0, 0),
                              suite_eq(s, 4), suite_ct(s), entry};
    int count = sizeof(all) / sizeof(all[0]);
    for (int i = 0; i < count; i++) {
        crowd_show(i, all[i]);
    }
    crowd_step(s);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(crowd_look(0, i), all[i]);
    }
}

CASE(handle_values, ALL_KINDS, BARE,
     "3.3: processes that make the same calls in the same order get the same handle values")
{
    crowd_run(s, 3, 0, 0, NULL, same_calls);
}

/* ---- Limits ---------------------------------------------------------------- */

static void check_floors(const ptl_ni_limits_t *l)
{
    CHECK(l->max_entries >= 1 && l->max_mds >= 1 && l->max_cts >= 1 && l->max_eqs >= 1);
    CHECK(l->max_list_size >= 1 && l->max_triggered_ops >= 1 && l->max_iovecs >= 0);
    CHECK(l->max_unexpected_headers >= 0 && l->max_msg_size >= 1);
    CHECK(l->max_pt_index >= 63);
    CHECK(l->max_waw_ordered_size >= 64);
    CHECK(l->max_war_ordered_size >= 8);
    CHECK(l->max_atomic_size >= 32 && l->max_fetch_atomic_size >= 32);
    CHECK_EQ(l->features &
                 ~(PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS),
             0);
}

CASE(limits_default, ALL_KINDS, BARE,
     "3.6.1: without wishes, an interface offers at least the floors of the specification, and "
     "values of 32 bytes for volatile puts")
{
    rule_open(s, NULL);
    check_floors(&s->limits);
    CHECK(s->limits.max_volatile_size >= 32);
}

CASE(limits_huge, ALL_KINDS, BARE, "3.6.1: wishes above all bounds are lowered, never refused")
{
    ptl_ni_limits_t d = {INT_MAX,      INT_MAX,      INT_MAX,      INT_MAX,
                         INT_MAX,      INT_MAX,      INT_MAX,      INT_MAX,
                         INT_MAX,      PTL_SIZE_MAX, PTL_SIZE_MAX, PTL_SIZE_MAX,
                         PTL_SIZE_MAX, PTL_SIZE_MAX, PTL_SIZE_MAX, UINT_MAX};
    rule_open(s, &d);
    check_floors(&s->limits);
    ptl_pt_index_t index;
    OK(PtlPTAlloc(s->ni, 0, s->eq, (ptl_pt_index_t)s->limits.max_pt_index, &index));
    INVALID(PtlPTAlloc(s->ni, 0, s->eq, (ptl_pt_index_t)s->limits.max_pt_index + 1, &index));
}

CASE(limits_small, ALL_KINDS, BARE,
     "3.6.1: wishes of nothing, or less, are raised to what an interface must have")
{
    ptl_ni_limits_t wish[2] = {
        {0}, {INT_MIN, -1, INT_MIN, -1, -2, INT_MIN, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0}};
    OK(PtlInit());
    for (int i = 0; i < 2; i++) {
        OK(OPEN_AS(s->options, PTL_PID_ANY, &wish[i], &s->limits, &s->ni));
        check_floors(&s->limits);
        OK(PtlNIFini(s->ni));
    }
}

CASE(
    limits_are_kept, ALL_KINDS, BARE,
    "3.6.1: as many objects as a limit says can be made, then PTL_NO_SPACE; a freed one makes room")
{
    enum { EQS = 3, CTS = 4, MDS = 5 };
    ptl_ni_limits_t d = rule_some_limits();
    d.max_eqs = EQS;
    d.max_cts = CTS;
    d.max_mds = MDS;
    ptl_handle_any_t eq[EQS + 1], ct[CTS + 1], md[MDS + 1];
    ptl_md_t bind = {NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
    OK(PtlInit());
    OK(OPEN_AS(s->options, PTL_PID_ANY, &d, &s->limits, &s->ni));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i <= EQS; i++) {
            CODE(PtlEQAlloc(s->ni, 1, &eq[i]), i < EQS ? PTL_OK : PTL_NO_SPACE);
        }
        for (int i = 0; i <= CTS; i++) {
            CODE(PtlCTAlloc(s->ni, &ct[i]), i < CTS ? PTL_OK : PTL_NO_SPACE);
        }
        for (int i = 0; i <= MDS; i++) {
            CODE(PtlMDBind(s->ni, &bind, &md[i]), i < MDS ? PTL_OK : PTL_NO_SPACE);
        }
        for (int i = 0; i < EQS; i++) {
            OK(PtlEQFree(eq[i]));
        }
        for (int i = 0; i < CTS; i++) {
            OK(PtlCTFree(ct[i]));
        }
        for (int i = 0; i < MDS; i++) {
            OK(PtlMDRelease(md[i]));
        }
    }
}

/* ---- Maps and identities --------------------------------------------------- */

CASE(map_is_kept, LOGICAL_KINDS, BARE,
     "3.6.6: a map that was set stays: PtlSetMap gives PTL_IGNORED, PtlGetMap the first one")
{
    ptl_process_t id, map[3], got[5];
    ptl_size_t size = 0;
    OK(PtlInit());
    OK(OPEN_AS(s->options, PTL_PID_ANY, NULL, NULL, &s->ni));
    OK(PtlGetPhysId(s->ni, &id));
    CODE(PtlGetMap(s->ni, 5, got, &size), PTL_NO_SPACE);
    OK(PtlGetId(s->ni, &got[0]));
    CHECK_EQ(got[0].rank, PTL_RANK_ANY);
    map[0] = map[1] = map[2] = id;
    map[0].phys.pid = id.phys.pid > 9 ? id.phys.pid - 7 : id.phys.pid + 7;
    map[2].phys.pid = map[0].phys.pid + 1;
    OK(PtlSetMap(s->ni, 3, map));
    CODE(PtlSetMap(s->ni, 1, &id), PTL_IGNORED);
    memset(got, 0, sizeof(got));
    OK(PtlGetMap(s->ni, 5, got, &size));
    CHECK_EQ(size, 3);
    CHECK(memcmp(got, map, sizeof(map)) == 0);
    CHECK_EQ(got[3].phys.pid, 0);
    OK(PtlGetId(s->ni, &got[0]));
    CHECK_EQ(got[0].rank, 1);
}

CASE(map_short_copy, LOGICAL_KINDS, SELF | PAIR,
     "3.6.6: PtlGetMap copies no more than there is room for and tells the true size")
{
    ptl_process_t got[2] = {{.phys = {0, 0}}, {.phys = {0, 0}}};
    ptl_size_t size = 0;
    OK(PtlGetMap(s->ni, 1, got, &size));
    CHECK_EQ(size, s->map_size);
    CHECK_EQ(got[0].phys.nid, s->phys[0].phys.nid);
    CHECK_EQ(got[0].phys.pid, s->phys[0].phys.pid);
    CHECK_EQ(got[1].phys.pid, 0);
    size = 0;
    OK(PtlGetMap(s->ni, 0, NULL, &size));
    CHECK_EQ(size, s->map_size);
}

CASE(map_without_self, LOGICAL_KINDS, BARE,
     "3.6.6: a map must have this process; after a refused one a good one is taken")
{
    ptl_process_t id, other;
    OK(PtlInit());
    OK(OPEN_AS(s->options, PTL_PID_ANY, NULL, NULL, &s->ni));
    OK(PtlGetPhysId(s->ni, &id));
    other = id;
    other.phys.pid = id.phys.pid == 1 ? 2 : id.phys.pid - 1;
    INVALID(PtlSetMap(s->ni, 1, &other));
    other.phys.pid = 0;
    ptl_process_t both[2] = {id, other};
    INVALID(PtlSetMap(s->ni, 2, both));
    INVALID(PtlSetMap(s->ni, 0, both));
    OK(PtlSetMap(s->ni, 1, &id));
    OK(PtlGetId(s->ni, &other));
    CHECK_EQ(other.rank, 0);
}

CASE(map_physical, PHYSICAL_KINDS, SELF, "3.6.6: a physical interface has no map")
{
    ptl_process_t id;
    ptl_size_t size;
    OK(PtlGetPhysId(s->ni, &id));
    INVALID(PtlSetMap(s->ni, 1, &id));
    INVALID(PtlGetMap(s->ni, 1, &id, &size));
}

CASE(map_before_sending, LOGICAL_KINDS, BARE,
     "3.6.6: without a map a logical interface has no targets")
{
    OK(PtlInit());
    OK(OPEN_AS(s->options, PTL_PID_ANY, NULL, NULL, &s->ni));
    ptl_md_t bind = {NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_md_t md;
    OK(PtlMDBind(s->ni, &bind, &md));
    ptl_process_t zero = {.rank = 0};
    INVALID(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, zero, 0, 0, 0, NULL, 0));
}

CASE(identity, ALL_KINDS, SELF | PAIR,
     "3.8: PtlGetId gives what the peers call this process: rank, or nid and pid")
{
    ptl_process_t id = {.phys = {0, 0}}, phys = {.phys = {0, 0}};
    OK(PtlGetId(s->ni, &id));
    OK(PtlGetPhysId(s->ni, &phys));
    CHECK_EQ(phys.phys.nid, s->phys[s->rank].phys.nid);
    CHECK_EQ(phys.phys.pid, s->phys[s->rank].phys.pid);
    CHECK_EQ(id.rank, s->logical ? (ptl_rank_t)s->rank : phys.phys.nid);
    CHECK(s->logical || id.phys.pid == phys.phys.pid);
}

CASE(identity_in_events, ALL_KINDS, SELF | PAIR,
     "3.9: the events of a message have its initiator's id and the uid of its PtlGetUid")
{
    suite_show(s, 0, s->uid);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, NULL, 0), 0, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .uid = IS(suite_look(s, 0, 0)), .initiator = &s->from);
    }
}
