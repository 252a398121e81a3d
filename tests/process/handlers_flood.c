/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More puts of handlers than there is room for: rings of two lines, queues of one
 * message. Nothing stands still, and nothing is lost; a handler that finds no room
 * within PINWHEEL_HPU_PATIENCE_MS is told so.
 *
 *      every rank ──► every rank: entry with handlers ──echo──► landing of the sender
 */
#include "handler.h"

enum { PUTS = 100, LONGEST = 9000, LANDING = 20 };

static unsigned char source[LONGEST], memory[LONGEST], landed[LONGEST];

/* HPU memory of the echoing entry. */
struct echo {
    ptl_process_t source; /* of the message in progress: entries are per source */
    uint64_t refused;
    uint32_t tired; /* gives up when refused, instead of trying again */
    uint32_t landing;
};

static int send_back(struct echo *e, const void *local, ptl_size_t length, ptl_process_t to,
                     ptl_size_t offset, ptl_hdr_data_t hdr_data)
{
    int code;
    do {
        code = PtlHandlerPutFromDeviceEx(local, length, PTL_NO_ACK_REQ, to, e->landing, 0, offset,
                                         NULL, hdr_data);
        if (code == PTL_NO_SPACE) {
            PtlHandlerFAdd(&e->refused, NULL, 1);
        }
    } while (code == PTL_NO_SPACE && !e->tired);
    return code;
}

/* The header handler answers a message without payload, the payload handlers send
 * theirs back packet by packet. */
__handler static int echo_header(const ptl_header_t h, void *state)
{
    struct echo *e = state;
    if (h.length > h.user_hdr_length) {
        return PROCESS_DATA;
    }
    return send_back(e, NULL, 0, h.source_id, 0, 0) == PTL_OK ? PROCESS_DATA : FAIL;
}

__handler static int echo_payload(const ptl_payload_t p, void *state)
{
    struct echo *e = state;
    return send_back(e, p.base, p.length, e->source, p.offset, p.length) == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(echo_header);
PTL_HANDLER(echo_payload);

static size_t length_of(int i)
{
    uint64_t seed = (uint64_t)i;
    uint64_t r = splitmix(&seed);
    return i % 5 == 0 ? 0 : i % 5 < 3 ? r % 64 : i % 5 == 3 ? r % 1500 : r % LONGEST;
}

/* Packets that a message is echoed in. */
static uint64_t echoes(size_t length, size_t packet)
{
    return length == 0 ? 1 : (length + packet - 1) / packet;
}

/* Ranks below `servers` have echoing entries, and everybody sends to them: to index
 * 1 + r from rank r, so that an entry knows its source. */
struct plan {
    int servers;
    uint32_t tired;
    size_t longest;
};

struct flood {
    struct port p;
    ptl_handle_ct_t arrived, back;
};

static void open_flood(struct flood *f, const struct plan *plan, unsigned kind, int rank, int size)
{
    struct port *p = &f->p;
    ptl_handle_me_t handle;
    ptl_pt_index_t pt;
    port_open(p, kind, rank, size);
    ptest_fill(source, LONGEST, 1);
    f->arrived = port_ct(p);
    f->back = port_ct(p);
    for (int r = 0; r < size && rank < plan->servers; r++) {
        struct echo e = {.source = p->id[r], .landing = LANDING, .tired = plan->tired};
        ptl_handlers_t h = handler_set(echo_header, echo_payload, NULL, &e, sizeof(e), NULL, 0);
        ptl_me_t me = port_entry(p, memory, LONGEST,
                                 PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM);
        me.ct_handle = f->arrived;
        OK(PtlPTAlloc(p->ni, 0, PTL_EQ_NONE, (ptl_pt_index_t)(1 + r), &pt));
        OK(handler_append_code(p, pt, &me, &h, NULL, &handle));
    }
    ptl_me_t me = port_entry(p, landed, LONGEST,
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = f->back;
    OK(PtlPTAlloc(p->ni, 0, PTL_EQ_NONE, LANDING, &pt));
    OK(port_append_code(p, pt, &me, NULL, &handle));
    BARRIER();
}

static size_t planned(const struct plan *plan, int i)
{
    size_t length = length_of(i);
    return length < plan->longest ? length : plan->longest;
}

/* Sends everything and returns how many echoes are due. */
static uint64_t send_all(struct flood *f, const struct plan *plan)
{
    struct port *p = &f->p;
    ptl_spin_limits_t limits;
    uint64_t expected = 0;
    OK(PtlSpinLimits(p->ni, &limits));
    ptl_handle_md_t md = port_quiet_md(p, source, LONGEST, 0, PTL_CT_NONE);
    for (int i = 0; i < PUTS; i++) {
        for (int r = 0; r < plan->servers; r++) {
            OK(PtlPut(md, 0, planned(plan, i), PTL_NO_ACK_REQ, p->id[r],
                      (ptl_pt_index_t)(1 + p->rank), 0, 0, NULL, 0));
            expected += echoes(planned(plan, i), limits.max_payload_size);
        }
    }
    return expected;
}

/* No handler may give up; every echo arrives. */
static void nothing_lost(int servers, int rank, int size, unsigned kind)
{
    struct flood f;
    struct plan plan = {.servers = servers, .longest = LONGEST};
    open_flood(&f, &plan, kind, rank, size);
    uint64_t expected = send_all(&f, &plan);
    if (rank < servers) {
        port_wait_ct(f.arrived, (uint64_t)PUTS * (uint64_t)size);
    }
    port_wait_ct(f.back, expected);
    size_t longest = 0;
    for (int i = 0; i < PUTS; i++) {
        longest = length_of(i) > longest ? length_of(i) : longest;
    }
    CHECK_FILL(landed, longest, 1);
    port_close(&f.p);
}

/* Narrow passages; a refusal would have to wait longer than the case may take. */
static void narrow(const char *ring, const char *handler_queue, const char *send_queue,
                   const char *cells)
{
    setenv("PINWHEEL_SHM_RING", ring, 1);
    setenv("PINWHEEL_HANDLER_QUEUE", handler_queue, 1);
    setenv("PINWHEEL_SEND_QUEUE", send_queue, 1);
    setenv("PINWHEEL_SHM_CELLS", cells, 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1);
}

/* ---- Everybody to everybody: the echoes fit the handlers' queue ---- */

PTEST_KINDS(all_to_all, 4)
{
    nothing_lost(size, rank, size, kind);
}

PTEST_KINDS(all_to_all_in_two_lines, 4)
{
    narrow("2", "16384", "1024", "2");
    nothing_lost(size, rank, size, kind);
}

PTEST_KINDS(all_to_all_one_by_one, 4)
{
    narrow("2", "16384", "1", "2");
    nothing_lost(size, rank, size, kind);
}

PTEST_LIMIT(all_to_all_of_eight, 8, 120)
{
    narrow("2", "16384", "4", "2");
    nothing_lost(size, rank, size, KIND_ML);
}

PTEST_KINDS(to_itself_in_two_lines, 1)
{
    narrow("2", "16384", "1", "2");
    nothing_lost(1, rank, size, kind);
}

/* ---- To one server, whose clients always take their echoes ---- */

static void server(int rank, int size, unsigned kind)
{
    struct flood f;
    struct plan plan = {.servers = 1, .longest = LONGEST};
    open_flood(&f, &plan, kind, rank, size);
    uint64_t expected = rank == 0 ? 0 : send_all(&f, &plan);
    if (rank == 0) {
        port_wait_ct(f.arrived, (uint64_t)PUTS * (uint64_t)(size - 1));
    } else {
        port_wait_ct(f.back, expected);
    }
    port_close(&f.p);
}

PTEST_KINDS(queues_of_one, 4)
{
    narrow("512", "1", "1", "64");
    server(rank, size, kind);
}

PTEST_KINDS(queues_of_four, 4)
{
    narrow("8", "4", "4", "4");
    server(rank, size, kind);
}

PTEST_KINDS(all_narrow, 4)
{
    narrow("2", "1", "1", "2");
    server(rank, size, kind);
}

/* ---- More than all queues can hold: some are refused, none is lost unseen ---- */

static void some_refused(int rank, int size, unsigned kind)
{
    struct flood f;
    struct plan plan = {.servers = size, .longest = 1000, .tired = 1};
    uint64_t sent = (uint64_t)PUTS * (uint64_t)size, echoed = 0, returned = 0;
    narrow("2", "1", "1", "2");
    setenv("PINWHEEL_HPU_PATIENCE_MS", "5", 1);
    open_flood(&f, &plan, kind, rank, size);
    send_all(&f, &plan);
    ptl_ct_event_t value = {0, 0};
    while (value.success + value.failure < sent) {
        OK(PtlCTGet(f.arrived, &value));
    }
    ptest_show(0, value.success);
    BARRIER();
    do { /* until all echoes that handlers have made came back */
        OK(PtlCTGet(f.back, &value));
        ptest_show(1, value.success);
        echoed = returned = 0;
        for (int r = 0; r < size; r++) {
            echoed += ptest_look(r, 0);
            returned += ptest_look(r, 1);
        }
    } while (returned < echoed);
    CHECK_EQ(returned, echoed);
    CHECK_EQ(value.failure, 0);
    port_close(&f.p);
}

PTEST_KINDS(some_are_refused, 4)
{
    some_refused(rank, size, kind);
}

PTEST_KINDS(some_are_refused_to_itself, 1)
{
    some_refused(rank, size, kind);
}

/* ---- From the host ---- */

/* Each message asks for BURST puts of the entry's memory back to its source. */
enum { BURST = 50 };

__handler static int burst_header(const ptl_header_t h, void *state)
{
    for (int i = 0; i < BURST; i++) {
        if (PtlHandlerPutFromHostEx(0, h.hdr_data, PTL_NO_ACK_REQ, h.source_id, LANDING, 0, 0, NULL,
                                    (ptl_hdr_data_t)i) != PTL_OK) {
            return FAIL;
        }
    }
    return DROP;
}
PTL_HANDLER(burst_header);

static void bursts(int rank, int size, unsigned kind)
{
    static const size_t lengths[] = {0, 8, 1000, 5000, LONGEST};
    enum { N = 20 };
    struct port p;
    ptl_handle_me_t handle;
    ptl_pt_index_t pt;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t back = port_ct(&p), arrived = port_ct(&p);
    ptest_fill(memory, LONGEST, 2);
    ptl_handlers_t h = handler_set(burst_header, NULL, NULL, NULL, 0, NULL, 0);
    handler_target(&p, memory, LONGEST, PTL_ME_EVENT_SUCCESS_DISABLE, arrived, &h);
    ptl_me_t me = port_entry(&p, landed, LONGEST,
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = back;
    OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, LANDING, &pt));
    OK(port_append_code(&p, pt, &me, NULL, &handle));
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, NULL, 0, 0, PTL_CT_NONE);
    for (unsigned i = 0; i < N; i++) {
        OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, p.id[(rank + 1) % size], p.pt, 0, 0, NULL,
                  lengths[i % 5]));
    }
    port_wait_ct(arrived, N);
    port_wait_ct(back, (uint64_t)N * BURST);
    CHECK_FILL(landed, LONGEST, 2);
    port_close(&p);
}

PTEST_KINDS(bursts_from_the_host, 3)
{
    bursts(rank, size, kind);
}

PTEST_KINDS(bursts_with_little_room, 3)
{
    narrow("2", "4", "1", "2");
    bursts(rank, size, kind);
}

/* ---- No room for long ---- */

/* Rank 1's handler echoes to rank 0, which does not take it: its own handler, in the way
 * of everything from rank 1, waits for a word of its host. An echo is refused in time,
 * and everybody goes on. */
__handler static int stuck_header(const ptl_header_t h, void *state)
{
    uint64_t go = 0;
    while (go == 0) {
        PtlHandlerYield();
        PtlHandlerDMAFromHostB(0, &go, sizeof(go), PTL_HANDLER_HOST_MEM);
    }
    return DROP;
}
PTL_HANDLER(stuck_header);

PTEST(refused_in_time, 2)
{
    enum { SHOW_REFUSED, SHOW_SENT, MOST = 1 << 20 };
    static volatile uint64_t go;
    struct port p;
    ptl_handle_me_t handle;
    ptl_pt_index_t pt;
    narrow("2", "1", "1024", "2");
    setenv("PINWHEEL_UDP_BUFFER", "65536", 1); /* a network holds more than these rings */
    setenv("PINWHEEL_UDP_PACKET", "548", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "20", 1);
    setenv("PINWHEEL_HPU_QUEUE", "1", 1); /* else rank 0's takes all of the echoes in hand */
    port_open(&p, KIND_ML, rank, size);
    if (rank == 1) {
        struct echo e = {.source = p.id[0], .tired = 1, .landing = LANDING};
        ptl_handlers_t h = handler_set(echo_header, echo_payload, NULL, &e, sizeof(e), NULL, 0);
        handler_target(&p, memory, LONGEST, 0, PTL_CT_NONE, &h);
    } else {
        ptl_handlers_t h = handler_set(stuck_header, NULL, NULL, NULL, 0, (void *)&go, sizeof(go));
        ptl_me_t me = port_entry(&p, memory, LONGEST, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, LANDING, &pt));
        OK(handler_append_code(&p, pt, &me, &h, NULL, &handle));
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_quiet_md(&p, source, 8, 0, PTL_CT_NONE);
        uint64_t sent = 0;
        while (ptest_look(1, SHOW_REFUSED) == 0 && sent < MOST) {
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            sent++;
        }
        go = 1;
        ptest_show(SHOW_SENT, sent);
        CHECK(sent < MOST);
    } else {
        for (uint64_t taken = 0;
             ptest_look(0, SHOW_SENT) == 0 || taken < ptest_look(0, SHOW_SENT);) {
            ptl_event_t event;
            unsigned which;
            if (PtlEQPoll(&p.eq, 1, 10, &event, &which) == PTL_OK) {
                taken++;
                if (event.ni_fail_type == PTL_NI_HANDLER_FAIL) {
                    ptest_show(SHOW_REFUSED, 1);
                }
            }
        }
    }
    BARRIER();
    port_close(&p);
}
