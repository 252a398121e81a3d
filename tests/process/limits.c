/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of an interface: what PtlNIInit makes of wishes, and that the
 * numbers it gives are those that hold. */
#include "port.h"

#include <limits.h>
#include <string.h>

static unsigned char memory[64];

static void fill_limits(ptl_ni_limits_t *l, int count, ptl_size_t bytes)
{
    memset(l, 0, sizeof(*l));
    l->max_entries = l->max_unexpected_headers = l->max_mds = l->max_cts = l->max_eqs = count;
    l->max_pt_index = l->max_iovecs = l->max_list_size = l->max_triggered_ops = count;
    l->max_msg_size = l->max_atomic_size = l->max_fetch_atomic_size = bytes;
    l->max_waw_ordered_size = l->max_war_ordered_size = l->max_volatile_size = bytes;
    l->features = (unsigned)count;
}

static void check_floors(const ptl_ni_limits_t *l)
{
    CHECK(l->max_pt_index >= 63);
    CHECK(l->max_waw_ordered_size >= 64);
    CHECK(l->max_war_ordered_size >= 8);
    CHECK(l->max_msg_size >= 1);
    CHECK(l->max_entries >= 1 && l->max_mds >= 1 && l->max_cts >= 1 && l->max_eqs >= 1);
    CHECK(l->max_list_size >= 1 && l->max_triggered_ops >= 0);
    CHECK(l->max_unexpected_headers >= 0 && l->max_iovecs >= 0);
    CHECK(l->max_atomic_size >= 32 && l->max_fetch_atomic_size >= 32);
}

PTEST(limits_are_clamped, 1)
{
    static const int counts[] = {INT_MAX, 0, -1, INT_MIN, 1};
    static const ptl_size_t bytes[] = {PTL_SIZE_MAX, 0, PTL_SIZE_MAX, 0, 1};
    for (int i = 0; i < 5; i++) {
        ptl_ni_limits_t desired;
        struct port p = {.size = 1, .kind = KIND_MP};
        fill_limits(&desired, counts[i], bytes[i]);
        OK(PtlInit());
        OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, &desired, &p.limits, &p.ni));
        check_floors(&p.limits);
        OK(PtlEQAlloc(p.ni, 1, &p.eq));
        OK(PtlPTAlloc(p.ni, 0, p.eq, 63, &p.pt));
        OK(PtlNIFini(p.ni));
        PtlFini();
    }
}

PTEST(default_limits, 1)
{
    ptl_ni_limits_t desired, limits;
    ptl_handle_ni_t ni;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_ML, PTL_PID_ANY, NULL, &limits, &ni));
    check_floors(&limits);
    CHECK(limits.max_entries >= 1024 && limits.max_mds >= 1024 && limits.max_cts >= 1024);
    CHECK(limits.max_eqs >= 64 && limits.max_list_size >= 1024);
    CHECK(limits.max_triggered_ops >= 1024);
    CHECK(limits.max_msg_size >= (ptl_size_t)1 << 30);
    OK(PtlNIFini(ni));
    /* wishes within what the library can hold are granted */
    fill_limits(&desired, 100, 65536);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_ML, PTL_PID_ANY, &desired, &limits, &ni));
    check_floors(&limits);
    CHECK(limits.max_entries >= 100 && limits.max_mds >= 100 && limits.max_cts >= 100);
    CHECK(limits.max_eqs >= 100 && limits.max_list_size >= 100 && limits.max_pt_index >= 100);
    CHECK(limits.max_triggered_ops >= 100 && limits.max_msg_size >= 65536);
    OK(PtlNIFini(ni));
    PtlFini();
}

/* As many objects as the limits say, then a refusal; a freed one leaves room. */
PTEST(limits_hold, 1)
{
    ptl_ni_limits_t desired = {.max_entries = 20,
                               .max_mds = 10,
                               .max_cts = 10,
                               .max_eqs = 10,
                               .max_pt_index = 63,
                               .max_list_size = 20,
                               .max_triggered_ops = 10,
                               .max_msg_size = 1 << 20,
                               .max_waw_ordered_size = 64,
                               .max_war_ordered_size = 8,
                               .max_volatile_size = 64};
    ptl_handle_any_t h, first = PTL_INVALID_HANDLE;
    ptl_md_t md = {memory, sizeof(memory), 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_pt_index_t pt;
    struct port p;
    int n, code;
    port_open_with(&p, PTL_IFACE_DEFAULT, KIND_MP, rank, size, &desired);
    for (n = 0; (code = PtlCTAlloc(p.ni, &h)) == PTL_OK; n++) {
        first = h;
    }
    CHECK_CODE(code, PTL_NO_SPACE);
    CHECK_EQ(n, p.limits.max_cts);
    OK(PtlCTFree(first));
    OK(PtlCTAlloc(p.ni, &h));

    for (n = 2; (code = PtlEQAlloc(p.ni, 1, &h)) == PTL_OK; n++) { /* the port has two */
        first = h;
    }
    CHECK_CODE(code, PTL_NO_SPACE);
    CHECK_EQ(n, p.limits.max_eqs);
    OK(PtlEQFree(first));
    OK(PtlEQAlloc(p.ni, 1, &h));

    for (n = 0; (code = PtlMDBind(p.ni, &md, &h)) == PTL_OK; n++) {
        first = h;
    }
    CHECK_CODE(code, PTL_NO_SPACE);
    CHECK_EQ(n, p.limits.max_mds);
    OK(PtlMDRelease(first));
    OK(PtlMDBind(p.ni, &md, &h));

    ptl_me_t me = port_entry(&p, memory, sizeof(memory), PTL_ME_OP_PUT);
    for (n = 0; (code = port_append_code(&p, p.pt, &me, NULL, &h)) == PTL_OK; n++) {
        first = h;
    }
    if (p.limits.max_list_size < p.limits.max_entries) {
        CHECK_CODE(code, PTL_LIST_TOO_LONG);
        CHECK_EQ(n, p.limits.max_list_size);
    } else {
        CHECK(code == PTL_NO_SPACE || code == PTL_LIST_TOO_LONG);
        CHECK_EQ(n, p.limits.max_entries);
    }
    port_unlink(&p, first);
    port_append(&p, &me, NULL);

    for (n = 1; (code = PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt)) == PTL_OK; n++) {
    }
    CHECK_CODE(code, PTL_PT_FULL);
    CHECK_EQ(n, p.limits.max_pt_index + 1);
    OK(PtlPTFree(p.ni, 5));
    OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    CHECK_EQ(pt, 5);
    port_close(&p);
}
