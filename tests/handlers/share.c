/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers send to a peer that is stopped, and does not take it, is in nobody's way but its
 * own: others get theirs, natively and on RV32, over each fabric.
 *
 *      rank 0: orders to itself ──► entry with a handler ──► rank 1, which lives
 *                                                       └──► rank 2 (and 3), stopped
 *
 * Nothing here is timed: an order ends when its handler has ended, and what is to be sent to
 * rank 1 is acknowledged before the next is ordered.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kit.h"

#include "share_handlers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDERS = 9, LANDING = 5, WHOLE = 1 << 20, TIMES = 100, MARK = 1 << 30 };
enum { SHOW_PID, SHOW_SENT, SHOW_CLOSED };

/* An entry of rank 0 whose handler sends, and its host. */
struct post {
    struct kit *k;
    uint64_t bits;
    struct share_notes notes;
    uint64_t memory[SHARE_BYTES / 8];
    ptl_handle_ct_t ct; /* of orders, and of what was acknowledged */
    uint64_t orders, counted;
    ptl_handle_md_t md;
};

static uint64_t landed[SHARE_BYTES / 8];

static void settings(const char *queue, const char *patience)
{
    setenv("PINWHEEL_HANDLER_QUEUE", queue, 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", patience, 1);
    setenv("PINWHEEL_SHM_RING", "8", 0);
    setenv("PINWHEEL_SHM_CELLS", "2", 0);
    setenv("PINWHEEL_UDP_BUFFER", "65536", 0);
    setenv("PINWHEEL_UDP_PACKET", "548", 0);
}

/* The place where what handlers send lands; it posts events only if it is told to. */
static void open_landing(struct kit *k, bool events)
{
    ptl_handle_me_t handle;
    ptl_me_t me = port_entry(&k->p, landed, sizeof(landed),
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE |
                                 (events ? 0 : PTL_ME_EVENT_SUCCESS_DISABLE));
    me.match_bits = LANDING;
    me.ignore_bits = 0;
    OK(port_append_code(&k->p, k->p.pt, &me, NULL, &handle));
}

static void open_post_of(struct post *x, struct kit *k, uint64_t bits, uint64_t mark,
                         ptl_handlers_t h)
{
    struct share_state s = {.landing = LANDING, .mark = mark};
    *x = (struct post){.k = k, .bits = bits, .ct = port_ct(&k->p)};
    for (int r = 0; r < k->p.size; r++) {
        s.rank[r] = k->p.id[r];
    }
    h.hpu_initial_state = &s;
    h.hpu_initial_length = sizeof(s);
    h.handler_host_mem = &x->notes;
    h.handler_host_length = sizeof(x->notes);
    kit_entry(k, x->memory, sizeof(x->memory), bits, 0, x->ct, &h);
    x->md = port_quiet_md(&k->p, NULL, 0, 0, PTL_CT_NONE);
}

static void open_post(struct post *x, struct kit *k, uint64_t bits, uint64_t mark)
{
    open_post_of(x, k, bits, mark, share_handlers);
}

/* Has that sent, and gives the code of the last call. What is acknowledged has been. */
static int order(struct post *x, enum share_what what, unsigned to, unsigned times, unsigned ack)
{
    OK(PtlPut(x->md, 0, 0, PTL_NO_ACK_REQ, x->k->p.id[0], x->k->p.pt, x->bits, 0, NULL,
              SHARE_ORDER(what, to, times, ack)));
    x->orders++;
    x->counted++;
    while (__atomic_load_n(&x->notes.ended, __ATOMIC_ACQUIRE) != x->orders) {
        ptl_ct_event_t value;
        OK(PtlCTGet(x->ct, &value));
    }
    int code = (int)x->notes.code;
    bool acked = (ack & ~PTL_HANDLER_NOWAIT) == PTL_CT_ACK_REQ && code == PTL_OK;
    x->counted += acked ? times : 0;
    kit_wait(x->ct, x->counted);
    return code;
}

/* Sends to a rank until that is refused, and gives how many messages it was sent in all. */
static uint64_t fill(struct post *x, enum share_what what, unsigned to, unsigned ack)
{
    int code = PTL_OK;
    for (uint64_t most = 0; code == PTL_OK && most < WHOLE; most += TIMES) {
        code = order(x, what, to, TIMES, ack);
    }
    CHECK_EQ(code, PTL_NO_SPACE);
    return x->notes.sent;
}

static bool is_stopped(int pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        CHECK(fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
        fclose(f);
    }
    return state == 'T';
}

/* Rank 0 has met the others; then they stop, and it sees that. */
static void meet_and_stop(struct post *x, int first)
{
    for (int r = 1; r < x->k->p.size; r++) {
        CHECK_EQ(order(x, SHARE_PUT, (unsigned)r, 1, PTL_CT_ACK_REQ), PTL_OK);
    }
    BARRIER();
    for (int r = first; r < x->k->p.size; r++) {
        while (!is_stopped((int)ptest_look(r, SHOW_PID))) {
            ptest_sleep_ms(1);
        }
    }
}

/* The same at a rank that stops, and goes on when it is told to. */
static void stop(void)
{
    ptest_show(SHOW_PID, (uint64_t)getpid());
    BARRIER();
    raise(SIGSTOP);
}

/* What the others do while rank 0 sends: rank 1 lives on, rank 2 stops. */
static void stand_by(int rank)
{
    if (rank == 1) {
        BARRIER();
    } else {
        stop();
    }
}

static void go_on(int rank)
{
    CHECK_EQ(kill((int)ptest_look(rank, SHOW_PID), SIGCONT), 0);
}

static void open_all(struct kit *k, struct post *x, int rank, int size, bool events)
{
    kit_open(k, rank, size);
    open_landing(k, events && rank == 2);
    if (rank == 0) {
        open_post(x, k, ORDERS, 0);
    }
    BARRIER();
}

/* Rank 2 takes what it was sent, in order; numbers above MARK are another context's. */
static void take_in_order(struct kit *k)
{
    uint64_t next[2] = {0}, taken = 0;
    while (ptest_look(0, SHOW_SENT) == 0 || taken < ptest_look(0, SHOW_SENT)) {
        ptl_event_t event;
        unsigned which;
        if (PtlEQPoll(&k->p.eq, 1, 10, &event, &which) == PTL_OK) {
            bool other = event.hdr_data >= MARK;
            CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
            CHECK_EQ(event.hdr_data, (other ? MARK : 0) + next[other]);
            next[other]++;
            taken++;
        }
    }
}

/* ---- Puts that wait ---- */

/* Each put to the stopped one waits in vain, those to the other one go. When the stopped one goes
 * on it gets all that was accepted, in order, and has places again. */
PTEST_OWN(others_go_on, 3, "stops itself")
{
    struct kit k;
    struct post x;
    settings("16", "20");
    open_all(&k, &x, rank, size, true);
    if (rank == 0) {
        meet_and_stop(&x, 2);
        uint64_t sent = fill(&x, SHARE_PUT, 2, PTL_NO_ACK_REQ);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(order(&x, SHARE_PUT, 1, 1, PTL_CT_ACK_REQ), PTL_OK);
            CHECK_EQ(order(&x, SHARE_PUT, 2, 1, PTL_NO_ACK_REQ), PTL_NO_SPACE);
        }
        go_on(2);
        /* It may not be quick enough at once. */
        while (order(&x, SHARE_PUT, 2, 1, PTL_CT_ACK_REQ) != PTL_OK) {
        }
        ptest_show(SHOW_SENT, sent + 1);
    } else if (rank == 1) {
        BARRIER();
    } else {
        stop();
        take_in_order(&k);
    }
    kit_close(&k);
}

/* ---- Puts that do not ---- */

/* Whoever waited here would do so for an hour. */
PTEST_OWN(refused_at_once, 3, "stops itself")
{
    struct kit k;
    struct post x;
    settings("16", "3600000");
    open_all(&k, &x, rank, size, false);
    if (rank == 0) {
        unsigned now = PTL_HANDLER_NOWAIT, acked = PTL_CT_ACK_REQ | PTL_HANDLER_NOWAIT;
        CHECK_EQ(order(&x, SHARE_PUT, 1, 1, 4 | now), PTL_ARG_INVALID);
        CHECK_EQ(order(&x, SHARE_PUT, 1, 1, PTL_ACK_REQ << 3 | now), PTL_ARG_INVALID);
        meet_and_stop(&x, 2);
        fill(&x, SHARE_PUT, 2, PTL_NO_ACK_REQ | now);
        CHECK_EQ(order(&x, SHARE_ATOMIC, 2, 1, PTL_NO_ACK_REQ | now), PTL_NO_SPACE);
        CHECK_EQ(order(&x, SHARE_PUT, 2, 1, acked), PTL_NO_SPACE);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(order(&x, SHARE_PUT, 1, 1, acked), PTL_OK);
            CHECK_EQ(order(&x, SHARE_ATOMIC, 1, 1, acked), PTL_OK);
            CHECK_EQ(order(&x, SHARE_HOST_PUT, 1, 1, acked), PTL_OK);
        }
        CHECK_EQ(order(&x, SHARE_HOST_PUT, 2, 1, PTL_NO_ACK_REQ | now), PTL_OK);
        go_on(2);
    } else {
        stand_by(rank);
    }
    kit_close(&k);
}

/* ---- Contexts ---- */

/* A second context has places at the stopped peer, though a first one took all that it may. */
PTEST_OWN(contexts_share, 3, "stops itself")
{
    struct kit k;
    struct post x, other;
    settings("60", "3600000");
    open_all(&k, &x, rank, size, true);
    if (rank == 0) {
        open_post(&other, &k, ORDERS + 1, MARK);
        meet_and_stop(&x, 2);
        uint64_t first = fill(&x, SHARE_PUT, 2, PTL_NO_ACK_REQ | PTL_HANDLER_NOWAIT);
        uint64_t second = fill(&other, SHARE_PUT, 2, PTL_NO_ACK_REQ | PTL_HANDLER_NOWAIT);
        CHECK(second >= 5);
        CHECK_EQ(fill(&x, SHARE_PUT, 2, PTL_NO_ACK_REQ | PTL_HANDLER_NOWAIT), first);
        CHECK_EQ(order(&x, SHARE_PUT, 1, 1, PTL_CT_ACK_REQ), PTL_OK);
        CHECK_EQ(order(&other, SHARE_PUT, 1, 1, PTL_CT_ACK_REQ), PTL_OK);
        go_on(2);
        ptest_show(SHOW_SENT, first + second);
    } else if (rank == 1) {
        BARRIER();
    } else {
        stop();
        take_in_order(&k);
    }
    kit_close(&k);
}

/* Rank 1 sends a message to an entry of which each packet's handler waits for a place at the
 * stopped one. Other entries' handlers run, though these would take every slot. */
PTEST_OWN(waiting_ones_leave_slots, 3, "stops itself")
{
    enum { PACKETS = 200, FLOOD = ORDERS + 1 };
    struct kit k;
    struct post x, flood;
    setenv("PINWHEEL_SHM_CELLS", "512", 1); /* so many packets are in progress */
    setenv("PINWHEEL_SHM_CELLS_FIRST", "512", 1);
    setenv("PINWHEEL_HPU_QUEUE", "1000", 1);
    settings("16", "3600000");
    open_all(&k, &x, rank, size, false);
    if (rank == 0) {
        open_post_of(&flood, &k, FLOOD, 0, share_flood);
        meet_and_stop(&x, 2);
        ptest_show(SHOW_SENT, 1);
        /* To look too early would find slots. */
        uint64_t begun = 0, now = 0;
        for (int same = 0; same < 50; same = now == begun && now != 0 ? same + 1 : 0, begun = now) {
            CHECK_EQ(order(&x, SHARE_PUT, 1, 1, PTL_CT_ACK_REQ), PTL_OK);
            ptest_sleep_ms(2);
            now = __atomic_load_n(&flood.notes.begun, __ATOMIC_ACQUIRE);
        }
        go_on(2);
        kit_wait(flood.ct, 1);
    } else if (rank == 1) {
        size_t length = PACKETS * k.packet;
        void *message = kit_memory(length);
        BARRIER();
        while (ptest_look(0, SHOW_SENT) == 0) {
            ptest_sleep_ms(1);
        }
        struct kit_sender s = kit_sender(&k, message, length);
        kit_put(&s, 0, length, 0, FLOOD, 0, 0);
        kit_flush(&s);
        kit_release(&s);
        free(message);
    } else {
        stop();
    }
    kit_close(&k);
}

/* ---- The entry's memory ---- */

/* What needs no copy has places as well, since each message is an operation of the NIC's. */
PTEST_OWN(operations_are_left, 3, "stops itself")
{
    struct kit k;
    struct post x;
    settings("16", "3600000");
    open_all(&k, &x, rank, size, false);
    if (rank == 0) {
        meet_and_stop(&x, 2);
        fill(&x, SHARE_HOST_PUT, 2, PTL_NO_ACK_REQ);
        CHECK_EQ(order(&x, SHARE_PUT, 1, 1, PTL_CT_ACK_REQ), PTL_OK);
        CHECK_EQ(order(&x, SHARE_HOST_PUT, 1, 1, PTL_CT_ACK_REQ), PTL_OK);
        kit_put_once(&k, NULL, 0, 1, LANDING, 0, 0, PTL_NI_OK);
        go_on(2);
    } else {
        stand_by(rank);
    }
    kit_close(&k);
}

/* ---- Ends ---- */

/* The interface is closed while messages wait for a stopped peer. */
PTEST_OWN(closed_with_places_taken, 3, "stops itself")
{
    struct kit k;
    struct post x;
    settings("16", "3600000");
    setenv("PINWHEEL_LINGER_MS", "50", 1);
    open_all(&k, &x, rank, size, false);
    if (rank == 0) {
        meet_and_stop(&x, 2);
        fill(&x, SHARE_PUT, 2, PTL_NO_ACK_REQ | PTL_HANDLER_NOWAIT);
        fill(&x, SHARE_HOST_PUT, 2, PTL_NO_ACK_REQ | PTL_HANDLER_NOWAIT);
        OK(PtlNIFini(k.p.ni));
        PtlFini();
        ptest_show(SHOW_CLOSED, 1);
        return;
    }
    if (rank == 1) {
        BARRIER();
        while (ptest_look(0, SHOW_CLOSED) == 0) {
            ptest_sleep_ms(1);
        }
        go_on(2);
    } else {
        stop();
    }
    OK(PtlNIFini(k.p.ni));
    PtlFini();
}

/* A stopped peer that is killed gives back its places: another one gets as many. Rank 2 is a child
 * of its process, which must not die. */
PTEST_OWN(the_dead_need_none, 4, "stops itself")
{
    struct kit k;
    struct post x;
    pid_t child = rank == 2 ? fork() : 0;
    if (child != 0) {
        CHECK(child > 0);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    settings("300", "3600000");
    open_all(&k, &x, rank, size, false);
    if (rank == 1) {
        BARRIER();
    } else if (rank != 0) {
        stop();
    } else {
        unsigned now = PTL_NO_ACK_REQ | PTL_HANDLER_NOWAIT;
        const char *fabric = getenv("PINWHEEL_FABRIC");
        meet_and_stop(&x, 2);
        uint64_t first = fill(&x, SHARE_PUT, 2, now);
        CHECK_EQ(kill((int)ptest_look(2, SHOW_PID), SIGKILL), 0);
        while (order(&x, SHARE_PUT, 2, 1, now) != PTL_OK) {
        }
        uint64_t second = fill(&x, SHARE_PUT, 3, now);
        /* How much is under way, and not in the queue, is the network's to say. */
        CHECK(fabric == NULL || strcmp(fabric, "shm") != 0 || second + 10 >= first);
        CHECK_EQ(order(&x, SHARE_PUT, 1, 1, PTL_CT_ACK_REQ), PTL_OK);
        go_on(3);
        ptest_show(SHOW_CLOSED, 1);
    }
    while (ptest_look(0, SHOW_CLOSED) == 0) {
        ptest_sleep_ms(1);
    }
    OK(PtlNIFini(k.p.ni));
    PtlFini();
}
