/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPUs that are threads: what runs side by side, what does not, and in which order; with
 * the packets lying where the fabric put them meanwhile.
 */
#include "handler.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 100000, MESSAGES = 60 };

static unsigned char source[LENGTH], memory[8][LENGTH];

static void use_hpus(const char *n)
{
    setenv("PINWHEEL_HPUS", n, 1);
    setenv("PINWHEEL_HANDLER_BUDGET_US", "0", 1);
}

/* ---- Handlers that wait for each other ---- */

struct meeting {
    uint64_t here, met;
    uint64_t wanted;
};

/* Returns when as many are there as must be, and does not let go of its HPU meanwhile. */
static int meet(struct meeting *m)
{
    uint64_t before = 0;
    PtlHandlerFAdd(&m->here, NULL, 1);
    for (uint64_t turn = 0; turn < UINT64_C(20000000) && before < m->wanted; turn++) {
        PtlHandlerFAdd(&m->here, &before, 0);
    }
    PtlHandlerFAdd(&m->met, NULL, before >= m->wanted);
    return before >= m->wanted ? SUCCESS : FAIL;
}

__handler static int meeting_payload(const ptl_payload_t p, void *state)
{
    return meet(state);
}

__handler static int meeting_header(const ptl_header_t h, void *state)
{
    return meet(state) == SUCCESS ? PROCEED : FAIL;
}
PTL_HANDLER(meeting_payload);
PTL_HANDLER(meeting_header);

PTEST_KINDS(packets_of_one_message, 2)
{
    enum { PACKETS = 4 };
    struct port p;
    ptl_spin_limits_t limits;
    use_hpus("4");
    port_open(&p, kind, rank, size);
    OK(PtlSpinLimits(p.ni, &limits));
    CHECK_EQ(limits.num_hpus, 4);
    if (rank == 1) {
        struct meeting m = {.wanted = PACKETS};
        ptl_handlers_t h = handler_set(NULL, meeting_payload, NULL, &m, sizeof(m), NULL, 0);
        handler_target(&p, memory[0], LENGTH, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        handler_put(&p, source, PACKETS * limits.max_payload_size, 0, 0, PTL_NI_OK);
    }
    BARRIER();
    port_close(&p);
}

PTEST(messages_of_three_senders, 4)
{
    struct port p;
    use_hpus("3");
    port_open(&p, KIND_ML, rank, size);
    if (rank == 1) {
        struct meeting m = {.wanted = 3};
        ptl_handlers_t h = handler_set(meeting_header, NULL, NULL, &m, sizeof(m), NULL, 0);
        handler_target(&p, memory[0], LENGTH, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank != 1) {
        handler_put(&p, source, 100, 0, 0, PTL_NI_OK);
    }
    BARRIER();
    port_close(&p);
}

/* ---- Serial contexts ---- */

struct inside {
    uint64_t now, clashes, calls, wrong_hpu;
    uint32_t hpus, hpu; /* threads; the only one that may run */
};

__handler static int serial_payload(const ptl_payload_t p, void *state)
{
    struct inside *s = state;
    uint64_t before;
    PtlHandlerFAdd(&s->now, &before, 1);
    PtlHandlerFAdd(&s->clashes, NULL, before != 0);
    PtlHandlerFAdd(&s->wrong_hpu, NULL, PTL_MY_HPU % s->hpus != s->hpu);
    for (int i = 0; i < 3; i++) {
        PtlHandlerYield();
    }
    PtlHandlerFAdd(&s->now, NULL, UINT64_MAX);
    PtlHandlerFAdd(&s->calls, NULL, 1);
    return SUCCESS;
}

__handler static int serial_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    PtlHandlerDMAToHostB(state, 0, sizeof(struct inside), PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(serial_payload);
PTL_HANDLER(serial_completion);

static void serial(int rank, int size, const char *hpus, uint32_t hpu)
{
    static struct inside seen;
    struct port p;
    ptl_spin_limits_t limits;
    use_hpus(hpus);
    port_open(&p, KIND_ML, rank, size);
    OK(PtlSpinLimits(p.ni, &limits));
    ptl_handle_ct_t ct = port_ct(&p);
    uint64_t packets = (LENGTH + limits.max_payload_size - 1) / limits.max_payload_size;
    uint64_t messages = (uint64_t)MESSAGES / 3 * (uint64_t)(size - 1);
    if (rank == 1) {
        struct inside s = {.hpus = limits.num_hpus, .hpu = hpu};
        ptl_handlers_t h = handler_set(NULL, serial_payload, serial_completion, &s, sizeof(s),
                                       &seen, sizeof(seen));
        h.hpu_mask = UINT64_C(1) << hpu;
        handler_target(&p, memory[0], LENGTH, 0, ct, &h);
    }
    BARRIER();
    for (int i = 0; i < MESSAGES / 3 && rank != 1; i++) {
        handler_put(&p, source, LENGTH, 0, 0, PTL_NI_OK);
    }
    if (rank == 1) {
        port_wait_ct(ct, messages);
        CHECK_EQ(seen.calls, messages * packets);
        CHECK_EQ(seen.clashes, 0);
        CHECK_EQ(seen.wrong_hpu, 0);
    }
    port_close(&p);
}

PTEST(serial_on_one_of_two, 4)
{
    serial(rank, size, "2", 1);
}

PTEST(serial_on_one_of_one, 3)
{
    serial(rank, size, "1", 0);
}

PTEST(serial_without_threads, 4)
{
    serial(rank, size, "0", 7);
}

/* ---- Order within a message, data, and many senders ---- */

/* HPU memory of an entry for one sender, whose messages come one after the other. */
struct course {
    uint64_t phase; /* 1: after the header handler, 0: after the completion handler */
    uint64_t bytes, length, disorder, messages;
};

__handler static int course_header(const ptl_header_t h, void *state)
{
    struct course *c = state;
    uint64_t before;
    PtlHandlerFAdd(&c->disorder, NULL, c->bytes != 0);
    c->length = h.length;
    PtlHandlerYield();
    PtlHandlerFAdd(&c->phase, &before, 1);
    PtlHandlerFAdd(&c->disorder, NULL, before != 0);
    return PROCESS_DATA;
}

__handler static int course_payload(const ptl_payload_t p, void *state)
{
    struct course *c = state;
    uint64_t phase;
    for (ptl_size_t i = 0; i < p.offset / 4096 % 3; i++) {
        PtlHandlerYield();
    }
    PtlHandlerFAdd(&c->phase, &phase, 0);
    PtlHandlerFAdd(&c->disorder, NULL, phase != 1);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    p.base[0] = 0; /* its cell must not be read again */
    PtlHandlerFAdd(&c->bytes, NULL, p.length);
    return SUCCESS;
}

__handler static int course_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    struct course *c = state;
    uint64_t bytes;
    PtlHandlerFAdd(&c->bytes, &bytes, 0);
    PtlHandlerFAdd(&c->disorder, NULL, bytes != c->length || dropped != 0 || flow_control);
    c->bytes = 0;
    PtlHandlerFAdd(&c->phase, NULL, UINT64_MAX);
    c->messages++;
    PtlHandlerDMAToHostB(state, 0, sizeof(*c), PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(course_header);
PTL_HANDLER(course_payload);
PTL_HANDLER(course_completion);

static size_t course_length(int rank, int i)
{
    uint64_t seed = (uint64_t)(rank * 1000 + i);
    uint64_t r = splitmix(&seed);
    return i % 3 == 0 ? r % 100 : i % 3 == 1 ? r % 9000 : r % LENGTH;
}

/* Entry 1 + r is rank r's; the last rank is the target, of itself, too. */
static void courses(int rank, int size, unsigned kind)
{
    static struct course seen[8];
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    int target = size - 1;
    for (int r = 0; r < size && rank == target; r++) {
        ptl_handle_me_t entry;
        ptl_pt_index_t pt;
        struct course c = {.phase = 0};
        ptl_handlers_t h = handler_set(course_header, course_payload, course_completion, &c,
                                       sizeof(c), &seen[r], sizeof(seen[r]));
        ptl_me_t me = port_entry(&p, memory[r], LENGTH,
                                 PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM);
        me.ct_handle = ct;
        OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, (ptl_pt_index_t)(1 + r), &pt));
        OK(handler_append_code(&p, pt, &me, &h, NULL, &entry));
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, LENGTH, 0, PTL_CT_NONE);
    ptest_fill(source, LENGTH, (unsigned)rank);
    size_t longest = 0;
    for (int i = 0; i < MESSAGES; i++) {
        size_t length = course_length(rank, i);
        longest = length > longest ? length : longest;
        OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, p.id[target], (ptl_pt_index_t)(1 + rank), 0, 0,
                  NULL, 0));
    }
    ptest_show(0, longest);
    if (rank == target) {
        port_wait_ct(ct, (uint64_t)(MESSAGES * size));
    }
    BARRIER();
    for (int r = 0; r < size && rank == target; r++) {
        CHECK_FILL(memory[r], ptest_look(r, 0), (unsigned)r);
        CHECK_EQ(seen[r].messages, MESSAGES);
        CHECK_EQ(seen[r].disorder, 0);
        CHECK_EQ(seen[r].phase, 0);
    }
    port_close(&p);
}

PTEST_KINDS(courses_on_one, 3)
{
    use_hpus("1");
    courses(rank, size, kind);
}

PTEST_KINDS(courses_on_three, 4)
{
    use_hpus("3");
    courses(rank, size, kind);
}

PTEST(courses_with_two_cells, 4)
{
    use_hpus("3");
    setenv("PINWHEEL_SHM_RING", "2", 1);
    setenv("PINWHEEL_SHM_CELLS", "2", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1);
    courses(rank, size, KIND_ML);
}

PTEST(courses_with_a_queue_of_one, 4)
{
    use_hpus("2");
    setenv("PINWHEEL_HPU_QUEUE", "1", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1);
    courses(rank, size, KIND_ML);
}

PTEST(courses_by_reference, 3)
{
    use_hpus("2");
    setenv("PINWHEEL_SHM_LARGE", "vm", 1);
    courses(rank, size, KIND_ML);
}

/* ---- A target that sleeps, a target that computes ---- */

PTEST(nobody_polls, 2)
{
    static struct course seen;
    struct port p;
    use_hpus("2");
    port_open(&p, KIND_ML, rank, size);
    if (rank == 1) {
        struct course c = {.phase = 0};
        ptl_handlers_t h = handler_set(course_header, course_payload, course_completion, &c,
                                       sizeof(c), &seen, sizeof(seen));
        handler_target(&p, memory[0], LENGTH, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    for (int i = 0; i < MESSAGES && rank == 0; i++) {
        size_t length = course_length(0, i);
        CHECK_EQ(handler_put(&p, source, length, 0, 0, PTL_NI_OK).mlength, length);
    }
    BARRIER();
    CHECK_EQ(seen.messages, rank == 1 ? MESSAGES : 0);
    port_close(&p);
}

/* ---- A sender that dies while packets of it are with their handlers ---- */

/* handler_host_mem */
static struct {
    volatile uint64_t go, holding;
    uint64_t dropped, completions;
} mortal;

__handler static int holding_payload(const ptl_payload_t p, void *state)
{
    uint64_t go = 0;
    PtlHandlerDMAFetchAddB(offsetof(__typeof__(mortal), holding), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    while (go == 0) {
        PtlHandlerDMAFetchAddB(offsetof(__typeof__(mortal), go), 0, &go, PTL_UINT64_T,
                               PTL_HANDLER_HOST_MEM);
        PtlHandlerYield();
    }
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}

__handler static int counting_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    PtlHandlerDMAToHostB(&(uint64_t){dropped}, offsetof(__typeof__(mortal), dropped), 8,
                         PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAFetchAddB(offsetof(__typeof__(mortal), completions), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(holding_payload);
PTL_HANDLER(counting_completion);

/* More than all contexts, each with a packet, and a network's buffers hold. */
enum { LONG = 600000 };
static unsigned char long_source[LONG], long_memory[LONG];

/* Slots of ptest_show(): the target's address, then that it holds packets. */
enum { SHOW_NID, SHOW_PID, SHOW_PT, SHOW_HELD };

static _Noreturn void send_and_wait_for_death(void)
{
    while (ptest_look(1, SHOW_PT) == 0) {
        ptest_sleep_ms(1);
    }
    ptl_handle_ni_t ni;
    ptl_handle_md_t md_handle;
    ptl_process_t target = {.phys = {.nid = (ptl_nid_t)ptest_look(1, SHOW_NID),
                                     .pid = (ptl_pid_t)ptest_look(1, SHOW_PID)}};
    ptl_md_t md = {
        .start = long_source, .length = LONG, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    if (PtlInit() != PTL_OK ||
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                  &ni) != PTL_OK ||
        PtlMDBind(ni, &md, &md_handle) != PTL_OK ||
        PtlPut(md_handle, 0, LONG, PTL_NO_ACK_REQ, target,
               (ptl_pt_index_t)(ptest_look(1, SHOW_PT) - 1), HANDLER_BITS, 0, NULL, 0) != PTL_OK) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

PTEST(sender_dies, 2)
{
    struct port p;
    pid_t victim = -1;
    use_hpus("2");
    setenv("PINWHEEL_UDP_BUFFER", "65536", 1); /* else a network holds all of the message */
    setenv("PINWHEEL_UDP_PACKET", "548", 1);
    setenv("PINWHEEL_HPU_QUEUE", "4", 1);
    setenv("PINWHEEL_SHM_CELLS", "4", 1);
    setenv("PINWHEEL_SHM_LARGE", "cells", 1);
    ptest_fill(long_source, LONG, 1);
    if (rank == 0) {
        victim = fork();
        if (victim == 0) {
            send_and_wait_for_death();
        }
    }
    port_open(&p, KIND_MP, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = handler_set(NULL, holding_payload, counting_completion, NULL, 0,
                                       (void *)&mortal, sizeof(mortal));
        handler_target(&p, long_memory, LONG, 0, PTL_CT_NONE, &h);
        ptest_show(SHOW_NID, p.id[1].phys.nid);
        ptest_show(SHOW_PID, p.id[1].phys.pid);
        ptest_show(SHOW_PT, p.pt + 1);
        while (__atomic_load_n(&mortal.holding, __ATOMIC_SEQ_CST) == 0) {
            ptest_sleep_ms(1);
        }
        ptest_show(SHOW_HELD, 1);
    } else {
        while (ptest_look(1, SHOW_HELD) == 0) {
            ptest_sleep_ms(1);
        }
        CHECK_EQ(kill(victim, SIGKILL), 0);
        CHECK_EQ(waitpid(victim, NULL, 0), victim);
    }
    BARRIER();
    if (rank == 1) {
        ptest_sleep_ms(20); /* for the news of the death */
        __atomic_store_n(&mortal.go, 1, __ATOMIC_SEQ_CST);
        ptl_event_t event = EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_UNDELIVERABLE);
        CHECK(event.mlength < LONG);
        CHECK_FILL(long_memory, event.mlength, 1);
        CHECK_EQ(mortal.completions, 1);
        CHECK_EQ(mortal.dropped, LONG - event.mlength);
    }
    BARRIER();
    if (rank == 0) {
        handler_put(&p, long_source, LONG, 0, 0, PTL_NI_OK);
    } else {
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).mlength, LONG);
        CHECK_EQ(mortal.completions, 2);
    }
    port_close(&p);
}

/* ---- What is asked for and cannot be ---- */

PTEST(bad_processors, 1)
{
    static const char *const bad[] = {"x", "1-", "3-2", "0,", ",0", "99999", "0 1", "4095"};
    ptl_handle_ni_t ni;
    use_hpus("2");
    setenv("PINWHEEL_LOG", "none", 1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("PINWHEEL_HPU_PIN", bad[i], 1);
        OK(PtlInit());
        CHECK_CODE(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
                             NULL, NULL, &ni),
                   PTL_FAIL);
        PtlFini();
    }
    setenv("PINWHEEL_HPU_PIN", "0", 1);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &ni));
    OK(PtlNIFini(ni));
    PtlFini();
}
