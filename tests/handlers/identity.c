/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose message is it? Each handler of a message asks, and finds the header and the state of this
 * message, whatever other messages the entry has at the same time, of however many senders. The
 * state is zeroed for each, and its memory comes back however a message ends: it is held against
 * PINWHEEL_HPU_MEMORY, of which all must be there again at the end.
 */
#include "kit.h"

#include "identity_handlers.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BITS = 21, LONGEST = 1 << 18, OWN = sizeof(struct identity_own), MEMORY = 1 << 18 };

static _Alignas(64) uint8_t memory[LONGEST], source[LONGEST];
static struct identity_log host;

static ptl_handlers_t handlers_for(const ptl_handlers_t *which, struct identity_state *s,
                                   uint32_t state, size_t user, bool keeps)
{
    ptl_handlers_t h = *which;
    *s = (struct identity_state){.length = state, .keeps = keeps};
    h.hpu_initial_state = s;
    h.handler_host_mem = &host;
    h.handler_host_length = sizeof(host);
    h.user_hdr_length = user;
    h.options = PTL_HANDLER_MESSAGE_STATE(state) | (keeps ? PTL_HANDLER_KEEP_USER_HDR : 0);
    return h;
}

/* An entry whose handlers ask; the log is empty. */
static ptl_handle_me_t append(struct kit *k, const ptl_handlers_t *which, uint32_t state,
                              size_t user, bool keeps, ptl_handle_ct_t ct)
{
    struct identity_state s;
    ptl_handlers_t h = handlers_for(which, &s, state, user, keeps);
    memset(&host, 0, sizeof(host));
    return kit_entry(k, memory, sizeof(memory), BITS, 0, ct, &h);
}

static void check_log(uint64_t messages)
{
    for (unsigned i = 0; i < WRONGS; i++) {
        if (host.wrong[i] != 0) {
            FAIL("%llu times wrong: %u", (unsigned long long)host.wrong[i], i);
        }
    }
    CHECK_EQ(host.completions, messages);
}

static uint64_t hdr_data_of(uint64_t who, unsigned what)
{
    return who << IDENTITY_SHIFT | what;
}

static void fill_source(size_t length, uint64_t hdr_data)
{
    for (size_t i = 0; i < length; i++) {
        source[i] = identity_byte(hdr_data, i);
    }
}

/* ---- Messages of several senders, of all lengths ---- */

static void several(struct kit *k, const ptl_handlers_t *which, uint32_t state, size_t user,
                    bool keeps)
{
    uint64_t messages = 0, hdr_data = 0;
    ptl_handle_ct_t ct = port_ct(&k->p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (k->p.rank == 0) {
        entry = append(k, which, state, user, keeps, ct);
    }
    BARRIER();
    if (k->p.rank != 0) {
        for (int i = 0; i < KIT_SIZES - 1; i++) {
            struct kit_sender s = kit_sender(k, source, sizeof(source));
            hdr_data = hdr_data_of((uint64_t)(100 * k->p.rank + i), i % 2);
            fill_source(kit_size(k, i), hdr_data);
            kit_put(&s, 0, kit_size(k, i), 0, BITS, (uint64_t)i, hdr_data);
            kit_put(&s, 0, kit_size(k, i), 0, BITS, (uint64_t)i, hdr_data);
            kit_flush(&s);
            kit_release(&s);
        }
    } else {
        messages = 2u * (KIT_SIZES - 1) * (unsigned)(k->p.size - 1);
        kit_wait(ct, messages);
        check_log(messages);
        port_unlink(&k->p, entry);
    }
    BARRIER();
    OK(PtlCTFree(ct));
}

PTEST(several_senders, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    several(&k, &identity_handlers, OWN, 0, false);
    several(&k, &identity_handlers, PTL_SPIN_MESSAGE_STATE, 24, true);
    kit_close(&k);
}

PTEST(several_entries, 3)
{
    struct kit k;
    kit_open(&k, rank, size);
    several(&k, &identity_handlers, 0, 24, false);
    several(&k, &identity_handlers, 0, 1, true);
    several(&k, &identity_handlers, OWN + 1, 64, true);
    several(&k, &identity_headless, OWN, 0, false);
    several(&k, &identity_headless, 0, 8, true);
    several(&k, &identity_headless, 0, 0, false);
    kit_close(&k);
}

/* ---- Many senders at once, as many as TEST_SENDERS says for each of 15 ranks ---- */

enum { CHILDREN = 2, EACH = 4, CHILD_BYTES = 9000 };

/* A process of its own: all of its messages are under way at once. */
static void child(uint64_t who, ptl_process_t to)
{
    ptl_handle_ni_t ni;
    ptl_handle_md_t md;
    ptl_handle_ct_t ct;
    ptl_ct_event_t done;
    uint64_t hdr_data = hdr_data_of(who, IDENTITY_YIELD);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlCTAlloc(ni, &ct));
    fill_source(CHILD_BYTES, hdr_data);
    ptl_md_t range = {source, CHILD_BYTES, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, ct};
    OK(PtlMDBind(ni, &range, &md));
    for (uint64_t i = 0; i < EACH; i++) {
        OK(PtlPut(md, 0, i % 2 != 0 ? CHILD_BYTES : 100, PTL_CT_ACK_REQ, to, 0, BITS, i, NULL,
                  hdr_data));
    }
    OK(PtlCTWait(ct, EACH, &done));
    CHECK_EQ(done.failure, 0);
    OK(PtlNIFini(ni));
    PtlFini();
    _exit(0);
}

static int children(void)
{
    const char *text = getenv("TEST_SENDERS");
    return text != NULL ? atoi(text) : CHILDREN;
}

static void have_children(int rank, ptl_process_t to)
{
    int n = children(), status;
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            child((uint64_t)(1000 * rank + i), to);
        }
    }
    for (int i = 0; i < n; i++) {
        CHECK(waitpid(-1, &status, 0) > 0);
        CHECK_EQ(status, 0);
    }
}

/* The entry of rank 0, which is alone at its interface. */
static void receive(uint64_t messages)
{
    ptl_pt_index_t pt;
    struct identity_state s;
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_handle_me_t handle;
    ptl_process_t id;
    ptl_ct_event_t done;
    ptl_handlers_t h = handlers_for(&identity_handlers, &s, 512, 16, true);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlGetPhysId(ni, &id));
    OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
    OK(PtlCTAlloc(ni, &ct));
    ptl_me_t me = {.start = memory,
                   .length = sizeof(memory),
                   .ct_handle = ct,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .match_bits = BITS};
    OK(PtlMEAppendHandlers(ni, pt, &me, &h, PTL_PRIORITY_LIST, NULL, &handle));
    ptest_show(0, (uint64_t)id.phys.nid << 32 | id.phys.pid);
    BARRIER();
    OK(PtlCTWait(ct, messages, &done));
    CHECK_EQ(done.failure, 0);
    check_log(messages);
    BARRIER();
    OK(PtlNIFini(ni));
    PtlFini();
}

PTEST_BODY_(processes);
PTEST_ROW_(many_processes, processes, PTEST_RANKS, 240, 0, "forks")
PTEST_BODY_(processes)
{
    setenv("PINWHEEL_HPU_PATIENCE_MS", "600000", 1);
    /* So many processes take a while to be there, and to have a turn. */
    setenv("PINWHEEL_CONNECT_MS", "60000", 1);
    setenv("PINWHEEL_UDP_SILENCE_MS", "120000", 1);
    if (rank == 0) {
        receive((uint64_t)(size - 1) * (unsigned)children() * EACH);
        return;
    }
    BARRIER();
    uint64_t both = ptest_look(0, 0);
    have_children(rank, (ptl_process_t){.phys = {(ptl_nid_t)(both >> 32), (ptl_pid_t)both}});
    BARRIER();
}

/* ---- Messages to oneself, and those that nobody has sent ---- */

PTEST(oneself, 1)
{
    struct kit k;
    kit_open(&k, rank, size);
    ptl_handle_ct_t ct = port_ct(&k.p);
    ptl_handle_me_t entry = append(&k, &identity_handlers, 256, 16, true, ct);
    struct kit_sender s = kit_sender(&k, source, sizeof(source));
    uint64_t hdr_data = hdr_data_of(77, 0);
    fill_source(sizeof(source), hdr_data);
    for (int i = 0; i < KIT_SIZES; i++) {
        kit_put(&s, 0, i == KIT_SIZES - 1 ? LONGEST : kit_size(&k, i), 0, BITS, 3, hdr_data);
    }
    kit_flush(&s);
    check_log(KIT_SIZES);
    for (int i = 0; i < KIT_SIZES - 1; i++) {
        OK(PtlHandlersInvokeEx(entry, source, kit_size(&k, i), hdr_data));
    }
    kit_wait(ct, 2 * KIT_SIZES - 1);
    check_log(2 * KIT_SIZES - 1);
    kit_release(&s);
    port_unlink(&k.p, entry);
    OK(PtlCTFree(ct));
    kit_close(&k);
}

PTEST(timers, 1)
{
    struct kit k;
    ptl_handle_timer_t timer;
    kit_open(&k, rank, size);
    ptl_handle_me_t entry = append(&k, &identity_handlers, 256, 0, true, PTL_CT_NONE);
    for (uint64_t i = 0; i < 3; i++) {
        OK(PtlHandlersTimer(entry, 0, 0, i, &timer));
    }
    ptl_event_t event;
    while (__atomic_load_n(&host.completions, __ATOMIC_ACQUIRE) != 3) {
        CHECK_CODE(PtlEQGet(k.p.eq, &event), PTL_EQ_EMPTY);
    }
    check_log(3);
    CHECK_EQ(host.ticks, 3);
    port_unlink(&k.p, entry);
    kit_close(&k);
}

/* ---- Other operations ---- */

PTEST(operations, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    ptl_handle_ct_t ct = port_ct(&k.p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    uint64_t hdr_data = hdr_data_of(5, 0);
    if (rank == 0) {
        entry = append(&k, &identity_handlers, 128, 0, true, ct);
    }
    BARRIER();
    if (rank == 1) {
        uint64_t operand, back[2];
        fill_source(64, hdr_data);
        memcpy(&operand, source, 8);
        memmove(source, source + 8, 16); /* the operand leads the payload */
        ptl_handle_md_t md = port_md(&k.p, source, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        ptl_handle_md_t get = port_md(&k.p, back, 16, 0, PTL_CT_NONE);
        OK(PtlSwap(get, 0, md, 0, 8, k.p.id[0], k.p.pt, BITS, 8, NULL, hdr_data, &operand,
                   PTL_CSWAP, PTL_UINT64_T));
        EVENT(k.p.mdeq, PTL_EVENT_REPLY);
        fill_source(64, hdr_data);
        OK(PtlAtomic(md, 0, 8, PTL_ACK_REQ, k.p.id[0], k.p.pt, BITS, 16, NULL, hdr_data, PTL_SUM,
                     PTL_UINT64_T));
        EVENT(k.p.mdeq, PTL_EVENT_ACK);
        OK(PtlGet(get, 0, 16, k.p.id[0], k.p.pt, BITS, 0, NULL));
        EVENT(k.p.mdeq, PTL_EVENT_REPLY);
        port_release(md);
        port_release(get);
    } else {
        kit_wait(ct, 3);
        host.wrong[WRONG_SUM] -= 1; /* of the get, whose bytes no payload handler has seen */
        check_log(3);
        port_unlink(&k.p, entry);
    }
    BARRIER();
    OK(PtlCTFree(ct));
    kit_close(&k);
}

/* ---- Refused ---- */

static void refused(struct kit *k, unsigned options, const char *says)
{
    char text[1000];
    ptl_handle_me_t handle;
    ptl_handlers_t h = identity_handlers;
    ptl_me_t me = port_entry(&k->p, memory, sizeof(memory), PTL_ME_OP_PUT);
    h.options = options;
    begin_capture();
    int rc = PtlMEAppendHandlers(k->p.ni, k->p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &handle);
    end_capture(text, sizeof(text));
    CHECK_CODE(rc, PTL_ARG_INVALID);
    if (strstr(text, says) == NULL) {
        FAIL("\"%s\" is not in: %s", says, text);
    }
}

PTEST(too_long, 1)
{
    struct kit k;
    kit_open(&k, rank, size);
    refused(&k, PTL_HANDLER_MESSAGE_STATE(PTL_SPIN_MESSAGE_STATE + 1),
            "PTL_HANDLER_MESSAGE_STATE(4097) is more than PTL_SPIN_MESSAGE_STATE, 4096");
    refused(&k, PTL_HANDLER_MESSAGE_STATE(1ull << 40), "(16777215) or beyond is more than");
    refused(&k, PTL_HANDLER_MESSAGE_STATE(64) | 8, "there is no option 0x8");
    port_unlink(&k.p, append(&k, &identity_handlers, PTL_SPIN_MESSAGE_STATE, 0, true, PTL_CT_NONE));
    kit_close(&k);
}

/* ---- Memory ---- */

/* All of PINWHEEL_HPU_MEMORY is free. */
static void check_memory(ptl_handle_ni_t ni)
{
    ptl_handle_hpu_mem_t all, more;
    OK(PtlHPUAllocMem(ni, MEMORY, &all));
    CHECK_CODE(PtlHPUAllocMem(ni, 1, &more), PTL_NO_SPACE);
    OK(PtlHPUFreeMem(all));
}

static void open_small(struct kit *k, int rank, int size, const char *bytes)
{
    setenv("PINWHEEL_HPU_MEMORY", bytes, 1);
    kit_open(k, rank, size);
}

/* There is memory for two messages at a time, and many want some: all are served. */
PTEST_OWN(few_blocks, 6, "changes the environment")
{
    struct kit k;
    setenv("PINWHEEL_HPU_PATIENCE_MS", "600000", 1);
    open_small(&k, rank, size, "8256");
    several(&k, &identity_handlers, PTL_SPIN_MESSAGE_STATE, 0, false);
    if (rank == 0) {
        ptl_handle_hpu_mem_t all;
        OK(PtlHPUAllocMem(k.p.ni, 8256, &all));
        CHECK_CODE(PtlHPUAllocMem(k.p.ni, 1, &all), PTL_NO_SPACE);
    }
    kit_close(&k);
}

/* There is none for a single one, and then there is. */
PTEST_OWN(no_block, 1, "changes the environment")
{
    struct kit k;
    struct identity_state s;
    ptl_handle_me_t handle;
    open_small(&k, rank, size, "4096");
    ptl_handlers_t h = handlers_for(&identity_handlers, &s, PTL_SPIN_MESSAGE_STATE, 0, false);
    ptl_me_t me =
        port_entry(&k.p, memory, sizeof(memory), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    CHECK_CODE(PtlMEAppendHandlers(k.p.ni, k.p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &handle),
               PTL_NO_SPACE);
    h = handlers_for(&identity_handlers, &s, 2048, 0, false);
    OK(PtlMEAppendHandlers(k.p.ni, k.p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &handle));
    port_unlink(&k.p, handle);
    ptl_handle_hpu_mem_t all;
    OK(PtlHPUAllocMem(k.p.ni, 4096, &all));
    kit_close(&k);
}

/* A message has the only block, and waits in its handler: that of another sender waits for as long
 * as it may, and is dropped. The first one ends well. */
PTEST_OWN(waits_in_vain, 3, "changes the environment")
{
    struct kit k;
    uint64_t hdr_data = hdr_data_of(8, IDENTITY_WAIT);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "50", 1);
    open_small(&k, rank, size, "4200");
    fill_source(100, hdr_data);
    if (rank == 0) {
        ptl_event_t event;
        append(&k, &identity_handlers, PTL_SPIN_MESSAGE_STATE, 0, false, PTL_CT_NONE);
        BARRIER();
        while (__atomic_load_n(&host.waiting, __ATOMIC_ACQUIRE) == 0) {
            CHECK_CODE(PtlEQGet(k.p.eq, &event), PTL_EQ_EMPTY);
        }
        BARRIER();
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_DROPPED);
        __atomic_store_n(&host.go, 1, __ATOMIC_RELEASE);
    } else {
        BARRIER();
        if (rank == 1) {
            struct kit_sender s = kit_sender(&k, source, sizeof(source));
            kit_put(&s, 0, 100, 0, BITS, 0, hdr_data);
            BARRIER();
            kit_flush(&s);
            kit_release(&s);
        } else {
            BARRIER();
            kit_put_once(&k, source, 100, 0, BITS, 0, hdr_data, PTL_NI_DROPPED);
        }
    }
    BARRIER();
    if (rank == 0) {
        check_log(1);
        CHECK_EQ(host.headers, 1);
    }
    kit_close(&k);
}

/* One message of rank 1 that ends so. */
static void ends(struct kit *k, size_t length, unsigned what, int fail)
{
    if (k->p.rank == 1) {
        fill_source(length, hdr_data_of(3, what));
        kit_put_once(k, source, length, 0, BITS, 0, hdr_data_of(3, what), fail);
    } else if (fail != PTL_NI_OK) {
        EVENT_FAIL(k->p.eq, PTL_EVENT_PUT, fail);
    }
    BARRIER();
}

PTEST_OWN(ended, 2, "changes the environment")
{
    struct kit k;
    char text[2000];
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    setenv("PINWHEEL_HANDLER_BUDGET_US", "20000", 1);
    open_small(&k, rank, size, "262144");
    begin_capture();
    if (rank == 0) {
        entry = append(&k, &identity_handlers, 1024, 0, true, PTL_CT_NONE);
    }
    BARRIER();
    for (int i = 0; i < 3; i++) {
        size_t length = i % 2 != 0 ? 3 * k.packet + 5 : 60;
        ends(&k, length, IDENTITY_FAULT, PTL_NI_HANDLER_SEGV);
        ends(&k, length, IDENTITY_SPIN, PTL_NI_HANDLER_TIMEOUT);
        ends(&k, length, IDENTITY_FAIL, PTL_NI_HANDLER_FAIL);
        ends(&k, length, IDENTITY_YIELD, PTL_NI_OK);
    }
    if (rank == 0) {
        port_unlink(&k.p, entry);
        check_memory(k.p.ni);
    }
    end_capture(text, sizeof(text));
    kit_close(&k);
}

/* The interface is closed while messages are at handlers that wait: as many times as would use the
 * memory up if they kept it. */
PTEST_OWN(closed, 2, "changes the environment")
{
    setenv("PINWHEEL_LINGER_MS", "1", 1);
    for (int i = 0; i < 3; i++) {
        struct kit k;
        char text[2000];
        open_small(&k, rank, size, "262144");
        if (rank == 0) {
            append(&k, &identity_handlers, 1024, 0, true, PTL_CT_NONE);
        }
        BARRIER();
        if (rank == 1) {
            fill_source(5000, hdr_data_of(9, IDENTITY_WAIT));
            ptl_handle_md_t md = port_quiet_md(&k.p, source, 5000, 0, PTL_CT_NONE);
            OK(PtlPut(md, 0, 5000, PTL_NO_ACK_REQ, k.p.id[0], k.p.pt, BITS, 0, NULL,
                      hdr_data_of(9, IDENTITY_WAIT)));
        } else {
            ptl_event_t event;
            while (__atomic_load_n(&host.waiting, __ATOMIC_ACQUIRE) == 0) {
                CHECK_CODE(PtlEQGet(k.p.eq, &event), PTL_EQ_EMPTY);
            }
            ptl_handle_ni_t other;
            OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_NP, PTL_PID_ANY, NULL, NULL, &other));
            begin_capture();
            OK(PtlNIFini(k.p.ni));
            end_capture(text, sizeof(text));
            check_memory(other);
            OK(PtlNIFini(other));
            PtlFini();
        }
        BARRIER();
        if (rank == 1) {
            OK(PtlNIFini(k.p.ni));
            PtlFini();
        }
        BARRIER();
    }
}

/* The sender is killed when its message is with the header handler, and only a part of it is here:
 * again and again. */
enum { KILLED = 12 };

static void sends_and_waits(ptl_process_t to, pid_t *pid)
{
    *pid = fork();
    CHECK(*pid >= 0);
    if (*pid != 0) {
        return;
    }
    ptl_handle_ni_t ni;
    ptl_handle_md_t md;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
    fill_source(LONGEST, hdr_data_of(4, IDENTITY_WAIT));
    ptl_md_t range = {source, LONGEST, 0, PTL_EQ_NONE, PTL_CT_NONE};
    OK(PtlMDBind(ni, &range, &md));
    OK(PtlPut(md, 0, LONGEST, PTL_NO_ACK_REQ, to, 0, BITS, 0, NULL, hdr_data_of(4, IDENTITY_WAIT)));
    pause();
}

PTEST_BODY_(killed);
PTEST_ROW_(sender_killed, killed, 2, 200, 0, "forks")
PTEST_BODY_(killed)
{
    setenv("PINWHEEL_HPU_MEMORY", "262144", 1);
    setenv("PINWHEEL_UDP_SILENCE_MS", "300", 1);
    if (rank == 1) {
        BARRIER();
        uint64_t both = ptest_look(0, 0);
        ptl_process_t to = {.phys = {(ptl_nid_t)(both >> 32), (ptl_pid_t)both}};
        for (int i = 0; i < KILLED; i++) {
            pid_t pid;
            int status;
            sends_and_waits(to, &pid);
            BARRIER(); /* its handler waits */
            kill(pid, SIGKILL);
            CHECK_EQ(waitpid(pid, &status, 0), pid);
            BARRIER();
            BARRIER(); /* its message has ended */
        }
        return;
    }
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_pt_index_t pt;
    ptl_process_t id;
    ptl_handle_me_t entry;
    struct identity_state s;
    ptl_handlers_t h = handlers_for(&identity_handlers, &s, 4096, 0, true);
    s.partial = 1;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlGetPhysId(ni, &id));
    OK(PtlEQAlloc(ni, 16, &eq));
    OK(PtlPTAlloc(ni, 0, eq, 0, &pt));
    ptl_me_t me = {.start = memory,
                   .length = sizeof(memory),
                   .uid = PTL_UID_ANY,
                   .options =
                       PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .match_bits = BITS};
    OK(PtlMEAppendHandlers(ni, pt, &me, &h, PTL_PRIORITY_LIST, NULL, &entry));
    ptest_show(0, (uint64_t)id.phys.nid << 32 | id.phys.pid);
    BARRIER();
    for (int i = 0; i < KILLED; i++) {
        ptl_event_t event;
        host.go = 0;
        while (__atomic_load_n(&host.waiting, __ATOMIC_ACQUIRE) == 0) {
            CHECK_CODE(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
        }
        BARRIER();
        BARRIER();
        __atomic_store_n(&host.go, 1, __ATOMIC_RELEASE);
        OK(PtlEQWait(eq, &event));
        CHECK_EQ(event.type, PTL_EVENT_PUT);
        host.waiting = 0;
        BARRIER();
    }
    CHECK_EQ(host.wrong[WRONG_MESSAGE] + host.wrong[WRONG_NO_STATE] + host.wrong[WRONG_NOT_ZERO],
             0);
    while (PtlMEUnlink(entry) == PTL_IN_USE) {
        ptest_sleep_ms(1);
    }
    check_memory(ni);
    OK(PtlNIFini(ni));
    PtlFini();
}

/* ---- What is not the message's ---- */

static bool on_rv32(void)
{
    const char *hpu = getenv("PINWHEEL_HPU");
    return hpu != NULL && strcmp(hpu, "rv32") == 0;
}

PTEST_OWN(strays, 2, "captures standard error")
{
    static const char *const says[STRAYS] = {
        [STRAY_HEADER_NULL] = "in PtlHandlerHeader: ",
        [STRAY_HEADER_READ] = "in PtlHandlerHeader: ",
        [STRAY_BEHIND] = "may not store 1 byte at 0x10001040",
        [STRAY_BEFORE] = "may not store 1 byte at 0x10000fff",
        [STRAY_NOT_ASKED] = "may not store 1 byte at 0x10001000",
        [STRAY_USER_WRITE] = "may not store 1 byte at 0x10002000",
        [STRAY_USER_BEHIND] = "may not load 1 byte at 0x10002008",
    };
    struct kit k;
    kit_open(&k, rank, size);
    for (uint32_t what = 0; what < (on_rv32() ? STRAYS : STRAY_NATIVE); what++) {
        char text[2000];
        struct identity_stray_state state = {.what = what};
        if (rank == 0) {
            ptl_handlers_t h = identity_strays;
            h.hpu_initial_state = &state;
            ptl_handle_me_t entry = kit_entry(&k, memory, sizeof(memory), BITS, 0, PTL_CT_NONE, &h);
            begin_capture();
            BARRIER();
            ptl_event_t event;
            OK(PtlEQWait(k.p.eq, &event));
            end_capture(text, sizeof(text));
            if (event.ni_fail_type != PTL_NI_HANDLER_SEGV) {
                FAIL("%u: ends with %d: %s", what, event.ni_fail_type, text);
            }
            if (strstr(text, says[what]) == NULL) {
                FAIL("%u: \"%s\" is not in: %s", what, says[what], text);
            }
            port_unlink(&k.p, entry);
        } else {
            BARRIER();
            kit_put_once(&k, source, 100, 0, BITS, 0, 0, PTL_NI_HANDLER_SEGV);
        }
        BARRIER();
    }
    kit_close(&k);
}
