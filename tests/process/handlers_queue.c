/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue between handlers and their host (spin_queue.h): order, answers in any order, a host
 * that never looks, handlers that do not wait for ever; and printf, which needs no host.
 */
#include "handler.h"

#include "spin_queue.h"

enum { SLOTS = 8, ROOM = 40, MOST = 4096 };

static uint64_t memory[64], ring[MOST / 8];
static struct notes {
    uint64_t calls[8]; /* by code: PTL_OK, PTL_ARG_INVALID, full, given up */
    uint64_t answers;
} notes;

/* HPU memory */
struct state {
    struct spin_queue_end queue;
    uint64_t asks, patience, length;
};

enum { DONE, BAD, FULL, LATE, OTHER };

static void note(int code)
{
    uint64_t as = code == PTL_OK            ? DONE
                  : code == PTL_ARG_INVALID ? BAD
                  : code == PTL_NO_SPACE    ? FULL
                  : code == PTL_ABORTED     ? LATE
                                            : OTHER;
    PtlHandlerDMAFetchAddB(as * 8, 1, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
}

/* Its request is the hdr_data, and again at the end; the answer is to be twice that. */
__handler static int request(const ptl_header_t h, void *state)
{
    const struct state *s = state;
    uint64_t data[ROOM / 8 + 1] = {h.hdr_data}, answer = 0, length = sizeof(answer);
    data[(s->length - 1) / 8] = h.hdr_data;
    int code = s->asks ? spin_queue_ask(&s->queue, data, s->length, &answer, &length, s->patience)
                       : spin_queue_post(&s->queue, data, s->length);
    note(code);
    if (s->asks && code == PTL_OK) {
        PtlHandlerDMAFetchAddB(offsetof(struct notes, answers),
                               length == 8 && answer == 2 * h.hdr_data, NULL, PTL_UINT64_T,
                               PTL_HANDLER_HOST_MEM);
    }
    return code == PTL_OK ? DROP : FAIL;
}
PTL_HANDLER(request);

static struct spin_queue open_queue(void)
{
    struct spin_queue q;
    memset(ring, 0xee, sizeof(ring));
    OK(spin_queue_open(&q, ring, sizeof(ring), SLOTS, ROOM));
    return q;
}

/* The entry's range is the ring. */
static ptl_handle_me_t append(struct port *p, const struct spin_queue *q, struct state s,
                              ptl_handle_ct_t ct)
{
    memset(&notes, 0, sizeof(notes));
    s.queue = spin_queue_end_of(q, 0, PTL_ME_HOST_MEM, ct);
    ptl_handlers_t h = handler_set(request, NULL, NULL, &s, sizeof(s), &notes, sizeof(notes));
    return handler_target(p, ring, sizeof(ring), 0, PTL_CT_NONE, &h);
}

/* What most cases have: an interface, an MD to send from, a queue and its entry. */
struct scene {
    struct port p;
    ptl_handle_md_t md;
    struct spin_queue q;
    ptl_handle_me_t entry;
};

static void open_scene(struct scene *c, int rank, int size, unsigned kind, struct state s)
{
    port_open(&c->p, kind, rank, size);
    c->md = port_quiet_md(&c->p, memory, 0, 0, PTL_CT_NONE);
    c->q = open_queue();
    c->entry = append(&c->p, &c->q, s, PTL_CT_NONE);
}

static void close_scene(struct scene *c)
{
    port_unlink(&c->p, c->entry);
    port_release(c->md);
    port_close(&c->p);
}

/* A message of the process to itself, which ends that way. */
static void put(struct scene *c, uint64_t value, int fail)
{
    struct port *p = &c->p;
    OK(PtlPut(c->md, 0, 0, PTL_NO_ACK_REQ, p->id[p->rank], p->pt, HANDLER_BITS, 0, NULL, value));
    EVENT_FAIL(p->eq, PTL_EVENT_PUT, fail);
}

static void check_request(const struct spin_queue_request *r, uint64_t value, uint64_t length)
{
    const uint64_t *data = r->data;
    CHECK_EQ(r->length, length);
    CHECK_EQ(data[0], value);
    CHECK_EQ(data[(length - 1) / 8], value);
}

static void in_order_round(struct scene *c, uint64_t length)
{
    struct spin_queue_request r;
    for (uint64_t i = 0; i < 5 * SLOTS; i++) {
        CHECK(!spin_queue_take(&c->q, &r));
        put(c, i, PTL_NI_OK);
        CHECK(spin_queue_take(&c->q, &r));
        CHECK(!r.asked);
        check_request(&r, i, length);
        CHECK(!spin_queue_answer(&c->q, &r, 0));
    }
    CHECK_EQ(spin_queue_refused(&c->q), 0);
}

PTEST_KINDS(in_order_short, 1)
{
    struct scene c;
    open_scene(&c, rank, size, kind, (struct state){.length = 8});
    in_order_round(&c, 8);
    close_scene(&c);
}

PTEST_KINDS(in_order_full, 1)
{
    struct scene c;
    open_scene(&c, rank, size, kind, (struct state){.length = ROOM});
    in_order_round(&c, ROOM);
    close_scene(&c);
}

/* A host that never looks: the queue fills, then every request is refused at once, and the
 * handler says so; when the host looks at last, what was accepted is there. */
PTEST_KINDS(never_drained, 1)
{
    struct scene c;
    open_scene(&c, rank, size, kind, (struct state){.length = 8});
    struct spin_queue_request r;
    for (uint64_t i = 0; i < SLOTS + 5; i++) {
        put(&c, i, i < SLOTS ? PTL_NI_OK : PTL_NI_HANDLER_FAIL);
    }
    CHECK_EQ(notes.calls[DONE], SLOTS);
    CHECK_EQ(notes.calls[FULL], 5);
    CHECK_EQ(spin_queue_refused(&c.q), 5);
    for (uint64_t i = 0; i < SLOTS; i++) {
        CHECK(spin_queue_take(&c.q, &r));
        check_request(&r, i, 8);
        spin_queue_answer(&c.q, &r, 0);
    }
    CHECK(!spin_queue_take(&c.q, &r));
    put(&c, 99, PTL_NI_OK);
    CHECK(spin_queue_take(&c.q, &r));
    check_request(&r, 99, 8);
    close_scene(&c);
}

/* Requests stay with the host until it has done with them, in any order; then the slot that
 * comes next is what counts. */
PTEST_KINDS(out_of_order, 1)
{
    struct scene c;
    open_scene(&c, rank, size, kind, (struct state){.length = 8});
    struct spin_queue_request r[SLOTS];
    for (uint64_t i = 0; i < SLOTS; i++) {
        put(&c, i, PTL_NI_OK);
        CHECK(spin_queue_take(&c.q, &r[i]));
    }
    for (uint64_t i = SLOTS - 1; i > 0; i--) {
        spin_queue_answer(&c.q, &r[i], 0);
        put(&c, i, PTL_NI_HANDLER_FAIL); /* ticket 8 is for slot 0 */
    }
    spin_queue_answer(&c.q, &r[0], 0);
    for (uint64_t i = 0; i < SLOTS; i++) {
        put(&c, i, PTL_NI_OK);
    }
    close_scene(&c);
}

/* Handlers that wait for answers, which a host gives that is woken by a counter. */
PTEST_KINDS(answered, 2)
{
    enum { N = 300 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_quiet_md(&p, memory, 0, 0, PTL_CT_NONE);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    struct spin_queue q = open_queue();
    if (rank == 1) {
        struct state s = {.length = 8, .asks = 1, .patience = UINT64_MAX};
        entry = append(&p, &q, s, ct);
    }
    BARRIER();
    for (uint64_t i = 0; i < N; i++) {
        if (rank == 0) {
            OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, p.id[1], p.pt, HANDLER_BITS, 0, NULL, i));
            continue;
        }
        struct spin_queue_request r;
        port_wait_ct(ct, i + 1);
        CHECK(spin_queue_take(&q, &r));
        CHECK(r.asked);
        check_request(&r, i, 8);
        *(uint64_t *)r.data *= 2;
        CHECK(spin_queue_answer(&q, &r, 8));
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    if (rank == 1) {
        CHECK_EQ(notes.answers, N);
        port_unlink(&p, entry);
    }
    port_release(md);
    OK(PtlCTFree(ct));
    port_close(&p);
}

/* A handler gives up; the host hears of it when it answers, and the slot is free. */
PTEST_KINDS(given_up, 1)
{
    struct scene c;
    open_scene(&c, rank, size, kind, (struct state){.length = 8, .asks = 1, .patience = 3});
    struct spin_queue_request r;
    for (uint64_t i = 0; i < 3 * SLOTS; i++) {
        put(&c, i, PTL_NI_HANDLER_FAIL);
        CHECK_EQ(notes.calls[LATE], i + 1);
        CHECK(spin_queue_take(&c.q, &r));
        CHECK(!r.asked);
        CHECK(!spin_queue_answer(&c.q, &r, 8));
    }
    CHECK_EQ(notes.answers, 0);
    close_scene(&c);
}

PTEST_KINDS(bad_input, 1)
{
    struct scene c;
    open_scene(&c, rank, size, kind, (struct state){.length = ROOM + 1});
    uint64_t length = spin_queue_size(SLOTS, ROOM);
    INVALID(spin_queue_open(&c.q, ring, length - 1, SLOTS, ROOM));
    INVALID(spin_queue_open(&c.q, ring, length, 0, ROOM));
    INVALID(spin_queue_open(&c.q, ring, length, SLOTS - 1, ROOM));
    INVALID(spin_queue_open(&c.q, ring, length, SLOTS, UINT64_MAX - 10));
    INVALID(spin_queue_open(&c.q, ring, length, UINT64_C(1) << 63, ROOM));
    INVALID(spin_queue_open(&c.q, (char *)ring + 4, length, SLOTS, ROOM));
    INVALID(spin_queue_open(&c.q, NULL, length, SLOTS, ROOM));
    put(&c, 1, PTL_NI_HANDLER_FAIL);
    CHECK_EQ(notes.calls[BAD], 1);
    struct spin_queue_request r;
    CHECK(!spin_queue_take(&c.q, &r));
    close_scene(&c);
}

/* Several senders, several HPUs, and a host that looks now and then: what was accepted comes
 * once, what was not is counted. */
PTEST_KINDS(many, 4)
{
    enum { N = 500 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p), sent = port_ct(&p);
    struct spin_queue q = open_queue();
    static unsigned char seen[4 * N];
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    memset(seen, 0, sizeof(seen));
    if (rank == 0) {
        entry = append(&p, &q, (struct state){.length = 8}, ct);
    }
    BARRIER();
    if (rank != 0) {
        ptl_handle_md_t md = port_quiet_md(&p, memory, 0, PTL_MD_EVENT_CT_ACK, sent);
        for (uint64_t i = 0; i < N; i++) {
            OK(PtlPut(md, 0, 0, PTL_CT_ACK_REQ, p.id[0], p.pt, HANDLER_BITS, 0, NULL,
                      (uint64_t)rank * N + i));
        }
        ptl_ct_event_t value = {0, 0};
        while (value.success + value.failure < N) {
            OK(PtlCTGet(sent, &value));
        }
        ptest_show(0, value.success);
        port_release(md);
        BARRIER();
    } else {
        uint64_t taken = 0, ended = 0;
        ptl_event_t event;
        while (ended < 3 * N) {
            struct spin_queue_request r;
            ended += PtlEQGet(p.eq, &event) == PTL_OK;
            while (ended % 7 != 3 && spin_queue_take(&q, &r)) {
                uint64_t value = *(const uint64_t *)r.data;
                CHECK(value >= N && value < 4 * N && !seen[value]);
                seen[value] = 1;
                taken++;
                spin_queue_answer(&q, &r, 0);
            }
        }
        for (struct spin_queue_request r; spin_queue_take(&q, &r); taken++) {
            spin_queue_answer(&q, &r, 0);
        }
        BARRIER();
        CHECK_EQ(taken, ptest_look(1, 0) + ptest_look(2, 0) + ptest_look(3, 0));
        CHECK_EQ(taken, notes.calls[DONE]);
        CHECK_EQ(spin_queue_refused(&q), 3 * N - taken);
        port_wait_ct(ct, taken);
        port_unlink(&p, entry);
    }
    port_close(&p);
}

/* ---- printf ---- */

__handler static int printing(const ptl_header_t h, void *state)
{
    int codes[] = {
        PtlHandlerPrintf("%s|%5.2f|%-4d|%04x|%lu|%c|%%|%.*s\n", "text", 1.5, -3, 255u,
                         UINT64_C(18446744073709551615), 'x', 2, "abc"),
        PtlHandlerPrintf("lost %n\n", (int *)state),
        PtlHandlerPrintf("%*d", 65, 1),
        PtlHandlerPrintf("%s", "end\n"),
    };
    return codes[0] == PTL_OK && codes[1] == PTL_ARG_INVALID && codes[2] == PTL_ARG_INVALID &&
                   codes[3] == PTL_OK
               ? DROP
               : FAIL;
}

__handler static int printing_much(const ptl_header_t h, void *state)
{
    for (int i = 0; i < 1000; i++) {
        PtlHandlerPrintf("line %d\n", i);
    }
    return DROP;
}

__handler static int printing_wild(const ptl_header_t h, void *state)
{
    PtlHandlerPrintf("%s", (const char *)8);
    return DROP;
}
PTL_HANDLER(printing);
PTL_HANDLER(printing_much);
PTL_HANDLER(printing_wild);

/* The only HPU that has printed, and what. */
static void read_output(struct port *p, char *text, ptl_size_t size, ptl_size_t want)
{
    ptl_spin_limits_t limits;
    OK(PtlSpinLimits(p->ni, &limits));
    for (unsigned i = 0; i < limits.num_hpus; i++) {
        ptl_size_t printed;
        OK(PtlSpinOutput(p->ni, i, text, size, &printed));
        if (printed != 0) {
            CHECK_EQ(printed, want);
            return;
        }
    }
    FAIL("nothing was printed");
}

static void run(struct port *p, ptl_header_handler_t handler, int fail)
{
    ptl_handlers_t h = handler_set(handler, NULL, NULL, NULL, 8, NULL, 0);
    h.hpu_mask = 1; /* one HPU has it all */
    ptl_handle_me_t entry = handler_target(p, memory, sizeof(memory), 0, PTL_CT_NONE, &h);
    OK(PtlHandlersInvoke(entry, NULL, 0));
    EVENT_FAIL(p->eq, PTL_EVENT_PUT, fail);
    port_unlink(p, entry);
}

PTEST_KINDS(printed, 1)
{
    static const char want[] = "text| 1.50|-3  |00ff|18446744073709551615|x|%|ab\nend\n";
    char text[PTL_SPIN_OUTPUT + 1];
    ptl_size_t printed;
    struct port p;
    port_open(&p, kind, rank, size);
    run(&p, printing, PTL_NI_OK);
    read_output(&p, text, sizeof(text), strlen(want));
    CHECK(strcmp(text, want) == 0);
    OK(PtlSpinOutput(p.ni, 0, text, 5, &printed));
    CHECK(strcmp(text, "end\n") == 0);
    INVALID(PtlSpinOutput(p.ni, PTL_NUM_HPUS, text, 5, &printed));
    INVALID(PtlSpinOutput(p.ni, 0, text, 0, &printed));
    INVALID(PtlSpinOutput(p.ni, 0, NULL, 5, &printed));
    INVALID(PtlSpinOutput(p.ni, 0, text, 5, NULL));
    run(&p, printing_wild, PTL_NI_HANDLER_SEGV);
    port_close(&p);
}

/* The newest stays. */
PTEST_KINDS(printed_much, 1)
{
    char text[PTL_SPIN_OUTPUT + 1];
    struct port p;
    port_open(&p, kind, rank, size);
    run(&p, printing_much, PTL_NI_OK);
    read_output(&p, text, sizeof(text), 10 * 7 + 90 * 8 + 900 * 9);
    CHECK_EQ(strlen(text), PTL_SPIN_OUTPUT);
    CHECK(strcmp(text + PTL_SPIN_OUTPUT - 18, "line 998\nline 999\n") == 0);
    port_close(&p);
}
