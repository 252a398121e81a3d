/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from one process to another, and as many back, in bad weather: each arrives once, in
 * the order of the calls, with its bytes. Many small ones, and large ones, several under way.
 *
 * The target's slot of message i is that of i modulo SLOTS; so that none is overwritten before
 * it was looked at, the sender is never more than half of the slots ahead of what the
 * target has shown.
 */
#include "port.h"

#include <string.h>

enum { SLOTS = 2048, SHOW = 64, LONGEST = 64, DONE = 0 };

static unsigned char outbox[SLOTS][LONGEST], inbox[SLOTS][LONGEST];

static size_t length_of(uint64_t i)
{
    return i % 5 == 0 ? LONGEST : 8 + i % 8;
}

static unsigned char byte_of(int rank, uint64_t i)
{
    return (unsigned char)(i * 7 + i / SLOTS + (unsigned)rank);
}

static void send_next(struct port *p, ptl_handle_md_t md, uint64_t i)
{
    ptl_size_t slot = i % SLOTS;
    memset(outbox[slot], byte_of(p->rank, i), LONGEST);
    OK(PtlPut(md, slot * LONGEST, length_of(i), PTL_NO_ACK_REQ, p->id[1 - p->rank], p->pt, 0,
              slot * LONGEST, NULL, i));
}

/* Takes the message that must come next, if it is there. */
static bool take_next(struct port *p, uint64_t i)
{
    ptl_event_t event;
    int rc = PtlEQGet(p->eq, &event);
    if (rc == PTL_EQ_EMPTY) {
        return false;
    }
    OK(rc);
    CHECK_EQ(event.type, PTL_EVENT_PUT);
    CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
    CHECK_EQ(event.hdr_data, i);
    CHECK_EQ(event.mlength, length_of(i));
    CHECK_EQ(event.start, inbox[i % SLOTS]);
    CHECK_BYTES(event.start, event.mlength, byte_of(1 - p->rank, i));
    return true;
}

static void exchange(int rank, uint64_t count)
{
    struct port p;
    uint64_t sent = 0, taken = 0;
    port_open(&p, KIND_MP, rank, 2);
    port_target(&p, inbox, sizeof(inbox), PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = port_quiet_md(&p, outbox, sizeof(outbox), 0, PTL_CT_NONE);
    BARRIER();
    while (sent < count || taken < count) {
        for (int n = 0; n < SHOW && sent < count && sent < ptest_look(1 - rank, DONE) + SLOTS / 2;
             n++) {
            send_next(&p, md, sent++);
        }
        while (take_next(&p, taken)) {
            taken++;
            if (taken % SHOW == 0 || taken == count) {
                ptest_show(DONE, taken);
            }
        }
    }
    BARRIER();
    NO_EVENT(p.eq);
    port_close(&p);
}

/* ---- Large ones ---- */

enum { LARGE = 1 << 20, LARGE_COUNT = 48, UNDER_WAY = 4 };

static unsigned char large_out[UNDER_WAY][LARGE], large_in[LARGE_COUNT][LARGE];

static void fill_large(unsigned char *p, int rank, unsigned i)
{
    for (size_t k = 0; k < LARGE; k++) {
        p[k] = (unsigned char)(k * 7 + k / 251 + i * 31 + (unsigned)rank * 101);
    }
}

static void put_large(struct port *p, ptl_handle_md_t md, unsigned i)
{
    fill_large(large_out[i % UNDER_WAY], p->rank, i);
    OK(PtlPut(md, i % UNDER_WAY * (ptl_size_t)LARGE, LARGE, PTL_ACK_REQ, p->id[1 - p->rank], p->pt,
              0, i * (ptl_size_t)LARGE, NULL, i));
}

/* Each has the place of one that was acknowledged, which comes in order. */
PTEST_LIMIT(large, 2, 600)
{
    struct port p;
    port_open(&p, KIND_MP, rank, 2);
    port_target(&p, large_in, sizeof(large_in), PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md =
        port_md(&p, large_out, sizeof(large_out), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    BARRIER();
    for (unsigned i = 0; i < LARGE_COUNT; i++) {
        if (i >= UNDER_WAY) {
            EVENT(p.mdeq, PTL_EVENT_ACK);
        }
        put_large(&p, md, i);
    }
    for (unsigned i = 0; i < UNDER_WAY; i++) {
        EVENT(p.mdeq, PTL_EVENT_ACK);
    }
    for (unsigned i = 0; i < LARGE_COUNT; i++) {
        ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(event.hdr_data, i);
        CHECK_EQ(event.mlength, LARGE);
        fill_large(large_out[0], 1 - rank, i);
        CHECK(memcmp(large_in[i], large_out[0], LARGE) == 0);
    }
    BARRIER();
    NO_EVENT(p.eq);
    port_close(&p);
}

PTEST_LIMIT(thousands, 2, 120)
{
    exchange(rank, 10000);
}

PTEST_LIMIT(a_million, 2, 1800)
{
    exchange(rank, 500000);
}
