/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows over shared memory. Each is a message of 8 bytes unless it says else, from A to B through
 * the ring between their segments, and all that both sides do until its last count or event is
 * seen by the program.
 */
#include "count.h"
#include "empty.h"

#include <stdio.h>
#include <stdlib.h>

enum { BITS = 7, SMALL = 8, WINDOW = 64, LINKS = 1000, PACKET = 64 };

static ptl_handle_md_t md;
static struct count_mark at_target, at_initiator;

static void verify_target(unsigned operations)
{
    count_is(&at_target, operations);
}

static void verify_both(unsigned operations)
{
    count_is(&at_target, operations);
    count_is(&at_initiator, operations);
}

/* ---- put, put_ack ---- */

static void open_put(void)
{
    at_target = count_entry(&count_b, BITS, PTL_ME_OP_PUT, NULL);
    md = count_md(&count_a, 0, PTL_EQ_NONE, PTL_CT_NONE);
}

static void put(void)
{
    count_ok(PtlPut(md, 0, SMALL, PTL_NO_ACK_REQ, count_b.id, count_b.counted, BITS, 0, NULL, 0),
             "PtlPut");
    count_reached(&at_target, 1);
}

static void open_put_ack(void)
{
    at_target = count_entry(&count_b, BITS, PTL_ME_OP_PUT, NULL);
    at_initiator = count_mark(&count_a);
    md = count_md(&count_a, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, at_initiator.ct);
}

static void put_ack(void)
{
    count_ok(PtlPut(md, 0, SMALL, PTL_CT_ACK_REQ, count_b.id, count_b.counted, BITS, 0, NULL, 0),
             "PtlPut");
    count_reached(&at_target, 1);
    count_reached(&at_initiator, 1);
}

/* ---- get, fetch_atomic ---- */

static void open_get(void)
{
    at_target = count_entry(&count_b, BITS, PTL_ME_OP_GET, NULL);
    at_initiator = count_mark(&count_a);
    md = count_md(&count_a, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, at_initiator.ct);
}

static void get(void)
{
    count_ok(PtlGet(md, 0, SMALL, count_b.id, count_b.counted, BITS, 0, NULL), "PtlGet");
    count_reached(&at_target, 1);
    count_reached(&at_initiator, 1);
}

static void open_fetch(void)
{
    at_target = count_entry(&count_b, BITS, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    at_initiator = count_mark(&count_a);
    md = count_md(&count_a, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, at_initiator.ct);
    *(int64_t *)(count_a.out + SMALL) = 1;
}

static void fetch(void)
{
    count_ok(PtlFetchAtomic(md, 0, md, SMALL, SMALL, count_b.id, count_b.counted, BITS, 0, NULL, 0,
                            PTL_SUM, PTL_INT64_T),
             "PtlFetchAtomic");
    count_reached(&at_target, 1);
    count_reached(&at_initiator, 1);
}

static void verify_fetch(unsigned operations)
{
    verify_both(operations);
    if (*(int64_t *)count_b.in != operations ||
        *(int64_t *)count_a.out != (int64_t)operations - 1) {
        count_fail("the sum of PtlFetchAtomic", (int)*(int64_t *)count_b.in);
    }
}

/* ---- mtl, mtl_window: as Open MPI's mtl/portals4 sends and takes a short message ---- */

static unsigned taken; /* messages */

static void open_mtl(void)
{
    md = count_md(&count_a, 0, count_a.sent, PTL_CT_NONE);
}

static void mtl_append(void)
{
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = count_b.in,
                   .length = COUNT_BYTES,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id = count_a.id,
                   .match_bits = BITS,
                   .ignore_bits = 0};
    count_ok(PtlMEAppend(count_b.ni, count_b.full, &me, PTL_PRIORITY_LIST, NULL, &handle),
             "PtlMEAppend");
}

static void mtl_put(unsigned i)
{
    ptl_size_t at = (ptl_size_t)i * SMALL;
    count_ok(PtlPut(md, at, SMALL, PTL_ACK_REQ, count_b.id, count_b.full, BITS, at, NULL, 0),
             "PtlPut");
}

/* Takes so many events, and then looks until there is none, as the mtl's progress function does
 * before it gives the thread back. */
static void mtl_progress(const struct count_nic *n, unsigned events, ptl_event_kind_t one,
                         ptl_event_kind_t other)
{
    ptl_handle_eq_t queues[2] = {n->sent, n->received};
    ptl_event_t event;
    unsigned which;
    int code;
    while ((code = PtlEQPoll(queues, 2, 0, &event, &which)) == PTL_OK ||
           (code == PTL_EQ_EMPTY && events != 0)) {
        if (code == PTL_OK && ((event.type != one && event.type != other) ||
                               event.ni_fail_type != PTL_NI_OK || events-- == 0)) {
            count_fail("an event that is not the next message's has a type that", (int)event.type);
        }
    }
    if (code != PTL_EQ_EMPTY) {
        count_fail("PtlEQPoll", code);
    }
}

static void mtl_exchange(unsigned messages)
{
    for (unsigned i = 0; i < messages; i++) {
        mtl_append();
    }
    for (unsigned i = 0; i < messages; i++) {
        mtl_put(i);
    }
    mtl_progress(&count_a, messages, PTL_EVENT_SEND, PTL_EVENT_SEND);
    mtl_progress(&count_b, messages, PTL_EVENT_PUT, PTL_EVENT_PUT);
    mtl_progress(&count_a, messages, PTL_EVENT_ACK, PTL_EVENT_ACK);
    taken += messages;
}

static void mtl(void)
{
    mtl_exchange(1);
}

static void mtl_window(void)
{
    mtl_exchange(WINDOW);
}

static void verify_mtl(unsigned operations)
{
    if (taken != operations) {
        count_fail("the number of messages taken", (int)taken);
    }
}

/* ---- atomic_self ---- */

static void open_self(void)
{
    at_target = count_entry(&count_a, BITS, PTL_ME_OP_PUT, NULL);
    md = count_md(&count_a, 0, PTL_EQ_NONE, PTL_CT_NONE);
    *(int64_t *)count_a.out = 1;
}

static void atomic_self(void)
{
    count_ok(PtlAtomic(md, 0, SMALL, PTL_NO_ACK_REQ, count_a.id, count_a.counted, BITS, 0, NULL, 0,
                       PTL_SUM, PTL_INT64_T),
             "PtlAtomic");
}

static void verify_self(unsigned operations)
{
    verify_target(operations);
    if (*(int64_t *)count_a.in != operations) {
        count_fail("the sum of PtlAtomic", (int)*(int64_t *)count_a.in);
    }
}

/* ---- chain: each link is a triggered put on oneself that counts in the next one's counter;
 *      only their firing is counted ---- */

static struct count_mark links[LINKS + 1];

static void open_chain(void)
{
    md = count_md(&count_a, 0, PTL_EQ_NONE, PTL_CT_NONE);
    links[0] = count_mark(&count_a);
    for (unsigned i = 0; i < LINKS; i++) {
        links[i + 1] = count_entry(&count_a, i, PTL_ME_OP_PUT, NULL);
    }
}

static void arm_chain(void)
{
    for (unsigned i = 0; i < LINKS; i++) {
        count_ok(PtlTriggeredPut(md, 0, SMALL, PTL_NO_ACK_REQ, count_a.id, count_a.counted, i, 0,
                                 NULL, 0, links[i].ct, links[LINKS].reached + 1),
                 "PtlTriggeredPut");
    }
}

static void chain(void)
{
    count_ok(PtlCTInc(links[0].ct, (ptl_ct_event_t){1, 0}), "PtlCTInc");
    count_reached(&links[LINKS], 1);
}

static void verify_chain(unsigned operations)
{
    for (unsigned i = 0; i <= LINKS; i++) {
        count_is(&links[i], operations / LINKS);
    }
}

/* ---- handlers that do nothing, natively or on an RV32 core ---- */

static void open_header(void)
{
    const ptl_handlers_t handlers = {
        .header_handler = empty_header, .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = 64};
    at_target = count_entry(&count_b, BITS, PTL_ME_OP_PUT, &handlers);
    md = count_md(&count_a, 0, PTL_EQ_NONE, PTL_CT_NONE);
}

static void open_payload(void)
{
    const ptl_handlers_t handlers = {
        .payload_handler = empty_payload, .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = 64};
    at_target = count_entry(&count_b, BITS, PTL_ME_OP_PUT, &handlers);
    md = count_md(&count_a, 0, PTL_EQ_NONE, PTL_CT_NONE);
}

static void put_packet(void)
{
    count_ok(PtlPut(md, 0, PACKET, PTL_NO_ACK_REQ, count_b.id, count_b.counted, BITS, 0, NULL, 0),
             "PtlPut");
    count_reached(&at_target, 1);
}

static const struct count_row rows[] = {
    {"put", "native", 1, open_put, NULL, put, verify_target},
    {"put_ack", "native", 1, open_put_ack, NULL, put_ack, verify_both},
    {"get", "native", 1, open_get, NULL, get, verify_both},
    {"fetch_atomic", "native", 1, open_fetch, NULL, fetch, verify_fetch},
    {"mtl", "native", 1, open_mtl, NULL, mtl, verify_mtl},
    {"mtl_window", "native", WINDOW, open_mtl, NULL, mtl_window, verify_mtl},
    {"atomic_self", "native", 1, open_self, NULL, atomic_self, verify_self},
    {"chain_link", "native", LINKS, open_chain, arm_chain, chain, verify_chain},
    {"header", "native", 1, open_header, NULL, put, verify_target},
    {"payload", "native", 1, open_payload, NULL, put_packet, verify_target},
    {"header_rv32", "rv32", 1, open_header, NULL, put, verify_target},
    {"payload_rv32", "rv32", 1, open_payload, NULL, put_packet, verify_target},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    return count_main(argc, argv, "shm", rows);
}
