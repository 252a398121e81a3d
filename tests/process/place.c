/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core that a launcher gave (PINWHEEL_CORE): the first thread has it alone while it polls, the
 * whole mask when it has stopped, as have its threads and children at any time; and a mask that the
 * program sets stays. Without such a core nothing is to be seen of masks at all.
 */
#include "port.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 1, LOOKS = 20000 };

static cpu_set_t all, one, other;

static bool has(pid_t thread, const cpu_set_t *mask)
{
    cpu_set_t now;
    CHECK_EQ(sched_getaffinity(thread, sizeof(now), &now), 0);
    return CPU_EQUAL(&now, mask);
}

static void set(pid_t thread, const cpu_set_t *mask)
{
    CHECK_EQ(sched_setaffinity(thread, sizeof(*mask), mask), 0);
}

/* The second core is home. False: there is but one. */
static bool prepare(void)
{
    char text[16];
    int core = 0, found = 0;
    CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    CPU_ZERO(&other);
    for (; found < 2 && core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &all)) {
            CPU_SET(core, found++ == 0 ? &other : &one);
        }
    }
    snprintf(text, sizeof(text), "%d", core - 1);
    setenv("PINWHEEL_CORE", text, 1);
    return found == 2;
}

static struct port p;

static void poll_once(void)
{
    ptl_event_t event;
    CHECK_CODE(PtlEQGet(p.eq, &event), PTL_EQ_EMPTY);
}

/* Polls until the thread has the mask. */
static void poll_until(pid_t thread, const cpu_set_t *mask)
{
    bool had = has(thread, mask); /* a busy machine may take it away again before the next look */
    for (int i = 0; i < LOOKS && !had; i++) {
        poll_once();
        ptest_sleep_ms(i % 10 == 0 ? LOOK_MS : 0);
        had = has(thread, mask);
    }
    CHECK(had);
}

static void rest_until(pid_t thread, const cpu_set_t *mask)
{
    bool had = has(thread, mask);
    for (int i = 0; i < LOOKS && !had; i++) {
        ptest_sleep_ms(LOOK_MS);
        had = has(thread, mask);
    }
    CHECK(had);
}

/* Polls after a rest: from the first poll on until a lease goes by without any. */
PTEST_KINDS(polls_at_home, 1)
{
    if (!prepare()) {
        return;
    }
    port_open(&p, kind, rank, size);
    for (int i = 0; i < 3; i++) {
        poll_until(0, &one);
        rest_until(0, &all);
    }
    poll_until(0, &one);
    port_close(&p);
    CHECK(has(0, &all));
}

static _Atomic pid_t made;
static _Atomic bool over;

static void *wait_for_end(void *arg)
{
    (void)arg;
    made = gettid();
    while (!over) {
        ptest_sleep_ms(LOOK_MS);
    }
    return NULL;
}

/* A thread that is made by one at home gets the whole mask while that one polls on. */
PTEST_KINDS(threads_run_anywhere, 1)
{
    pthread_t thread;
    if (!prepare()) {
        return;
    }
    port_open(&p, kind, rank, size);
    poll_until(0, &one);
    CHECK_EQ(pthread_create(&thread, NULL, wait_for_end, NULL), 0);
    while (made == 0) {
        poll_once();
    }
    poll_until(made, &all);
    poll_until(0, &one);
    over = true;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    port_close(&p);
}

static void *sleep_on_doorbell(void *arg)
{
    ptl_event_t event;
    (void)arg;
    made = gettid();
    CHECK_CODE(PtlEQWait(p.eq, &event), PTL_OK);
    return NULL;
}

static bool sleeps(pid_t thread)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    CHECK(fgets(line, sizeof(line), f) != NULL);
    fclose(f);
    return strstr(line, ") S ") != NULL;
}

/* The first thread stops polling while another one, which the doorbell is to wake, sleeps on. */
PTEST_KINDS(sleepers_keep_no_home, 1)
{
    pthread_t thread;
    static uint64_t in, out;
    if (!prepare()) {
        return;
    }
    port_open(&p, kind, rank, size);
    ptl_handle_me_t entry = port_target(&p, &in, sizeof(in), PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t own = port_quiet_md(&p, &out, sizeof(out), 0, PTL_CT_NONE);
    ptl_handle_eq_t mine;
    ptl_event_t event;
    CHECK_CODE(PtlEQAlloc(p.ni, 8, &mine), PTL_OK);
    made = 0;
    poll_until(0, &one);
    CHECK_EQ(pthread_create(&thread, NULL, sleep_on_doorbell, NULL), 0);
    do {
        CHECK_CODE(PtlEQGet(mine, &event), PTL_EQ_EMPTY);
    } while (made == 0 || !sleeps(made));
    rest_until(0, &all);
    do { /* it may be awake for a moment */
        ptest_sleep_ms(1);
    } while (!sleeps(made));
    CHECK_CODE(PtlPut(own, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0), PTL_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_CODE(PtlEQFree(mine), PTL_OK);
    port_release(own);
    port_unlink(&p, entry);
    port_close(&p);
}

/* A child has the whole mask, whatever its parent has. */
static void check_mask_of_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t now;
        sched_getaffinity(0, sizeof(now), &now);
        _exit(CPU_EQUAL(&now, &all) ? 0 : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

PTEST_KINDS(children_run_anywhere, 1)
{
    if (!prepare()) {
        return;
    }
    port_open(&p, kind, rank, size);
    poll_until(0, &one);
    check_mask_of_child();
    port_close(&p);
}

/* What the program sets stays, whatever the thread did before and does then. */
PTEST_KINDS(own_masks_stay, 1)
{
    if (!prepare()) {
        return;
    }
    port_open(&p, kind, rank, size);
    for (int i = 0; i < 2; i++) {
        poll_until(0, &one);
        set(0, &other);
        for (int k = 0; k < 20; k++) {
            poll_once();
            CHECK(has(0, &other));
            ptest_sleep_ms(k % 2 * 3); /* a lease goes by, or does not */
            CHECK(has(0, &other));
        }
        set(0, &all);
        ptest_sleep_ms(5);
    }
    set(0, &other);
    port_close(&p);
    CHECK(has(0, &other));
}

/* A process that had one core from the beginning is not taken to another. */
PTEST_KINDS(a_mask_from_before_stays, 1)
{
    if (!prepare()) {
        return;
    }
    set(0, &other);
    port_open(&p, kind, rank, size);
    for (int k = 0; k < 20; k++) {
        poll_once();
        CHECK(has(0, &other));
        ptest_sleep_ms(k % 2 * 3);
    }
    port_close(&p);
}

/* ---- without a home ---- */

static ptl_handle_ct_t came;
static ptl_handle_md_t md;
static uint64_t words;

/* One word to the other rank, and one back; waits in PtlCTWait, or looks in vain with it. */
static void exchange(bool first)
{
    ptl_ct_event_t v;
    for (int step = 0; step < 2; step++) {
        if ((step == 0) == first) {
            CHECK_CODE(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1 - p.rank], p.pt, 0, 0, NULL, 0),
                       PTL_OK);
        } else if (++words % 8 != 0) {
            CHECK_CODE(PtlCTWait(came, words, &v), PTL_OK);
        } else {
            do {
                CHECK_CODE(PtlCTGet(came, &v), PTL_OK);
            } while (v.success < words);
        }
    }
}

static void *look_at_mask(void *arg)
{
    (void)arg;
    CHECK(has(0, &all));
    return NULL;
}

/* Rank 1 is put on the core of rank 0, which has no other one, again and again: whether it leaves
 * or not, what it sees of its mask is what it has set, as do its threads and children. */
PTEST_KINDS(who_leaves_has_its_mask, 2)
{
    static uint64_t in, out;
    bool several = prepare();
    unsetenv("PINWHEEL_CORE");
    if (several && rank == 0) {
        set(0, &other);
    }
    port_open(&p, kind, rank, size);
    came = port_ct(&p);
    ptl_me_t me = port_entry(&p, &in, sizeof(in), PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = came;
    ptl_handle_me_t entry = port_append(&p, &me, NULL);
    md = port_quiet_md(&p, &out, sizeof(out), 0, PTL_CT_NONE);
    BARRIER();
    for (int i = 0; several && i < 3000; i++) {
        if (rank == 1 && i % 100 == 0) {
            set(0, &other);
            exchange(false);
            CHECK(has(0, &other));
            set(0, &all);
        } else {
            exchange(rank == 0);
        }
        CHECK(has(0, rank == 0 ? &other : &all));
        if (rank == 1 && i % 500 == 250) {
            pthread_t thread;
            CHECK_EQ(pthread_create(&thread, NULL, look_at_mask, NULL), 0);
            CHECK_EQ(pthread_join(thread, NULL), 0);
            check_mask_of_child();
        }
    }
    port_release(md);
    port_unlink(&p, entry);
    CHECK_CODE(PtlCTFree(came), PTL_OK);
    port_close(&p);
}
