/* SPDX-License-Identifier: BSD-3-Clause */
/* What the options of an entry do: truncation, locally managed offsets, use
 * once, unlinking, and which events and counts remain. Rank 0 sends to rank 1. */
#include "port.h"

#include <string.h>

static unsigned char from[4096], to[4096];

/* Sends `length` bytes to rank 1 and returns the acknowledgement. */
static ptl_event_t send_to_1(struct port *p, ptl_handle_md_t md, size_t length, ptl_size_t offset,
                             int fail)
{
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, p->id[1], p->pt, 0, offset, NULL, 0));
    return EVENT_FAIL(p->mdeq, PTL_EVENT_ACK, fail);
}

static ptl_handle_md_t sender(struct port *p)
{
    ptest_fill(from, sizeof(from), 1);
    return port_md(p, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
}

PTEST_KINDS(truncation, 2)
{
    /* offset, length -> what lands in an entry of 1000 bytes */
    static const size_t shots[][3] = {{0, 1000, 1000}, {0, 1001, 1000},  {1, 1000, 999},
                                      {999, 10, 1},    {1000, 1, 0},     {1001, 50, 0},
                                      {0, 4096, 1000}, {500, 4096, 500}, {1 << 30, 4096, 0}};
    struct port p;
    port_open(&p, kind, rank, size);
    memset(to, 0xa5, sizeof(to));
    if (rank == 1) {
        port_target(&p, to + 64, 1000, PTL_ME_OP_PUT, NULL);
    }
    ptl_handle_md_t md = sender(&p);
    BARRIER();
    for (int i = 0; i < 9; i++) {
        size_t offset = shots[i][0], length = shots[i][1], lands = shots[i][2];
        if (rank == 0) {
            ptl_event_t event = send_to_1(&p, md, length, offset, PTL_NI_OK);
            CHECK_EQ(event.mlength, lands);
            CHECK_EQ(event.remote_offset, offset);
        } else {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.rlength, length);
            CHECK_EQ(event.mlength, lands);
            CHECK_EQ(event.remote_offset, offset);
            if (lands > 0) {
                CHECK_EQ(event.start, to + 64 + offset);
                CHECK_FILL(to + 64 + offset, lands, 1);
            }
            CHECK_BYTES(to, 64, 0xa5);
            CHECK_BYTES(to + 1064, 1000, 0xa5);
            memset(to, 0xa5, sizeof(to));
        }
        BARRIER();
    }
    port_close(&p);
}

/* What does not fit does not match, and falls to the next entry. */
PTEST_MATCHING(no_truncate, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = sender(&p);
    static const ptl_size_t room[] = {100, 1000, 4000};
    if (rank == 1) {
        for (int i = 0; i < 3; i++) {
            port_target(&p, to, room[i], PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, (void *)&room[i]);
        }
    }
    BARRIER();
    static const size_t shots[][3] = {/* offset, length, entry (3: none) */
                                      {0, 100, 0},  {0, 101, 1},  {50, 51, 1}, {0, 1000, 1},
                                      {0, 1001, 2}, {100, 0, 0},  {101, 0, 1}, {3999, 1, 2},
                                      {3999, 2, 3}, {0, 4096, 3}, {50, 50, 0}};
    for (int i = 0; i < 11; i++) {
        size_t offset = shots[i][0], length = shots[i][1], entry = shots[i][2];
        if (rank == 0) {
            send_to_1(&p, md, length, offset, entry < 3 ? PTL_NI_OK : PTL_NI_DROPPED);
        } else if (entry < 3) {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.user_ptr, &room[entry]);
            CHECK_EQ(event.mlength, length);
        }
    }
    port_close(&p);
}

/* MANAGE_LOCAL: one after another, whatever offset the request names; puts and
 * gets share the place. */
PTEST_MATCHING(manage_local, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = sender(&p);
    size_t at = 0;
    if (rank == 1) {
        memset(to, 0xa5, sizeof(to));
        port_target(&p, to, 1000, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_MANAGE_LOCAL, NULL);
    }
    BARRIER();
    for (size_t i = 0; i < 12; i++) {
        size_t length = i * 17;
        size_t lands = at + length <= 1000 ? length : 1000 - at; /* the last one is cut */
        if (rank == 0 && i % 4 == 3) {
            ptl_handle_md_t get = port_md(&p, to, sizeof(to), 0, PTL_CT_NONE);
            OK(PtlGet(get, 0, length, p.id[1], p.pt, 0, 5000, NULL));
            ptl_event_t event = EVENT(p.mdeq, PTL_EVENT_REPLY);
            CHECK_EQ(event.mlength, lands);
            CHECK_EQ(event.remote_offset, at);
            CHECK_BYTES(to, lands, 0xa5);
            port_release(get);
        } else if (rank == 0) {
            ptl_event_t event = send_to_1(&p, md, length, 5000, PTL_NI_OK);
            CHECK_EQ(event.mlength, lands);
            CHECK_EQ(event.remote_offset, at); /* the one used */
        } else {
            bool get = i % 4 == 3;
            ptl_event_t event = EVENT(p.eq, get ? PTL_EVENT_GET : PTL_EVENT_PUT);
            CHECK_EQ(event.rlength, length);
            CHECK_EQ(event.mlength, lands);
            CHECK_EQ(event.remote_offset, 5000); /* the one asked for */
            if (lands > 0) {
                CHECK_EQ(event.start, to + at);
            }
            if (!get) {
                CHECK_FILL(to + at, lands, 1);
                CHECK_BYTES(to + at + lands, 100, 0xa5);
            }
        }
        at += lands;
        BARRIER();
    }
    port_close(&p);
}

/* min_free unlinks the entry when too little is left; the next one follows. */
PTEST_MATCHING(min_free, 2)
{
    enum { ROOM = 1000, MIN = 300, SHOT = 250 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = sender(&p);
    ptl_handle_me_t handle[2];
    if (rank == 1) {
        for (int i = 0; i < 2; i++) {
            ptl_me_t me = port_entry(&p, to + i * ROOM, ROOM,
                                     PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN);
            me.min_free = MIN;
            handle[i] = port_append(&p, &me, to + i * ROOM);
            EVENT(p.eq, PTL_EVENT_LINK);
        }
    }
    BARRIER();
    /* 250, 500, 750 used: at the third put 250 < 300 are left */
    for (int i = 0; i < 6; i++) {
        if (rank == 0) {
            ptl_event_t event = send_to_1(&p, md, SHOT, 0, PTL_NI_OK);
            CHECK_EQ(event.remote_offset, i % 3 * SHOT);
        } else {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.user_ptr, to + i / 3 * ROOM);
            CHECK_EQ(event.start, to + i / 3 * ROOM + i % 3 * SHOT);
            if (i % 3 == 2) {
                event = EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
                CHECK_EQ(event.user_ptr, to + i / 3 * ROOM);
                CHECK_EQ(event.pt_index, p.pt);
                INVALID(PtlMEUnlink(handle[i / 3]));
            }
        }
    }
    BARRIER();
    if (rank == 0) {
        send_to_1(&p, md, SHOT, 0, PTL_NI_DROPPED);
    }
    BARRIER();
    if (rank == 1) {
        NO_EVENT(p.eq);
        CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), 1);
        OK(PtlPTFree(p.ni, p.pt));
    }
    port_close(&p);
}

/* Headers that an entry claims take their room from it, where it says so: after the one that leaves
 * less than min_free it goes, and the next header is the next entry's. */
PTEST_MATCHING(min_free_of_headers, 1)
{
    enum { LENGTH = 1000, EACH = 100, FREE = 850, CLAIMED = 2, SENT = 3 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_quiet_md(&p, from, LENGTH, 0, PTL_CT_NONE);
    ptl_me_t me = port_entry(&p, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t overflow, entry;
    OK(PtlMEAppend(p.ni, p.pt, &me, PTL_OVERFLOW_LIST, NULL, &overflow));
    for (int i = 0; i < SENT; i++) {
        OK(PtlPut(md, 0, EACH, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, (ptl_hdr_data_t)i));
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    me = port_entry(&p, to, LENGTH,
                    PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH |
                        PTL_ME_EVENT_LINK_DISABLE);
    me.min_free = FREE;
    for (int i = 0; i < SENT; i++) {
        if (i % CLAIMED == 0) {
            NO_EVENT(p.eq);
            OK(PtlMEAppend(p.ni, p.pt, &me, PTL_PRIORITY_LIST, NULL, &entry));
        }
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
        if (i % CLAIMED == CLAIMED - 1) {
            EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
        }
    }
    NO_EVENT(p.eq);
    port_close(&p);
}

/* Exactly min_free left is enough; min_free 0 never unlinks. */
PTEST_MATCHING(min_free_edge, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_fill(from, sizeof(from), 1);
    ptl_handle_md_t md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (ptl_size_t free = 0; free < 3; free++) {
        ptl_me_t me = port_entry(&p, to, 100,
                                 PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE);
        me.min_free = free;
        ptl_handle_me_t handle = port_append(&p, &me, NULL);
        OK(PtlPut(md, 0, 98, PTL_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0)); /* 2 are left */
        EVENT(p.mdeq, PTL_EVENT_ACK);
        EVENT(p.eq, PTL_EVENT_PUT);
        NO_EVENT(p.eq);
        OK(PtlPut(md, 0, 1, PTL_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0)); /* 1 is left */
        EVENT(p.mdeq, PTL_EVENT_ACK);
        EVENT(p.eq, PTL_EVENT_PUT);
        if (free == 2) {
            EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
            INVALID(PtlMEUnlink(handle));
        } else {
            NO_EVENT(p.eq);
            port_unlink(&p, handle);
        }
    }
    port_close(&p);
}

/* One message each, in list order, then nothing is left. */
PTEST_KINDS(use_once, 2)
{
    enum { N = 10 };
    struct port p;
    ptl_handle_me_t handle[N];
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = sender(&p);
    if (rank == 1) {
        for (int i = 0; i < N; i++) {
            ptl_me_t me =
                port_entry(&p, to + i * 100, 100, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE);
            handle[i] = port_append(&p, &me, to + i);
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_LINK);
            CHECK_EQ(event.user_ptr, to + i);
            CHECK_EQ(event.pt_index, p.pt);
        }
    }
    BARRIER();
    for (int i = 0; i < N; i++) {
        bool get = i % 3 == 2;
        if (rank == 0 && get) {
            OK(PtlGet(md, 100, 100, p.id[1], p.pt, 0, 0, NULL));
            EVENT(p.mdeq, PTL_EVENT_REPLY);
        } else if (rank == 0) {
            send_to_1(&p, md, 100, 0, PTL_NI_OK);
        } else {
            ptl_event_t event = EVENT(p.eq, get ? PTL_EVENT_GET : PTL_EVENT_PUT);
            CHECK_EQ(event.user_ptr, to + i);
            event = EVENT(p.eq, PTL_EVENT_AUTO_UNLINK); /* after the other one */
            CHECK_EQ(event.user_ptr, to + i);
            CHECK_EQ(event.pt_index, p.pt);
            INVALID(port_unlink_code(&p, handle[i]));
        }
    }
    BARRIER();
    if (rank == 0) {
        send_to_1(&p, md, 100, 0, PTL_NI_DROPPED);
        OK(PtlGet(md, 0, 100, p.id[1], p.pt, 0, 0, NULL));
        EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
    }
    BARRIER();
    if (rank == 1) {
        NO_EVENT(p.eq);
        CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), 2);
    }
    port_close(&p);
}

/* Every combination of the options that mask events. */
PTEST_KINDS(event_masks, 1)
{
    static const unsigned masks[] = {PTL_ME_EVENT_LINK_DISABLE, PTL_ME_EVENT_COMM_DISABLE,
                                     PTL_ME_EVENT_UNLINK_DISABLE, PTL_ME_EVENT_SUCCESS_DISABLE,
                                     PTL_ME_USE_ONCE};
    struct port p;
    ptl_event_t event;
    port_open(&p, kind, rank, size);
    ptest_fill(from, sizeof(from), 1);
    ptl_handle_md_t md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (unsigned n = 0; n < 32; n++) {
        ptl_me_t me = port_entry(&p, to, 100, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
        me.ct_handle = port_ct(&p);
        for (int bit = 0; bit < 5; bit++) {
            me.options |= n >> bit & 1 ? masks[bit] : 0;
        }
        ptl_handle_me_t handle = port_append(&p, &me, to);
        if ((me.options & PTL_ME_EVENT_LINK_DISABLE) == 0) {
            EVENT(p.eq, PTL_EVENT_LINK);
        }
        OK(PtlPut(md, 0, 10, PTL_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK);
        if ((me.options & (PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE)) == 0) {
            EVENT(p.eq, PTL_EVENT_PUT);
        }
        bool once = (me.options & PTL_ME_USE_ONCE) != 0;
        if (once && (me.options & PTL_ME_EVENT_UNLINK_DISABLE) == 0) {
            EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
        }
        port_wait_ct(me.ct_handle, 1); /* counters know no masks */
        CHECK_CODE(PtlEQGet(p.eq, &event), PTL_EQ_EMPTY);
        if (once) {
            INVALID(port_unlink_code(&p, handle));
        } else {
            port_unlink(&p, handle);
            CHECK_CODE(PtlEQGet(p.eq, &event), PTL_EQ_EMPTY);
        }
        OK(PtlCTFree(me.ct_handle));
    }
    NO_EVENT(p.eq);
    port_close(&p);
}

/* An ME whose only event is LINK, and a portal table entry without a queue. */
PTEST_KINDS(few_events, 1)
{
    struct port p;
    ptl_pt_index_t pt;
    ptl_handle_me_t handle;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    ptl_me_t me = port_entry(&p, to, 100,
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE |
                                 PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE);
    handle = port_append(&p, &me, &me);
    ptl_event_t event = EVENT(p.eq, PTL_EVENT_LINK);
    CHECK_EQ(event.user_ptr, &me);
    port_unlink(&p, handle);

    OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_USE_ONCE;
    me.ct_handle = port_ct(&p);
    OK(port_append_code(&p, pt, &me, NULL, &handle));
    OK(PtlPut(md, 0, 10, PTL_ACK_REQ, p.id[0], pt, 0, 0, NULL, 0));
    EVENT(p.mdeq, PTL_EVENT_ACK);
    port_wait_ct(me.ct_handle, 1);
    NO_EVENT(p.eq);
    OK(PtlPTFree(p.ni, pt));
    port_close(&p);
}

/* PTL_ME_ACK_DISABLE: what lands here is not acknowledged. */
PTEST_KINDS(ack_disable, 2)
{
    struct port p;
    ptl_ct_event_t value;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        port_target(&p, to, 100, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_ACK_DISABLE, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_CT_ACK, ct);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_SEND);
        OK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_SEND);
        OK(PtlGet(md, 0, 8, p.id[1], p.pt, 0, 0, NULL)); /* replies are no acks */
        EVENT(p.mdeq, PTL_EVENT_REPLY);
        NO_EVENT(p.mdeq);
        OK(PtlCTGet(ct, &value));
        CHECK_EQ(value.success, 0);
        CHECK_EQ(value.failure, 0);
        port_release(md); /* nothing is thought to be under way */
    } else {
        EVENT(p.eq, PTL_EVENT_PUT);
        EVENT(p.eq, PTL_EVENT_PUT);
        EVENT(p.eq, PTL_EVENT_GET);
    }
    port_close(&p);
}

PTEST_KINDS(append_arguments, 1)
{
    struct port p;
    ptl_handle_me_t handle;
    port_open(&p, kind, rank, size);
    for (int bit = 1; bit < 32; bit++) { /* 0, PTL_IOVEC, makes something else of start */
        ptl_me_t me = port_entry(&p, to, 100, 1u << bit);
        bool me_only = bit >= 15 && bit <= 18;
        int code = port_append_code(&p, p.pt, &me, NULL, &handle);
        if (bit == 12 || bit == 13) {
            /* counting into PTL_CT_NONE: either says so or counts nowhere */
            CHECK(code == PTL_ARG_INVALID || code == PTL_OK);
        } else if (bit > 19 || (me_only && !port_matching(&p))) {
            CHECK_CODE(code, PTL_ARG_INVALID);
        } else {
            CHECK_CODE(code, PTL_OK);
        }
    }
    ptl_me_t me = port_entry(&p, to, 100, PTL_ME_OP_PUT);
    ptl_le_t le = {to, 100, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    for (int list = 2; list < 256; list += 127) { /* no list */
        if (port_matching(&p)) {
            INVALID(PtlMEAppend(p.ni, p.pt, &me, (ptl_list_t)list, NULL, &handle));
        } else {
            INVALID(PtlLEAppend(p.ni, p.pt, &le, (ptl_list_t)list, NULL, &handle));
        }
    }
    me.ct_handle = 0; /* as a zeroed struct has it, without an EVENT_CT_ option */
    OK(port_append_code(&p, p.pt, &me, NULL, &handle));
    me.ct_handle = 0x7654321;
    OK(port_append_code(&p, p.pt, &me, NULL, &handle));
    me.options |= PTL_ME_EVENT_CT_COMM;
    INVALID(port_append_code(&p, p.pt, &me, NULL, &handle));
    port_close(&p);
}
