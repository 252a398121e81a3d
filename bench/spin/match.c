/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of work->size bytes that are matched by the receiver, which has posted a receive:
 *
 *   handlers   handlers/rendezvous: the NICs match, and fetch what is long
 *   cpu        "there are n bytes" is an event of rank 1's program, which then gets them
 *
 * An iteration is one message, and the answer of rank 1 when it is there. In MPI: MPI_Recv of an
 * MPI_Send.
 */
#include "jobs.h"

#include "rendezvous.h"

#include <string.h>

enum { MATCHING = LINK_OWN, DATA, EAGER = 4096, EARLY = 64 * EAGER, MESSAGE_BITS = 17 };

static struct rendezvous end_point;
static uint8_t early[EARLY];
static bool opened;
static ptl_handle_md_t landing; /* cpu: over `to` */

/* ---- By handlers ---- */

static int open_end_point(void)
{
    const ptl_process_t any = {.phys = {PTL_NID_ANY, PTL_PID_ANY}};
    if (opened) {
        return 0;
    }
    opened = true;
    return link_index(MATCHING, self.eq) == 0 && link_index(DATA, self.eq) == 0 &&
                   link_ok(rendezvous_open(&end_point, self.ni, MATCHING, DATA, self.eq, any, EAGER,
                                           early, EARLY),
                           "rendezvous_open")
               ? 0
               : -1;
}

static int finish(const struct rendezvous_request *q)
{
    while (!q->done) {
        ptl_event_t event;
        int code = PtlEQWait(self.eq, &event);
        code = code == PTL_OK ? rendezvous_event(&end_point, &event) : code;
        if (!link_ok(code, "rendezvous_event")) {
            return -1;
        }
    }
    return q->fail == PTL_NI_OK ? 0 : turn_fail("a message failed: %d", (int)q->fail);
}

static int send_one(uint64_t size)
{
    struct rendezvous_request q;
    int code = rendezvous_send(&end_point, &q, spin.from, size, self.peer, MESSAGE_BITS);
    return link_ok(code, "rendezvous_send") && finish(&q) == 0 ? spin_hear() : -1;
}

static int receive_one(uint64_t size)
{
    struct rendezvous_request q;
    int code = rendezvous_receive(&end_point, &q, spin.to, size, self.peer, MESSAGE_BITS, 0);
    return link_ok(code, "rendezvous_receive") && finish(&q) == 0 ? spin_say() : -1;
}

/* ---- By the CPU ---- */

static int open_for_cpu(void)
{
    ptl_md_t md = {.start = spin.to,
                   .length = SPIN_TO,
                   .options = PTL_MD_EVENT_CT_REPLY,
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = spin.answered.ct};
    if (turn_rank() == 0) {
        return spin_entry(LINK_COUNTED, PTL_ME_OP_GET, SPIN_BITS, 0, spin.from, SPIN_FROM,
                          &spin.arrived, NULL, &spin.entry);
    }
    return link_ok(PtlMDBind(self.ni, &md, &landing), "PtlMDBind")
               ? spin_entry(LINK_EVENTS, 0, SPIN_BITS, 0, NULL, 0, &spin.arrived, NULL, &spin.entry)
               : -1;
}

static int announce(uint64_t size)
{
    int code =
        PtlPut(spin.md, 0, 0, PTL_NO_ACK_REQ, self.peer, LINK_EVENTS, SPIN_BITS, 0, NULL, size);
    return link_ok(code, "PtlPut") ? spin_hear() : -1;
}

static int fetch(void)
{
    ptl_event_t event;
    int code = PtlEQWait(self.eq, &event);
    if (!link_ok(code, "PtlEQWait")) {
        return -1;
    }
    code = PtlGet(landing, 0, event.hdr_data, self.peer, LINK_COUNTED, SPIN_BITS, 0, NULL);
    return link_ok(code, "PtlGet") && link_wait(&spin.answered, 1) == 0 ? spin_say() : -1;
}

/* ---- A turn ---- */

static int begin(const struct turn_work *work)
{
    if (turn_rank() == 0) {
        turn_fill(spin.from, work->size, work->size);
    } else {
        memset(spin.to, 0, work->size);
    }
    int rc = spin.way == WAY_CPU ? open_for_cpu() : open_end_point();
    return rc != 0 ? rc : spin_ready();
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    int rc = 0;
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        if (spin.way == WAY_CPU) {
            rc = turn_rank() == 0 ? announce(work->size) : fetch();
        } else {
            rc = turn_rank() == 0 ? send_one(work->size) : receive_one(work->size);
        }
    }
    return rc;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    int rc = turn_rank() == 1 && work->check ? turn_check(spin.to, work->size, work->size) : 0;
    if (spin.way == WAY_CPU && turn_rank() == 1 &&
        !link_ok(PtlMDRelease(landing), "PtlMDRelease")) {
        return -1;
    }
    return spin_unlink() != 0 ? -1 : rc;
}

static bool fits(const struct turn_work *work)
{
    return spin_on(work) && work->size > 0 && work->size <= SPIN_MESSAGE;
}

static const struct turn_duty duties[] = {{BENCH_SPIN_RENDEZVOUS, fits, begin, run, end}};

const struct spin_family spin_match = {duties, 1, 1u << WAY_HANDLERS | 1u << WAY_CPU};
