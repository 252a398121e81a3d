/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that live for one message: rank 1 starts a process after the other, each of which puts to
 * rank 0 and is killed, or leaves while rank 0 puts to it. Rank 0 serves the last as the first,
 * with no more memory than it had after the first of them; and waits for none that is gone.
 * TEST_CHURN says how many there are.
 */
#include "../own_network.h"
#include "lone.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHURN = 90, LEAVERS = 30, QUIET_MS = 1500 };

/* What may be more after two thirds of them: peers that rank 0 has not noticed to be dead. */
enum { MORE_MOST = 1 << 20 };

static void run_child(void (*body)(void))
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body();
        kill(getpid(), SIGKILL);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void puts_and_dies(void)
{
    struct lone o;
    lone_open(&o);
    lone_put(&o, lone_look(0));
    CHECK_EQ(lone_ended(&o, 1).success, 1);
}

/* Time passes, and progress is made. */
static void be_quiet(ptl_handle_ct_t ct)
{
    ptl_ct_event_t v;
    for (uint64_t end = ptest_now_ms() + QUIET_MS; ptest_now_ms() < end; ptest_sleep_ms(1)) {
        OK(PtlCTGet(ct, &v));
    }
}

PTEST_LIMIT(killed_after_a_message, 2, 1800)
{
    int many = lone_churn(CHURN);
    if (rank == 0) {
        struct lone o;
        ptl_ct_event_t v;
        lone_open(&o);
        ptl_handle_ct_t ct = o.arrived;
        lone_show(&o);
        BARRIER();
        OK(PtlCTWait(ct, (ptl_size_t)many / 3, &v));
        be_quiet(ct);
        size_t first = lone_memory();
        OK(PtlCTWait(ct, (ptl_size_t)many, &v));
        be_quiet(ct);
        size_t all = lone_memory();
        CHECK_EQ(v.failure, 0);
        CHECK(all <= first + MORE_MOST);
        BARRIER();
        lone_close(&o);
        return;
    }
    BARRIER();
    for (int i = 0; i < many; i++) {
        run_child(puts_and_dies);
    }
    BARRIER();
}

static void leaves_at_once(void)
{
    struct lone o;
    lone_open(&o);
    lone_show(&o);
    while (ptest_look(0, LONE_SLOT) != ptest_look(1, LONE_SLOT)) {
    }
    lone_close(&o); /* rank 0 is about to put */
}

/* The time after which silence means death is long enough here for the case to fail of it: rank 0
 * hears otherwise that nobody is there any more, at whatever point of making contact. */
PTEST_LIMIT(puts_to_who_is_leaving, 2, 300)
{
    setenv("PINWHEEL_UDP_SILENCE_MS", "600000", 1);
    setenv("PINWHEEL_CONNECT_MS", "100", 1);
    if (rank == 1) {
        for (int i = 0; i < LEAVERS; i++) {
            run_child(leaves_at_once);
            BARRIER();
        }
        return;
    }
    struct lone o;
    uint64_t last = 0;
    lone_open(&o);
    for (int i = 0; i < LEAVERS; i++) {
        uint64_t id;
        while ((id = ptest_look(1, LONE_SLOT)) == last) {
        }
        last = id;
        ptest_show(LONE_SLOT, id);
        if (i % 3 != 0) {
            ptest_sleep_ms(i % 3 - 1);
        }
        lone_put(&o, lone_look(1));
        lone_ended(&o, (uint64_t)i + 1);
        BARRIER();
    }
    lone_close(&o);
}

/* Nobody is at any of these addresses, nor ever was: nothing is kept of them but a few. */
PTEST_LIMIT(sought_in_vain, 1, 120)
{
    enum { FEW = 2000, MANY = 12000, FIRST_PID = 20000 };
    struct lone o;
    size_t first = 0;
    setenv("PINWHEEL_CONNECT_MS", "1", 1);
    CHECK(move_to_own_network()); /* a process of another test may have one of the PIDs */
    lone_open(&o);
    for (int i = 0; i < MANY; i++) {
        ptl_process_t to = o.id;
        to.phys.pid = (ptl_pid_t)(FIRST_PID + i);
        if (to.phys.pid != o.id.phys.pid) {
            OK(PtlPut(o.md, 0, 8, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0));
        }
        first = i == FEW ? lone_memory() : first;
    }
    CHECK(lone_memory() <= first + MORE_MOST);
    lone_close(&o);
}
