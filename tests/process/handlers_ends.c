/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How what a handler asks for ends when no answer comes: done, or withdrawn and never done, or not
 * known. Handlers of rank 1 add one to a word of rank 0, by a fetch-atomic that
 *
 *   waits     for a use-once entry that a message of rank 1's has in hand
 *   meets     a process that is stopped, killed, or closes its interface
 */
#include "asking.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

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
    struct port p;
    open_alone(&p, PTL_PID_ANY);
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
