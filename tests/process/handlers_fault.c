/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that leave their memory: the message ends with PTL_NI_HANDLER_SEGV at both ends, and
 * that is all: the entry takes its next message, the program's own signal handler is not
 * called, and nothing is lost for ever.
 *
 * The faults are made where no checking tool looks (UNCHECKED), since UBSan would report
 * them before they happen. Under ASan they work as without.
 */
#include "handler.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__clang__)
#define UNCHECKED __attribute__((no_sanitize("undefined", "address"), noinline))
#else
#define UNCHECKED __attribute__((no_sanitize("undefined"), no_sanitize("address"), noinline))
#endif

enum fault {
    NO_FAULT,
    READ_NULL,
    WRITE_BEYOND_STATE,
    READ_BEFORE_STATE,
    WRITE_CONSTANT,
    STACK_OVERFLOW,
    DIVISION,
    CALL_NULL,
    CALL_GARBAGE,
    BAD_INSTRUCTION,
    DMA_FAR_OFFSET,
    DMA_BEYOND_END,
    DMA_BAD_RANGE,
    DMA_FROM_NULL,
    DMA_TO_NULL,
    DMA_INACCESSIBLE_HOST,
    DMA_READ_ONLY_HOST,
    CAS_MISALIGNED,
    ADD_MISALIGNED,
    CAS_OF_NULL,
    FADD_BEYOND_STATE,
    PUT_FROM_NULL,
    PUT_BEYOND_END,
    FAULTS
};

enum where { IN_HEADER, IN_PAYLOAD, IN_COMPLETION, IN_ONE_PACKET, PLACES };

enum { STATE = 4096, PAGE = 4096, BYTES = 30000 };

static unsigned char source[BYTES], memory[BYTES];
static unsigned char *host; /* handler_host_mem: a log, then pages of no or little access */

/* HPU memory, one page long, so that both its ends are at guard pages. */
struct state {
    ptl_process_t self;
    uint32_t fault, where;
    uint64_t packets;
    unsigned char fill[STATE - 24];
};
_Static_assert(sizeof(struct state) == STATE, "one page");

static UNCHECKED int overflow(volatile char *above)
{
    volatile char here[512] = {0};
    here[0] = (char)(above[0] + 1);
    return above[1] == 77 ? 0 : overflow(here) + here[1]; /* 77 never comes */
}

static UNCHECKED void fault(struct state *s, enum fault kind)
{
    static volatile int zero, numerator = 12; /* 1 / x is no division to a compiler */
    static const char constant[4] = "abc";
    void (*volatile nowhere)(void) = NULL;
    volatile char *volatile p = NULL;
    volatile char start[2] = {0};
    uint64_t word = 0;
    switch (kind) {
    case READ_NULL:
        start[0] = *p;
        break;
    case WRITE_BEYOND_STATE:
        p = (char *)s + STATE;
        *p = 1;
        break;
    case READ_BEFORE_STATE:
        p = (char *)s - 1;
        start[0] = *p;
        break;
    case WRITE_CONSTANT:
        p = (char *)(uintptr_t)constant;
        *p = 1;
        break;
    case STACK_OVERFLOW:
        overflow(start);
        break;
    case DIVISION:
        zero = numerator / zero;
        break;
    case CALL_GARBAGE:
        nowhere = (void (*)(void))(uintptr_t)0x7234567890abcdef; /* not canonical */
        nowhere();
        break;
    case CALL_NULL:
        nowhere();
        break;
    case BAD_INSTRUCTION:
        __asm__ volatile("ud2");
        break;
    case DMA_FAR_OFFSET:
        PtlHandlerDMAToHostB(&word, UINT64_MAX - 4, 8, PTL_ME_HOST_MEM);
        break;
    case DMA_BEYOND_END:
        PtlHandlerDMAFromHostB(BYTES - 7, &word, 8, PTL_ME_HOST_MEM);
        break;
    case DMA_BAD_RANGE:
        PtlHandlerDMAToHostB(&word, 0, 8, 3);
        break;
    case DMA_FROM_NULL:
        PtlHandlerDMAToHostB(NULL, 0, 8, PTL_ME_HOST_MEM);
        break;
    case DMA_TO_NULL:
        PtlHandlerDMAFromHostB(0, NULL, 8, PTL_ME_HOST_MEM);
        break;
    case DMA_INACCESSIBLE_HOST:
        PtlHandlerDMAFromHostB(PAGE - 4, &word, 8, PTL_HANDLER_HOST_MEM);
        break;
    case DMA_READ_ONLY_HOST:
        PtlHandlerDMAToHostB(&word, 2 * PAGE, 8, PTL_HANDLER_HOST_MEM);
        break;
    case CAS_MISALIGNED:
        PtlHandlerDMACASB(1, &word, 1, PTL_HANDLER_HOST_MEM);
        break;
    case ADD_MISALIGNED:
        PtlHandlerDMAFetchAddB(2, 1, &word, PTL_UINT32_T, PTL_HANDLER_HOST_MEM);
        break;
    case CAS_OF_NULL:
        PtlHandlerCAS(NULL, 0, 1);
        break;
    case FADD_BEYOND_STATE:
        PtlHandlerFAdd((uint64_t *)((char *)s + STATE), &word, 1);
        break;
    case PUT_FROM_NULL:
        PtlHandlerPutFromDevice(NULL, 8, PTL_NO_ACK_REQ, s->self, 0, 0, NULL, 0);
        break;
    case PUT_BEYOND_END:
        PtlHandlerPutFromHost(1, BYTES, PTL_NO_ACK_REQ, s->self, 0, 0, NULL, 0);
        break;
    default:
        break;
    }
    LOG(disorder, kind != NO_FAULT); /* the fault did not end the handler */
}

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    handler_log_header();
    s->fault = (uint32_t)h.hdr_data % FAULTS;
    s->where = (uint32_t)(h.hdr_data / FAULTS);
    s->packets = 0;
    if (s->where == IN_HEADER) {
        fault(s, (enum fault)s->fault);
    }
    return PROCESS_DATA;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    struct state *s = state;
    uint64_t number = s->packets++;
    LOG(payloads, 1);
    if (s->where == IN_PAYLOAD || (s->where == IN_ONE_PACKET && number == 2)) {
        fault(s, (enum fault)s->fault);
    }
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    struct state *s = state;
    handler_log_completion(dropped, flow_control);
    if (s->where == IN_COMPLETION) {
        fault(s, (enum fault)s->fault);
    }
    return SUCCESS;
}

PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

/* ---- The program's own signal handler ---- */

static volatile sig_atomic_t own_signals;
static sigjmp_buf back;

static void own_handler(int signal)
{
    own_signals++;
    siglongjmp(back, 1);
}

/* Before PtlInit, as a program with a debugger's or a run time's handler has it. */
static void install_own(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = own_handler;
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGFPE, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGBUS, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGILL, &action, NULL), 0);
}

/* A fault of the program itself, outside any handler. */
static UNCHECKED void own_fault(enum fault kind)
{
    volatile int zero = 0, numerator = 12;
    volatile char *volatile p = NULL;
    if (kind == DIVISION) {
        zero = numerator / zero;
    } else {
        *p = 1;
    }
}

static void expect_own_fault(enum fault kind)
{
    int before = own_signals;
    if (sigsetjmp(back, 1) == 0) {
        own_fault(kind);
    }
    CHECK_EQ(own_signals, before + 1);
}

/* ---- One fault ---- */

static void make_host(void)
{
    host = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(host != MAP_FAILED);
    /* not munmap: the next mapping might take its place */
    CHECK_EQ(mprotect(host + PAGE, PAGE, PROT_NONE), 0);
    CHECK_EQ(mprotect(host + 2 * PAGE, PAGE, PROT_READ), 0);
}

static void open_faulty(struct port *p, unsigned kind, int rank, int size, ptl_handle_ct_t *ct)
{
    install_own();
    port_open(p, kind, rank, size);
    *ct = port_ct(p);
    ptest_fill(source, BYTES, 1);
    if (rank == 1) {
        struct state s = {.self = p->id[1]};
        make_host();
        ptl_handlers_t h = handler_set(header_handler, payload_handler, completion_handler, &s,
                                       sizeof(s), host, 3 * PAGE);
        h.hpu_mask = 1; /* one packet after the other, so that what was kept is known */
        handler_target(p, memory, BYTES, 0, *ct, &h);
    }
    BARRIER();
}

static uint64_t kept_before_fault(struct port *p, enum where where)
{
    ptl_spin_limits_t limits;
    OK(PtlSpinLimits(p->ni, &limits));
    return where == IN_COMPLETION   ? BYTES
           : where == IN_ONE_PACKET ? 2 * limits.max_payload_size
                                    : 0;
}

/* Memory of the host that is not there is the program's fault, not the handler's. */
static int how_it_ends(enum fault kind)
{
    return kind == NO_FAULT                                              ? PTL_NI_OK
           : kind == DMA_INACCESSIBLE_HOST || kind == DMA_READ_ONLY_HOST ? PTL_NI_SEGV
                                                                         : PTL_NI_HANDLER_SEGV;
}

static void message(struct port *p, enum fault kind, enum where where, bool self)
{
    int fail = how_it_ends(kind);
    uint64_t kept = kind == NO_FAULT ? BYTES : kept_before_fault(p, where);
    struct handler_log *log = (struct handler_log *)host;
    if (p->rank == 1) {
        memset(host, 0, PAGE);
        memset(memory, 0, BYTES);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        ptl_hdr_data_t order = (ptl_hdr_data_t)kind + FAULTS * (ptl_hdr_data_t)where;
        CHECK_EQ(handler_put(p, source, BYTES, 0, order, fail).mlength, kept);
    }
    if (p->rank == 1) {
        ptl_event_t event = EVENT_FAIL(p->eq, PTL_EVENT_PUT, fail);
        CHECK_EQ(event.mlength, kept);
        CHECK_EQ(event.rlength, BYTES);
        CHECK_FILL(memory, kept, 1);
        CHECK_BYTES(memory + kept, BYTES - kept, 0);
        CHECK_EQ(log->headers, 1);
        CHECK_EQ(log->disorder, 0);
        if (kind != NO_FAULT) {
            CHECK_EQ(log->payloads, where == IN_HEADER       ? 0
                                    : where == IN_PAYLOAD    ? 1
                                    : where == IN_ONE_PACKET ? 3
                                                             : log->payloads);
            CHECK_EQ(log->dropped, where == IN_HEADER ? 0 : BYTES - kept);
        }
    }
    BARRIER();
}

/* Each fault in each kind of handler, with a good message behind it. */
PTEST_KINDS(each_fault, 2)
{
    struct port p;
    ptl_handle_ct_t ct;
    uint64_t good = 0, bad = 0;
    open_faulty(&p, kind, rank, size, &ct);
    for (int f = NO_FAULT + 1; f < FAULTS; f++) {
        for (int where = 0; where < PLACES; where++) {
            message(&p, (enum fault)f, (enum where)where, (f + where) % 2);
            message(&p, NO_FAULT, (enum where)where, where % 2);
            good++;
            bad++;
        }
    }
    if (rank == 1) {
        handler_check_ct(ct, good, bad);
        NO_EVENT(p.eq);
    }
    CHECK_EQ(own_signals, 0);
    port_close(&p);
}

/* Own faults reach the program's handler, before, between and after those of handlers. */
PTEST_KINDS(own_faults, 2)
{
    struct port p;
    ptl_handle_ct_t ct;
    open_faulty(&p, kind, rank, size, &ct);
    expect_own_fault(READ_NULL);
    for (int f = NO_FAULT + 1; f < FAULTS; f++) {
        message(&p, (enum fault)f, IN_PAYLOAD, f % 2);
        expect_own_fault(f % 2 ? READ_NULL : DIVISION);
    }
    port_close(&p);
    expect_own_fault(READ_NULL);
    expect_own_fault(DIVISION);
}

/* A forked child's faults are its own, whoever handles them. */
static int child_status(void (*end)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        end();
        _exit(1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void child_catches(void)
{
    if (sigsetjmp(back, 1) == 0) {
        own_fault(READ_NULL);
    }
    _exit(own_signals == 1 ? 42 : 2);
}

static void child_dies(void)
{
    signal(SIGSEGV, SIG_DFL);
    own_fault(READ_NULL);
}

PTEST_KINDS(faults_of_a_child, 2)
{
    struct port p;
    ptl_handle_ct_t ct;
    open_faulty(&p, kind, rank, size, &ct);
    message(&p, READ_NULL, IN_HEADER, false);
    int status = child_status(child_catches);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 42);
    status = child_status(child_dies);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGSEGV);
    message(&p, READ_NULL, IN_COMPLETION, true);
    message(&p, NO_FAULT, IN_HEADER, true);
    CHECK_EQ(own_signals, 0);
    port_close(&p);
}

/* A program without a handler of its own dies of its own fault, as always. */
static void child_with_a_nic(void)
{
    ptl_handle_ni_t ni;
    signal(SIGSEGV, SIG_DFL);
    if (PtlInit() == PTL_OK &&
        PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK) {
        own_fault(READ_NULL);
    }
}

PTEST(dies_of_its_own_fault, 1)
{
    int status = child_status(child_with_a_nic);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

/* ---- Many ---- */

static int mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0;
    CHECK(maps != NULL);
    for (int c; (c = getc(maps)) != EOF;) {
        lines += c == '\n';
    }
    fclose(maps);
    return lines;
}

/* Many more than there are contexts, each of which must come back. */
PTEST_KINDS(thousand_faults, 2)
{
    enum { N = 1000 };
    struct port p;
    ptl_handle_ct_t ct;
    open_faulty(&p, kind, rank, size, &ct);
    int before = 0;
    ptl_handle_md_t md = port_quiet_md(&p, source, BYTES, 0, PTL_CT_NONE);
    for (ptl_hdr_data_t i = 0; i < N && rank == 0; i++) {
        ptl_hdr_data_t f = 1 + i % (FAULTS - 1), where = i % PLACES;
        OK(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, f + FAULTS * where));
    }
    for (int i = 0; i < N && rank == 1; i++) {
        /* By now contexts have been built anew, and a sanitizer has mapped what it needs for that.
         */
        before = i == N / 2 ? mappings() : before;
        EVENT_FAIL(p.eq, PTL_EVENT_PUT, how_it_ends((enum fault)(1 + i % (FAULTS - 1))));
    }
    BARRIER();
    port_release(md);
    CHECK(rank == 0 || mappings() < before + 50);
    message(&p, NO_FAULT, IN_HEADER, false);
    CHECK_EQ(own_signals, 0);
    port_close(&p);
}
