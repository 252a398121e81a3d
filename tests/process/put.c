/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts of all sizes, to oneself and to another process, with every kind of
 * acknowledgement: data, events field by field, counters. */
#include "port.h"

#include <string.h>

enum { GUARD = 64, LONGEST = 4 << 20, SLACK = 64, ENTRY = LONGEST + SLACK };

static const size_t sizes[] = {0,    1,    7,    8,    9,    63,    64,      65,     1000,
                               1024, 1025, 4095, 4096, 4097, 65537, 1048579, 4194304};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static unsigned char from[LONGEST + SLACK];
static unsigned char to[GUARD + ENTRY + GUARD];

struct shot {
    size_t length, local_offset, remote_offset;
    ptl_ack_req_t ack;
    ptl_match_bits_t bits;
    ptl_hdr_data_t hdr;
    unsigned seed;
};

/* The n-th combination of size and acknowledgement. */
static struct shot make_shot(int n)
{
    struct shot s;
    s.length = sizes[n / 4];
    s.ack = (ptl_ack_req_t)(n % 4);
    s.local_offset = (size_t)n * 5 % SLACK;
    s.remote_offset = (size_t)n * 7 % SLACK;
    s.bits = 0x1234567800000000u + (unsigned)n;
    s.hdr = 0xfedcba9800000000u + (unsigned)n;
    s.seed = (unsigned)n;
    return s;
}

static void send_shot(struct port *p, int target, ptl_handle_md_t md, const struct shot *s)
{
    ptest_fill(from + s->local_offset, s->length, s->seed);
    OK(PtlPut(md, s->local_offset, s->length, s->ack, p->id[target], p->pt, s->bits,
              s->remote_offset, from + s->local_offset, s->hdr));
}

/* SEND, and ACK if it was asked for; they may come in either order. */
static void complete_shot(struct port *p, const struct shot *s)
{
    bool send = false, ack = s->ack != PTL_ACK_REQ;
    while (!send || !ack) {
        ptl_event_t event;
        unsigned which;
        OK(PtlEQPoll(&p->mdeq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
        CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
        CHECK_EQ(event.user_ptr, from + s->local_offset);
        if (event.type == PTL_EVENT_SEND) {
            CHECK(!send);
            send = true;
            /* the buffer is ours again: what the target gets must not suffer */
            memset(from + s->local_offset, 0x5a, s->length);
        } else {
            CHECK_EQ(event.type, PTL_EVENT_ACK);
            CHECK(!ack);
            ack = true;
            CHECK_EQ(event.mlength, s->length);
            CHECK_EQ(event.remote_offset, s->remote_offset);
        }
    }
}

static void check_shot(struct port *p, const struct shot *s)
{
    ptl_event_t e = EVENT(p->eq, PTL_EVENT_PUT);
    unsigned char *start = to + GUARD + s->remote_offset;
    CHECK_EQ(e.start, start);
    CHECK_EQ(e.user_ptr, &to);
    CHECK_EQ(e.hdr_data, s->hdr);
    if (port_matching(p)) {
        CHECK_EQ(e.match_bits, s->bits);
    }
    CHECK_EQ(e.rlength, s->length);
    CHECK_EQ(e.mlength, s->length);
    CHECK_EQ(e.remote_offset, s->remote_offset);
    CHECK(port_is_from(p, &e, 0));
    CHECK_EQ(e.uid, p->uid);
    CHECK_EQ(e.pt_index, p->pt);
    CHECK_EQ(e.ptl_list, PTL_PRIORITY_LIST);
    CHECK_FILL(start, s->length, s->seed);
    CHECK_BYTES(start - GUARD, GUARD, 0xa5);
    CHECK_BYTES(start + s->length, GUARD, 0xa5);
    memset(start, 0xa5, s->length);
}

static void put_all_sizes(unsigned kind, int rank, int size, int target)
{
    struct port p;
    ptl_handle_ct_t ct = PTL_CT_NONE;
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    uint64_t count = 0;
    port_open(&p, kind, rank, size);
    if (rank == target) {
        memset(to, 0xa5, sizeof(to));
        port_target(&p, to + GUARD, ENTRY, PTL_ME_OP_PUT, &to);
    }
    if (rank == 0) {
        ct = port_ct(&p);
        md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK, ct);
    }
    BARRIER();
    for (int n = 0; n < 4 * SIZES; n++) {
        struct shot s = make_shot(n);
        if (rank == 0) {
            send_shot(&p, target, md, &s);
        }
        if (rank == target && target != 0) {
            check_shot(&p, &s);
        }
        if (rank == 0) {
            complete_shot(&p, &s);
            count += s.ack == PTL_NO_ACK_REQ ? 1 : 2;
            port_wait_ct(ct, count);
        }
        if (rank == target && target == 0) {
            check_shot(&p, &s);
        }
        BARRIER();
    }
    NO_EVENT(p.eq);
    NO_EVENT(p.mdeq);
    port_close(&p);
}

PTEST_KINDS(put_to_self, 1)
{
    put_all_sizes(kind, rank, size, 0);
}

PTEST_KINDS(put_to_other, 2)
{
    put_all_sizes(kind, rank, size, 1);
}

/* With CT_BYTES the counters count what was moved: rlength when it has left,
 * mlength when it has arrived. The entry is shorter than the longest puts. */
PTEST_KINDS(count_bytes, 2)
{
    enum { ROOM = 70000, N = 5 };
    static const size_t lengths[N] = {1, 65, 5000, 70000, 100000};
    struct port p;
    ptl_ct_event_t value;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    if (rank == 1) {
        ptl_me_t me =
            port_entry(&p, to, ROOM,
                       PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE |
                           PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES);
        me.ct_handle = ct;
        port_append(&p, &me, NULL);
    }
    BARRIER();
    uint64_t arrived = 0;
    for (int i = 0; i < N; i++) {
        size_t moved = lengths[i] < ROOM ? lengths[i] : ROOM;
        for (ptl_ack_req_t ack = PTL_NO_ACK_REQ; ack <= PTL_OC_ACK_REQ; ack++) {
            arrived += moved;
            if (rank == 1) {
                port_wait_ct(ct, arrived);
                BARRIER();
                continue;
            }
            ptl_handle_ct_t sent = port_ct(&p), acked = port_ct(&p);
            ptl_handle_md_t md = port_quiet_md(&p, from, sizeof(from),
                                               PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_BYTES, sent);
            OK(PtlPut(md, 0, lengths[i], PTL_NO_ACK_REQ, p.id[1], p.pt, 0, ROOM, NULL, 0));
            port_wait_ct(sent, lengths[i]);
            port_release(md);
            md = port_quiet_md(&p, from, sizeof(from), PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES,
                               acked);
            if (ack == PTL_ACK_REQ) { /* needs an event queue */
                port_release(md);
                md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES,
                             acked);
            }
            OK(PtlPut(md, 0, lengths[i], ack, p.id[1], p.pt, 0, 0, NULL, 0));
            if (ack == PTL_NO_ACK_REQ) {
                BARRIER(); /* it has arrived, and nobody says so */
                OK(PtlCTGet(acked, &value));
                CHECK_EQ(value.success, 0);
            } else {
                port_wait_ct(acked, ack == PTL_OC_ACK_REQ ? 1 : moved);
                BARRIER();
            }
            port_release(md);
            OK(PtlCTFree(sent));
            OK(PtlCTFree(acked));
        }
    }
    if (rank == 1) {
        OK(PtlCTGet(ct, &value));
        CHECK_EQ(value.success, arrived); /* those beyond the end counted nothing */
        CHECK_EQ(value.failure, 0);
    }
    port_close(&p);
}

/* Which events an MD's options leave, for successes. */
PTEST_KINDS(md_event_masks, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        port_target(&p, to, 8192, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    BARRIER();
    for (int n = 0; rank == 0 && n < 4; n++) {
        unsigned options =
            (n & 1 ? PTL_MD_EVENT_SEND_DISABLE : 0) | (n & 2 ? PTL_MD_EVENT_SUCCESS_DISABLE : 0);
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md = port_md(
            &p, from, 8192,
            options | PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        if (options == 0) {
            EVENT(p.mdeq, PTL_EVENT_SEND);
        }
        if ((options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0) {
            EVENT(p.mdeq, PTL_EVENT_ACK);
        }
        port_wait_ct(ct, 2); /* counters know no masks */
        OK(PtlGet(md, 0, 8, p.id[1], p.pt, 0, 0, NULL));
        if ((options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0) {
            EVENT(p.mdeq, PTL_EVENT_REPLY);
        }
        port_wait_ct(ct, 3);
        NO_EVENT(p.mdeq);
        /* failures are told nevertheless */
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], 63, 0, 0, NULL, 0));
        if (options == 0) {
            EVENT(p.mdeq, PTL_EVENT_SEND);
        }
        EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_DROPPED);
        OK(PtlGet(md, 0, 8, p.id[1], 63, 0, 0, NULL));
        EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
        NO_EVENT(p.mdeq);
    }
    port_close(&p);
}

/* Messages of mixed sizes arrive in the order of the calls, and a later one
 * overwrites an earlier one. */
PTEST_KINDS(puts_keep_order, 2)
{
    enum { N = 400, ROOM = 20000 };
    struct port p;
    uint64_t seed = 11;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        port_target(&p, to, ROOM, PTL_ME_OP_PUT, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptest_fill(from, 65536, 0);
        ptl_handle_md_t md = port_quiet_md(&p, from, sizeof(from), 0, PTL_CT_NONE);
        for (unsigned i = 0; i < N; i++) {
            size_t length = (size_t)(splitmix(&seed) % (i % 5 == 0 ? ROOM : 100));
            OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, i));
        }
        ptest_fill(from + 65536, ROOM, 99); /* its own memory: the others may be under way */
        OK(PtlPut(md, 65536, ROOM, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, N));
        BARRIER();
    } else {
        for (unsigned i = 0; i <= N; i++) {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.hdr_data, i);
        }
        CHECK_FILL(to, ROOM, 99);
        BARRIER();
    }
    port_close(&p);
}

/* A process that is not there. */
PTEST_KINDS(put_to_nobody, 2)
{
    struct port p;
    ptl_process_t nobody;
    port_open(&p, kind, rank, size);
    nobody = p.id[1];
    BARRIER();
    if (rank == 1) {
        OK(PtlNIFini(p.ni)); /* now there is nobody */
        PtlFini();
        BARRIER();
        BARRIER();
        return;
    }
    BARRIER();
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_ct_event_t value;
    ptl_handle_md_t md =
        port_md(&p, from, 100000, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK, ct);
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, nobody, p.pt, 0, 0, &p, 0));
    OK(PtlPut(md, 0, 100000, PTL_ACK_REQ, nobody, p.pt, 0, 0, &p, 0));
    OK(PtlGet(md, 0, 8, nobody, p.pt, 0, 0, &p));
    for (int i = 0; i < 3;) {
        ptl_event_t event;
        unsigned which;
        OK(PtlEQPoll(&p.mdeq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
        CHECK_EQ(event.ni_fail_type, PTL_NI_UNDELIVERABLE);
        CHECK_EQ(event.user_ptr, &p);
        if (event.type != PTL_EVENT_SEND) {
            i++;
        }
    }
    OK(PtlCTGet(ct, &value));
    CHECK_EQ(value.success, 0);
    CHECK_EQ(value.failure, 2);
    port_release(md);
    BARRIER();
    OK(PtlNIFini(p.ni));
    PtlFini();
}
