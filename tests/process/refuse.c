/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that are refused: no match, another user's entry, an operation that
 * the entry does not allow. Nothing may change at the target but a counter. */
#include "port.h"

#include <string.h>

static unsigned char from[100000], to[100000];

struct registers {
    int drop, permission, operation;
};

static struct registers read_registers(struct port *p)
{
    struct registers r = {port_status(p, PTL_SR_DROP_COUNT),
                          port_status(p, PTL_SR_PERMISSION_VIOLATIONS),
                          port_status(p, PTL_SR_OPERATION_VIOLATIONS)};
    return r;
}

static const size_t lengths[] = {0, 8, 1000, 100000};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

/* Rank 0 sends puts with all acknowledgements, or gets, and expects `fail`. An
 * OC_ACK_REQ is answered even then. */
static void try_all(struct port *p, bool get, int fail)
{
    ptl_ct_event_t value;
    ptl_size_t one = 1;
    unsigned which;
    for (int i = 0; i < LENGTHS; i++) {
        ptl_handle_ct_t ct = port_ct(p);
        ptl_handle_md_t md =
            port_md(p, from, sizeof(from),
                    PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SEND_DISABLE, ct);
        if (get) {
            memset(from, 0x33, sizeof(from));
            OK(PtlGet(md, 0, lengths[i], p->id[1], p->pt, 0, 0, from));
            ptl_event_t event = EVENT_FAIL(p->mdeq, PTL_EVENT_REPLY, fail);
            CHECK_EQ(event.user_ptr, from);
            CHECK_BYTES(from, sizeof(from), 0x33);
            OK(PtlCTGet(ct, &value));
            CHECK_EQ(value.failure, 1);
            CHECK_EQ(value.success, 0);
        } else {
            OK(PtlPut(md, 0, lengths[i], PTL_ACK_REQ, p->id[1], p->pt, 0, 0, from, 0));
            ptl_event_t event = EVENT_FAIL(p->mdeq, PTL_EVENT_ACK, fail);
            CHECK_EQ(event.user_ptr, from);
            OK(PtlPut(md, 0, lengths[i], PTL_CT_ACK_REQ, p->id[1], p->pt, 0, 0, from, 0));
            OK(PtlPut(md, 0, lengths[i], PTL_NO_ACK_REQ, p->id[1], p->pt, 0, 0, from, 0));
            OK(PtlPut(md, 0, lengths[i], PTL_OC_ACK_REQ, p->id[1], p->pt, 0, 0, from, 0));
            OK(PtlCTPoll(&ct, &one, 1, 0, &value, &which)); /* has failed: at once */
            CHECK(value.failure >= 1);
            uint64_t end = ptest_now_ms() + 10000;
            do {
                OK(PtlCTGet(ct, &value));
            } while (value.success + value.failure < 3 && ptest_now_ms() < end);
            /* ACK and CT_ACK say how it ended; OC_ACK only that it has */
            CHECK_EQ(value.success + value.failure, 3);
            CHECK(value.failure >= 2);
        }
        port_release(md);
        OK(PtlCTFree(ct));
    }
    NO_EVENT(p->mdeq);
}

/* Rank 1 has `me` on its list, or nothing; rank 0 tries; rank 1 finds only the
 * registers changed, and the entry still there. */
static void refused(struct port *p, const ptl_me_t *me, bool get, int fail)
{
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    struct registers before = read_registers(p);
    int tries = LENGTHS * (get ? 1 : 4);
    if (p->rank == 1) {
        memset(to, 0xa5, sizeof(to));
        if (me != NULL) {
            handle = port_append(p, me, NULL);
        }
    }
    BARRIER();
    if (p->rank == 0) {
        try_all(p, get, fail);
    }
    BARRIER();
    if (p->rank == 1) {
        struct registers r = read_registers(p);
        CHECK_EQ(r.drop, before.drop + (fail == PTL_NI_DROPPED ? tries : 0));
        CHECK_EQ(r.permission, before.permission + (fail == PTL_NI_PERM_VIOLATION ? tries : 0));
        CHECK_EQ(r.operation, before.operation + (fail == PTL_NI_OP_VIOLATION ? tries : 0));
        CHECK_BYTES(to, sizeof(to), 0xa5);
        NO_EVENT(p->eq);
        if (me != NULL) {
            port_unlink(p, handle);
        }
    }
    BARRIER();
}

/* The options of every refused entry: used once, so that a refused message that
 * uses it up shows. */
static ptl_me_t entry(struct port *p, unsigned options)
{
    return port_entry(p, to, sizeof(to), options | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_USE_ONCE);
}

PTEST_KINDS(no_match, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    refused(&p, NULL, false, PTL_NI_DROPPED);
    refused(&p, NULL, true, PTL_NI_DROPPED);
    if (port_matching(&p)) {
        ptl_me_t me = entry(&p, PTL_ME_OP_PUT | PTL_ME_OP_GET);
        me.match_bits = 1;
        me.ignore_bits = 0;
        refused(&p, &me, false, PTL_NI_DROPPED);
        refused(&p, &me, true, PTL_NI_DROPPED);
    }
    port_close(&p);
}

PTEST_KINDS(another_user, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_me_t me = entry(&p, PTL_ME_OP_PUT | PTL_ME_OP_GET);
    me.uid = p.uid + 1;
    refused(&p, &me, false, PTL_NI_PERM_VIOLATION);
    refused(&p, &me, true, PTL_NI_PERM_VIOLATION);
    port_close(&p);
}

PTEST_KINDS(wrong_operation, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_me_t me = entry(&p, PTL_ME_OP_GET);
    refused(&p, &me, false, PTL_NI_OP_VIOLATION);
    me = entry(&p, PTL_ME_OP_PUT);
    refused(&p, &me, true, PTL_NI_OP_VIOLATION);
    me = entry(&p, 0);
    refused(&p, &me, false, PTL_NI_OP_VIOLATION);
    refused(&p, &me, true, PTL_NI_OP_VIOLATION);
    port_close(&p);
}

/* The check comes after the match: a later entry that would do is not tried. */
PTEST_KINDS(first_match_decides, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_me_t behind = PTL_INVALID_HANDLE, before = PTL_INVALID_HANDLE;
    if (rank == 1) {
        ptl_me_t me = entry(&p, PTL_ME_OP_GET);
        before = port_append(&p, &me, &before);
        behind = port_target(&p, to, sizeof(to), PTL_ME_OP_PUT, &behind);
    }
    BARRIER();
    if (rank == 0) {
        try_all(&p, false, PTL_NI_OP_VIOLATION);
    }
    BARRIER();
    if (rank == 1) {
        port_unlink(&p, before);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, from, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK);
    } else {
        ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(event.user_ptr, &behind);
        port_unlink(&p, behind);
    }
    port_close(&p);
}

/* One's own uid, spelled out, is as good as PTL_UID_ANY. */
PTEST_KINDS(own_user, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        ptl_me_t me = entry(&p, PTL_ME_OP_PUT);
        me.uid = p.uid;
        port_append(&p, &me, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, from, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK);
    } else {
        ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(event.uid, p.uid);
    }
    port_close(&p);
}
