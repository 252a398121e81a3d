/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a message goes, as its header handler is told: header.offset, at entries whose offsets are
 * the initiator's and at such as manage their own, for each kind of request, and what the length
 * has in it.
 */
#include "handler.h"

enum { SIZE = 1000, USER = 16, STEPS = 8 };

static unsigned char memory[SIZE], source[4 * SIZE];

struct step {
    ptl_request_type_t type;
    size_t length; /* of its data */
    uint64_t remote_offset;
    uint64_t offset, mlength; /* that the handler is told of, that the event says */
    uint64_t told;            /* the length that the handler is told of */
    uint64_t answer;          /* of the header handler */
};

/* Initiators say where. What does not fit is not taken into account, nor is the user header. */
static const struct step remote[STEPS] = {
    {PTL_REQUEST_PUT, 50, 100, 100, 50, 50, PROCEED},
    {PTL_REQUEST_PUT, 50, 990, 990, 10, 50, PROCEED},
    {PTL_REQUEST_PUT, 50, 5000, 5000, 0, 50, PROCEED},
    {PTL_REQUEST_PUT, 80, 64, 64, 64, 80, PROCESS_DATA},
    {PTL_REQUEST_GET, 40, 200, 200, 40, 40, PROCEED},
    {PTL_REQUEST_ATOMIC, 8, 304, 304, 8, 8, PROCEED},
    {PTL_REQUEST_FETCH_ATOMIC, 8, 312, 312, 8, 8, PROCEED},
    {PTL_REQUEST_SWAP, 8, 320, 320, 8, 16, PROCEED},
};

/* The entry says where: behind what was there before, whatever the handlers made of that. */
static const struct step local[STEPS] = {
    {PTL_REQUEST_PUT, 48, 777, 0, 48, 48, PROCEED},
    {PTL_REQUEST_PUT, 80, 777, 48, 64, 80, PROCESS_DATA},
    {PTL_REQUEST_PUT, 100, 0, 128, 0, 100, DROP},
    {PTL_REQUEST_ATOMIC, 8, 0, 228, 8, 8, PROCEED},
    {PTL_REQUEST_GET, 40, 0, 236, 40, 40, PROCEED},
    {PTL_REQUEST_PUT, 700, 0, 276, 700, 700, PROCEED},
    {PTL_REQUEST_PUT, 50, 0, 976, 24, 50, PROCEED},
    {PTL_REQUEST_PUT, 50, 0, 1000, 0, 50, PROCEED},
};

struct state {
    uint64_t answer;
    uint64_t type, offset, length, user;
};

__handler static int noting_header(const ptl_header_t h, void *state)
{
    struct state *s = state;
    s->type = h.type;
    s->offset = h.offset;
    s->length = h.length;
    s->user = h.user_hdr_length;
    return (int)s->answer;
}
PTL_HANDLER(noting_header);

static void initiate(struct port *p, const struct step *s)
{
    ptl_handle_md_t md = port_md(p, source, sizeof(source), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    ptl_process_t to = p->id[1];
    uint64_t operand = 0;
    int event = PTL_EVENT_REPLY;
    switch (s->type) {
    case PTL_REQUEST_PUT:
        OK(PtlPut(md, 0, s->length, PTL_ACK_REQ, to, p->pt, HANDLER_BITS, s->remote_offset, NULL,
                  0));
        event = PTL_EVENT_ACK;
        break;
    case PTL_REQUEST_GET:
        OK(PtlGet(md, SIZE, s->length, to, p->pt, HANDLER_BITS, s->remote_offset, NULL));
        break;
    case PTL_REQUEST_ATOMIC:
        OK(PtlAtomic(md, 0, s->length, PTL_ACK_REQ, to, p->pt, HANDLER_BITS, s->remote_offset, NULL,
                     0, PTL_SUM, PTL_UINT64_T));
        event = PTL_EVENT_ACK;
        break;
    case PTL_REQUEST_FETCH_ATOMIC:
        OK(PtlFetchAtomic(md, SIZE, md, 0, s->length, to, p->pt, HANDLER_BITS, s->remote_offset,
                          NULL, 0, PTL_SUM, PTL_UINT64_T));
        break;
    default:
        OK(PtlSwap(md, SIZE, md, 0, s->length, to, p->pt, HANDLER_BITS, s->remote_offset, NULL, 0,
                   &operand, PTL_CSWAP, PTL_UINT64_T));
    }
    EVENT(p->mdeq, event);
    port_release(md);
}

static void check(const struct step *s, const struct state *got, const ptl_event_t *event)
{
    bool operand = s->type == PTL_REQUEST_SWAP, put = s->type == PTL_REQUEST_PUT;
    CHECK_EQ(got->type, s->type);
    CHECK_EQ(got->offset, s->offset);
    CHECK_EQ(got->length, s->told);
    CHECK_EQ(got->user, put ? USER : operand ? 8 : 0);
    CHECK_EQ(event->mlength, s->mlength);
    CHECK_EQ(event->remote_offset, s->remote_offset);
    CHECK(event->start == memory + s->offset);
    if (put && s->mlength != 0) { /* the payload begins there, or with PROCEED the message */
        CHECK(memcmp(memory + s->offset, source + (s->answer == PROCEED ? 0 : USER), s->mlength) ==
              0);
    }
}

static void run(unsigned kind, int rank, int size, const struct step *steps, unsigned options)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_fill(source, sizeof(source), 1);
    ptl_handlers_t h = handler_set(noting_header, NULL, NULL, NULL, sizeof(struct state), NULL, 0);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (rank == 1) {
        OK(PtlHPUAllocMem(p.ni, sizeof(struct state), &h.hpu_mem));
        h.user_hdr_length = USER;
        entry = handler_target(&p, memory, SIZE, options, PTL_CT_NONE, &h);
    }
    for (int i = 0; i < STEPS; i++) {
        if (rank == 1) {
            struct state state = {.answer = steps[i].answer};
            OK(PtlHPUWrite(h.hpu_mem, 0, &state, sizeof(state)));
            BARRIER();
            static const int kinds[] = {[PTL_REQUEST_PUT] = PTL_EVENT_PUT,
                                        [PTL_REQUEST_GET] = PTL_EVENT_GET,
                                        [PTL_REQUEST_ATOMIC] = PTL_EVENT_ATOMIC,
                                        [PTL_REQUEST_FETCH_ATOMIC] = PTL_EVENT_FETCH_ATOMIC,
                                        [PTL_REQUEST_SWAP] = PTL_EVENT_FETCH_ATOMIC};
            ptl_event_t event = EVENT(p.eq, kinds[steps[i].type]);
            OK(PtlHPURead(h.hpu_mem, 0, &state, sizeof(state)));
            check(&steps[i], &state, &event);
        } else {
            BARRIER();
            initiate(&p, &steps[i]);
        }
        BARRIER();
    }
    if (rank == 1) {
        port_unlink(&p, entry);
        OK(PtlHPUFreeMem(h.hpu_mem));
    }
    port_close(&p);
}

PTEST_KINDS(remotely_managed, 2)
{
    run(kind, rank, size, remote, 0);
}

PTEST_MATCHING(locally_managed, 2)
{
    run(kind, rank, size, local, PTL_ME_MANAGE_LOCAL);
}
