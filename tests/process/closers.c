/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closers against all who are inside: an interface is closed, and opened again under its address,
 * while a thread for each kind of call uses what was there, by handles that may be stale, and
 * somebody else keeps sending to it: another process, or another NIC of this one. No call may
 * touch memory that is gone, hang, or give a code that has no place there.
 *
 * CLOSERS_ROUNDS is how often it is closed. The meetings one by one: tests/litmus/closing.c.
 */
#include "handler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 60, NOBODY = 65000, EVENTS = 64, BYTES = 4096, SLICE_NS = 400000, FINI_EVERY = 7 };
enum { PT_WAITS, PT_SEARCH, PT_HANDLERS, PT_OWN };
enum { SLOT_STOP, SLOT_PID, SLOT_NID };

static unsigned char memory[BYTES], source[BYTES], fetched[8];

/* What there is now, or was a moment ago. */
static struct {
    _Atomic ptl_handle_any_t ni, eq, silent, ct, never, md, reply_md, hpu;
    _Atomic uint64_t self; /* the physical id, as NID << 32 | PID */
    atomic_bool stop;
    atomic_ulong calls;
} now;

static ptl_process_t self(void)
{
    uint64_t id = now.self;
    return (ptl_process_t){.phys = {(ptl_nid_t)(id >> 32), (ptl_pid_t)id}};
}

static void pause_ns(uint64_t ns)
{
    struct timespec t = {0, (long)ns};
    nanosleep(&t, NULL);
}

/* ---- what the threads do ---- */

static int wait_eq(void)
{
    ptl_event_t event;
    return PtlEQWait(now.eq, &event);
}

static int wait_silent(void)
{
    ptl_event_t event;
    return PtlEQWait(now.silent, &event);
}

static int poll_eqs(void)
{
    ptl_event_t event;
    unsigned which;
    ptl_handle_eq_t eqs[] = {now.silent, now.eq};
    PtlEQPoll(eqs, 2, 0, &event, &which);
    return PtlEQPoll(eqs, 2, 1, &event, &which);
}

static int get_event(void)
{
    ptl_event_t event;
    return PtlEQGet(now.eq, &event);
}

static int wait_ct(void)
{
    ptl_ct_event_t v;
    int rc = PtlCTGet(now.ct, &v);
    return rc == PTL_OK ? PtlCTWait(now.ct, v.success + 2, &v) : rc;
}

static int wait_never(void)
{
    ptl_ct_event_t v;
    return PtlCTWait(now.never, UINT64_MAX, &v);
}

static int poll_cts(void)
{
    ptl_ct_event_t v;
    unsigned which;
    ptl_handle_ct_t cts[] = {now.never, now.never};
    ptl_size_t tests[] = {UINT64_MAX, UINT64_MAX};
    PtlCTPoll(cts, tests, 2, 0, &v, &which);
    return PtlCTPoll(cts, tests, 2, 1, &v, &which);
}

static int put(void)
{
    PtlPut(now.md, 0, 2000, PTL_NO_ACK_REQ, self(), PT_HANDLERS, 0, 0, NULL, 0);
    return PtlPut(now.md, 0, 8, PTL_CT_ACK_REQ, self(), PT_WAITS, 0, 0, NULL, 0);
}

/* Nobody has that address, so the queue fills until the put waits. */
static int put_to_nobody(void)
{
    ptl_process_t nobody = self();
    nobody.phys.pid = NOBODY;
    return PtlPut(now.md, 0, 8, PTL_NO_ACK_REQ, nobody, PT_WAITS, 0, 0, NULL, 0);
}

static int trigger(void)
{
    ptl_handle_ct_t ct;
    int rc = PtlCTAlloc(now.ni, &ct);
    if (rc == PTL_OK) {
        PtlTriggeredPut(now.md, 0, 8, PTL_NO_ACK_REQ, self(), PT_WAITS, 0, 0, NULL, 0, ct, 1);
        PtlTriggeredCTInc(now.ct, (ptl_ct_event_t){1, 0}, ct, 1);
        PtlCTInc(ct, (ptl_ct_event_t){1, 0});
        rc = PtlCTFree(ct);
    }
    return rc;
}

static ptl_me_t plain_entry(void)
{
    return (ptl_me_t){.start = memory,
                      .length = BYTES,
                      .ct_handle = PTL_CT_NONE,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
                      .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}}};
}

static int append(void)
{
    ptl_handle_me_t handle;
    ptl_me_t me = plain_entry();
    PtlMESearch(now.ni, PT_SEARCH, &me, PTL_SEARCH_DELETE, NULL);
    int rc = PtlMEAppend(now.ni, PT_SEARCH, &me, PTL_PRIORITY_LIST, NULL, &handle);
    if (rc == PTL_OK) {
        PtlPut(now.md, 0, 8, PTL_NO_ACK_REQ, self(), PT_SEARCH, 0, 0, NULL, 0);
        rc = PtlMEUnlink(handle);
    }
    return rc;
}

static int add(void)
{
    int rc = PtlAtomic(now.md, 0, 8, PTL_NO_ACK_REQ, self(), PT_WAITS, 0, 0, NULL, 0, PTL_SUM,
                       PTL_UINT64_T);
    PtlFetchAtomic(now.reply_md, 0, now.md, 0, 8, self(), PT_WAITS, 0, 0, NULL, 0, PTL_SUM,
                   PTL_UINT64_T);
    PtlAtomicSync();
    return rc;
}

static int churn(void)
{
    ptl_handle_eq_t eq;
    ptl_handle_md_t md;
    int rc = PtlEQAlloc(now.ni, 4, &eq);
    if (rc == PTL_OK) {
        ptl_md_t d = {.start = source, .length = 8, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
        if (PtlMDBind(now.ni, &d, &md) == PTL_OK) {
            PtlMDRelease(md);
        }
        rc = PtlEQFree(eq);
    }
    PtlPTDisable(now.ni, PT_SEARCH);
    PtlPTEnable(now.ni, PT_SEARCH);
    return rc;
}

static int hpu_memory(void)
{
    static unsigned char copy[BYTES];
    PtlHPUWrite(now.hpu, 0, source, BYTES);
    return PtlHPURead(now.hpu, 0, copy, BYTES);
}

/* Another interface of the same NIC, which so outlives the first one at times. */
static int open_beside(void)
{
    ptl_handle_ni_t ni = now.ni;
    PtlNIStatus(ni, PTL_SR_DROP_COUNT, &(ptl_sr_value_t){0});
    int rc = PtlNIInit(PTL_IFACE_DEFAULT, KIND_NP, PTL_PID_ANY, NULL, NULL, &ni);
    return rc == PTL_OK ? PtlNIFini(ni) : rc;
}

static int end_waits(void)
{
    ptest_sleep_ms(1);
    PtlAbort();
    return PTL_OK;
}

static int (*const errands[])(void) = {
    wait_eq,       wait_silent, poll_eqs, get_event, wait_ct, wait_never, poll_cts,    put,
    put_to_nobody, trigger,     append,   add,       churn,   hpu_memory, open_beside, end_waits,
};
enum { ERRANDS = sizeof(errands) / sizeof(errands[0]) };

static bool may_give(int rc)
{
    return rc == PTL_OK || rc == PTL_ARG_INVALID || rc == PTL_NO_INIT || rc == PTL_ABORTED ||
           rc == PTL_EQ_EMPTY || rc == PTL_EQ_DROPPED || rc == PTL_CT_NONE_REACHED ||
           rc == PTL_IN_USE || rc == PTL_NO_SPACE;
}

static void *run(void *arg)
{
    int (*errand)(void) = *(int (*const *)(void))arg;
    while (!now.stop) {
        int rc = errand();
        if (!may_give(rc)) {
            FAIL("a call of errand %d gives %d", (int)((int (*const *)(void))arg - errands), rc);
        }
        atomic_fetch_add(&now.calls, 1);
        if (rc != PTL_OK) {
            pause_ns(100000); /* the others want the processor, too */
        }
    }
    return NULL;
}

/* ---- who closes ---- */

__handler static int count_bytes(const ptl_payload_t p, void *state)
{
    __atomic_fetch_add((uint64_t *)state, p.length, __ATOMIC_RELAXED);
    return SUCCESS;
}
PTL_HANDLER(count_bytes);

static void make_entries(ptl_handle_ni_t ni, ptl_handle_eq_t eq, ptl_handle_ct_t ct,
                         ptl_handle_ct_t own)
{
    ptl_pt_index_t pt;
    ptl_handle_me_t handle;
    ptl_me_t me = plain_entry();
    for (ptl_pt_index_t i = PT_WAITS; i <= PT_OWN; i++) {
        OK(PtlPTAlloc(ni, 0, i == PT_WAITS ? eq : PTL_EQ_NONE, i, &pt));
    }
    me.options |= PTL_ME_EVENT_CT_COMM;
    me.ct_handle = ct;
    OK(PtlMEAppend(ni, PT_WAITS, &me, PTL_PRIORITY_LIST, NULL, &handle));
    me.ct_handle = own;
    OK(PtlMEAppend(ni, PT_OWN, &me, PTL_PRIORITY_LIST, NULL, &handle));
    me = plain_entry();
    OK(PtlMEAppend(ni, PT_SEARCH, &me, PTL_OVERFLOW_LIST, NULL, &handle));
    ptl_handlers_t h = {
        .payload_handler = count_bytes, .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = 64};
    OK(PtlMEAppendHandlers(ni, PT_HANDLERS, &me, &h, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Opens the interface and shows what is in it; then it must work. */
static ptl_handle_ni_t open_subject(void)
{
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq, silent;
    ptl_handle_ct_t ct, never, own;
    ptl_handle_md_t md, reply_md;
    ptl_handle_hpu_mem_t hpu;
    ptl_process_t id;
    /* Its address is what it was, unless the other thread that opens the NIC was first, or another
     * process has it now. */
    ptl_pid_t pid = now.self == 0 ? PTL_PID_ANY : self().phys.pid;
    int rc = PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, pid, NULL, NULL, &ni);
    if (rc == PTL_ARG_INVALID || rc == PTL_PID_IN_USE) {
        rc = PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni);
    }
    OK(rc);
    OK(PtlGetPhysId(ni, &id));
    OK(PtlEQAlloc(ni, EVENTS, &eq));
    OK(PtlEQAlloc(ni, EVENTS, &silent));
    OK(PtlCTAlloc(ni, &ct));
    OK(PtlCTAlloc(ni, &never));
    OK(PtlCTAlloc(ni, &own));
    ptl_md_t d = {.start = source,
                  .length = BYTES,
                  .options = PTL_MD_EVENT_CT_ACK,
                  .eq_handle = PTL_EQ_NONE,
                  .ct_handle = ct};
    OK(PtlMDBind(ni, &d, &md));
    d.start = fetched;
    d.length = sizeof(fetched);
    OK(PtlMDBind(ni, &d, &reply_md));
    OK(PtlHPUAllocMem(ni, BYTES, &hpu));
    make_entries(ni, eq, ct, own);
    now.self = (uint64_t)id.phys.nid << 32 | id.phys.pid;
    now.eq = eq;
    now.silent = silent;
    now.ct = ct;
    now.never = never;
    now.md = md;
    now.reply_md = reply_md;
    now.hpu = hpu;
    now.ni = ni;
    ptest_show(SLOT_NID, id.phys.nid);
    ptest_show(SLOT_PID, id.phys.pid);
    ptl_ct_event_t v;
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, id, PT_OWN, 0, 0, NULL, 0));
    while ((rc = PtlCTWait(own, 1, &v)) == PTL_ABORTED) {
    }
    OK(rc);
    return ni;
}

static int rounds(void)
{
    const char *text = getenv("CLOSERS_ROUNDS");
    return text != NULL ? atoi(text) : ROUNDS;
}

static void close_often(uint64_t seed)
{
    pthread_t thread[ERRANDS];
    OK(PtlInit());
    ptl_handle_ni_t ni = open_subject();
    for (int i = 0; i < ERRANDS; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, run, (void *)&errands[i]), 0);
    }
    for (int round = 0; round < rounds(); round++) {
        pause_ns(splitmix(&seed) % SLICE_NS);
        if (round % FINI_EVERY == 0) {
            PtlFini();
            OK(PtlInit());
        } else {
            OK(PtlNIFini(ni));
        }
        ni = open_subject();
    }
    now.stop = true;
    PtlFini();
    for (int i = 0; i < ERRANDS; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
    CHECK(now.calls > 0);
}

/* ---- who sends ---- */

/* Puts to the subject, from an interface of another process, which stays, or of this one, which
 * the subject's PtlFini() closes at times. */
static void send_on(ptl_interface_t iface, bool (*over)(void))
{
    static unsigned char bytes[BYTES];
    ptl_handle_ni_t ni;
    ptl_handle_md_t md;
    ptl_md_t d = {
        .start = bytes, .length = BYTES, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    bool stays = iface == PTL_IFACE_DEFAULT;
    while (!over()) {
        int rc = PtlNIInit(iface, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni);
        rc = rc == PTL_OK ? PtlMDBind(ni, &d, &md) : rc;
        for (unsigned i = 0; rc == PTL_OK && !over(); i++) {
            ptl_process_t to = {
                .phys = {(ptl_nid_t)ptest_look(0, SLOT_NID), (ptl_pid_t)ptest_look(0, SLOT_PID)}};
            rc = PtlPut(md, 0, i % 8 == 0 ? BYTES : 8, PTL_NO_ACK_REQ, to,
                        i % 4 == 0 ? PT_HANDLERS : PT_WAITS, 0, 0, NULL, 0);
        }
        CHECK(rc == PTL_OK || (!stays && (rc == PTL_ARG_INVALID || rc == PTL_NO_INIT)));
    }
    if (stays) {
        OK(PtlNIFini(ni));
    }
}

static bool told_to_stop(void)
{
    return ptest_look(0, SLOT_STOP) != 0;
}

/* ---- two who close the same ---- */

static void *close_same(void *arg)
{
    return (void *)(intptr_t)PtlNIFini(*(ptl_handle_ni_t *)arg);
}

PTEST(closers_of_the_same, 1)
{
    OK(PtlInit());
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        ptl_handle_ni_t ni;
        void *other;
        OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
        CHECK_EQ(pthread_create(&thread, NULL, close_same, &ni), 0);
        int rc = PtlNIFini(ni);
        CHECK_EQ(pthread_join(thread, &other), 0);
        CHECK((rc == PTL_OK) != ((intptr_t)other == PTL_OK));
        CHECK(rc == PTL_ARG_INVALID || (intptr_t)other == PTL_ARG_INVALID);
    }
    PtlFini();
}

static void set_up(void)
{
    setenv("PINWHEEL_LINGER_MS", "5", 1);
    setenv("PINWHEEL_CONNECT_MS", "50", 1);
    setenv("PINWHEEL_SEND_QUEUE", "16", 1);
}

PTEST_LIMIT(closers_and_a_peer, 2, 3000)
{
    set_up();
    if (rank == 0) {
        close_often(1);
        ptest_show(SLOT_STOP, 1);
    } else {
        while (ptest_look(0, SLOT_PID) == 0) {
            ptest_sleep_ms(1);
        }
        OK(PtlInit());
        send_on(PTL_IFACE_DEFAULT, told_to_stop);
        PtlFini();
    }
    BARRIER();
}

static bool stopped(void)
{
    return now.stop;
}

static void *send_from_here(void *arg)
{
    (void)arg;
    while (ptest_look(0, SLOT_PID) == 0) {
        ptest_sleep_ms(1);
    }
    send_on(PTL_IFACE_DEFAULT + 1, stopped);
    return NULL;
}

/* The same where all is in one process, and race detectors see it. */
PTEST_LIMIT(closers_and_another_nic, 1, 3000)
{
    pthread_t thread;
    set_up();
    setenv("PINWHEEL_IFACES", "127.0.0.1,127.0.0.2", 1);
    CHECK_EQ(pthread_create(&thread, NULL, send_from_here, NULL), 0);
    close_often(2);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
