/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers ask of others, from HPU memory and from the host, and counters of the host.
 *
 *      rank 0 ──put──► entry with handlers at rank 1
 *                         └── get, atomic, ... ──► table: an entry at a portal table index of
 *                                                  its own, of rank 0
 */
#include "handler.h"

enum { WORDS = 256, LENGTH = WORDS * 8, AT = 3 /* word of the table that is asked for */ };

static uint64_t table[WORDS], memory[WORDS];
static ptl_pt_index_t table_pt;
static ptl_handle_eq_t table_eq;

/* HPU memory: the call that the header handler is to make, with its data behind it. */
enum call { GET, ATOMIC, FETCH, SWAP, CALLS };
struct order {
    uint32_t call, host, ex, pt, ack, operation, datatype, answer;
    ptl_process_t target;
    uint64_t length, operand, bad_pointer, offset;
    uint64_t data[WORDS], found[WORDS];
};

/* handler_host_mem */
static struct notes {
    uint64_t calls;
    int64_t code;
    uint64_t found[WORDS];
} notes;

static int to_device(struct order *o)
{
    uint64_t to = AT * 8, *found = o->bad_pointer ? NULL : o->found;
    ptl_ack_req_t ack = (ptl_ack_req_t)o->ack;
    ptl_op_t op = (ptl_op_t)o->operation;
    ptl_datatype_t type = (ptl_datatype_t)o->datatype;
    switch (o->call * 2 + o->ex) {
    case GET * 2:
        return PtlHandlerGetToDevice(found, o->length, o->target, 7, to);
    case GET * 2 + 1:
        return PtlHandlerGetToDeviceEx(found, o->length, o->target, o->pt, 7, to);
    case ATOMIC * 2:
        return PtlHandlerAtomicFromDevice(o->data, o->length, ack, o->target, 7, to, o, 9, op,
                                          type);
    case ATOMIC * 2 + 1:
        return PtlHandlerAtomicFromDeviceEx(o->data, o->length, ack, o->target, o->pt, 7, to, o, 9,
                                            op, type);
    case FETCH * 2:
        return PtlHandlerFetchAtomicFromDevice(found, o->data, o->length, o->target, 7, to, 9, op,
                                               type);
    case FETCH * 2 + 1:
        return PtlHandlerFetchAtomicFromDeviceEx(found, o->data, o->length, o->target, o->pt, 7, to,
                                                 9, op, type);
    case SWAP * 2:
        return PtlHandlerSwapFromDevice(found, o->data, o->length, o->target, 7, to, 9, &o->operand,
                                        op, type);
    default:
        return PtlHandlerSwapFromDeviceEx(found, o->data, o->length, o->target, o->pt, 7, to, 9,
                                          &o->operand, op, type);
    }
}

/* In the entry what is sent is at 0 and what is found behind it. */
static int to_host(struct order *o)
{
    uint64_t to = AT * 8, from = 0, found = LENGTH / 2 + o->offset;
    ptl_ack_req_t ack = (ptl_ack_req_t)o->ack;
    ptl_op_t op = (ptl_op_t)o->operation;
    ptl_datatype_t type = (ptl_datatype_t)o->datatype;
    switch (o->call * 2 + o->ex) {
    case GET * 2:
        return PtlHandlerGetToHost(found, o->length, o->target, 7, to, o);
    case GET * 2 + 1:
        return PtlHandlerGetToHostEx(found, o->length, o->target, o->pt, 7, to, o);
    case ATOMIC * 2:
        return PtlHandlerAtomicFromHost(from, o->length, ack, o->target, 7, to, o, 9, op, type);
    case ATOMIC * 2 + 1:
        return PtlHandlerAtomicFromHostEx(from, o->length, ack, o->target, o->pt, 7, to, o, 9, op,
                                          type);
    case FETCH * 2:
        return PtlHandlerFetchAtomicFromHost(found, from, o->length, o->target, 7, to, o, 9, op,
                                             type);
    case FETCH * 2 + 1:
        return PtlHandlerFetchAtomicFromHostEx(found, from, o->length, o->target, o->pt, 7, to, o,
                                               9, op, type);
    case SWAP * 2:
        return PtlHandlerSwapFromHost(found, from, o->length, o->target, 7, to, o, 9, &o->operand,
                                      op, type);
    default:
        return PtlHandlerSwapFromHostEx(found, from, o->length, o->target, o->pt, 7, to, o, 9,
                                        &o->operand, op, type);
    }
}

__handler static int ask(const ptl_header_t h, void *state)
{
    struct order *o = state;
    int64_t code = o->host ? to_host(o) : to_device(o);
    PtlHandlerDMAToHostB(&code, offsetof(struct notes, code), sizeof(code), PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAToHostB(o->found, offsetof(struct notes, found), sizeof(o->found),
                         PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAFetchAddB(0, 1, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    return (int)o->answer;
}
PTL_HANDLER(ask);

/* The table is at an index of its own, or at that of the handlers: then Ex is not needed. */
static void open_table(struct port *p, bool own_index)
{
    ptl_handle_me_t entry;
    table_pt = p->pt;
    table_eq = p->eq;
    if (own_index) {
        OK(PtlEQAlloc(p->ni, PORT_EVENTS, &table_eq));
        OK(PtlPTAlloc(p->ni, 0, table_eq, 20, &table_pt));
    }
    if (p->rank == 0) {
        for (int i = 0; i < WORDS; i++) {
            table[i] = 1000 + (uint64_t)i;
        }
        ptl_me_t me =
            port_entry(p, table, LENGTH, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
        OK(port_append_code(p, table_pt, &me, NULL, &entry));
    }
}

static ptl_handle_me_t give_order(struct port *p, const struct order *o, unsigned options,
                                  ptl_handle_ct_t ct)
{
    ptl_handlers_t h = handler_set(ask, NULL, NULL, o, sizeof(*o), &notes, sizeof(notes));
    memset(&notes, 0, sizeof(notes));
    for (int i = 0; i < WORDS; i++) {
        memory[i] = 50 + (uint64_t)i;
    }
    ptl_me_t me =
        port_entry(p, memory, LENGTH, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options);
    me.ct_handle = ct;
    return handler_append(p, &me, &h);
}

static struct order new_order(const struct port *p, uint32_t call, uint32_t host, uint32_t ex)
{
    struct order o = {.call = call,
                      .host = host,
                      .ex = ex,
                      .pt = table_pt,
                      .ack = PTL_ACK_REQ,
                      .operation = call == SWAP ? PTL_CSWAP : PTL_SUM,
                      .datatype = PTL_UINT64_T,
                      .answer = DROP,
                      .target = p->id[0],
                      .length = call == SWAP ? 8 : 40,
                      .operand = 1000 + AT};
    for (int i = 0; i < WORDS; i++) {
        o.data[i] = 50 + (uint64_t)i;
    }
    return o;
}

static void trigger(struct port *p)
{
    BARRIER();
    if (p->rank == 0) {
        handler_put(p, table, 0, 0, 0, PTL_NI_OK);
    }
    BARRIER();
}

/* What the table was asked for, and what has become of it. */
static void check_table(const struct order *o)
{
    static const int kinds[] = {PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC,
                                PTL_EVENT_FETCH_ATOMIC};
    ptl_event_t event = EVENT(table_eq, kinds[o->call]);
    CHECK_EQ(event.mlength, o->length);
    CHECK_EQ(event.remote_offset, AT * 8);
    CHECK(o->call == GET || event.hdr_data == 9);
    for (uint64_t i = 0; i < WORDS; i++) {
        bool within = i >= AT && i < AT + o->length / 8 && o->call != GET;
        uint64_t sent = 50 + i - AT;
        CHECK_EQ(table[i], !within ? 1000 + i : o->call == SWAP ? sent : 1000 + i + sent);
        table[i] = 1000 + i;
    }
}

static void check_found(const uint64_t *found, const struct order *o)
{
    for (uint64_t i = 0; i < o->length / 8; i++) {
        CHECK_EQ(found[i], 1000 + AT + i);
    }
}

/* The message's own event and, if there is to be one, that of what its handler asked for, in
 * any order; the latter. */
static ptl_event_t two_events(struct port *p, int kind, int fail)
{
    ptl_event_t event = {0}, answer = {0};
    for (int i = kind == 0; i < 2; i++) {
        unsigned which;
        OK(PtlEQPoll(&p->eq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
        if (event.type == PTL_EVENT_PUT) {
            CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
            CHECK_EQ(event.mlength, 0);
        } else {
            answer = event;
        }
    }
    CHECK_EQ(answer.type, kind);
    CHECK_EQ(answer.ni_fail_type, fail);
    return answer;
}

static void one_round(struct port *p, uint32_t call, uint32_t host, uint32_t ex)
{
    struct order o = new_order(p, call, host, ex);
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        entry = give_order(p, &o, 0, ct);
    }
    trigger(p);
    if (p->rank == 0) {
        check_table(&o);
    } else {
        int kind = call == ATOMIC ? PTL_EVENT_ACK : host ? PTL_EVENT_REPLY : 0;
        ptl_event_t event = two_events(p, kind, PTL_NI_OK);
        CHECK(kind == 0 || (event.mlength == o.length && event.user_ptr != NULL));
        CHECK_EQ(notes.calls, 1);
        CHECK_EQ(notes.code, PTL_OK);
        if (call != ATOMIC) {
            check_found(host ? memory + WORDS / 2 : notes.found, &o);
        }
        NO_EVENT(p->eq);
        handler_check_ct(ct, 0, 0);
        port_unlink(p, entry);
    }
    BARRIER();
    OK(PtlCTFree(ct));
}

PTEST_KINDS(everything, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    open_table(&p, true);
    for (uint32_t call = 0; call < CALLS; call++) {
        one_round(&p, call, 0, 1);
        one_round(&p, call, 1, 1);
    }
    port_close(&p);
}

PTEST_KINDS(index_of_the_entry, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 0) {
        open_table(&p, false);
    }
    for (uint32_t call = 0; call < CALLS; call++) {
        one_round(&p, call, 0, 0);
        one_round(&p, call, 1, 0);
    }
    port_close(&p);
}

/* A use-once entry whose handler gets and says PENDING is complete with the data: the reply is
 * counted, and the entry is there until then. */
PTEST_KINDS(complete_with_the_reply, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    open_table(&p, true);
    ptl_handle_ct_t ct = port_ct(&p);
    struct order o = new_order(&p, GET, 1, 1);
    o.answer = DROP_PENDING;
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (rank == 1) {
        entry = give_order(&p, &o, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES, ct);
    }
    trigger(&p);
    if (rank == 1) {
        port_wait_ct(ct, o.length);
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_REPLY).mlength, o.length);
        check_found(memory + WORDS / 2, &o);
        NO_EVENT(p.eq);
        port_unlink(&p, entry);
    }
    BARRIER();
    OK(PtlCTFree(ct));
    port_close(&p);
}

/* The target refuses. */
PTEST_KINDS(refused_by_the_target, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    open_table(&p, true);
    for (uint32_t call = 0; call < CALLS; call++) {
        for (uint32_t host = 0; host < 2; host++) {
            struct order o = new_order(&p, call, host, 1);
            o.pt = table_pt + 1; /* nobody's */
            ptl_handle_me_t entry = PTL_INVALID_HANDLE;
            if (rank == 1) {
                entry = give_order(&p, &o, 0, PTL_CT_NONE);
            }
            trigger(&p);
            if (rank == 1) {
                int answer = call == ATOMIC ? PTL_EVENT_ACK : host ? PTL_EVENT_REPLY : 0;
                two_events(&p, answer, answer != 0 ? PTL_NI_DROPPED : 0);
                CHECK_EQ(notes.code, answer != 0 ? PTL_OK : PTL_FAIL);
                port_unlink(&p, entry);
            }
            BARRIER();
        }
    }
    port_close(&p);
}

static void refused(struct port *p, struct order o, const char *what)
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        entry = give_order(p, &o, 0, PTL_CT_NONE);
    }
    trigger(p);
    if (p->rank == 1) {
        if (notes.calls != 1 || notes.code != PTL_ARG_INVALID) {
            FAIL("%s: call %u gives %d", what, o.call, (int)notes.code);
        }
        EVENT(p->eq, PTL_EVENT_PUT);
        NO_EVENT(p->eq);
        port_unlink(p, entry);
    }
    BARRIER();
}

PTEST_KINDS(bad_arguments, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    open_table(&p, true);
    for (uint32_t form = 0; form < 2 * CALLS; form++) {
        struct order good = new_order(&p, form / 2, form % 2, 1), o = good;
        if (form / 2 != GET) {
            o.datatype = 99;
            refused(&p, o, "no type");
            o = good;
            o.operation = form / 2 == SWAP ? PTL_SUM : PTL_CSWAP;
            refused(&p, o, "an operation of another call");
            o = good;
            o.length = 12;
            refused(&p, o, "half an element");
        }
        o = good;
        o.pt = 0x10000;
        refused(&p, o, "a portal table index that cannot be");
        o = good;
        if (port_logical(&p)) {
            o.target.rank = (ptl_rank_t)size;
        } else {
            o.target.phys.pid = 0;
        }
        refused(&p, o, "nobody");
    }
    port_close(&p);
}

/* Memory that is not the handler's, or not the entry's, ends it. */
PTEST_KINDS(bad_memory, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    open_table(&p, true);
    for (uint32_t form = 0; form < 2 * CALLS; form++) {
        struct order o = new_order(&p, form / 2, form % 2, 1);
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        if (form / 2 == ATOMIC) {
            continue; /* nothing comes back */
        }
        o.bad_pointer = 1;
        o.offset = LENGTH / 2 - o.length + 1;
        if (rank == 1) {
            entry = give_order(&p, &o, 0, PTL_CT_NONE);
        }
        BARRIER();
        if (rank == 0) {
            handler_put(&p, table, 0, 0, 0, PTL_NI_HANDLER_SEGV);
        } else {
            EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_SEGV);
            CHECK_EQ(notes.calls, 0);
            port_unlink(&p, entry);
        }
        BARRIER();
    }
    port_close(&p);
}

/* A handler that asks its own process: the question passes the message that it works on. */
PTEST_KINDS(asks_oneself, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    open_table(&p, true);
    for (uint32_t call = 0; call < CALLS; call += call == GET ? FETCH : 1) {
        struct order o = new_order(&p, call, 0, 1);
        ptl_handle_me_t entry = give_order(&p, &o, 0, PTL_CT_NONE);
        ptl_handle_md_t md = port_quiet_md(&p, memory, 8, 0, PTL_CT_NONE);
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
        EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(notes.code, PTL_OK);
        check_found(notes.found, &o);
        check_table(&o);
        port_unlink(&p, entry);
        port_release(md);
    }
    port_close(&p);
}

/* The interface is closed under a handler that waits. */
PTEST_KINDS(closed_while_it_waits, 1)
{
    struct port p;
    setenv("PINWHEEL_LINGER_MS", "20", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1);
    port_open(&p, kind, rank, size);
    struct order o = new_order(&p, GET, 0, 1);
    o.pt = p.pt; /* it asks for its own entry, where a handler asks in turn, and so on */
    give_order(&p, &o, PTL_ME_OP_GET, PTL_CT_NONE);
    ptl_handle_md_t md = port_quiet_md(&p, table, 8, 0, PTL_CT_NONE);
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
    ptest_sleep_ms(5);
    port_close(&p);
}

/* ---- Counters ---- */

struct counting {
    ptl_handle_ct_t ct, other;
};

__handler static int count(const ptl_header_t h, void *state)
{
    const struct counting *c = state;
    ptl_ct_event_t value = {77, 77};
    int64_t codes[7] = {
        PtlHandlerCTInc(c->ct, (ptl_ct_event_t){5, 0}),
        PtlHandlerCTInc(c->ct, (ptl_ct_event_t){0, 2}),
        PtlHandlerCTInc(c->ct, (ptl_ct_event_t){1, 1}),
        PtlHandlerCTGet(c->ct, &value),
        PtlHandlerCTSet(c->ct, (ptl_ct_event_t){value.success + 100, 0}),
        PtlHandlerCTInc(c->other, (ptl_ct_event_t){1, 0}),
        (int64_t)(value.success * 10 + value.failure),
    };
    PtlHandlerDMAToHostB(codes, offsetof(struct notes, found), sizeof(codes), PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(count);

PTEST_KINDS(counters_of_the_host, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    struct counting c = {port_ct(&p), port_ct(&p)};
    ptl_handle_ct_t fired = port_ct(&p);
    OK(PtlCTFree(c.other));
    OK(PtlTriggeredCTInc(fired, (ptl_ct_event_t){1, 0}, c.ct, 105));
    ptl_handlers_t h = handler_set(count, NULL, NULL, &c, sizeof(c), &notes, sizeof(notes));
    ptl_handle_me_t entry = handler_target(&p, memory, LENGTH, 0, PTL_CT_NONE, &h);
    OK(PtlHandlersInvoke(entry, NULL, 0));
    EVENT(p.eq, PTL_EVENT_PUT);
    static const uint64_t want[] = {PTL_OK,          PTL_OK, PTL_ARG_INVALID, PTL_OK, PTL_OK,
                                    PTL_ARG_INVALID, 52};
    for (int i = 0; i < 7; i++) {
        CHECK_EQ(notes.found[i], want[i]);
    }
    handler_check_ct(c.ct, 105, 0);
    port_wait_ct(fired, 1);
    port_unlink(&p, entry);
    port_close(&p);
}

/* Outside of handlers the calls do nothing. */
PTEST(nobody_calls, 1)
{
    struct port p;
    port_open(&p, KIND_ML, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_ct_event_t value;
    CHECK_CODE(PtlHandlerCTInc(ct, (ptl_ct_event_t){1, 0}), PTL_FAIL);
    CHECK_CODE(PtlHandlerCTSet(ct, (ptl_ct_event_t){1, 0}), PTL_FAIL);
    CHECK_CODE(PtlHandlerCTGet(ct, &value), PTL_FAIL);
    CHECK_CODE(PtlHandlerPrintf("%d", 1), PTL_FAIL);
    CHECK_CODE(PtlHandlerGetToDevice(table, 8, p.id[0], 0, 0), PTL_FAIL);
    handler_check_ct(ct, 0, 0);
    port_close(&p);
}
