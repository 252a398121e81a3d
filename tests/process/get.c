/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets of all sizes, from oneself and from another process: data, events field
 * by field, counters, order with puts. */
#include "port.h"

#include <string.h>

enum { GUARD = 64, LONGEST = 4 << 20, SLACK = 64, ENTRY = LONGEST + SLACK };

static const size_t sizes[] = {0,    1,    7,    8,    9,    63,   64,    65,      1000,
                               1024, 1025, 4095, 4096, 4097, 8192, 65537, 1048579, 4194304};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static unsigned char mine[GUARD + ENTRY + GUARD];
static unsigned char theirs[ENTRY];

static void get_all_sizes(unsigned kind, int rank, int size, int target)
{
    struct port p;
    ptl_handle_ct_t ct = PTL_CT_NONE;
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    port_open(&p, kind, rank, size);
    if (rank == target) {
        port_target(&p, theirs, ENTRY, PTL_ME_OP_GET, &theirs);
    }
    if (rank == 0) {
        memset(mine, 0xa5, sizeof(mine));
        ct = port_ct(&p);
        md = port_md(&p, mine + GUARD, ENTRY, PTL_MD_EVENT_CT_REPLY, ct);
    }
    for (unsigned n = 0; n < SIZES; n++) {
        size_t length = sizes[n], local = n * 5 % SLACK, remote = n * 7 % SLACK;
        ptl_match_bits_t bits = 0x8000000000000000u + n;
        if (rank == target) {
            ptest_fill(theirs + remote, length, n);
        }
        BARRIER();
        if (rank == 0) {
            unsigned char *start = mine + GUARD + local;
            OK(PtlGet(md, local, length, p.id[target], p.pt, bits, remote, start));
            ptl_event_t event = EVENT(p.mdeq, PTL_EVENT_REPLY);
            CHECK_EQ(event.user_ptr, start);
            CHECK_EQ(event.mlength, length);
            CHECK_EQ(event.remote_offset, remote);
            CHECK_FILL(start, length, n);
            CHECK_BYTES(start - GUARD, GUARD, 0xa5);
            CHECK_BYTES(start + length, GUARD, 0xa5);
            memset(start, 0xa5, length);
            port_wait_ct(ct, n + 1);
        }
        if (rank == target) {
            ptl_event_t e = EVENT(p.eq, PTL_EVENT_GET);
            CHECK_EQ(e.start, theirs + remote);
            CHECK_EQ(e.user_ptr, &theirs);
            if (port_matching(&p)) {
                CHECK_EQ(e.match_bits, bits);
            }
            CHECK_EQ(e.rlength, length);
            CHECK_EQ(e.mlength, length);
            CHECK_EQ(e.remote_offset, remote);
            CHECK(port_is_from(&p, &e, 0));
            CHECK_EQ(e.uid, p.uid);
            CHECK_EQ(e.pt_index, p.pt);
            CHECK_EQ(e.ptl_list, PTL_PRIORITY_LIST);
            CHECK_FILL(theirs + remote, length, n);
        }
        BARRIER();
    }
    NO_EVENT(p.eq);
    NO_EVENT(p.mdeq);
    port_close(&p);
}

PTEST_KINDS(get_from_self, 1)
{
    get_all_sizes(kind, rank, size, 0);
}

PTEST_KINDS(get_from_other, 2)
{
    get_all_sizes(kind, rank, size, 1);
}

/* CT_BYTES on both sides; an entry shorter than the request truncates. */
PTEST_KINDS(get_counts_bytes, 2)
{
    enum { ROOM = 5000 };
    static const size_t lengths[] = {1, 100, 5000, 6000, 100000};
    struct port p;
    uint64_t total = 0;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptest_fill(theirs, ROOM, 6);
    if (rank == 1) {
        ptl_me_t me = port_entry(&p, theirs, ROOM,
                                 PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES |
                                     PTL_ME_EVENT_LINK_DISABLE);
        me.ct_handle = ct;
        port_append(&p, &me, NULL);
    }
    BARRIER();
    for (int i = 0; i < 5; i++) {
        size_t moved = lengths[i] < ROOM ? lengths[i] : ROOM;
        total += moved;
        if (rank == 0) {
            memset(mine, 0xa5, sizeof(mine));
            ptl_handle_md_t md =
                port_md(&p, mine, LONGEST, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES, ct);
            OK(PtlGet(md, 3, lengths[i], p.id[1], p.pt, 0, 0, NULL));
            ptl_event_t event = EVENT(p.mdeq, PTL_EVENT_REPLY);
            CHECK_EQ(event.mlength, moved);
            CHECK_FILL(mine + 3, moved, 6);
            CHECK_BYTES(mine + 3 + moved, lengths[i] - moved + 64, 0xa5);
            port_wait_ct(ct, total);
            /* beyond the end of the entry there is nothing */
            OK(PtlGet(md, 0, lengths[i], p.id[1], p.pt, 0, ROOM + 1, NULL));
            event = EVENT(p.mdeq, PTL_EVENT_REPLY);
            CHECK_EQ(event.mlength, 0);
            CHECK_EQ(event.remote_offset, ROOM + 1);
            port_wait_ct(ct, total);
            port_release(md);
        } else {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_GET);
            CHECK_EQ(event.rlength, lengths[i]);
            CHECK_EQ(event.mlength, moved);
            event = EVENT(p.eq, PTL_EVENT_GET);
            CHECK_EQ(event.rlength, lengths[i]);
            CHECK_EQ(event.mlength, 0);
            port_wait_ct(ct, total);
        }
        BARRIER();
    }
    port_close(&p);
}

/* A get sees what was put before it by the same process (up to the size that
 * the interface promises to order), and not what is put after it. */
PTEST_KINDS(gets_and_puts_keep_order, 2)
{
    struct port p;
    static uint64_t word[1024], out[1024], in[1024];
    port_open(&p, kind, rank, size);
    size_t waw = p.limits.max_waw_ordered_size < 8192 ? p.limits.max_waw_ordered_size : 8192;
    size_t war = p.limits.max_war_ordered_size < waw ? p.limits.max_war_ordered_size : waw;
    if (rank == 1) {
        port_target(&p, word, sizeof(word),
                    PTL_ME_OP_GET | PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    BARRIER();
    for (uint64_t i = 1; rank == 0 && i <= 300; i++) {
        size_t length = (size_t)(i % (war / 8)) * 8 + 8;
        ptl_handle_md_t put = port_quiet_md(&p, out, sizeof(out), PTL_MD_VOLATILE, PTL_CT_NONE);
        ptl_handle_md_t get = port_md(&p, in, sizeof(in), 0, PTL_CT_NONE);
        static uint64_t later[1024];
        ptl_handle_md_t after = port_md(&p, later, sizeof(later), 0, PTL_CT_NONE);
        for (size_t k = 0; k < length / 8; k++) {
            out[k] = i * 2;
            later[k] = i * 2 + 1;
        }
        OK(PtlPut(put, 0, length, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        OK(PtlGet(get, 0, length, p.id[1], p.pt, 0, 0, NULL));
        OK(PtlPut(after, 0, length, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        bool reply = false;
        for (int events = 0; events < 3; events++) { /* REPLY, SEND, ACK */
            ptl_event_t event;
            OK(PtlEQWait(p.mdeq, &event));
            CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
            reply = reply || event.type == PTL_EVENT_REPLY;
        }
        CHECK(reply);
        for (size_t k = 0; k < length / 8; k++) {
            CHECK_EQ(in[k], i * 2);
        }
        port_release(put);
        port_release(get);
        port_release(after);
    }
    port_close(&p);
}

/* Many gets under way at once, with places of their own. */
PTEST_KINDS(many_gets, 2)
{
    enum { N = 500, STEP = 1000 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_fill(theirs, N * STEP, 5);
    if (rank == 1) {
        port_target(&p, theirs, N * STEP, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md = port_quiet_md(&p, mine, N * STEP, PTL_MD_EVENT_CT_REPLY, ct);
        for (ptl_size_t i = 0; i < N; i++) {
            ptl_size_t at = i * 7 % N * STEP;
            OK(PtlGet(md, at, STEP, p.id[1], p.pt, 0, at, NULL));
        }
        port_wait_ct(ct, N);
        CHECK_FILL(mine, N * STEP, 5);
    }
    port_close(&p);
}
