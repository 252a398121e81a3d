/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() while another thread of the parent is in the midst of PtlInit or PtlFini: the child starts
 * anew, without a descriptor of its parent's library. The other thread is stopped at a place by
 * what the library calls there, which this program defines, until the child is made, or for a
 * moment where fork() waits for that thread.
 */
#include "port.h"

#include "spin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

enum { STOP_MS = 200, FORKS = 60, CHILD_S = 20, LARGE = 1 << 18 /* is not kept */, FDS = 256 };
enum place { NOWHERE, IN_DLOPEN, IN_SIGEMPTYSET, IN_MUNMAP, IN_FCHMOD, IN_BIND, IN_LINE };

static _Atomic int place;    /* where the other thread stops */
static _Atomic bool there;   /* the other thread has stopped at `place` */
static _Atomic bool goes_on; /* the other thread may go on */
static __thread bool is_other;
static bool raises;     /* it sends itself a signal there instead */
static bool known[FDS]; /* descriptors that are not the library's */

/* To the library, in the place of libc's. */
#define SHOWN __attribute__((visibility("default")))

static void stop_at(enum place p)
{
    if (!is_other || atomic_load(&place) != (int)p) {
        return;
    }
    atomic_store(&place, NOWHERE);
    atomic_store(&there, true);
    if (raises) {
        raise(SIGUSR1);
        return;
    }
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

/* What a segment is given right after it was opened. */
SHOWN int fchmod(int fd, mode_t mode)
{
    stop_at(IN_FCHMOD);
    return (int)syscall(SYS_fchmod, fd, mode);
}

/* The first one of a NIC is over its doorbell, or over its UDP socket. */
SHOWN int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    stop_at(IN_BIND);
    return (int)syscall(SYS_bind, fd, address, length);
}

/* The second UDP socket, by which packets leave, is made by any thread but the one that forks. */
SHOWN int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    if (level == IPPROTO_IP && name == IP_MULTICAST_ALL) {
        is_other = (pid_t)syscall(SYS_gettid) != getpid();
        stop_at(IN_LINE);
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

/* ---- Descriptors ---- */

/* Calls see() for each one but its own. */
static void each_fd(void (*see)(int fd))
{
    DIR *d = opendir("/proc/self/fd");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        int fd = e->d_name[0] != '.' ? atoi(e->d_name) : dirfd(d);
        CHECK(fd < FDS);
        if (fd != dirfd(d)) {
            see(fd);
        }
    }
    closedir(d);
}

static void know(int fd)
{
    known[fd] = true;
}

static void must_be_known(int fd)
{
    char link[32], what[256] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (!known[fd] && readlink(link, what, sizeof(what) - 1) > 0) {
        ptest_fail(__FILE__, __LINE__, "the child has descriptor %d of its parent's: %s", fd, what);
    }
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
        each_fd(must_be_known);
        start_anew();
        _exit(0);
    }
    atomic_store(&goes_on, true);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* ---- At one place ---- */

struct stops {
    enum place in_init, in_open, in_fini;
};

static void *open_and_close(void *arg)
{
    const struct stops *stops = arg;
    ptl_handle_ni_t ni;
    ptl_handle_hpu_mem_t memory;
    is_other = true;
    atomic_store(&place, stops->in_init);
    OK(PtlInit());
    atomic_store(&place, stops->in_open);
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
    each_fd(know);
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

PTEST_LIMIT(while_a_segment_is_made, 1, 60)
{
    fork_beside((struct stops){.in_open = IN_FCHMOD});
}

PTEST_LIMIT(while_a_socket_is_bound, 1, 60)
{
    fork_beside((struct stops){.in_open = IN_BIND});
}

/* ---- While messages are sent ---- */

static _Atomic bool ends;

static void *put_on_and_on(void *arg)
{
    struct port *p = arg;
    char byte = 0;
    ptl_handle_md_t md = port_md(p, &byte, 1, 0, PTL_CT_NONE);
    is_other = true;
    while (!atomic_load(&ends)) {
        OK(PtlPut(md, 0, 1, PTL_ACK_REQ, p->id[1], p->pt, 0, 0, NULL, 0));
        EVENT(p->mdeq, PTL_EVENT_SEND);
        EVENT(p->mdeq, PTL_EVENT_ACK);
    }
    port_release(md);
    return NULL;
}

PTEST_LIMIT(while_a_line_is_made, 2, 60)
{
    struct port p;
    pthread_t other;
    char byte;
    const char *fabric = getenv("PINWHEEL_FABRIC");
    if (fabric == NULL || strcmp(fabric, "udp") != 0 || PTEST_TSAN) {
        ptest_skip("needs PINWHEEL_FABRIC=udp, and no tool that loses threads made in a child");
    }
    each_fd(know);
    port_open(&p, KIND_MP, rank, size);
    ptl_handle_me_t me = port_target(&p, &byte, 1, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    BARRIER();
    if (rank == 0) {
        atomic_store(&place, IN_LINE);
        CHECK_EQ(pthread_create(&other, NULL, put_on_and_on, &p), 0);
        while (!atomic_load(&there)) {
            ptest_sleep_ms(1);
        }
        fork_one();
        atomic_store(&ends, true);
        CHECK_EQ(pthread_join(other, NULL), 0);
    }
    BARRIER();
    port_unlink(&p, me);
    port_close(&p);
}

/* ---- In a signal handler ---- */

static _Atomic int forked;

static void fork_in_handler(int signal)
{
    int error = errno;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    atomic_store(&forked, child);
    errno = error;
}

/* The signal comes in the midst of what a fork() of another thread would wait for. */
PTEST_LIMIT(in_a_signal_handler, 1, 60)
{
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    int status;
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    is_other = raises = true;
    atomic_store(&place, IN_SIGEMPTYSET);
    OK(PtlInit());
    CHECK(atomic_load(&there));
    CHECK(atomic_load(&forked) > 0);
    CHECK_EQ(waitpid(atomic_load(&forked), &status, 0), atomic_load(&forked));
    CHECK_EQ(status, 0);
    PtlFini();
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
    each_fd(know);
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
