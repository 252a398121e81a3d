/* SPDX-License-Identifier: BSD-3-Clause */
/* The library in a program that does other things as well: it handles signals, waits for them,
 * gives descriptors to programs that it starts, has threads of small stacks. */
#include "port.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    SIZE = 1 << 16,
    STACK = 64 << 10,
    TICK_US = 1000,
    POLL_MS = 50,
    ROUNDS = 5,
    DESCRIPTORS = 1024
};

static unsigned char out[SIZE], in[SIZE];
static ptl_handle_md_t md;
static ptl_handle_ct_t ct;
static struct port p;

static void open_port(unsigned kind, int rank, int size)
{
    port_open(&p, kind, rank, size);
    port_target(&p, in, SIZE, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    ct = port_ct(&p);
    md = port_quiet_md(&p, out, SIZE, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
    BARRIER();
}

static ptl_process_t peer(void)
{
    return p.id[(p.rank + 1) % p.size];
}

static volatile sig_atomic_t ticks;

static void on_tick(int signal)
{
    (void)signal;
    ticks++;
}

/* Signals whose handler asks for no restart of system calls, a thousand a second. */
static void tick(bool on)
{
    struct sigaction action = {.sa_handler = on_tick};
    struct itimerval every = {.it_interval.tv_usec = on ? TICK_US : 0,
                              .it_value.tv_usec = on ? TICK_US : 0};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* 3.13.5, 3.14.6: a signal ends no wait, neither before what it waits for nor before its time. */
PTEST_KINDS(signals_in_waits, 2)
{
    open_port(kind, rank, size);
    tick(true);
    ptl_event_t event;
    ptl_ct_event_t v;
    unsigned which;
    ptl_size_t never = SIZE;
    uint64_t begin = ptest_now_ms();
    CHECK_CODE(PtlEQPoll(&p.eq, 1, POLL_MS, &event, &which), PTL_EQ_EMPTY);
    CHECK(ptest_now_ms() - begin >= POLL_MS);
    begin = ptest_now_ms();
    CHECK_CODE(PtlCTPoll(&ct, &never, 1, POLL_MS, &v, &which), PTL_CT_NONE_REACHED);
    CHECK(ptest_now_ms() - begin >= POLL_MS);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == rank) {
            ptest_sleep_ms(POLL_MS / 2);
            OK(PtlPut(md, 0, SIZE, PTL_CT_ACK_REQ, peer(), p.pt, 0, 0, NULL, 0));
            OK(PtlCTWait(ct, (ptl_size_t)i / 2 + 1, &v));
            CHECK_EQ(v.success, i / 2 + 1);
        } else {
            OK(PtlEQWait(p.eq, &event));
            CHECK_EQ(event.type, PTL_EVENT_PUT);
        }
    }
    CHECK(ticks > 0);
    tick(false);
    port_close(&p);
}

/* The library's threads take none of the program's signals: one that the program blocks after
 * PtlNIInit, to wait for it, would kill the process in a thread that does not block it. */
PTEST_KINDS(signals_waited_for, 1)
{
    sigset_t set;
    open_port(kind, rank, size);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        int got, sent = i % 2 == 0 ? SIGUSR1 : SIGTERM;
        CHECK_EQ(kill(getpid(), sent), 0);
        CHECK_EQ(sigwait(&set, &got), 0);
        CHECK_EQ(got, sent);
    }
    port_close(&p);
}

/* Every descriptor that an interface brings is closed in a program that this one starts. */
PTEST_KINDS(nothing_inherited, 1)
{
    bool before[DESCRIPTORS];
    int opened = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    open_port(kind, rank, size);
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        int flags = before[fd] ? -1 : fcntl(fd, F_GETFD);
        opened += flags >= 0;
        CHECK(flags < 0 || (flags & FD_CLOEXEC) != 0);
    }
    CHECK(opened > 0);
    port_close(&p);
}

static void *use(void *arg)
{
    ptl_event_t event;
    ptl_ct_event_t v;
    unsigned which;
    (void)arg;
    for (ptl_size_t i = 0; i < ROUNDS; i++) {
        OK(PtlPut(md, 0, SIZE, PTL_CT_ACK_REQ, peer(), p.pt, 0, 0, NULL, 0));
        OK(PtlGet(md, 0, SIZE, peer(), p.pt, 0, 0, NULL));
        OK(PtlAtomic(md, 0, p.limits.max_atomic_size, PTL_CT_ACK_REQ, peer(), p.pt, 0, 0, NULL, 0,
                     PTL_SUM, PTL_LONG_DOUBLE));
        OK(PtlCTWait(ct, 3 * i + 3, &v));
        CHECK_EQ(v.success, 3 * i + 3);
        for (int k = 0; k < 3; k++) {
            OK(PtlEQPoll(&p.eq, 1, PTL_TIME_FOREVER, &event, &which));
        }
    }
    return NULL;
}

static void *open_and_close(void *arg)
{
    open_port(*(unsigned *)arg, 0, 1);
    port_close(&p);
    return NULL;
}

/* Threads whose stack is a hundredth of the usual open, use and close an interface. */
PTEST_KINDS(small_stacks, 1)
{
    pthread_attr_t small;
    pthread_t thread;
    CHECK_EQ(pthread_attr_init(&small), 0);
    CHECK_EQ(pthread_attr_setstacksize(&small, STACK), 0);
    CHECK_EQ(pthread_create(&thread, &small, open_and_close, &kind), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    open_port(kind, rank, size);
    CHECK_EQ(pthread_create(&thread, &small, use, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_attr_destroy(&small), 0);
    port_close(&p);
}
