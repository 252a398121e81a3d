/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the host does with handlers and HPU memory: append inactive, prepare, activate; start
 * handlers itself; read and write HPU memory.
 */
#include "handler.h"

enum { LENGTH = 50000, USER = 100 };

static unsigned char source[LENGTH], memory[LENGTH];
static struct handler_log results;

struct state {
    uint64_t answer, disorder;
    ptl_process_t self;
};

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    handler_log_header();
    if (h.user_hdr_length != 0 && ((const unsigned char *)h.user_hdr)[0] == 0) {
        LOG(disorder, 1);
    }
    return (int)s->answer;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    handler_log_payload(&p);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    for (ptl_size_t i = 0; i < p.length; i++) {
        p.base[i] = 0; /* of a copy */
    }
    PtlHandlerYield();
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    handler_log_completion(dropped, flow_control);
    return SUCCESS;
}
PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

static ptl_handle_me_t append(struct port *p, ptl_handle_hpu_mem_t mem, size_t user,
                              unsigned options, unsigned me_options, ptl_handle_ct_t ct)
{
    ptl_handlers_t h = handler_set(header_handler, payload_handler, completion_handler, NULL,
                                   sizeof(struct state), &results, sizeof(results));
    h.hpu_mem = mem;
    h.user_hdr_length = user;
    h.options = options;
    memset(&results, 0, sizeof(results));
    memset(memory, 0, LENGTH);
    return handler_target(p, memory, LENGTH, me_options, ct, &h);
}

static ptl_handle_hpu_mem_t state_memory(struct port *p, uint64_t answer)
{
    ptl_handle_hpu_mem_t mem;
    struct state s = {.answer = answer};
    OK(PtlHPUAllocMem(p->ni, sizeof(struct state), &mem));
    OK(PtlHPUWrite(mem, 0, &s, sizeof(s)));
    return mem;
}

/* ---- An entry that is in use ---- */

/* Runs until the host says so. */
__handler static int until_told(const ptl_header_t h, void *state)
{
    uint64_t go = 0;
    LOG(headers, 1);
    while (go == 0) {
        PtlHandlerYield();
        go = LOG(flow_control, 0);
    }
    return DROP;
}
PTL_HANDLER(until_told);

/* Neither the entry nor its HPU memory can be taken away under a handler. */
PTEST_KINDS(freed_while_it_runs, 2)
{
    struct port p;
    ptl_handle_hpu_mem_t mem;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        OK(PtlHPUAllocMem(p.ni, 64, &mem));
        ptl_handlers_t h = handler_set(until_told, NULL, NULL, NULL, 8, &results, sizeof(results));
        h.hpu_mem = mem;
        ptl_handle_me_t entry = handler_target(&p, memory, LENGTH, 0, PTL_CT_NONE, &h);
        BARRIER();
        while (__atomic_load_n(&results.headers, __ATOMIC_ACQUIRE) == 0) {
            PtlEQGet(p.eq, &(ptl_event_t){0});
        }
        for (int i = 0; i < 100; i++) {
            CHECK_CODE(port_unlink_code(&p, entry), PTL_IN_USE);
            CHECK_CODE(PtlHPUFreeMem(mem), PTL_IN_USE);
        }
        __atomic_store_n(&results.flow_control, 1, __ATOMIC_RELEASE);
        EVENT(p.eq, PTL_EVENT_PUT);
        port_unlink(&p, entry);
        OK(PtlHPUFreeMem(mem));
    } else {
        BARRIER();
        handler_put(&p, source, 100, 0, 0, PTL_NI_OK);
    }
    port_close(&p);
}

/* ---- PtlHandlersInvoke ---- */

static void invoke_round(struct port *p, size_t length, size_t user, uint64_t answer)
{
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_hpu_mem_t mem = state_memory(p, answer);
    ptl_handle_me_t entry = append(p, mem, user, 0, 0, ct);
    unsigned char *copy = malloc(length + 1);
    memcpy(copy, source, length);
    OK(PtlHandlersInvoke(entry, copy, length));
    memset(copy, 0xee, length); /* the program's again */
    ptl_event_t event = EVENT(p->eq, PTL_EVENT_PUT);
    uint64_t header = length < user ? length : user;
    uint64_t kept = answer == DROP ? 0 : answer == PROCEED ? length : length - header;
    CHECK_EQ(event.rlength, length);
    CHECK_EQ(event.mlength, kept);
    CHECK(port_is_from(p, &event, p->rank));
    CHECK_EQ(results.headers, 1);
    CHECK_EQ(results.disorder, 0);
    CHECK_EQ(results.completions, answer == PROCEED ? 0 : 1);
    CHECK_EQ(results.bytes, answer == PROCESS_DATA ? kept : 0);
    CHECK(memcmp(memory, source + (answer == PROCEED ? 0 : header), kept) == 0);
    CHECK_BYTES(memory + kept, LENGTH - kept, 0);
    handler_check_ct(ct, 1, 0);
    free(copy);
    port_unlink(p, entry);
    OK(PtlHPUFreeMem(mem));
    OK(PtlCTFree(ct));
}

PTEST_KINDS(invoked, 1)
{
    static const uint64_t answers[] = {PROCESS_DATA, PROCEED, DROP};
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_fill(source, LENGTH, 1);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        for (int a = 0; a < 3 && handler_sizes[i] <= LENGTH; a++) {
            invoke_round(&p, handler_sizes[i], 0, answers[a]);
            invoke_round(&p, handler_sizes[i], USER, answers[a]);
            invoke_round(&p, handler_sizes[i], 64, answers[a]);
        }
    }
    NO_EVENT(p.eq);
    port_close(&p);
}

__handler static int add_one(const ptl_header_t h, void *state)
{
    PtlHandlerFAdd(state, NULL, 1);
    if (h.length % 3 == 0) {
        PtlHandlerYield();
    }
    return DROP;
}
PTL_HANDLER(add_one);

/* Many, beside messages that come, and none waited for. */
PTEST_KINDS(invoked_beside_messages, 2)
{
    enum { N = 500 };
    struct port p;
    ptl_handle_hpu_mem_t mem = PTL_HPU_MEM_NONE;
    uint64_t calls;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (rank == 1) {
        OK(PtlHPUAllocMem(p.ni, sizeof(uint64_t), &mem));
        ptl_handlers_t h = handler_set(add_one, NULL, NULL, NULL, sizeof(uint64_t), NULL, 0);
        h.hpu_mem = mem;
        entry = handler_target(&p, memory, LENGTH, PTL_ME_EVENT_COMM_DISABLE, ct, &h);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_quiet_md(&p, source, LENGTH, 0, PTL_CT_NONE);
        for (unsigned i = 0; i < N; i++) {
            OK(PtlPut(md, 0, i % 100, PTL_NO_ACK_REQ, p.id[1], p.pt, HANDLER_BITS, 0, NULL, 0));
        }
    } else {
        for (unsigned i = 0; i < N; i++) {
            int code;
            while ((code = PtlHandlersInvoke(entry, source, i % 100)) == PTL_NO_SPACE) {
            }
            CHECK_CODE(code, PTL_OK);
        }
        port_wait_ct(ct, 2 * N);
        OK(PtlHPURead(mem, 0, &calls, sizeof(calls)));
        CHECK_EQ(calls, 2 * N);
    }
    port_close(&p);
}

PTEST_KINDS(invoked_use_once, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_hpu_mem_t mem = state_memory(&p, PROCESS_DATA);
    ptl_handle_me_t entry = append(&p, mem, 0, 0, PTL_ME_USE_ONCE, PTL_CT_NONE);
    OK(PtlHandlersInvoke(entry, source, 10));
    EVENT(p.eq, PTL_EVENT_PUT);
    EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
    INVALID(PtlHandlersInvoke(entry, source, 10));
    OK(PtlHPUFreeMem(mem));
    port_close(&p);
}

/* What is under way when the interface is closed is ended. */
__handler static int never(const ptl_header_t h, void *state)
{
    volatile bool go = false;
    while (!go) {
        PtlHandlerYield();
    }
    return DROP;
}
PTL_HANDLER(never);

PTEST_KINDS(closed_while_invoked, 1)
{
    struct port p;
    setenv("PINWHEEL_LINGER_MS", "20", 1);
    port_open(&p, kind, rank, size);
    ptl_handlers_t h = handler_set(never, NULL, NULL, NULL, 8, NULL, 0);
    ptl_handle_me_t entry = handler_target(&p, memory, LENGTH, 0, PTL_CT_NONE, &h);
    for (int i = 0; i < 3; i++) {
        OK(PtlHandlersInvoke(entry, source, 10));
    }
    port_close(&p);
}

/* ---- Inactive entries ---- */

/* The one behind an inactive entry takes the messages. */
PTEST_KINDS(inactive, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE, behind = PTL_INVALID_HANDLE;
    ptl_handle_hpu_mem_t mem = PTL_HPU_MEM_NONE;
    static unsigned char other[LENGTH];
    ptest_fill(source, LENGTH, 1);
    if (rank == 1) {
        struct state s = {.answer = PROCESS_DATA};
        mem = state_memory(&p, FAIL);
        entry = append(&p, mem, 0, PTL_HANDLER_INACTIVE, 0, PTL_CT_NONE);
        ptl_me_t me = port_entry(&p, other, LENGTH, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        behind = port_append(&p, &me, other);
        OK(PtlHPUWrite(mem, 0, &s, sizeof(s)));
        INVALID(PtlHandlersInvoke(behind, source, 10));
        INVALID(PtlHandlersActivate(behind));
    }
    BARRIER();
    for (int i = 0; i < 2; i++) {
        if (rank == 0) {
            handler_put(&p, source, 1000, 0, 0, PTL_NI_OK);
        } else {
            CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).user_ptr, i == 0 ? other : NULL);
            CHECK_EQ(results.headers, i);
            if (i == 0) {
                OK(PtlHandlersActivate(entry));
            }
        }
        BARRIER();
    }
    if (rank == 1) {
        CHECK_FILL(memory, 1000, 1);
        INVALID(PtlHandlersActivate(entry)); /* it is active */
        port_unlink(&p, behind);
        port_unlink(&p, entry);
        INVALID(PtlHandlersActivate(entry));
        INVALID(PtlHandlersActivate(PTL_INVALID_HANDLE));
        OK(PtlHPUFreeMem(mem));
    }
    port_close(&p);
}

/* Nobody behind it: the message is dropped, and with flow control refused. Once it is active the
 * next one is taken. */
static void alone(unsigned kind, int rank, int size, unsigned pt_options)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    bool refuses = (pt_options & PTL_PT_FLOWCTRL) != 0;
    if (rank == 1) {
        OK(PtlPTFree(p.ni, p.pt));
        OK(PtlPTAlloc(p.ni, pt_options, p.eq, p.pt, &p.pt));
        entry = append(&p, state_memory(&p, PROCEED), 0, PTL_HANDLER_INACTIVE, 0, PTL_CT_NONE);
    }
    BARRIER();
    if (rank == 0) {
        handler_put(&p, source, 10, 0, 0, refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED);
    }
    BARRIER();
    if (rank == 1) {
        if (refuses) {
            EVENT_FAIL(p.eq, PTL_EVENT_PT_DISABLED, PTL_NI_PT_DISABLED);
        }
        NO_EVENT(p.eq);
        CHECK_EQ(results.headers, 0);
        OK(PtlHandlersActivate(entry));
        OK(refuses ? PtlPTEnable(p.ni, p.pt) : PTL_OK);
    }
    BARRIER();
    if (rank == 0) {
        handler_put(&p, source, 10, 0, 0, PTL_NI_OK);
    } else {
        EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(results.headers, 1);
    }
    port_close(&p);
}

PTEST_KINDS(inactive_alone, 2)
{
    alone(kind, rank, size, 0);
}

PTEST_KINDS(inactive_alone_with_flow_control, 2)
{
    alone(kind, rank, size, PTL_PT_FLOWCTRL);
}

/* Unlinked without having been active. */
PTEST_KINDS(inactive_and_unlinked, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    port_unlink(&p, append(&p, PTL_HPU_MEM_NONE, 0, PTL_HANDLER_INACTIVE, 0, PTL_CT_NONE));
    port_close(&p);
}

/* ---- HPU memory ---- */

PTEST_KINDS(read_and_write, 1)
{
    enum { SIZE = 10000 };
    static unsigned char back[SIZE];
    struct port p;
    ptl_handle_hpu_mem_t mem;
    port_open(&p, kind, rank, size);
    ptest_fill(source, SIZE, 3);
    OK(PtlHPUAllocMem(p.ni, SIZE, &mem));
    OK(PtlHPURead(mem, 0, back, SIZE));
    CHECK_BYTES(back, SIZE, 0);
    OK(PtlHPUWrite(mem, 0, source, SIZE));
    OK(PtlHPURead(mem, 0, back, SIZE));
    CHECK_FILL(back, SIZE, 3);
    OK(PtlHPURead(mem, 5000, back, 10));
    CHECK(memcmp(back, source + 5000, 10) == 0);
    OK(PtlHPUWrite(mem, SIZE, source, 0));
    INVALID(PtlHPUWrite(mem, SIZE, source, 1));
    INVALID(PtlHPUWrite(mem, 1, source, SIZE));
    INVALID(PtlHPUWrite(mem, PTL_SIZE_MAX, source, 2));
    INVALID(PtlHPURead(mem, 2, back, PTL_SIZE_MAX));
    INVALID(PtlHPURead(mem, 0, NULL, 1));
    INVALID(PtlHPUWrite(mem, 0, NULL, 1));
    INVALID(PtlHPURead(mem, 0, (void *)(uintptr_t)8, 8));
    INVALID(PtlHPUWrite(mem, 0, (void *)(uintptr_t)8, 8));
    OK(PtlHPUFreeMem(mem));
    INVALID(PtlHPURead(mem, 0, back, 1));
    INVALID(PtlHPUWrite(PTL_HPU_MEM_NONE, 0, back, 1));
    port_close(&p);
}

PTEST_KINDS(memory_is_accounted, 1)
{
    struct port p;
    ptl_handle_hpu_mem_t a, b, c;
    setenv("PINWHEEL_HPU_MEMORY", "10000", 1);
    port_open(&p, kind, rank, size);
    OK(PtlHPUAllocMem(p.ni, 6000, &a));
    CHECK_CODE(PtlHPUAllocMem(p.ni, 4001, &b), PTL_NO_SPACE);
    OK(PtlHPUAllocMem(p.ni, 4000, &b));
    CHECK_CODE(PtlHPUAllocMem(p.ni, 1, &c), PTL_NO_SPACE);
    OK(PtlHPUFreeMem(a));
    ptl_handlers_t h = handler_set(add_one, NULL, NULL, NULL, 6000, NULL, 0);
    ptl_me_t me = port_entry(&p, memory, LENGTH, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry = handler_append(&p, &me, &h), none;
    h.hpu_initial_length = 1;
    CHECK_CODE(handler_append_code(&p, p.pt, &me, &h, NULL, &none), PTL_NO_SPACE);
    port_unlink(&p, entry);
    h.hpu_initial_state = (void *)8; /* which nobody can read: nothing of it is kept */
    h.hpu_initial_length = 64;
    for (int i = 0; i < 200; i++) {
        CHECK_CODE(handler_append_code(&p, p.pt, &me, &h, NULL, &none), PTL_ARG_INVALID);
    }
    OK(PtlHPUAllocMem(p.ni, 6000, &a));
    port_close(&p);
}

/* ---- Counters ---- */

__handler static int counting_payload(const ptl_payload_t p, void *state)
{
    uint64_t begin = PtlHandlerCycles();
    int code = PtlHandlerCounterAdd(3, p.length);
    if (PtlHandlerCounterAdd(PTL_SPIN_COUNTERS, 1) != PTL_ARG_INVALID || code != PTL_OK) {
        return FAIL;
    }
    PtlHandlerCounterAdd(PTL_SPIN_COUNTERS - 1, PtlHandlerCycles() - begin);
    return SUCCESS;
}
PTL_HANDLER(counting_payload);

PTEST_KINDS(counters, 2)
{
    enum { N = 10 };
    struct port p;
    ptl_spin_counter_t c;
    ptl_spin_limits_t limits;
    port_open(&p, kind, rank, size);
    OK(PtlSpinLimits(p.ni, &limits));
    uint64_t packets = (LENGTH + limits.max_payload_size - 1) / limits.max_payload_size;
    if (rank == 1) {
        ptl_handlers_t h = handler_set(NULL, counting_payload, NULL, NULL, 0, NULL, 0);
        handler_target(&p, memory, LENGTH, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    for (int i = 0; i < N && rank == 0; i++) {
        handler_put(&p, source, LENGTH, 0, 0, PTL_NI_OK);
    }
    BARRIER();
    for (unsigned i = 0; i < PTL_SPIN_COUNTERS; i++) {
        bool used = rank == 1 && (i == 3 || i == PTL_SPIN_COUNTERS - 1);
        OK(PtlSpinCounter(p.ni, i, &c));
        CHECK_EQ(c.count, used ? N * packets : 0);
        CHECK(i == 3 || (c.sum != 0) == used);
    }
    OK(PtlSpinCounter(p.ni, 3, &c));
    CHECK_EQ(c.sum, rank == 1 ? N * LENGTH : 0);
    INVALID(PtlSpinCounter(p.ni, PTL_SPIN_COUNTERS, &c));
    INVALID(PtlSpinCounter(p.ni, 0, NULL));
    INVALID(PtlSpinCounter(PTL_INVALID_HANDLE, 0, &c));
    CHECK_CODE(PtlHandlerCounterAdd(0, 1), PTL_FAIL);
    port_close(&p);
}
