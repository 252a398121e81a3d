/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing: the library, its interfaces, their pids, in this
 * process and in a forked child. */
#include "port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opens the usual interface without anything round it. */
static int open_ni(unsigned kind, ptl_pid_t pid, ptl_handle_ni_t *ni)
{
    return PtlNIInit(PTL_IFACE_DEFAULT, kind, pid, NULL, NULL, ni);
}

PTEST(init_is_counted, 1)
{
    ptl_handle_ni_t ni;
    ptl_process_t id;
    OK(PtlInit());
    OK(PtlInit());
    OK(PtlInit());
    OK(open_ni(KIND_MP, PTL_PID_ANY, &ni));
    PtlFini();
    PtlFini();
    OK(PtlGetPhysId(ni, &id));
    OK(PtlNIFini(ni));
    PtlFini();
    CHECK_CODE(PtlGetPhysId(ni, &id), PTL_NO_INIT);
    CHECK_CODE(open_ni(KIND_MP, PTL_PID_ANY, &ni), PTL_NO_INIT);
    PtlFini();
    PtlFini();
    OK(PtlInit());
    OK(open_ni(KIND_MP, PTL_PID_ANY, &ni));
    PtlFini();
    CHECK_CODE(PtlGetPhysId(ni, &id), PTL_NO_INIT);
}

/* A put to itself shows that an interface works. */
static void check_works(struct port *p)
{
    unsigned char from[100], to[100] = {0};
    ptest_fill(from, sizeof(from), 3);
    ptl_handle_me_t me = port_target(p, to, sizeof(to), PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = port_md(p, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    OK(PtlPut(md, 0, sizeof(from), PTL_ACK_REQ, p->id[p->rank], p->pt, 0, 0, NULL, 0));
    EVENT(p->mdeq, PTL_EVENT_ACK);
    EVENT(p->eq, PTL_EVENT_PUT);
    CHECK_FILL(to, sizeof(to), 3);
    port_unlink(p, me);
    port_release(md);
}

PTEST(init_again, 2)
{
    for (int i = 0; i < 12; i++) {
        struct port p;
        static const unsigned kinds[] = {KIND_ML, KIND_MP, KIND_NL, KIND_NP};
        port_open(&p, kinds[i % 4], rank, size);
        check_works(&p);
        if (i % 3 == 2) {
            BARRIER();
            PtlFini(); /* closes the interface, too */
        } else {
            port_close(&p);
        }
    }
}

#define NO_INIT(call) CHECK_CODE(call, PTL_NO_INIT)

static void all_no_init(void)
{
    ptl_handle_any_t h = 1;
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_sr_value_t value;
    ptl_process_t id;
    ptl_size_t n = 1;
    ptl_pt_index_t pt;
    ptl_uid_t uid;
    ptl_md_t md = {NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_me_t me = {0};
    ptl_le_t le = {0};
    ptl_event_t event;
    ptl_ct_event_t ct = {0, 0};
    unsigned which;
    memset(&id, 0, sizeof(id));
    NO_INIT(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, &limits, &ni));
    NO_INIT(PtlNIFini(h));
    NO_INIT(PtlNIStatus(h, PTL_SR_DROP_COUNT, &value));
    NO_INIT(PtlNIHandle(h, &ni));
    NO_INIT(PtlGetId(h, &id));
    NO_INIT(PtlGetPhysId(h, &id));
    NO_INIT(PtlGetUid(h, &uid));
    NO_INIT(PtlSetMap(h, 1, &id));
    NO_INIT(PtlGetMap(h, 1, &id, &n));
    NO_INIT(PtlPTAlloc(h, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    NO_INIT(PtlPTFree(h, 0));
    NO_INIT(PtlPTEnable(h, 0));
    NO_INIT(PtlPTDisable(h, 0));
    NO_INIT(PtlMDBind(h, &md, &h));
    NO_INIT(PtlMDRelease(h));
    NO_INIT(PtlMEAppend(h, 0, &me, PTL_PRIORITY_LIST, NULL, &h));
    NO_INIT(PtlMEUnlink(h));
    NO_INIT(PtlLEAppend(h, 0, &le, PTL_PRIORITY_LIST, NULL, &h));
    NO_INIT(PtlLEUnlink(h));
    NO_INIT(PtlEQAlloc(h, 1, &h));
    NO_INIT(PtlEQFree(h));
    NO_INIT(PtlEQGet(h, &event));
    NO_INIT(PtlEQWait(h, &event));
    NO_INIT(PtlEQPoll(&h, 1, 0, &event, &which));
    NO_INIT(PtlCTAlloc(h, &h));
    NO_INIT(PtlCTFree(h));
    NO_INIT(PtlCTGet(h, &ct));
    NO_INIT(PtlCTWait(h, 1, &ct));
    NO_INIT(PtlCTPoll(&h, &n, 1, 0, &ct, &which));
    NO_INIT(PtlCTSet(h, ct));
    NO_INIT(PtlCTInc(h, ct));
    NO_INIT(PtlPut(h, 0, 0, PTL_NO_ACK_REQ, id, 0, 0, 0, NULL, 0));
    NO_INIT(PtlGet(h, 0, 0, id, 0, 0, 0, NULL));
    NO_INIT(PtlTriggeredPut(h, 0, 0, PTL_NO_ACK_REQ, id, 0, 0, 0, NULL, 0, h, 1));
    NO_INIT(PtlTriggeredCTInc(h, ct, h, 1));
}

PTEST(no_init, 1)
{
    all_no_init();
    OK(PtlInit());
    PtlFini();
    all_no_init();
}

/* Runs in the child of a process that has the library open. */
static void forked_child(struct port *p)
{
    ptl_event_t event;
    ptl_process_t id;
    all_no_init();
    CHECK_CODE(PtlEQGet(p->eq, &event), PTL_NO_INIT);
    CHECK_CODE(PtlPut(p->eq, 0, 0, PTL_NO_ACK_REQ, p->id[0], 0, 0, 0, NULL, 0), PTL_NO_INIT);
    PtlFini(); /* there is nothing to end */
    if (PTEST_TSAN) {
        return; /* the tool cannot follow threads made after such a fork */
    }
    struct port mine = {.size = 1, .kind = p->kind};
    OK(PtlInit());
    OK(open_ni(mine.kind, PTL_PID_ANY, &mine.ni));
    OK(PtlGetPhysId(mine.ni, &id));
    CHECK(id.phys.pid != p->phys[0].phys.pid);
    mine.id[0] = id;
    OK(PtlEQAlloc(mine.ni, 16, &mine.eq));
    OK(PtlEQAlloc(mine.ni, 16, &mine.mdeq));
    OK(PtlPTAlloc(mine.ni, 0, mine.eq, PTL_PT_ANY, &mine.pt));
    check_works(&mine);
    OK(PtlNIFini(mine.ni));
    PtlFini();
}

PTEST(forked_child_starts_anew, 1)
{
    struct port p;
    int status;
    port_open(&p, KIND_MP, rank, size);
    check_works(&p);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        forked_child(&p);
        _exit(0);
    }
    check_works(&p);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    check_works(&p);
    port_close(&p);
}

static void check_same_limits(const ptl_ni_limits_t *a, const ptl_ni_limits_t *b)
{
    CHECK_EQ(a->max_entries, b->max_entries);
    CHECK_EQ(a->max_unexpected_headers, b->max_unexpected_headers);
    CHECK_EQ(a->max_mds, b->max_mds);
    CHECK_EQ(a->max_cts, b->max_cts);
    CHECK_EQ(a->max_eqs, b->max_eqs);
    CHECK_EQ(a->max_pt_index, b->max_pt_index);
    CHECK_EQ(a->max_iovecs, b->max_iovecs);
    CHECK_EQ(a->max_list_size, b->max_list_size);
    CHECK_EQ(a->max_triggered_ops, b->max_triggered_ops);
    CHECK_EQ(a->max_msg_size, b->max_msg_size);
    CHECK_EQ(a->max_atomic_size, b->max_atomic_size);
    CHECK_EQ(a->max_fetch_atomic_size, b->max_fetch_atomic_size);
    CHECK_EQ(a->max_waw_ordered_size, b->max_waw_ordered_size);
    CHECK_EQ(a->max_war_ordered_size, b->max_war_ordered_size);
    CHECK_EQ(a->max_volatile_size, b->max_volatile_size);
    CHECK_EQ(a->features, b->features);
}

/* Puts to the other process with this key; what comes of it. */
static void put_with_key(int rank, int size, const void *key, ptl_ni_fail_t fail)
{
    struct port p;
    unsigned char from[100], to[100] = {0};
    OK(PtlSetJobKey(key, 32));
    port_open(&p, KIND_MP, rank, size);
    ptest_fill(from, sizeof(from), 1 - rank);
    ptl_handle_me_t me = port_target(&p, to, sizeof(to), PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    BARRIER();
    OK(PtlPut(md, 0, sizeof(from), PTL_ACK_REQ, p.id[1 - rank], p.pt, 0, 0, NULL, 0));
    if (fail == PTL_NI_OK) {
        EVENT(p.mdeq, PTL_EVENT_ACK);
        EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_FILL(to, sizeof(to), rank);
    } else {
        EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, fail);
    }
    BARRIER();
    port_unlink(&p, me);
    port_release(md);
    port_close(&p);
}

PTEST(job_key, 2)
{
    unsigned char key[1025] = {1};
    setenv("PINWHEEL_FABRIC", "udp", 1);
    setenv("PINWHEEL_IFACES", "lo", 1);
    setenv("PINWHEEL_UDP_SILENCE_MS", "500", 1);
    CHECK_CODE(PtlSetJobKey(key, 32), PTL_NO_INIT);
    OK(PtlInit());
    CHECK_CODE(PtlSetJobKey(key, 31), PTL_ARG_INVALID);
    CHECK_CODE(PtlSetJobKey(key, 1025), PTL_ARG_INVALID);
    CHECK_CODE(PtlSetJobKey(NULL, 32), PTL_ARG_INVALID);
    OK(PtlSetJobKey(key, 1024));
    OK(PtlSetJobKey(NULL, 0));
    put_with_key(rank, size, key, PTL_NI_OK);
    key[31] = (unsigned char)rank;
    put_with_key(rank, size, key, PTL_NI_UNDELIVERABLE);
    PtlFini();
}

PTEST(interface_is_counted, 1)
{
    ptl_handle_ni_t first, second;
    ptl_ni_limits_t desired, a, b;
    ptl_process_t id, again;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, &a, &first));
    OK(PtlGetPhysId(first, &id));
    memset(&desired, 0, sizeof(desired));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, &desired, &b, &second));
    CHECK_EQ(first, second);
    check_same_limits(&a, &b);
    ptl_pid_t other = id.phys.pid == 77 ? 78 : 77;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, other, NULL, &b, &second)); /* pid is ignored */
    CHECK_EQ(first, second);
    OK(PtlGetPhysId(first, &again));
    CHECK_EQ(again.phys.pid, id.phys.pid);
    OK(PtlNIFini(first));
    OK(PtlNIFini(first));
    OK(PtlGetPhysId(first, &again));
    OK(PtlNIFini(first));
    INVALID(PtlGetPhysId(first, &again));
    INVALID(PtlNIFini(first));
    PtlFini();
}

PTEST(four_kinds_share_one_id, 1)
{
    static const unsigned kinds[] = {KIND_ML, KIND_MP, KIND_NL, KIND_NP};
    ptl_handle_ni_t ni[4];
    ptl_process_t id[4];
    OK(PtlInit());
    for (int i = 0; i < 4; i++) {
        OK(open_ni(kinds[i], PTL_PID_ANY, &ni[i]));
        OK(PtlGetPhysId(ni[i], &id[i]));
        CHECK_EQ(id[i].phys.nid, id[0].phys.nid);
        CHECK_EQ(id[i].phys.pid, id[0].phys.pid);
        for (int k = 0; k < i; k++) {
            CHECK(ni[i] != ni[k]);
        }
    }
    CHECK(id[0].phys.pid >= 1 && id[0].phys.pid <= PTL_PID_MAX);
    CHECK(id[0].phys.nid != PTL_NID_ANY && id[0].phys.nid != 0);
    OK(PtlNIFini(ni[0]));
    OK(PtlGetPhysId(ni[1], &id[1])); /* the other three live on */
    for (int i = 1; i < 4; i++) {
        OK(PtlNIFini(ni[i]));
    }
    PtlFini();
}

PTEST(bad_options, 1)
{
    ptl_handle_ni_t ni;
    OK(PtlInit());
    for (unsigned options = 0; options < 32; options++) {
        bool match_ok = ((options >> 0) & 1) + ((options >> 1) & 1) == 1;
        bool address_ok = ((options >> 2) & 1) + ((options >> 3) & 1) == 1;
        if (match_ok && address_ok && options < 16) {
            OK(open_ni(options, PTL_PID_ANY, &ni));
            OK(PtlNIFini(ni));
        } else {
            INVALID(open_ni(options, PTL_PID_ANY, &ni));
        }
    }
    INVALID(open_ni(KIND_MP | 1u << 31, PTL_PID_ANY, &ni));
    INVALID(open_ni(KIND_MP, PTL_PID_ANY, NULL));
    INVALID(PtlNIInit(PTL_IFACE_DEFAULT + 100, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
    INVALID(PtlNIInit(12345, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
    PtlFini();
}

/* Takes the first free pid from `from` on, upwards. */
static ptl_pid_t take_pid(ptl_pid_t from, unsigned kind, ptl_handle_ni_t *ni)
{
    for (ptl_pid_t pid = from; pid < from + 100; pid++) {
        int code = open_ni(kind, pid, ni);
        if (code != PTL_PID_IN_USE) {
            CHECK_CODE(code, PTL_OK);
            return pid;
        }
    }
    FAIL("a hundred pids from %u on are in use", from);
}

/* Opens with one descriptor more each time, until that succeeds. */
static void run_out(const void *key)
{
    char text[4096] = "";
    int log = memfd_create("log", MFD_CLOEXEC), before = dup(STDERR_FILENO);
    struct rlimit limit;
    ptl_handle_ni_t ni;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    OK(PtlInit());
    OK(PtlSetJobKey(key, key != NULL ? 32 : 0));
    CHECK_EQ(dup2(log, STDERR_FILENO), STDERR_FILENO);
    int code = PTL_FAIL, refusals = 0;
    rlim_t first = (rlim_t)before + 1;
    for (rlim_t most = first; code != PTL_OK && most < first + 100; most++) {
        struct rlimit few = {most, limit.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        CHECK_EQ(ftruncate(log, 0), 0);
        lseek(log, 0, SEEK_SET);
        code = open_ni(KIND_MP, PTL_PID_ANY, &ni);
        ssize_t n = pread(log, text, sizeof(text) - 1, 0);
        text[n < 0 ? 0 : n] = '\0';
        if (code != PTL_OK) {
            refusals++;
            if (strstr(text, "ulimit -n") == NULL) {
                puts(text);
            }
            CHECK(strstr(text, "Too many open files") != NULL);
            CHECK(strstr(text, "ulimit -n") != NULL);
            CHECK(strstr(text, "mounted") == NULL && strstr(text, "tmpfs") == NULL &&
                  strstr(text, "package") == NULL);
        }
    }
    dup2(before, STDERR_FILENO);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(code, PTL_OK);
    CHECK(refusals >= 3);
    close(before);
    close(log);
    OK(PtlNIFini(ni));
    PtlFini();
}

/* Whatever it is that finds no descriptor free, the line says so and what helps, nothing else. */
PTEST(descriptors_run_out, 1)
{
    run_out(NULL);
}

/* The library that makes tags is among it, and is had when there is a descriptor for it. */
PTEST(descriptors_run_out_with_a_key, 1)
{
    static const unsigned char key[32] = {1};
    setenv("PINWHEEL_FABRIC", "udp", 1);
    setenv("PINWHEEL_IFACES", "lo", 1);
    run_out(key);
}

PTEST(pid_is_granted, 2)
{
    enum { TAKEN };
    ptl_handle_ni_t ni, other;
    ptl_process_t id;
    OK(PtlInit());
    if (rank == 0) {
        ptl_pid_t pid = take_pid(20000 + (ptl_pid_t)getpid() % 10000, KIND_MP, &ni);
        OK(PtlGetPhysId(ni, &id));
        CHECK_EQ(id.phys.pid, pid);
        OK(open_ni(KIND_NL, pid, &other)); /* one pid for all kinds */
        OK(PtlNIFini(other));
        INVALID(open_ni(KIND_NL, pid + 1, &other));
        OK(open_ni(KIND_NL, PTL_PID_ANY, &other));
        OK(PtlNIFini(other));
        ptest_show(TAKEN, pid);
    }
    BARRIER();
    if (rank == 1) {
        CHECK_CODE(open_ni(KIND_MP, (ptl_pid_t)ptest_look(0, TAKEN), &ni), PTL_PID_IN_USE);
        OK(open_ni(KIND_MP, PTL_PID_ANY, &ni)); /* the refusal leaves nothing behind */
        OK(PtlNIFini(ni));
    }
    BARRIER();
    if (rank == 0) {
        OK(PtlNIFini(ni));
    }
    BARRIER();
    if (rank == 1) {
        OK(open_ni(KIND_MP, (ptl_pid_t)ptest_look(0, TAKEN), &ni));
        OK(PtlGetPhysId(ni, &id));
        CHECK_EQ(id.phys.pid, ptest_look(0, TAKEN));
        OK(PtlNIFini(ni));
    }
    PtlFini();
}

PTEST(bad_pids, 1)
{
    static const ptl_pid_t bad[] = {0, 0x10000, 0x10001, 0x7fffffff, 0xffffffff};
    ptl_handle_ni_t ni;
    OK(PtlInit());
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        INVALID(open_ni(KIND_MP, bad[i], &ni));
    }
    PtlFini();
}

PTEST(pids_differ, 8)
{
    ptl_handle_ni_t ni;
    ptl_process_t id;
    OK(PtlInit());
    OK(open_ni(KIND_MP, PTL_PID_ANY, &ni));
    OK(PtlGetPhysId(ni, &id));
    ptest_show(0, (uint64_t)id.phys.nid << 32 | id.phys.pid);
    BARRIER();
    for (int r = 0; r < size; r++) {
        CHECK(r == rank || ptest_look(r, 0) != ptest_look(rank, 0));
    }
    BARRIER();
    OK(PtlNIFini(ni));
    PtlFini();
}

PTEST(bad_environment, 1)
{
    ptl_handle_ni_t ni;
    setenv("PINWHEEL_SHM_RING", "3", 1); /* not a power of two */
    CHECK_CODE(PtlInit(), PTL_FAIL);
    CHECK_CODE(open_ni(KIND_MP, PTL_PID_ANY, &ni), PTL_NO_INIT);
    unsetenv("PINWHEEL_SHM_RING");
    OK(PtlInit());
    OK(open_ni(KIND_MP, PTL_PID_ANY, &ni));
    OK(PtlNIFini(ni));
    PtlFini();
}
