/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers send: from HPU memory and from the host, to everybody, with acks, in
 * chains, and when there is no room to send.
 *
 *      message ──► entry with handlers, at p.pt of rank 1
 *                     └── put ──► landing: an entry without handlers, at a portal table
 *                                 index of its own, of any rank
 */
#include "handler.h"

enum { LENGTH_MOST = HANDLER_LONGEST, DEVICE_MOST = 4096, GAP = 16 };

static unsigned char source[LENGTH_MOST], memory[LENGTH_MOST], landed[LENGTH_MOST + 2 * GAP];

/* The place where handlers' puts land, with its own events. */
struct landing {
    ptl_pt_index_t pt;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
};

static struct landing open_landing(struct port *p)
{
    struct landing l;
    ptl_handle_me_t entry;
    OK(PtlEQAlloc(p->ni, PORT_EVENTS, &l.eq));
    OK(PtlPTAlloc(p->ni, 0, l.eq, 20, &l.pt));
    l.ct = port_ct(p);
    ptl_me_t me = port_entry(p, landed, sizeof(landed),
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = l.ct;
    OK(port_append_code(p, l.pt, &me, NULL, &entry));
    return l;
}

/* HPU memory: the put that the header handler is to make; bytes to send follow. */
struct order {
    ptl_process_t target;
    uint64_t length, offset, remote_offset, bits, hdr_data;
    uint64_t user_ptr;
    uint32_t from_host, ex, pt, ack, to_source;
};

struct device {
    struct order order;
    uint8_t data[DEVICE_MOST + 64];
};

/* handler_host_mem: what the put returned, and how often one was made. */
static struct notes {
    uint64_t calls;
    int64_t code;
} notes;

static int obey(const struct order *o, uint8_t *data)
{
    ptl_ack_req_t ack = (ptl_ack_req_t)o->ack;
    void *user = (void *)(uintptr_t)o->user_ptr;
    if (o->from_host && o->ex) {
        return PtlHandlerPutFromHostEx(o->offset, o->length, ack, o->target, o->pt, o->bits,
                                       o->remote_offset, user, o->hdr_data);
    }
    if (o->from_host) {
        return PtlHandlerPutFromHost(o->offset, o->length, ack, o->target, o->bits,
                                     o->remote_offset, user, o->hdr_data);
    }
    if (o->ex) {
        return PtlHandlerPutFromDeviceEx(data + o->offset, o->length, ack, o->target, o->pt,
                                         o->bits, o->remote_offset, user, o->hdr_data);
    }
    return PtlHandlerPutFromDevice(data + o->offset, o->length, ack, o->target, o->bits,
                                   o->remote_offset, user, o->hdr_data);
}

__handler static int order_header(const ptl_header_t h, void *state)
{
    struct device *d = state;
    if (d->order.to_source) {
        d->order.target = h.source_id;
    }
    int64_t code = obey(&d->order, d->data);
    memset(d->data, 0xdd, sizeof(d->data)); /* it is the handler's again */
    PtlHandlerDMAToHostB(&code, offsetof(struct notes, code), sizeof(code), PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAFetchAddB(0, 1, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(order_header);

/* The entry of rank 1 with that order and a counter, which counts no messages of its own; only
 * errors and acks make events. */
static ptl_handle_me_t give_counted_order(struct port *p, const struct order *o, ptl_handle_ct_t ct)
{
    static struct device d;
    d.order = *o;
    ptest_fill(d.data, sizeof(d.data), 1);
    ptest_fill(memory, sizeof(memory), 1);
    ptl_handlers_t h = handler_set(order_header, NULL, NULL, &d, sizeof(d), &notes, sizeof(notes));
    memset(&notes, 0, sizeof(notes));
    ptl_me_t me =
        port_entry(p, memory, sizeof(memory),
                   PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE);
    me.ct_handle = ct;
    return handler_append(p, &me, &h);
}

static ptl_handle_me_t give_order(struct port *p, const struct order *o)
{
    return give_counted_order(p, o, PTL_CT_NONE);
}

/* Rank 0 triggers the order of rank 1, which ends well. */
static void trigger(struct port *p)
{
    BARRIER();
    if (p->rank == 0) {
        handler_put(p, source, 0, 0, 0, PTL_NI_OK);
    }
    BARRIER();
}

/* ---- Where to, and what from ---- */

static void reach_round(struct port *p, struct landing *l, struct order o, int target)
{
    unsigned char want[2 * GAP];
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    memset(landed, 0xaa, GAP + o.length + GAP);
    memset(want, 0xaa, sizeof(want));
    o.target = p->id[target];
    o.to_source = target == 0;
    o.ex = 1;
    o.pt = l->pt;
    o.hdr_data = o.length + 5;
    o.bits = 77;
    o.remote_offset = GAP;
    if (p->rank == 1) {
        entry = give_order(p, &o);
    }
    trigger(p);
    if (p->rank == target) {
        ptl_event_t event = EVENT(l->eq, PTL_EVENT_PUT);
        CHECK(port_is_from(p, &event, 1));
        CHECK_EQ(event.hdr_data, o.hdr_data);
        CHECK_EQ(event.rlength, o.length);
        CHECK_EQ(event.mlength, o.length);
        CHECK_EQ(event.remote_offset, GAP);
        CHECK_EQ(event.start, landed + GAP);
        CHECK_EQ(event.uid, p->uid);
        if (port_matching(p)) {
            CHECK_EQ(event.match_bits, 77);
        }
        ptest_fill(source, sizeof(source), 1);
        CHECK(memcmp(landed + GAP, source + o.offset, o.length) == 0);
        CHECK(memcmp(landed, want, GAP) == 0 && memcmp(landed + GAP + o.length, want, GAP) == 0);
    }
    if (p->rank == 1) {
        CHECK_EQ(notes.calls, 1);
        CHECK_EQ(notes.code, PTL_OK);
        port_unlink(p, entry);
        CHECK_CODE(PtlEQGet(p->eq, &(ptl_event_t){0}), PTL_EQ_EMPTY);
    }
    BARRIER();
}

/* To the source of the message, to itself, to a third; from both memories. */
PTEST_KINDS(everywhere, 3)
{
    struct port p;
    port_open(&p, kind, rank, size);
    struct landing l = open_landing(&p);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        size_t length = handler_sizes[i];
        for (int target = 0; target < 3; target++) {
            struct order o = {.length = length, .offset = (size_t)i % 4};
            if (length <= DEVICE_MOST) {
                reach_round(&p, &l, o, target);
            }
            o.from_host = 1;
            o.offset = length < LENGTH_MOST ? (size_t)i : 0;
            reach_round(&p, &l, o, target);
        }
    }
    port_close(&p);
}

/* Without Ex the portal table index is that of the entry. */
PTEST_KINDS(index_of_the_entry, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (uint32_t from_host = 0; from_host < 2; from_host++) {
        struct order o = {.length = 100, .from_host = from_host, .to_source = 1, .hdr_data = 9};
        ptl_handle_me_t entry;
        if (rank == 1) {
            entry = give_order(&p, &o);
        } else {
            entry = port_target(&p, landed, sizeof(landed), PTL_ME_OP_PUT, NULL);
        }
        trigger(&p);
        if (rank == 0) {
            CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, 9);
            CHECK_FILL(landed, 100, 1);
        }
        port_unlink(&p, entry);
    }
    port_close(&p);
}

/* ---- Acks ---- */

/* The ACK; a put that failed may have posted a failed SEND before it. */
static ptl_event_t answer_of_put(struct port *p, int fail)
{
    ptl_event_t event;
    do {
        unsigned which;
        OK(PtlEQPoll(&p->eq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
        CHECK_EQ(event.ni_fail_type, fail);
    } while (fail != PTL_NI_OK && event.type == PTL_EVENT_SEND);
    CHECK_EQ(event.type, PTL_EVENT_ACK);
    return event;
}

static void ack_round(struct port *p, uint32_t from_host, uint32_t ack, ptl_pt_index_t pt, int fail)
{
    int mine = 0;
    struct order o = {.target = p->id[0],
                      .length = 3000,
                      .from_host = from_host,
                      .ex = 1,
                      .pt = pt,
                      .ack = ack,
                      .user_ptr = (uintptr_t)&mine,
                      .remote_offset = 7};
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        entry = give_order(p, &o);
    }
    trigger(p);
    if (p->rank == 1 && ack == PTL_ACK_REQ) {
        ptl_event_t event = answer_of_put(p, fail);
        CHECK_EQ(event.user_ptr, &mine);
        CHECK_EQ(event.mlength, fail == PTL_NI_OK ? 3000 : 0);
        CHECK_EQ(event.remote_offset, 7);
    }
    if (p->rank == 1) {
        CHECK_EQ(notes.code, PTL_OK);
        if (ack == PTL_ACK_REQ || fail == PTL_NI_OK) {
            NO_EVENT(p->eq);
        } else {
            ptl_event_t event; /* none, or a failed SEND */
            while (PtlEQGet(p->eq, &event) == PTL_OK) {
                CHECK_EQ(event.type, PTL_EVENT_SEND);
            }
        }
        port_unlink(p, entry);
    }
    BARRIER();
}

/* An ack comes to the event queue of the entry. */
PTEST_KINDS(acks, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    struct landing l = open_landing(&p);
    for (uint32_t from_host = 0; from_host < 2; from_host++) {
        ack_round(&p, from_host, PTL_ACK_REQ, l.pt, PTL_NI_OK);
        ack_round(&p, from_host, PTL_ACK_REQ, l.pt + 1, PTL_NI_DROPPED);
        ack_round(&p, from_host, PTL_NO_ACK_REQ, l.pt, PTL_NI_OK);
        ack_round(&p, from_host, PTL_NO_ACK_REQ, l.pt + 1, PTL_NI_DROPPED);
        ack_round(&p, from_host, PTL_OC_ACK_REQ, l.pt, PTL_NI_OK);
    }
    port_close(&p);
}

/* With PTL_CT_ACK_REQ and PTL_OC_ACK_REQ it is counted by the counter of the entry instead. */
PTEST_KINDS(counted_acks, 2)
{
    static const uint32_t acks[] = {PTL_NO_ACK_REQ, PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ};
    struct port p;
    port_open(&p, kind, rank, size);
    struct landing l = open_landing(&p);
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t ack = acks[i / 4], bad = i & 1;
        struct order o = {.target = p.id[0],
                          .length = 1000,
                          .from_host = i >> 1 & 1,
                          .ex = 1,
                          .pt = l.pt + bad,
                          .ack = ack};
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        bool counted = ack == PTL_CT_ACK_REQ || ack == PTL_OC_ACK_REQ;
        if (rank == 1) {
            entry = give_counted_order(&p, &o, ct);
        }
        trigger(&p);
        if (rank == 1 && ack == PTL_ACK_REQ) {
            answer_of_put(&p, bad ? PTL_NI_DROPPED : PTL_NI_OK);
        }
        if (rank == 1) {
            ptl_ct_event_t value = {0, 0};
            while (counted && value.success + value.failure == 0) {
                OK(PtlCTGet(ct, &value));
            }
            CHECK_EQ(notes.code, PTL_OK);
            handler_check_ct(ct, counted && !bad, counted && bad);
            NO_EVENT(p.eq);
            port_unlink(&p, entry);
        }
        BARRIER();
        OK(PtlCTFree(ct));
    }
    port_close(&p);
}

/* A target that nobody is ends in the ack, too. */
PTEST(nobody, 2)
{
    struct port p;
    setenv("PINWHEEL_CONNECT_MS", "50", 1);
    port_open(&p, KIND_MP, rank, size);
    struct order o = {.target = p.id[1], .length = 100, .ex = 1, .ack = PTL_ACK_REQ};
    for (o.target.phys.pid = 1;
         o.target.phys.pid == p.phys[0].phys.pid || o.target.phys.pid == p.phys[1].phys.pid;
         o.target.phys.pid++) {
    }
    if (rank == 1) {
        give_order(&p, &o);
    }
    trigger(&p);
    if (rank == 1) {
        answer_of_put(&p, PTL_NI_UNDELIVERABLE);
    }
    port_close(&p);
}

/* ---- Refused ---- */

static void refused(struct port *p, struct order o, const char *what)
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        entry = give_order(p, &o);
    }
    trigger(p);
    if (p->rank == 1) {
        if (notes.calls != 1 || notes.code != PTL_ARG_INVALID) {
            FAIL("%s: the put gives %d", what, (int)notes.code);
        }
        NO_EVENT(p->eq);
        port_unlink(p, entry);
    }
    BARRIER();
}

PTEST_KINDS(bad_arguments, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    struct landing l = open_landing(&p);
    for (uint32_t form = 0; form < 4; form++) {
        struct order good = {
            .target = p.id[0], .length = 8, .from_host = form & 1, .pt = l.pt, .ex = form >> 1};
        struct order o = good;
        if (port_logical(&p)) {
            o.target.rank = (ptl_rank_t)size;
            refused(&p, o, "a rank behind the last");
            o.target.rank = PTL_RANK_ANY;
            refused(&p, o, "any rank");
        } else {
            o.target.phys.pid = 0;
            refused(&p, o, "pid 0");
            o.target.phys.pid = PTL_PID_ANY;
            refused(&p, o, "any pid");
            o.target = p.id[0];
            o.target.phys.nid = PTL_NID_ANY;
            refused(&p, o, "any nid");
        }
        o = good;
        o.ack = PTL_OC_ACK_REQ + 1;
        refused(&p, o, "an unknown ack_req");
        o.ack = PTL_CT_ACK_REQ;
        refused(&p, o, "a counted ack without a counter");
        o = good;
        o.pt = 0x10000;
        if (o.ex) {
            refused(&p, o, "a portal table index that cannot be");
        }
        o = good;
        o.length = DEVICE_MOST + 1;
        if (!o.from_host) {
            refused(&p, o, "more than a packet");
        }
    }
    CHECK_CODE(PtlEQGet(l.eq, &(ptl_event_t){0}), PTL_EQ_EMPTY);
    port_close(&p);
}

/* ---- Chains ---- */

enum { HOPS = 1000, RING = 3 };

/* HPU memory of a token ring: who is next. */
struct ring {
    ptl_process_t next;
    uint32_t from_host, last;
    uint64_t passed;
};

__handler static int pass_header(const ptl_header_t h, void *state)
{
    struct ring *r = state;
    ++r->passed;
    if (h.hdr_data >= r->last) {
        PtlHandlerDMAToHostB(&h.hdr_data, 0, sizeof(h.hdr_data), PTL_HANDLER_HOST_MEM);
        return DROP; /* the only event */
    }
    int code;
    if (r->from_host) {
        code =
            PtlHandlerPutFromHost(0, h.length, PTL_NO_ACK_REQ, r->next, 0, 0, NULL, h.hdr_data + 1);
    } else {
        code = PtlHandlerPutFromDevice(&r->passed, sizeof(r->passed), PTL_NO_ACK_REQ, r->next, 0, 0,
                                       NULL, h.hdr_data + 1);
    }
    return code == PTL_OK ? DROP_PENDING : FAIL;
}
PTL_HANDLER(pass_header);

/* One token goes round, or several, without anybody's host. */
static void token_ring(struct port *p, uint32_t from_host, size_t length, int tokens)
{
    static uint64_t at_end;
    struct ring r = {.next = p->id[(p->rank + 1) % p->size], .last = HOPS, .from_host = from_host};
    ptl_handlers_t h = handler_set(pass_header, NULL, NULL, &r, sizeof(r), &at_end, 8);
    ptl_handle_me_t entry = handler_target(p, memory, sizeof(memory), 0, PTL_CT_NONE, &h);
    at_end = 0;
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(p, source, length, 0, PTL_CT_NONE);
    for (int i = 0; i < tokens && p->rank == 0; i++) {
        OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, p->id[1], p->pt, 0, 0, NULL, 1));
    }
    if (p->rank == HOPS % p->size) {
        for (int i = 0; i < tokens; i++) {
            CHECK_EQ(EVENT(p->eq, PTL_EVENT_PUT).hdr_data, HOPS);
        }
        CHECK_EQ(at_end, HOPS);
    }
    BARRIER();
    NO_EVENT(p->eq);
    port_unlink(p, entry);
    port_release(md);
}

PTEST_KINDS(thousand_hops, RING)
{
    struct port p;
    port_open(&p, kind, rank, size);
    token_ring(&p, 0, 8, 1);
    token_ring(&p, 1, 8, 5);
    token_ring(&p, 1, 10000, 2);
    port_close(&p);
}

/* The whole ring is one process. */
PTEST_KINDS(thousand_hops_to_itself, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    struct ring r = {.next = p.id[0], .last = HOPS};
    uint64_t at_end = 0;
    ptl_handlers_t h = handler_set(pass_header, NULL, NULL, &r, sizeof(r), &at_end, 8);
    handler_target(&p, memory, sizeof(memory), 0, PTL_CT_NONE, &h);
    ptl_handle_md_t md = port_quiet_md(&p, source, 8, 0, PTL_CT_NONE);
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 1));
    EVENT(p.eq, PTL_EVENT_PUT);
    CHECK_EQ(at_end, HOPS);
    port_close(&p);
}
