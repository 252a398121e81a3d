/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() while another thread of the parent is in the midst of PtlInit or PtlFini: the child starts
 * anew. The other thread is stopped at a place by what the library calls there, which this program
 * defines, until the child is made, or for a moment where fork() waits for that thread.
 */
#include "port.h"

#include "spin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { STOP_MS = 200, FORKS = 60, CHILD_S = 20, LARGE = 1 << 18 /* is not kept */ };
enum place { NOWHERE, IN_DLOPEN, IN_SIGEMPTYSET, IN_MUNMAP };

static _Atomic int place;    /* where the other thread stops */
static _Atomic bool there;   /* the other thread has stopped at `place` */
static _Atomic bool goes_on; /* the other thread may go on */
static __thread bool is_other;

/* To the library, in the place of libc's. */
#define SHOWN __attribute__((visibility("default")))

static void stop_at(enum place p)
{
    if (!is_other || atomic_load(&place) != (int)p) {
        return;
    }
    atomic_store(&place, NOWHERE);
    atomic_store(&there, true);
    for (int ms = 0; ms < STOP_MS && !atomic_load(&goes_on); ms++) {
        ptest_sleep_ms(1);
    }
}

/* What the first PtlInit() does once calls it, but not in a sanitized build. */
SHOWN void *dlopen(const char *file, int mode)
{
    stop_at(IN_DLOPEN);
    void *(*next)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &found, sizeof(next));
    return next(file, mode);
}

/* fault_install() calls it for each signal. */
SHOWN int sigemptyset(sigset_t *set)
{
    stop_at(IN_SIGEMPTYSET);
    memset(set, 0, sizeof(*set));
    return 0;
}

/* The last PtlFini() calls it in the midst of closing an interface, for HPU memory. */
SHOWN int munmap(void *at, size_t length)
{
    stop_at(IN_MUNMAP);
    return (int)syscall(SYS_munmap, at, length);
}

/* In a child, where the alarm ends a call that hangs, and in the parent. */
static void start_anew(void)
{
    alarm((unsigned)(CHILD_S * ptest_slow()));
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
    ptl_pt_index_t pt;
    ptl_process_t id;
    CHECK_CODE(PtlGetPhysId(1, &id), PTL_NO_INIT);
    PtlFini(); /* there is nothing to end */
    for (int i = 0; i < 2; i++) {
        OK(PtlInit());
        OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
        OK(PtlGetPhysId(ni, &id));
        OK(PtlEQAlloc(ni, 8, &eq));
        OK(PtlCTAlloc(ni, &ct));
        OK(PtlPTAlloc(ni, 0, eq, 4, &pt));
        OK(PtlNIFini(ni));
        PtlFini();
    }
}

static void fork_one(void)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        start_anew();
        _exit(0);
    }
    atomic_store(&goes_on, true);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* ---- At one place ---- */

struct stops {
    enum place in_init, in_fini;
};

static void *open_and_close(void *arg)
{
    const struct stops *stops = arg;
    ptl_handle_ni_t ni;
    ptl_handle_hpu_mem_t memory;
    is_other = true;
    atomic_store(&place, stops->in_init);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlHPUAllocMem(ni, LARGE, &memory));
    atomic_store(&place, stops->in_fini);
    PtlFini();
    return NULL;
}

static void fork_beside(struct stops stops)
{
    pthread_t other;
    if (PTEST_TSAN) {
        ptest_skip("the tool cannot follow threads made after such a fork");
    }
    CHECK_EQ(pthread_create(&other, NULL, open_and_close, &stops), 0);
    while (!atomic_load(&there)) {
        ptest_sleep_ms(1);
    }
    fork_one();
    CHECK_EQ(pthread_join(other, NULL), 0);
    fork_one(); /* of a parent that has closed all */
    start_anew();
    alarm(0);
}

PTEST_LIMIT(while_it_is_done_once, 1, 60)
{
    if (SANITIZED) {
        ptest_skip("there the library calls no dlopen()");
    }
    fork_beside((struct stops){.in_init = IN_DLOPEN});
}

PTEST_LIMIT(while_handlers_are_installed, 1, 60)
{
    fork_beside((struct stops){.in_init = IN_SIGEMPTYSET});
}

PTEST_LIMIT(while_the_last_one_closes, 1, 60)
{
    fork_beside((struct stops){.in_fini = IN_MUNMAP});
}

/* The parent's users of the fault handlers are none of the child's. */
PTEST(a_child_puts_signal_handlers_back, 1)
{
    struct sigaction before, now;
    int status;
    CHECK_EQ(sigaction(SIGSEGV, NULL, &before), 0);
    OK(PtlInit());
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        OK(PtlInit());
        PtlFini();
        CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
        CHECK_EQ(now.sa_handler, before.sa_handler);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    PtlFini();
}

/* ---- Anywhere ---- */

static _Atomic bool ends;

/* What it leaves to PtlFini, and whether another PtlInit keeps the library. */
struct cycle {
    bool kept, fini_closes;
};

static void *cycle(void *arg)
{
    const struct cycle *c = arg;
    while (!atomic_load(&ends)) {
        ptl_handle_ni_t ni;
        ptl_handle_eq_t eq;
        OK(PtlInit());
        OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni));
        OK(PtlEQAlloc(ni, 8, &eq));
        if (!c->fini_closes) {
            OK(PtlNIFini(ni));
        }
        PtlFini();
    }
    return NULL;
}

static void fork_at_any_time(struct cycle c)
{
    pthread_t other;
    if (PTEST_TSAN || SANITIZED) {
        ptest_skip("the tool's own locks stay locked in such a child");
    }
    if (c.kept) {
        OK(PtlInit());
    }
    CHECK_EQ(pthread_create(&other, NULL, cycle, &c), 0);
    for (unsigned i = 0; i < FORKS; i++) {
        fork_one();
        usleep(i * 7919 % 300);
    }
    atomic_store(&ends, true);
    CHECK_EQ(pthread_join(other, NULL), 0);
    if (c.kept) {
        PtlFini();
    }
}

PTEST_LIMIT(anywhere_in_a_cycle, 1, 120)
{
    fork_at_any_time((struct cycle){.kept = false});
}

PTEST_LIMIT(anywhere_in_an_interfaces_cycle, 1, 120)
{
    fork_at_any_time((struct cycle){.kept = true});
}

PTEST_LIMIT(anywhere_where_fini_closes, 1, 120)
{
    fork_at_any_time((struct cycle){.fini_closes = true});
}
