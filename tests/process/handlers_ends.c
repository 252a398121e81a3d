/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How what a handler asks for ends when no answer comes: done, or withdrawn and never done, or not
 * known. Handlers of rank 1 add one to a word of rank 0, by a fetch-atomic that
 *
 *   waits     for a use-once entry that a message of rank 1's has in hand
 *   leaves not, since nobody has the address
 *   meets     a process that is stopped, killed, or closes its interface; or one with shorter
 *             packets, which does not do what is longer
 */
#include "handler.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS "100"
enum { BITS = 7, SHOW_NID = 1, SHOW_PID, SHOW_PT, SHOW_PROCESS, SHOW_WORD };

static uint64_t word;

/* handler_host_mem of both handlers. */
static struct notes {
    uint64_t done, withdrawn, unknown, other; /* ends of calls */
    uint64_t before;                          /* what the last one found */
    uint64_t held, go;
} notes;

struct asking {
    ptl_process_t target;
    uint64_t pt;
};

/* Notes how a call has ended. */
static void note_end(int code)
{
    uint64_t field = code == PTL_OK        ? offsetof(struct notes, done)
                     : code == PTL_ABORTED ? offsetof(struct notes, withdrawn)
                     : code == PTL_FAIL    ? offsetof(struct notes, unknown)
                                           : offsetof(struct notes, other);
    PtlHandlerDMAFetchAddB(field, 1, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
}

__handler static int add_one(const ptl_header_t h, void *state)
{
    const struct asking *s = state;
    uint64_t one = 1, before = 0;
    int code =
        PtlHandlerFetchAtomicFromDeviceEx(&before, &one, sizeof(one), s->target,
                                          (ptl_pt_index_t)s->pt, BITS, 0, 0, PTL_SUM, PTL_UINT64_T);
    PtlHandlerDMAToHostB(&before, offsetof(struct notes, before), sizeof(before),
                         PTL_HANDLER_HOST_MEM);
    note_end(code);
    return DROP;
}
PTL_HANDLER(add_one);

enum { SHORT_PACKET = 1024, LONG_PACKET = 4096, LONG_WORDS = 256 /* more than a short packet */ };

struct asking_more {
    struct asking asking;
    uint64_t ones[LONG_WORDS], before[LONG_WORDS];
};

__handler static int add_many(const ptl_header_t h, void *state)
{
    struct asking_more *s = state;
    note_end(PtlHandlerFetchAtomicFromDeviceEx(s->before, s->ones, sizeof(s->ones),
                                               s->asking.target, (ptl_pt_index_t)s->asking.pt, BITS,
                                               0, 0, PTL_SUM, PTL_UINT64_T));
    return DROP;
}
PTL_HANDLER(add_many);

/* Keeps its entry in progress until the host says so. */
__handler static int hold(const ptl_header_t h, void *state)
{
    uint64_t go = 0;
    PtlHandlerDMAFetchAddB(offsetof(struct notes, held), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    while (go == 0) {
        PtlHandlerYield();
        PtlHandlerDMAFromHostB(offsetof(struct notes, go), &go, sizeof(go), PTL_HANDLER_HOST_MEM);
    }
    return DROP;
}
PTL_HANDLER(hold);

#define NOTED(field) __atomic_load_n(&notes.field, __ATOMIC_ACQUIRE)

static void open_impatient(struct port *p, unsigned kind, int rank, int size)
{
    setenv("PINWHEEL_HPU_PATIENCE_MS", PATIENCE_MS, 1);
    setenv("PINWHEEL_LINGER_MS", "50", 1);
    port_open(p, kind, rank, size);
}

/* An entry of rank 1 whose handler asks. */
static ptl_handle_me_t open_entry(struct port *p, ptl_header_handler_t handler, const void *state,
                                  size_t length)
{
    ptl_handlers_t h = handler_set(handler, NULL, NULL, state, length, &notes, sizeof(notes));
    ptl_me_t me = port_entry(p, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = HANDLER_BITS;
    me.ignore_bits = 0;
    return handler_append(p, &me, &h);
}

static ptl_handle_me_t open_asking(struct port *p, ptl_process_t target, ptl_pt_index_t pt)
{
    struct asking s = {target, pt};
    return open_entry(p, add_one, &s, sizeof(s));
}

/* The word of rank 0 that is added to. */
static ptl_handle_me_t open_word(struct port *p)
{
    ptl_me_t me = port_entry(p, &word, sizeof(word),
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_COMM_DISABLE);
    me.match_bits = BITS;
    me.ignore_bits = 0;
    return port_append(p, &me, NULL);
}

/* Has the handler of rank 1 ask, and waits until the call has ended. */
static void ask(struct port *p, ptl_handle_me_t asking)
{
    OK(PtlHandlersInvoke(asking, NULL, 0));
    EVENT(p->eq, PTL_EVENT_PUT);
}

static void check_ends(uint64_t done, uint64_t withdrawn, uint64_t unknown)
{
    CHECK_EQ(NOTED(other), 0);
    CHECK_EQ(NOTED(done), done);
    CHECK_EQ(NOTED(withdrawn), withdrawn);
    CHECK_EQ(NOTED(unknown), unknown);
}

enum { MANY = 100 }; /* asks until one ends as it is to: on a busy machine not each one does */

/* Rank 0: an entry that is taken by the first message, and whose handler keeps it, and behind it
 * the word. */
static ptl_handle_me_t open_held_word(struct port *p)
{
    ptl_handlers_t h = handler_set(hold, NULL, NULL, NULL, 8, &notes, sizeof(notes));
    ptl_me_t me = port_entry(p, NULL, 0,
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE |
                                 PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
    me.match_bits = BITS;
    me.ignore_bits = 0;
    handler_append(p, &me, &h);
    return open_word(p);
}

static void put_to_held(struct port *p)
{
    ptl_handle_md_t md = port_quiet_md(p, NULL, 0, 0, PTL_CT_NONE);
    OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, p->id[0], p->pt, BITS, 0, NULL, 0));
    port_release(md);
}

/* Each ask that was withdrawn is not done, then or later, though its target may confirm that too
 * late; the next one is, once. */
PTEST_MATCHING(withdrawn_while_it_waits, 2)
{
    struct port p;
    open_impatient(&p, kind, rank, size);
    if (rank == 0) {
        ptl_handle_me_t entry = open_held_word(&p);
        BARRIER();
        while (NOTED(held) == 0) {
            PtlEQGet(p.eq, &(ptl_event_t){0});
        }
        BARRIER();
        BARRIER(); /* all asks have ended */
        CHECK_EQ(word, 0);
        __atomic_store_n(&notes.go, 1, __ATOMIC_RELEASE);
        EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(word, 0);
        BARRIER();
        BARRIER();
        CHECK(word >= 1 && word <= 1 + ptest_look(1, SHOW_NID));
        port_unlink(&p, entry);
    } else {
        ptl_handle_me_t asking = open_asking(&p, p.id[0], p.pt);
        BARRIER();
        put_to_held(&p);
        BARRIER();
        for (int i = 0; i < MANY && NOTED(withdrawn) < 2; i++) {
            ask(&p, asking);
        }
        CHECK(NOTED(withdrawn) == 2 && NOTED(done) == 0 && NOTED(other) == 0);
        uint64_t unknown = NOTED(unknown);
        BARRIER();
        BARRIER(); /* the entry is free, and gone */
        for (int i = 0; i < MANY && NOTED(done) == 0; i++) {
            ask(&p, asking);
        }
        CHECK(NOTED(done) == 1 && NOTED(other) == 0);
        ptest_show(SHOW_NID, NOTED(unknown) - unknown);
        BARRIER();
        port_unlink(&p, asking);
    }
    port_close(&p);
}

/* What has not left is withdrawn without asking anybody. */
PTEST(nobody_has_the_address, 1)
{
    struct port p;
    setenv("PINWHEEL_CONNECT_MS", "600000", 1);
    open_impatient(&p, KIND_MP, rank, size);
    ptl_process_t nobody = {.phys = {.nid = p.id[0].phys.nid, .pid = 999}};
    ptl_handle_me_t asking = open_asking(&p, nobody, p.pt);
    ask(&p, asking);
    check_ends(0, 1, 0);
    port_unlink(&p, asking);
    port_close(&p);
}

static bool is_stopped(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    const char *state = strrchr(text, ')');
    return state != NULL && state[2] == 'T';
}

static void stop(pid_t pid)
{
    CHECK(kill(pid, SIGSTOP) == 0);
    while (!is_stopped(pid)) {
        ptest_sleep_ms(1);
    }
}

/* The target is stopped between question and answer: nobody knows; what it does when it goes on
 * stays within what the ends have said. */
PTEST_OWN(stopped_between, 2, "stops its peer")
{
    enum { ROUNDS = 4 };
    struct port p;
    open_impatient(&p, KIND_ML, rank, size);
    ptest_show(SHOW_PROCESS, (uint64_t)getpid());
    ptl_handle_me_t entry = rank == 0 ? open_word(&p) : open_asking(&p, p.id[0], p.pt);
    BARRIER();
    if (rank == 1) {
        pid_t peer = (pid_t)ptest_look(0, SHOW_PROCESS);
        ask(&p, entry); /* they have met */
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t done = NOTED(done), without = NOTED(unknown) + NOTED(withdrawn);
            stop(peer);
            ask(&p, entry); /* it is withdrawn if it finds no room, else unknown */
            CHECK_EQ(NOTED(unknown) + NOTED(withdrawn), without + 1);
            CHECK_EQ(NOTED(done), done);
            CHECK(kill(peer, SIGCONT) == 0);
            while (NOTED(done) == done) {
                ask(&p, entry);
            }
            CHECK(notes.before >= done && notes.before <= done + NOTED(unknown));
        }
        CHECK_EQ(NOTED(other), 0);
        ptest_show(SHOW_NID, NOTED(done));
        ptest_show(SHOW_PID, NOTED(done) + NOTED(unknown));
    }
    BARRIER();
    if (rank == 0) {
        CHECK(word >= ptest_look(1, SHOW_NID) && word <= ptest_look(1, SHOW_PID));
    }
    port_unlink(&p, entry);
    port_close(&p);
}

/* A process of its own that never answers, since its entry is in progress; it ends as it is told.
 */
static _Noreturn void hold_until_the_end(bool closes)
{
    struct port p = {.kind = KIND_MP};
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &p.ni));
    OK(PtlEQAlloc(p.ni, 16, &p.eq));
    OK(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY, &p.pt));
    OK(PtlGetPhysId(p.ni, &p.id[0]));
    OK(PtlGetUid(p.ni, &p.uid));
    open_held_word(&p);
    ptest_show(SHOW_NID, p.id[0].phys.nid);
    ptest_show(SHOW_PT, p.pt + 1);
    ptest_show(SHOW_PID, p.id[0].phys.pid);
    while (closes && ptest_look(1, SHOW_PROCESS) == 0) {
        ptest_sleep_ms(1);
    }
    if (closes) {
        PtlNIFini(p.ni);
        ptest_show(SHOW_WORD, word);
        PtlFini();
        _exit(0);
    }
    for (;;) {
        pause();
    }
}

/* Rank 1 asks the process that rank 0 has made, and that ends meanwhile: nobody knows, at once. An
 * interface that closes ends the handler that keeps the entry: what waits for the entry is then
 * done, if somebody polls before all is over. */
static void target_ends(int rank, int size, bool closes)
{
    struct port p;
    pid_t target = rank == 0 ? fork() : -1;
    if (target == 0) {
        setenv("PINWHEEL_LINGER_MS", "50", 1);
        hold_until_the_end(closes);
    }
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1); /* it is not patience that ends this */
    port_open(&p, KIND_MP, rank, size);
    if (rank == 1) {
        while (ptest_look(0, SHOW_PID) == 0) {
            ptest_sleep_ms(1);
        }
        ptl_process_t at = {.phys = {.nid = (ptl_nid_t)ptest_look(0, SHOW_NID),
                                     .pid = (ptl_pid_t)ptest_look(0, SHOW_PID)}};
        ptl_pt_index_t pt = (ptl_pt_index_t)(ptest_look(0, SHOW_PT) - 1);
        ptl_handle_me_t asking = open_asking(&p, at, pt);
        ptl_handle_md_t md = port_md(&p, NULL, 0, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        OK(PtlPut(md, 0, 0, PTL_ACK_REQ, at, pt, BITS, 0, NULL, 0)); /* takes the entry */
        OK(PtlHandlersInvoke(asking, NULL, 0));
        for (int i = 0; i < 20; i++) {
            PtlEQGet(p.eq, &(ptl_event_t){0});
            ptest_sleep_ms(5); /* for both to come */
        }
        ptest_show(SHOW_PROCESS, 1);
        EVENT(p.eq, PTL_EVENT_PUT);
        bool done = closes && NOTED(done) == 1;
        check_ends(done, 0, !done);
        ptest_show(SHOW_NID, done);
        ptl_event_t event;
        unsigned which;
        OK(PtlEQPoll(&p.mdeq, 1, 20000, &event, &which)); /* of the message that held the entry */
        port_release(md);
        port_unlink(&p, asking);
    } else {
        while (ptest_look(1, SHOW_PROCESS) == 0) {
            ptest_sleep_ms(1);
        }
        CHECK(closes || kill(target, SIGKILL) == 0);
        CHECK_EQ(waitpid(target, NULL, 0), target);
    }
    BARRIER();
    CHECK(rank == 1 || ptest_look(0, SHOW_WORD) >= ptest_look(1, SHOW_NID));
    port_close(&p);
}

PTEST_OWN(killed_between, 2, "forks")
{
    target_ends(rank, size, false);
}

PTEST_OWN(closed_between, 2, "forks")
{
    target_ends(rank, size, true);
}

/* What rank 0 cannot do is refused: answers of handlers and of the program come, and the same peer
 * does what it can. */
PTEST(longer_than_its_packets, 2)
{
    static uint64_t memory[LONG_WORDS];
    struct port p;
    char packet[16];
    snprintf(packet, sizeof(packet), "%d", rank == 0 ? SHORT_PACKET : LONG_PACKET);
    setenv("PINWHEEL_PACKET_SIZE", packet, 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1); /* it is not patience that ends this */
    port_open(&p, KIND_ML, rank, size);
    struct asking_more more = {.asking = {p.id[0], p.pt}};
    for (int i = 0; i < LONG_WORDS; i++) {
        more.ones[i] = 1;
    }
    ptl_handle_me_t entry;
    if (rank == 0) {
        ptl_me_t me = port_entry(&p, memory, sizeof(memory),
                                 PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                     PTL_ME_EVENT_COMM_DISABLE);
        entry = port_append(&p, &me, NULL);
        BARRIER();
    } else {
        BARRIER();
        entry = open_entry(&p, add_many, &more, sizeof(more));
        ask(&p, entry);
        check_ends(0, 0, 1);
        port_unlink(&p, entry);
        ptl_handle_md_t md =
            port_md(&p, more.ones, sizeof(more.ones), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        ptl_handle_md_t to = port_md(&p, more.before, sizeof(more.before), 0, PTL_CT_NONE);
        OK(PtlFetchAtomic(to, 0, md, 0, sizeof(more.ones), p.id[0], p.pt, BITS, 0, NULL, 0, PTL_SUM,
                          PTL_UINT64_T));
        EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
        OK(PtlAtomic(md, 0, sizeof(more.ones), PTL_ACK_REQ, p.id[0], p.pt, BITS, 0, NULL, 0,
                     PTL_SUM, PTL_UINT64_T));
        EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_DROPPED);
        OK(PtlPut(md, 0, sizeof(more.ones), PTL_ACK_REQ, p.id[0], p.pt, BITS, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK); /* it takes several packets */
        port_release(md);
        port_release(to);
        entry = open_asking(&p, p.id[0], p.pt);
        ask(&p, entry);
        check_ends(1, 0, 1);
        CHECK_EQ(notes.before, 1);
    }
    BARRIER();
    for (int i = 0; i < LONG_WORDS && rank == 0; i++) {
        CHECK_EQ(memory[i], i == 0 ? 2 : 1);
    }
    port_unlink(&p, entry);
    port_close(&p);
}
