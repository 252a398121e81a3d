/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of the initiator that are freed while an operation is under way. To have one that
 * surely is, the target's process is stopped (SIGSTOP), the operation is started, and what
 * the case is about is done before the target goes on.
 */
#include "handles_kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char from[1 << 20], to[1 << 20];
enum { SLOT_PROCESS = 0 };

/* What is under way: a call and a length. */
static const struct pending {
    const char *name;
    enum suite_call call;
    ptl_size_t length;
    ptl_ack_req_t ack;
} pendings[] = {
    {"put_8", CALL_PUT, 8, PTL_ACK_REQ},           {"put_8_ct", CALL_PUT, 8, PTL_CT_ACK_REQ},
    {"put_8_oc", CALL_PUT, 8, PTL_OC_ACK_REQ},     {"put_100000", CALL_PUT, 100000, PTL_ACK_REQ},
    {"put_1m", CALL_PUT, 1 << 20, PTL_ACK_REQ},    {"get_8", CALL_GET, 8, PTL_NO_ACK_REQ},
    {"get_1m", CALL_GET, 1 << 20, PTL_NO_ACK_REQ}, {"atomic_8", CALL_ATOMIC, 8, PTL_ACK_REQ},
    {"fetch_8", CALL_FETCH, 8, PTL_NO_ACK_REQ},    {"swap_8", CALL_SWAP, 8, PTL_NO_ACK_REQ},
};
enum { PENDINGS = sizeof(pendings) / sizeof(pendings[0]) };

/* ---- The target stands still ----------------------------------------------- */

static pid_t target_process(struct scene *s)
{
    return (pid_t)suite_look(s, 1, SLOT_PROCESS);
}

static char state_of(pid_t pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL || fscanf(f, "%*d (%*[^)]) %c", &state) != 1) {
        FAIL("%s cannot be read", path);
    }
    fclose(f);
    return state;
}

static const char stops[] = "stops its peer";

static void stop_target(struct scene *s)
{
    uint64_t end = suite_deadline();
    CHECK_EQ(kill(target_process(s), SIGSTOP), 0);
    while (state_of(target_process(s)) != 'T') {
        CHECK(suite_now_ms() < end);
        suite_sleep_ms(1);
    }
}

static void let_target_go(struct scene *s)
{
    CHECK_EQ(kill(target_process(s), SIGCONT), 0);
}

/* An entry for everything; a first message has passed, so that the two are connected. */
static void prepare(struct scene *s)
{
    suite_show(s, SLOT_PROCESS, (uint64_t)getpid());
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, sizeof(to),
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, 8, PTL_MD_EVENT_SEND_DISABLE);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        suite_release(s, md);
    }
    STEP();
    if (s->target) { /* waits for the NIC's lock: the message is out of the ring altogether */
        suite_release(s, suite_md(s, to, 8, 0));
    }
    STEP();
}

/* ---- What is under way ----------------------------------------------------- */

struct at_work {
    ptl_handle_md_t md, get_md;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
};

static bool replies(const struct pending *p)
{
    return p->call == CALL_GET || p->call == CALL_FETCH || p->call == CALL_SWAP;
}

/* Stops the target and starts the operation, with a queue and a counter of its own. */
static struct at_work start(struct scene *s, const struct pending *p)
{
    static const unsigned long long operand;
    struct at_work w = {.eq = suite_eq(s, 16), .ct = suite_ct(s)};
    unsigned options = PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    w.md = suite_md_with(s, from, sizeof(from), options, w.eq, w.ct);
    w.get_md = p->call == CALL_FETCH || p->call == CALL_SWAP
                   ? suite_md_with(s, from, sizeof(from), options, w.eq, w.ct)
                   : w.md;
    stop_target(s);
    struct suite_move m = suite_move_to(s, p->call);
    m.md = w.md;
    m.get_md = w.get_md;
    m.get_offset = 64;
    m.length = p->length;
    m.ack = p->ack;
    m.op = p->call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
    m.type = PTL_UINT64_T;
    m.operand = &operand;
    OK(suite_move(&m));
    return w;
}

/* The event that ends it, if a queue is told. */
static void expect_end(struct scene *s, const struct pending *p, ptl_handle_eq_t eq)
{
    if (replies(p)) {
        EXPECT(eq, PTL_EVENT_REPLY, .mlength = IS(p->length));
    } else if (p->ack == PTL_ACK_REQ) {
        EXPECT(eq, PTL_EVENT_ACK, .mlength = IS(p->length));
    }
}

/* ---- Cases ----------------------------------------------------------------- */

static void release_md(struct scene *s)
{
    const struct pending *p = s->c->data;
    prepare(s);
    if (s->initiator) {
        struct at_work w = start(s, p);
        for (int i = 0; i < 10; i++) {
            /* of a fetch the put side may be through when its bytes have left */
            CODE(PtlMDRelease(w.get_md), PTL_IN_USE);
        }
        let_target_go(s);
        expect_end(s, p, w.eq);
        EXPECT_CT(w.ct, 1, 0);
        suite_release(s, w.get_md);
        if (w.md != w.get_md) {
            suite_release(s, w.md);
        }
        INVALID(PtlMDRelease(w.md));
        NO_EVENT(w.eq);
    }
    STEP();
}

/* Frees the queue and or the counter of what is at work; objects made then have their places. */
static void free_meanwhile(struct scene *s, bool eq, bool ct)
{
    const struct pending *p = s->c->data;
    prepare(s);
    if (s->initiator) {
        struct at_work w = start(s, p);
        if (eq) {
            OK(PtlEQFree(w.eq));
            INVALID(PtlEQFree(w.eq));
        }
        if (ct) {
            OK(PtlCTFree(w.ct));
            INVALID(PtlCTFree(w.ct));
        }
        struct handles_taken taken = handles_take_all(s);
        let_target_go(s);
        if (!eq) {
            expect_end(s, p, w.eq);
        }
        if (!ct) {
            EXPECT_CT(w.ct, 1, 0);
        }
        suite_release(s, w.get_md);
        handles_untouched(&taken);
        NO_EVENT(s->mdeq);
        EXPECT_CT(s->mdct, 0, 0);
    }
    STEP();
}

static void free_eq(struct scene *s)
{
    free_meanwhile(s, true, false);
}

static void free_ct(struct scene *s)
{
    free_meanwhile(s, false, true);
}

static void free_both(struct scene *s)
{
    free_meanwhile(s, true, true);
}

/* The interface is closed under the operation; it can be opened again. */
static void close_ni(struct scene *s)
{
    const struct pending *p = s->c->data;
    prepare(s);
    if (s->initiator) {
        struct at_work w = start(s, p);
        uint64_t end = suite_deadline();
        ptl_event_t event;
        ptl_handle_ni_t again;
        OK(PtlNIFini(s->ni));
        CHECK(suite_now_ms() < end);
        INVALID(PtlMDRelease(w.md));
        INVALID(PtlEQGet(w.eq, &event));
        INVALID(PtlNIFini(s->ni));
        OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &again));
        INVALID(PtlMDRelease(w.md));
        OK(PtlNIFini(again));
        let_target_go(s);
        s->closed = true;
    }
    STEP();
    if (s->target) { /* it has got over it */
        ptl_handle_md_t md = suite_md(s, from, 8, PTL_MD_EVENT_SEND_DISABLE);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
}

GENERATE(pending_cases)
{
    setenv("PINWHEEL_LINGER_MS", "200", 1); /* how long PtlNIFini waits; for all processes */
    static const struct {
        const char *name, *rule;
        void (*body)(struct scene *);
    } deeds[] = {
        {"release_md", "3.10: PtlMDRelease gives PTL_IN_USE while an operation is under way",
         release_md},
        {"free_eq", "3.13: events of an operation whose queue was freed are lost, nothing else",
         free_eq},
        {"free_ct", "3.14: a counter that was freed is counted no more, nor one in its place",
         free_ct},
        {"free_eq_and_ct", "3.13: an operation ends without its queue and its counter", free_both},
    };
    for (unsigned kind = ML; kind <= NP; kind *= 2) { /* one crew for all cases of a kind */
        for (int i = 0; i < 4 * PENDINGS; i++) {
            suite_add_each((struct suite_case){.rule = deeds[i % 4].rule,
                                               .body = deeds[i % 4].body,
                                               .data = &pendings[i / 4],
                                               .desired = &handles_few,
                                               .own_process = stops},
                           kind, PAIR, "%s.%s", deeds[i % 4].name, pendings[i / 4].name);
        }
    }
    for (int i = 0; i < PENDINGS; i++) {
        suite_add_each((struct suite_case){.rule = "3.6: PtlNIFini with an operation under way "
                                                   "returns within a bounded time",
                                           .body = close_ni,
                                           .data = &pendings[i],
                                           .alone = true,
                                           .own_process = stops},
                       i % 2 ? MP : NL, PAIR, "close_ni.%s", pendings[i].name);
    }
}

/* ---- A put that nobody answers --------------------------------------------- */

CASE(release_after_send, ALL_KINDS, PAIR,
     "3.10: after SEND an MD whose put asks for no ack is free, whatever the target does",
     .own_process = stops)
{
    prepare(s);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, 8, 0);
        stop_target(s);
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        suite_release(s, md);
        let_target_go(s);
    }
    STEP();
}

CASE(many_at_work, ALL_KINDS, PAIR,
     "3.10: an MD is in use until the last of its operations has ended", .own_process = stops)
{
    enum { MANY = 40 };
    prepare(s);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE);
        stop_target(s);
        for (int i = 0; i < MANY; i++) {
            OK(PtlPut(md, 0, 100, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        }
        CODE(PtlMDRelease(md), PTL_IN_USE);
        let_target_go(s);
        for (int i = 0; i < MANY; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        suite_release(s, md);
    }
    STEP();
}
