/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles: what every function does with a handle that is none, stale, of the
 * wrong kind or of another interface; and with null pointers. */
#include "port.h"

#include <string.h>

enum kind { NI, EQ, CT, MD, ME, LE, KINDS };

/* One live object of each kind: `mine` on a matching and `plain` on a
 * non-matching interface. */
static struct port mine, plain;
static ptl_handle_any_t live[KINDS];
static ptl_handle_any_t plain_live[KINDS];
static unsigned char memory[4096];

static ptl_process_t someone(void)
{
    return mine.id[0];
}

/* A call with one handle, everything else being right. */
struct probe {
    const char *name;
    enum kind kind;
    int (*call)(ptl_handle_any_t h);
};

static int ni_status(ptl_handle_any_t h)
{
    ptl_sr_value_t value;
    return PtlNIStatus(h, PTL_SR_DROP_COUNT, &value);
}

static int get_id(ptl_handle_any_t h)
{
    ptl_process_t id;
    return PtlGetId(h, &id);
}

static int get_phys_id(ptl_handle_any_t h)
{
    ptl_process_t id;
    return PtlGetPhysId(h, &id);
}

static int get_uid(ptl_handle_any_t h)
{
    ptl_uid_t uid;
    return PtlGetUid(h, &uid);
}

static int set_map(ptl_handle_any_t h)
{
    return PtlSetMap(h, 1, mine.phys);
}

static int get_map(ptl_handle_any_t h)
{
    ptl_size_t n;
    return PtlGetMap(h, 0, NULL, &n);
}

static int pt_alloc(ptl_handle_any_t h)
{
    ptl_pt_index_t pt;
    return PtlPTAlloc(h, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt);
}

static int pt_free(ptl_handle_any_t h)
{
    return PtlPTFree(h, mine.pt);
}

static int pt_enable(ptl_handle_any_t h)
{
    return PtlPTEnable(h, mine.pt);
}

static int pt_disable(ptl_handle_any_t h)
{
    return PtlPTDisable(h, mine.pt);
}

static int md_bind(ptl_handle_any_t h)
{
    ptl_md_t md = {memory, sizeof(memory), 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_md_t handle;
    return PtlMDBind(h, &md, &handle);
}

static int me_append(ptl_handle_any_t h)
{
    ptl_me_t me = port_entry(&mine, memory, sizeof(memory), PTL_ME_OP_PUT);
    ptl_handle_me_t handle;
    return PtlMEAppend(h, mine.pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
}

static int le_append(ptl_handle_any_t h)
{
    ptl_le_t le = {memory, sizeof(memory), PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    ptl_handle_le_t handle;
    return PtlLEAppend(h, plain.pt, &le, PTL_PRIORITY_LIST, NULL, &handle);
}

static int eq_alloc(ptl_handle_any_t h)
{
    ptl_handle_eq_t eq;
    return PtlEQAlloc(h, 8, &eq);
}

static int eq_get(ptl_handle_any_t h)
{
    ptl_event_t event;
    return PtlEQGet(h, &event);
}

static int eq_wait(ptl_handle_any_t h)
{
    ptl_event_t event;
    return PtlEQWait(h, &event);
}

static int eq_poll(ptl_handle_any_t h)
{
    ptl_handle_eq_t eqs[2] = {mine.eq, h};
    ptl_event_t event;
    unsigned which;
    return PtlEQPoll(eqs, 2, 0, &event, &which);
}

static int ct_alloc(ptl_handle_any_t h)
{
    ptl_handle_ct_t ct;
    return PtlCTAlloc(h, &ct);
}

static int ct_get(ptl_handle_any_t h)
{
    ptl_ct_event_t value;
    return PtlCTGet(h, &value);
}

static int ct_wait(ptl_handle_any_t h)
{
    ptl_ct_event_t value;
    return PtlCTWait(h, 0, &value);
}

static int ct_poll(ptl_handle_any_t h)
{
    ptl_handle_ct_t cts[2] = {live[CT], h};
    ptl_size_t tests[2] = {1u << 30, 1u << 30};
    ptl_ct_event_t value;
    unsigned which;
    return PtlCTPoll(cts, tests, 2, 0, &value, &which);
}

static int ct_set(ptl_handle_any_t h)
{
    ptl_ct_event_t value = {0, 0};
    return PtlCTSet(h, value);
}

static int ct_inc(ptl_handle_any_t h)
{
    ptl_ct_event_t value = {1, 0};
    return PtlCTInc(h, value);
}

static int put(ptl_handle_any_t h)
{
    return PtlPut(h, 0, 8, PTL_NO_ACK_REQ, someone(), 63, 0, 0, NULL, 0);
}

static int get(ptl_handle_any_t h)
{
    return PtlGet(h, 0, 8, someone(), 63, 0, 0, NULL);
}

static int triggered_put_md(ptl_handle_any_t h)
{
    return PtlTriggeredPut(h, 0, 8, PTL_NO_ACK_REQ, someone(), 63, 0, 0, NULL, 0, live[CT],
                           1u << 30);
}

static int triggered_put_ct(ptl_handle_any_t h)
{
    return PtlTriggeredPut(live[MD], 0, 8, PTL_NO_ACK_REQ, someone(), 63, 0, 0, NULL, 0, h,
                           1u << 30);
}

static int triggered_inc_ct(ptl_handle_any_t h)
{
    ptl_ct_event_t one = {1, 0};
    return PtlTriggeredCTInc(h, one, live[CT], 1u << 30);
}

static int triggered_inc_trigger(ptl_handle_any_t h)
{
    ptl_ct_event_t one = {1, 0};
    return PtlTriggeredCTInc(live[CT], one, h, 1u << 30);
}

/* Handles that are members of a structure. */
static int md_eq(ptl_handle_any_t h)
{
    ptl_md_t md = {memory, sizeof(memory), 0, h, PTL_CT_NONE};
    ptl_handle_md_t handle;
    return PtlMDBind(mine.ni, &md, &handle);
}

static int md_ct(ptl_handle_any_t h)
{
    ptl_md_t md = {memory, sizeof(memory), PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, h};
    ptl_handle_md_t handle;
    return PtlMDBind(mine.ni, &md, &handle);
}

static int pt_eq(ptl_handle_any_t h)
{
    ptl_pt_index_t pt;
    return PtlPTAlloc(mine.ni, 0, h, PTL_PT_ANY, &pt);
}

static int me_ct(ptl_handle_any_t h)
{
    ptl_me_t me = port_entry(&mine, memory, sizeof(memory), PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    ptl_handle_me_t handle;
    me.ct_handle = h;
    return PtlMEAppend(mine.ni, mine.pt, &me, PTL_PRIORITY_LIST, NULL, &handle);
}

static int ni_fini(ptl_handle_any_t h)
{
    return PtlNIFini(h);
}
static int md_release(ptl_handle_any_t h)
{
    return PtlMDRelease(h);
}
static int me_unlink(ptl_handle_any_t h)
{
    return PtlMEUnlink(h);
}
static int le_unlink(ptl_handle_any_t h)
{
    return PtlLEUnlink(h);
}
static int eq_free(ptl_handle_any_t h)
{
    return PtlEQFree(h);
}
static int ct_free(ptl_handle_any_t h)
{
    return PtlCTFree(h);
}

static const struct probe probes[] = {
    {"PtlNIFini", NI, ni_fini},
    {"PtlNIStatus", NI, ni_status},
    {"PtlGetId", NI, get_id},
    {"PtlGetPhysId", NI, get_phys_id},
    {"PtlGetUid", NI, get_uid},
    {"PtlSetMap", NI, set_map},
    {"PtlGetMap", NI, get_map},
    {"PtlPTAlloc", NI, pt_alloc},
    {"PtlPTAlloc, eq", EQ, pt_eq},
    {"PtlPTFree", NI, pt_free},
    {"PtlPTEnable", NI, pt_enable},
    {"PtlPTDisable", NI, pt_disable},
    {"PtlMDBind", NI, md_bind},
    {"PtlMDBind, eq", EQ, md_eq},
    {"PtlMDBind, ct", CT, md_ct},
    {"PtlMDRelease", MD, md_release},
    {"PtlMEAppend", NI, me_append},
    {"PtlMEAppend, ct", CT, me_ct},
    {"PtlMEUnlink", ME, me_unlink},
    {"PtlLEAppend", NI, le_append},
    {"PtlLEUnlink", LE, le_unlink},
    {"PtlEQAlloc", NI, eq_alloc},
    {"PtlEQFree", EQ, eq_free},
    {"PtlEQGet", EQ, eq_get},
    {"PtlEQWait", EQ, eq_wait},
    {"PtlEQPoll", EQ, eq_poll},
    {"PtlCTAlloc", NI, ct_alloc},
    {"PtlCTFree", CT, ct_free},
    {"PtlCTGet", CT, ct_get},
    {"PtlCTWait", CT, ct_wait},
    {"PtlCTPoll", CT, ct_poll},
    {"PtlCTSet", CT, ct_set},
    {"PtlCTInc", CT, ct_inc},
    {"PtlPut", MD, put},
    {"PtlGet", MD, get},
    {"PtlTriggeredPut, md", MD, triggered_put_md},
    {"PtlTriggeredPut, trigger", CT, triggered_put_ct},
    {"PtlTriggeredCTInc, ct", CT, triggered_inc_ct},
    {"PtlTriggeredCTInc, trigger", CT, triggered_inc_trigger},
};
enum { PROBES = sizeof(probes) / sizeof(probes[0]) };

static void make_objects(struct port *p, ptl_handle_any_t *h)
{
    h[NI] = p->ni;
    h[EQ] = p->eq;
    h[CT] = port_ct(p);
    h[MD] = port_md(p, memory, sizeof(memory), 0, PTL_CT_NONE);
    h[port_matching(p) ? ME : LE] = port_target(p, memory, 64, PTL_ME_OP_PUT, NULL);
    h[port_matching(p) ? LE : ME] = PTL_INVALID_HANDLE;
}

/* Opens both interfaces in a case of one process. */
static void open_both(void)
{
    port_open(&mine, KIND_MP, 0, 1);
    port_open(&plain, KIND_NP, 0, 1);
    make_objects(&mine, live);
    make_objects(&plain, plain_live);
}

static void close_both(void)
{
    port_close(&plain);
    port_close(&mine);
}

/* PTL_EQ_NONE and PTL_CT_NONE are legal members of structures. */
static bool is_legal_none(const struct probe *p, ptl_handle_any_t h)
{
    if (p->call == md_eq || p->call == pt_eq) {
        return h == PTL_EQ_NONE;
    }
    return (p->call == md_ct || p->call == me_ct) && h == PTL_CT_NONE;
}

static void refuses(const struct probe *p, ptl_handle_any_t h, const char *what)
{
    ptest_seen(__FILE__, __LINE__);
    if (is_legal_none(p, h)) {
        return;
    }
    int code = p->call(h);
    if (code != PTL_ARG_INVALID) {
        FAIL("%s with %s (0x%x) gives %d, not PTL_ARG_INVALID", p->name, what, h, code);
    }
}

static bool is_live(ptl_handle_any_t h)
{
    for (int i = 0; i < KINDS; i++) {
        if (h == live[i] || h == plain_live[i]) {
            return true;
        }
    }
    return h == mine.mdeq || h == plain.mdeq;
}

PTEST(bad_handles, 1)
{
    open_both();
    for (int i = 0; i < PROBES; i++) {
        uint64_t seed = 1;
        refuses(&probes[i], PTL_INVALID_HANDLE, "PTL_INVALID_HANDLE");
        refuses(&probes[i], PTL_EQ_NONE, "PTL_EQ_NONE");
        refuses(&probes[i], PTL_CT_NONE, "PTL_CT_NONE");
        for (int n = 0; n < 200; n++) {
            ptl_handle_any_t h = (ptl_handle_any_t)splitmix(&seed);
            if (!is_live(h)) {
                refuses(&probes[i], h, "a random handle");
            }
        }
        /* near misses: one bit of a live handle is wrong */
        for (int bit = 0; bit < 32; bit++) {
            ptl_handle_any_t h = live[probes[i].kind] ^ (1u << bit);
            if (!is_live(h)) {
                refuses(&probes[i], h, "a live handle with a wrong bit");
            }
        }
    }
    close_both();
}

PTEST(wrong_kind, 1)
{
    static const char *const names[] = {"an NI", "an EQ", "a CT", "an MD", "an ME", "an LE"};
    open_both();
    for (int i = 0; i < PROBES; i++) {
        for (int k = 0; k < KINDS; k++) {
            ptl_handle_any_t h = k == LE ? plain_live[LE] : live[k];
            if (k != (int)probes[i].kind) {
                refuses(&probes[i], h, names[k]);
            }
        }
    }
    close_both();
}

PTEST(stale_handles, 1)
{
    open_both();
    ptl_handle_any_t stale[KINDS];
    OK(PtlEQAlloc(mine.ni, 8, &stale[EQ]));
    stale[CT] = port_ct(&mine);
    stale[MD] = port_md(&mine, memory, sizeof(memory), 0, PTL_CT_NONE);
    stale[ME] = port_target(&mine, memory, 64, PTL_ME_OP_PUT, NULL);
    stale[LE] = port_target(&plain, memory, 64, PTL_ME_OP_PUT, NULL);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_ML, PTL_PID_ANY, NULL, NULL, &stale[NI]));
    OK(PtlEQFree(stale[EQ]));
    OK(PtlCTFree(stale[CT]));
    OK(PtlMDRelease(stale[MD]));
    OK(PtlMEUnlink(stale[ME]));
    OK(PtlLEUnlink(stale[LE]));
    OK(PtlNIFini(stale[NI]));
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < PROBES; i++) {
            refuses(&probes[i], stale[probes[i].kind], "a stale handle");
        }
        /* and once more when their places are taken again */
        ptl_handle_eq_t eq;
        OK(PtlEQAlloc(mine.ni, 8, &eq));
        make_objects(&mine, live);
        make_objects(&plain, plain_live);
    }
    close_both();
}

PTEST(wrong_interface, 1)
{
    ptl_event_t event;
    ptl_ct_event_t value, one = {1, 0};
    ptl_size_t tests[2] = {1, 1};
    ptl_handle_any_t h;
    unsigned which;
    open_both();
    for (int i = 0; i < PROBES; i++) {
        if (probes[i].call == md_eq || probes[i].call == pt_eq) {
            refuses(&probes[i], plain.eq, "an EQ of another interface");
        }
        if (probes[i].call == md_ct || probes[i].call == me_ct ||
            probes[i].call == triggered_put_ct || probes[i].call == triggered_inc_ct ||
            probes[i].call == triggered_inc_trigger) {
            refuses(&probes[i], plain_live[CT], "a CT of another interface");
        }
        if (probes[i].call == triggered_put_md) {
            refuses(&probes[i], plain_live[MD], "an MD of another interface");
        }
    }
    ptl_handle_eq_t eqs[2] = {mine.eq, plain.eq};
    INVALID(PtlEQPoll(eqs, 2, 0, &event, &which));
    ptl_handle_ct_t cts[2] = {live[CT], plain_live[CT]};
    INVALID(PtlCTPoll(cts, tests, 2, 0, &value, &which));
    INVALID(PtlTriggeredCTInc(live[CT], one, plain_live[CT], 1));

    ptl_me_t me = port_entry(&mine, memory, 64, PTL_ME_OP_PUT);
    ptl_le_t le = {memory, 64, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    INVALID(PtlMEAppend(plain.ni, plain.pt, &me, PTL_PRIORITY_LIST, NULL, &h));
    INVALID(PtlLEAppend(mine.ni, mine.pt, &le, PTL_PRIORITY_LIST, NULL, &h));
    close_both();
}

PTEST(ni_of_each_kind, 1)
{
    ptl_handle_ni_t ni;
    open_both();
    for (int k = 0; k < KINDS; k++) {
        if (k != LE) {
            OK(PtlNIHandle(live[k], &ni));
            CHECK_EQ(ni, mine.ni);
        }
        if (k != ME) {
            OK(PtlNIHandle(plain_live[k], &ni));
            CHECK_EQ(ni, plain.ni);
        }
    }
    INVALID(PtlNIHandle(PTL_INVALID_HANDLE, &ni));
    INVALID(PtlNIHandle(PTL_EQ_NONE, &ni));
    INVALID(PtlNIHandle(PTL_CT_NONE, &ni));
    INVALID(PtlNIHandle(mine.ni, NULL));
    OK(PtlCTFree(live[CT]));
    INVALID(PtlNIHandle(live[CT], &ni));
    close_both();
}

PTEST(handle_is_equal, 1)
{
    CHECK(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE) != 0);
    open_both();
    for (int i = 0; i < KINDS; i++) {
        for (int k = 0; k < KINDS; k++) {
            if (i != LE && k != LE) {
                CHECK_EQ(PtlHandleIsEqual(live[i], live[k]) != 0, i == k);
            }
        }
        if (i != LE) {
            CHECK_EQ(PtlHandleIsEqual(live[i], PTL_INVALID_HANDLE), 0);
        }
    }
    CHECK_EQ(PtlHandleIsEqual(live[MD], plain_live[MD]), 0);
    close_both();
}

PTEST(equal_calls_equal_handles, 3)
{
    ptl_handle_any_t all[PTEST_SLOTS - 2];
    int n = 0;
    ptest_sleep_ms(rank * 5); /* the values must not depend on who comes first */
    OK(PtlInit());
    struct port p = {.rank = rank, .size = size, .kind = KIND_ML};
    OK(PtlNIInit(PTL_IFACE_DEFAULT, p.kind, PTL_PID_ANY, NULL, NULL, &p.ni));
    all[n++] = p.ni;
    port_ids(&p);
    for (int i = 0; i < 5; i++) {
        OK(PtlEQAlloc(p.ni, 64, &p.mdeq));
        OK(PtlPTAlloc(p.ni, 0, p.mdeq, PTL_PT_ANY, &p.pt));
        CHECK_EQ(p.pt, i);
        all[n++] = p.mdeq;
        all[n++] = port_ct(&p);
        all[n++] = port_md(&p, memory, sizeof(memory), 0, PTL_CT_NONE);
        all[n++] = port_target(&p, memory, sizeof(memory), PTL_ME_OP_PUT, NULL);
        if (i == 2) {
            port_unlink(&p, all[n - 1]);
            port_release(all[n - 2]);
            OK(PtlCTFree(all[n - 3]));
        }
    }
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_NP, PTL_PID_ANY, NULL, NULL, &p.ni));
    all[n++] = p.ni;
    for (int i = 0; i < n; i++) {
        ptest_show(i, all[i]);
    }
    BARRIER();
    for (int i = 0; i < n; i++) {
        CHECK_EQ(all[i], ptest_look(0, i));
        for (int k = 0; k < i; k++) {
            /* the three freed ones may come back later, the others are distinct */
            CHECK(all[i] != all[k] || (k >= 10 && k <= 12));
        }
    }
    BARRIER();
    PtlFini();
}

PTEST(null_pointers, 1)
{
    ptl_size_t test = 1;
    ptl_event_t event;
    ptl_ct_event_t value;
    ptl_me_t me;
    ptl_le_t le = {memory, 64, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    ptl_md_t md = {memory, 64, 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_any_t h;
    unsigned which;
    open_both();
    me = port_entry(&mine, memory, 64, PTL_ME_OP_PUT);
    INVALID(PtlNIStatus(mine.ni, PTL_SR_DROP_COUNT, NULL));
    INVALID(PtlNIHandle(mine.eq, NULL));
    INVALID(PtlGetId(mine.ni, NULL));
    INVALID(PtlGetPhysId(mine.ni, NULL));
    INVALID(PtlGetUid(mine.ni, NULL));
    INVALID(PtlPTAlloc(mine.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, NULL));
    INVALID(PtlMDBind(mine.ni, NULL, &h));
    INVALID(PtlMDBind(mine.ni, &md, NULL));
    INVALID(PtlMEAppend(mine.ni, mine.pt, NULL, PTL_PRIORITY_LIST, NULL, &h));
    INVALID(PtlMEAppend(mine.ni, mine.pt, &me, PTL_PRIORITY_LIST, NULL, NULL));
    INVALID(PtlLEAppend(plain.ni, plain.pt, NULL, PTL_PRIORITY_LIST, NULL, &h));
    INVALID(PtlLEAppend(plain.ni, plain.pt, &le, PTL_PRIORITY_LIST, NULL, NULL));
    INVALID(PtlEQAlloc(mine.ni, 8, NULL));
    INVALID(PtlEQGet(mine.eq, NULL));
    INVALID(PtlEQWait(mine.eq, NULL));
    INVALID(PtlEQPoll(NULL, 1, 0, &event, &which));
    INVALID(PtlEQPoll(&mine.eq, 1, 0, NULL, &which));
    INVALID(PtlEQPoll(&mine.eq, 1, 0, &event, NULL));
    INVALID(PtlEQPoll(&mine.eq, 0, 0, &event, &which));
    INVALID(PtlCTAlloc(mine.ni, NULL));
    INVALID(PtlCTGet(live[CT], NULL));
    INVALID(PtlCTWait(live[CT], 0, NULL));
    INVALID(PtlCTPoll(NULL, &test, 1, 0, &value, &which));
    INVALID(PtlCTPoll(&live[CT], NULL, 1, 0, &value, &which));
    INVALID(PtlCTPoll(&live[CT], &test, 1, 0, NULL, &which));
    INVALID(PtlCTPoll(&live[CT], &test, 1, 0, &value, NULL));
    INVALID(PtlCTPoll(&live[CT], &test, 0, 0, &value, &which));
    INVALID(PtlNIStatus(mine.ni, PTL_SR_LAST, &(ptl_sr_value_t){0}));
    INVALID(PtlNIStatus(mine.ni, (ptl_sr_index_t)77, &(ptl_sr_value_t){0}));
    close_both();
}
