/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers and memory: DMA to and from both host ranges, atomics on host and HPU
 * memory, non-blocking forms; and the HPU itself: its number, and giving it away.
 */
#include "handler.h"

enum { BYTES = 20000 };

static unsigned char source[BYTES], memory[BYTES], results[2 * BYTES];

static ptl_handle_me_t append(struct port *p, const ptl_handlers_t *h)
{
    return handler_target(p, memory, sizeof(memory), 0, PTL_CT_NONE, h);
}

/* One message from rank 0 to the entry of rank 1. */
static void one_message(struct port *p, size_t length, int fail)
{
    BARRIER();
    if (p->rank == 0) {
        handler_put(p, source, length, 0, 0, fail);
    } else {
        EVENT_FAIL(p->eq, PTL_EVENT_PUT, fail);
    }
    BARRIER();
}

/* ---- Both ranges ---- */

/* Adds what the entry holds to each packet; the sum goes to handler_host_mem, twice:
 * blocking, and non-blocking behind it. */
__handler static int add_payload(const ptl_payload_t p, void *state)
{
    uint8_t old[4096], check[4096];
    if (p.length > sizeof(old)) {
        return FAIL;
    }
    if (PtlHandlerDMAFromHostB(p.offset, old, p.length, PTL_ME_HOST_MEM) != PTL_OK) {
        return FAIL;
    }
    for (ptl_size_t i = 0; i < p.length; i++) {
        old[i] = (uint8_t)(old[i] + p.base[i]);
    }
    if (PtlHandlerDMAToHostB(old, p.offset, p.length, PTL_HANDLER_HOST_MEM) != PTL_OK) {
        return FAIL;
    }
    ptl_dma_h h = PtlHandlerDMAFromHostNB(p.offset, check, p.length, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAWait(h);
    h = PtlHandlerDMAToHostNB(check, BYTES + p.offset, p.length, PTL_HANDLER_HOST_MEM);
    while (!PtlHandlerDMATest(h)) {
        PtlHandlerYield();
    }
    return SUCCESS;
}
PTL_HANDLER(add_payload);

PTEST_KINDS(both_ranges, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_fill(source, BYTES, 1);
    ptest_fill(memory, BYTES, 2);
    if (rank == 1) {
        ptl_handlers_t h = handler_set(NULL, add_payload, NULL, NULL, 0, results, sizeof(results));
        append(&p, &h);
    }
    one_message(&p, BYTES, PTL_NI_OK);
    for (size_t i = 0; i < BYTES && rank == 1; i++) {
        CHECK_EQ(results[i], (unsigned char)(source[i] + memory[i]));
        CHECK_EQ(results[BYTES + i], results[i]);
    }
    CHECK_FILL(memory, BYTES, 2); /* only what handlers write reaches the host */
    port_close(&p);
}

/* Offsets count from the start of a range, whose last byte is in and next one out. An
 * entry that spans the address space is addressed by address. */
struct edges {
    uint64_t offset, length;
    uint32_t options;
    int32_t unused;
};

__handler static int edge_header(const ptl_header_t h, void *state)
{
    struct edges *e = state;
    static const char letters[] = "handler";
    PtlHandlerDMAToHostB(letters, e->offset, e->length, e->options);
    return DROP;
}
PTL_HANDLER(edge_header);

static void edge_round(struct port *p, struct edges e, void *start, size_t length, int fail)
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        memset(memory, 0, sizeof(memory));
        memset(results, 0, sizeof(results));
        ptl_handlers_t h = handler_set(edge_header, NULL, NULL, &e, sizeof(e), results, 100);
        entry = handler_target(p, start, length, 0, PTL_CT_NONE, &h);
    }
    one_message(p, 0, fail);
    if (p->rank == 1) {
        port_unlink(p, entry);
    }
}

PTEST_KINDS(edges, 2)
{
    static const uint64_t outside[][2] = {
        {93, 8},         {100, 1},        {101, 0},        {0, 101},
        {UINT64_MAX, 1}, {UINT64_MAX, 2}, {1, UINT64_MAX}, {50, UINT64_MAX - 40}};
    struct port p;
    port_open(&p, kind, rank, size);
    for (uint32_t range = PTL_ME_HOST_MEM; range <= PTL_HANDLER_HOST_MEM; range++) {
        unsigned char *at = range == PTL_ME_HOST_MEM ? memory : results;
        edge_round(&p, (struct edges){93, 7, range, 0}, memory, 100, PTL_NI_OK);
        CHECK(rank == 0 || memcmp(at + 93, "handler", 8) == 0);
        edge_round(&p, (struct edges){100, 0, range, 0}, memory, 100, PTL_NI_OK);
        for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
            edge_round(&p, (struct edges){outside[i][0], outside[i][1], range, 0}, memory, 100,
                       PTL_NI_HANDLER_SEGV);
            CHECK_BYTES(at, BYTES, 0);
        }
    }
    uint64_t address = (uint64_t)(uintptr_t)(memory + 5);
    edge_round(&p, (struct edges){address, 7, PTL_ME_HOST_MEM, 0}, NULL, PTL_SIZE_MAX, PTL_NI_OK);
    CHECK(rank == 0 || memcmp(memory + 5, "handler", 8) == 0);
    for (uint32_t options = 0; options < 9; options++) {
        if (options != PTL_ME_HOST_MEM && options != PTL_HANDLER_HOST_MEM) {
            edge_round(&p, (struct edges){0, 1, options, 0}, memory, 100, PTL_NI_HANDLER_SEGV);
        }
    }
    port_close(&p);
}

/* ---- Atomics ---- */

/* In: a value and an increment; out: what it was. As the header, or NB by Wait. */
struct add {
    uint64_t inc, before;
    uint32_t type, nb;
};

__handler static int add_header(const ptl_header_t h, void *state)
{
    struct add *a = state;
    if (a->nb) {
        PtlHandlerDMAWait(PtlHandlerDMAFetchAddNB(8, a->inc, &a->before, (ptl_datatype_t)a->type,
                                                  PTL_HANDLER_HOST_MEM));
    } else if (PtlHandlerDMAFetchAddB(8, a->inc, &a->before, (ptl_datatype_t)a->type,
                                      PTL_HANDLER_HOST_MEM) != PTL_OK) {
        return FAIL;
    }
    PtlHandlerDMAToHostB(&a->before, 24, sizeof(a->before), PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(add_header);

static const struct {
    ptl_datatype_t type;
    uint64_t mask;   /* of the bits that change */
    uint64_t before; /* of 0xf1f2f3f4f5f6f7f8 */
} additions[] = {
    {PTL_INT8_T, 0xff, 0xfffffffffffffff8},        {PTL_UINT8_T, 0xff, 0xf8},
    {PTL_INT16_T, 0xffff, 0xfffffffffffff7f8},     {PTL_UINT16_T, 0xffff, 0xf7f8},
    {PTL_INT32_T, 0xffffffff, 0xfffffffff5f6f7f8}, {PTL_UINT32_T, 0xffffffff, 0xf5f6f7f8},
    {PTL_INT64_T, UINT64_MAX, 0xf1f2f3f4f5f6f7f8}, {PTL_UINT64_T, UINT64_MAX, 0xf1f2f3f4f5f6f7f8},
};

static void add_round(struct port *p, struct add a, uint64_t mask, uint64_t before, int fail)
{
    static const uint64_t start = 0xf1f2f3f4f5f6f7f8;
    static uint64_t words[4] __attribute__((aligned(8)));
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        words[0] = words[2] = words[3] = 0x77;
        words[1] = start;
        ptl_handlers_t h = handler_set(add_header, NULL, NULL, &a, sizeof(a), words, sizeof(words));
        entry = append(p, &h);
    }
    one_message(p, 0, fail);
    if (p->rank == 1) {
        uint64_t sum = fail == PTL_NI_OK ? start + a.inc : start;
        CHECK_EQ(words[1], (start & ~mask) | (sum & mask));
        CHECK_EQ(words[3], fail == PTL_NI_OK ? before : 0x77);
        CHECK_EQ(words[0], 0x77);
        CHECK_EQ(words[2], 0x77);
        port_unlink(p, entry);
    }
}

PTEST_KINDS(fetch_add_of_each_type, 2)
{
    static const ptl_datatype_t others[] = {PTL_FLOAT,       PTL_DOUBLE,        PTL_FLOAT_COMPLEX,
                                            PTL_LONG_DOUBLE, PTL_DATATYPE_LAST, 255};
    struct port p;
    port_open(&p, kind, rank, size);
    for (size_t i = 0; i < sizeof(additions) / sizeof(additions[0]); i++) {
        struct add a = {.inc = 0x1020304050607080 + i, .type = additions[i].type};
        add_round(&p, a, additions[i].mask, additions[i].before, PTL_NI_OK);
        a.inc = (uint64_t)-9;
        a.nb = 1;
        add_round(&p, a, additions[i].mask, additions[i].before, PTL_NI_OK);
    }
    for (size_t i = 0; i < sizeof(others); i++) {
        struct add a = {.inc = 1, .type = others[i]};
        add_round(&p, a, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    port_close(&p);
}

/* The first CAS succeeds and leaves cmp alone, the second fails and finds the value; then
 * the same without blocking; then on HPU memory. */
__handler static int cas_header(const ptl_header_t h, void *state)
{
    uint64_t *s = state; /* CAS and FAdd work on s[0] */
    uint64_t cmp[4] = {10, 10, 20, 20};
    uint64_t hpu[4];
    PtlHandlerDMACASB(0, &cmp[0], 20, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMACASB(0, &cmp[1], 30, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAWait(PtlHandlerDMACASNB(0, &cmp[2], 40, PTL_HANDLER_HOST_MEM));
    PtlHandlerDMAWait(PtlHandlerDMACASNB(0, &cmp[3], 50, PTL_HANDLER_HOST_MEM));
    PtlHandlerDMAToHostB(cmp, 8, sizeof(cmp), PTL_HANDLER_HOST_MEM);
    hpu[0] = PtlHandlerCAS(&s[0], 5, 6);
    hpu[1] = PtlHandlerCAS(&s[0], 5, 7);
    PtlHandlerFAdd(&s[0], &hpu[2], 100);
    PtlHandlerFAdd(&s[0], NULL, UINT64_MAX);
    hpu[3] = s[0];
    PtlHandlerDMAToHostB(hpu, 40, sizeof(hpu), PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(cas_header);

PTEST_KINDS(compare_and_swap, 2)
{
    static uint64_t words[9] = {10};
    uint64_t start = 5;
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        ptl_handlers_t h =
            handler_set(cas_header, NULL, NULL, &start, sizeof(start), words, sizeof(words));
        append(&p, &h);
    }
    one_message(&p, 0, PTL_NI_OK);
    if (rank == 1) {
        static const uint64_t want[9] = {40, 10, 20, 20, 40, 1, 0, 6, 105};
        for (int i = 0; i < 9; i++) {
            CHECK_EQ(words[i], want[i]);
        }
    }
    port_close(&p);
}

/* Several senders' handlers count in one word of the host and one of HPU memory, by
 * every kind of addition, while the host itself counts too. */
__handler static int count_payload(const ptl_payload_t p, void *state)
{
    uint64_t seen = 0, *shared = state;
    PtlHandlerFAdd(shared, NULL, 1);
    for (bool done = false; !done;) {
        uint64_t old = *(volatile uint64_t *)shared;
        PtlHandlerYield();
        done = PtlHandlerCAS(shared, old, old + 1);
    }
    PtlHandlerDMAFetchAddB(0, 1, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    for (uint64_t before = UINT64_MAX; before != seen;) {
        before = seen;
        PtlHandlerDMACASB(0, &seen, seen + 1, PTL_HANDLER_HOST_MEM);
    }
    return SUCCESS;
}

PTL_HANDLER(count_payload);

/* The last message, which has the length in its hdr_data, has the HPU memory shown behind
 * the first word of handler_host_mem: the handlers of others have ended then. */
__handler static int last_header(const ptl_header_t h, void *state)
{
    if (h.hdr_data == 0) {
        return PROCESS_DATA;
    }
    PtlHandlerDMAToHostB(state, 8, h.hdr_data, PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(last_header);

static void show_state(struct port *p, size_t length)
{
    ptl_handle_md_t md = port_quiet_md(p, NULL, 0, 0, PTL_CT_NONE);
    OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, p->id[p->rank], p->pt, 0, 0, NULL, length));
    EVENT(p->eq, PTL_EVENT_PUT);
    port_release(md);
}

PTEST_KINDS(counting_together, 4)
{
    enum { N = 50, LENGTH = 20000, HOST = 1000 };
    static uint64_t words[2];
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_spin_limits_t limits;
    OK(PtlSpinLimits(p.ni, &limits));
    if (rank == 0) {
        ptl_handlers_t h =
            handler_set(last_header, count_payload, NULL, NULL, 8, words, sizeof(words));
        append(&p, &h);
    }
    BARRIER();
    if (rank != 0) {
        ptl_handle_md_t md = port_quiet_md(&p, source, LENGTH, 0, PTL_CT_NONE);
        for (int i = 0; i < N; i++) {
            OK(PtlPut(md, 0, LENGTH, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
        }
    } else {
        uint64_t packets = (LENGTH + limits.max_payload_size - 1) / limits.max_payload_size;
        packets *= N * (uint64_t)(size - 1);
        for (int i = 0; i < HOST; i++) {
            __atomic_fetch_add(&words[0], 1, __ATOMIC_RELAXED);
        }
        for (int i = 0; i < N * (size - 1); i++) {
            EVENT(p.eq, PTL_EVENT_PUT);
        }
        show_state(&p, 8);
        CHECK_EQ(words[0], HOST + 2 * packets);
        CHECK_EQ(words[1], 2 * packets);
    }
    port_close(&p);
}

/* ---- Handles of transfers ---- */

/* What a handler does with handles that are none of its own. */
enum misuse { ZERO, TOO_FAR, ANOTHERS, GARBAGE, MISUSES };

__handler static int misuse_header(const ptl_header_t h, void *state)
{
    ptl_dma_h *kept = state;
    *kept = PtlHandlerDMAToHostNB(state, 0, 4, PTL_HANDLER_HOST_MEM);
    *kept = PtlHandlerDMAToHostNB(state, 0, 4, PTL_HANDLER_HOST_MEM);
    switch (h.hdr_data) {
    case ZERO:
        PtlHandlerDMAWait(0);
        break;
    case TOO_FAR:
        PtlHandlerDMAWait(*kept + 1);
        break;
    case GARBAGE:
        (void)PtlHandlerDMATest(0xdeadbeef);
        break;
    default:
        PtlHandlerDMAWait(*kept);
        PtlHandlerDMAWait(*kept); /* a handle stays good until its handler returns */
        PtlHandlerDMAWait(*kept - 1);
    }
    return DROP;
}

/* The handle that the header handler left. */
__handler static int misuse_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    (void)PtlHandlerDMATest(*(ptl_dma_h *)state);
    return SUCCESS;
}
PTL_HANDLER(misuse_header);
PTL_HANDLER(misuse_completion);

PTEST_KINDS(foreign_handles, 2)
{
    static uint64_t word;
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = handler_set(misuse_header, NULL, misuse_completion, NULL,
                                       sizeof(ptl_dma_h), &word, sizeof(word));
        append(&p, &h);
    }
    BARRIER();
    for (ptl_hdr_data_t what = ZERO; what < MISUSES; what++) {
        if (rank == 0) {
            handler_put(&p, source, 100, 0, what, PTL_NI_HANDLER_FAIL);
        } else {
            EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        }
    }
    port_close(&p);
}

/* ---- The HPU ---- */

/* While a handler runs its slot is taken, across its yields. */
struct slots {
    uint64_t taken[PTL_NUM_HPUS];
    uint64_t twice, moved, beyond;
};

__handler static int slot_payload(const ptl_payload_t p, void *state)
{
    struct slots *s = state;
    unsigned me = PTL_MY_HPU;
    if (me >= PTL_NUM_HPUS) {
        PtlHandlerFAdd(&s->beyond, NULL, 1);
        return FAIL;
    }
    if (!PtlHandlerCAS(&s->taken[me], 0, 1)) {
        PtlHandlerFAdd(&s->twice, NULL, 1);
    }
    for (int i = 0; i < 20; i++) {
        PtlHandlerYield();
        if (PTL_MY_HPU != me) {
            PtlHandlerFAdd(&s->moved, NULL, 1);
        }
    }
    PtlHandlerCAS(&s->taken[me], 1, 0);
    return SUCCESS;
}

PTL_HANDLER(slot_payload);

PTEST_KINDS(number_of_the_hpu, 4)
{
    enum { N = 20, LENGTH = 20000 };
    static struct {
        uint64_t unused;
        struct slots slots;
    } seen;
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 0) {
        ptl_handlers_t h = handler_set(last_header, slot_payload, NULL, NULL, sizeof(struct slots),
                                       &seen, sizeof(seen));
        append(&p, &h);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, LENGTH, 0, PTL_CT_NONE);
    for (int i = 0; i < N && rank != 0; i++) {
        OK(PtlPut(md, 0, LENGTH, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
    }
    for (int i = 0; i < N * (size - 1) && rank == 0; i++) {
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    if (rank == 0) {
        memset(&seen, 0xee, sizeof(seen));
        show_state(&p, sizeof(seen.slots));
        CHECK_EQ(seen.slots.beyond + seen.slots.twice + seen.slots.moved, 0);
        for (int i = 0; i < PTL_NUM_HPUS; i++) {
            CHECK_EQ(seen.slots.taken[i], 0);
        }
    }
    port_close(&p);
}

/* Two messages of different senders meet in HPU memory: each waits there, yielding,
 * until the other has come. So a yield does let others run. */
__handler static int meeting_header(const ptl_header_t h, void *state)
{
    uint64_t *here = state;
    PtlHandlerFAdd(here, NULL, 1);
    while (*(volatile uint64_t *)here < 2 * h.hdr_data) {
        PtlHandlerYield();
    }
    return DROP;
}
PTL_HANDLER(meeting_header);

PTEST_KINDS(meeting, 3)
{
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 0) {
        ptl_handlers_t h = handler_set(meeting_header, NULL, NULL, NULL, 8, NULL, 0);
        append(&p, &h);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, 100, 0, PTL_CT_NONE);
    for (ptl_hdr_data_t i = 1; i <= 20 && rank != 0; i++) {
        OK(PtlPut(md, 0, 100, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, i));
    }
    for (int i = 0; i < 40 && rank == 0; i++) {
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    port_close(&p);
}

/* ---- Outside a handler ---- */

PTEST(outside_a_handler, 1)
{
    struct port p;
    uint64_t word = 5, before = 0;
    port_open(&p, KIND_MP, rank, size);
    CHECK_CODE(PtlHandlerDMAToHostB(&word, 0, 8, PTL_ME_HOST_MEM), PTL_FAIL);
    CHECK_CODE(PtlHandlerDMAFromHostB(0, &word, 8, PTL_ME_HOST_MEM), PTL_FAIL);
    CHECK_CODE(PtlHandlerDMACASB(0, &word, 1, PTL_ME_HOST_MEM), PTL_FAIL);
    CHECK_CODE(PtlHandlerDMAFetchAddB(0, 1, &before, PTL_UINT64_T, PTL_ME_HOST_MEM), PTL_FAIL);
    CHECK_EQ(PtlHandlerDMAToHostNB(&word, 0, 8, PTL_ME_HOST_MEM), 0);
    CHECK_EQ(PtlHandlerDMAFromHostNB(0, &word, 8, PTL_ME_HOST_MEM), 0);
    CHECK_EQ(PtlHandlerDMACASNB(0, &word, 1, PTL_ME_HOST_MEM), 0);
    CHECK_EQ(PtlHandlerDMAFetchAddNB(0, 1, &before, PTL_UINT64_T, PTL_ME_HOST_MEM), 0);
    CHECK(!PtlHandlerDMATest(1));
    PtlHandlerDMAWait(1);
    PtlHandlerYield();
    CHECK_EQ(PTL_MY_HPU, 0);
    CHECK_CODE(PtlHandlerPutFromDevice(&word, 8, PTL_NO_ACK_REQ, p.id[0], 0, 0, NULL, 0), PTL_FAIL);
    CHECK_CODE(PtlHandlerPutFromDeviceEx(&word, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0),
               PTL_FAIL);
    CHECK_CODE(PtlHandlerPutFromHost(0, 8, PTL_NO_ACK_REQ, p.id[0], 0, 0, NULL, 0), PTL_FAIL);
    CHECK_CODE(PtlHandlerPutFromHostEx(0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0),
               PTL_FAIL);
    CHECK(PtlHandlerCAS(&word, 5, 6));
    CHECK(!PtlHandlerCAS(&word, 5, 6));
    OK(PtlHandlerFAdd(&word, &before, 4));
    CHECK_EQ(before, 6);
    CHECK_EQ(word, 10);
    port_close(&p);
}
