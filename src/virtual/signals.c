/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals. A handler of the program runs at a virtual time, with the clock, like the program: it
 * may read, sleep, fork. So the kernel calls take() in its place.
 *
 *      the thread runs     ──► the handler runs at once
 *      it waits, or lets   ──► bit of task->signals ──► it has the clock again ──► the handler runs
 *      time pass
 *
 * What a timer, another process of the rank, or the kernel sends (SIGCHLD) ends the wait at the
 * time at which it is sent; the program's handler runs then. What is sent from outside of the job
 * comes when it comes: its handler runs at once, and no time passes in it. Handlers of faults stay
 * the kernel's business.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { RESTORER = 0x04000000 }; /* the kernel's flag of a restorer, which is libc's business */
static struct sigaction program[NSIG]; /* what the program has asked for */
static siginfo_t infos[NSIG];          /* of signals in some task's `signals` */
static __thread unsigned handled __attribute__((tls_model("initial-exec")));
static __thread bool restarts __attribute__((tls_model("initial-exec")));

static bool is_fault(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
           signal == SIGTRAP || signal == SIGABRT || signal == SIGSYS;
}

static void call_handler(int signal, siginfo_t *info, void *context)
{
    const struct sigaction a = program[signal];
    if ((a.sa_flags & SA_RESETHAND) != 0) {
        program[signal].sa_handler = SIG_DFL;
    }
    if ((a.sa_flags & SA_SIGINFO) != 0) {
        a.sa_sigaction(signal, info, context);
    } else if (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN) {
        a.sa_handler(signal);
    }
    handled++;
}

/* Whether it was sent by a process that is in no simulation, or by another rank. One of this rank,
 * which may have ended since, has noted it before. */
static bool is_from_outside(const siginfo_t *info)
{
    bool sent = info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
    return sent && info->si_pid != getpid() &&
           atomic_load(&virtual_clock->shared->signal) != (uint32_t)info->si_signo &&
           virtual_process(info->si_pid) == NULL;
}

static void take(int signal, siginfo_t *info, void *context)
{
    ERRNO_KEPT;
    struct sim_task *me = virtual_self;
    if (virtual_clock == NULL || me == NULL || virtual_in() || is_from_outside(info)) {
        call_handler(signal, info, context);
        if (me != NULL) {
            me->interrupted = true;
        }
        return;
    }
    infos[signal] = *info;
    me->interrupted = true;
    atomic_fetch_or(&me->signals, UINT64_C(1) << (signal - 1));
}

void virtual_handle(struct sim_clock *c)
{
    ERRNO_KEPT;
    struct sim_task *me = c->running;
    const uint8_t shut = me->shut, trapped = virtual_trapped();
    uint64_t came;
    restarts = true;
    while ((came = atomic_load(&me->signals)) != 0) {
        int signal = __builtin_ctzll(came) + 1;
        struct sigaction a = program[signal];
        siginfo_t info = infos[signal];
        sigset_t mask, before;
        atomic_fetch_and(&me->signals, ~(UINT64_C(1) << (signal - 1)));
        mask = a.sa_mask;
        sigdelset(&mask, SIGSYS);
        if ((a.sa_flags & SA_NODEFER) == 0) {
            sigaddset(&mask, signal);
        }
        OPENLY(pthread_sigmask(SIG_BLOCK, &mask, &before));
        bool all = restarts && (a.sa_flags & SA_RESTART) != 0;
        me->gate = me->shut = trapped;
        call_handler(signal, &info, NULL);
        me->shut = shut;
        restarts = all;
        OPENLY(pthread_sigmask(SIG_SETMASK, &before, NULL));
    }
    me->gate = me->shut;
}

bool virtual_restarts(void)
{
    bool again = restarts;
    restarts = false;
    return again;
}

bool virtual_has_handler(int signal)
{
    return program[signal].sa_handler != SIG_DFL && program[signal].sa_handler != SIG_IGN;
}

/* ---- what the program asks for ---- */

/* The handler of faults, in the kernel's own form. */
static bool set_fault_handler(const struct sigaction *asked, struct sigaction *before)
{
    struct virtual_action to = {.handler = NULL}, was;
    if (asked != NULL) {
        to.handler = asked->sa_sigaction;
        to.flags = (unsigned long)asked->sa_flags;
        memcpy(&to.mask, &asked->sa_mask, sizeof(to.mask));
    }
    if (!virtual_tsc_action(asked != NULL ? &to : NULL, &was)) {
        return false;
    }
    if (before != NULL) {
        *before = (struct sigaction){.sa_sigaction = was.handler};
        before->sa_flags = (int)(was.flags & ~(unsigned long)RESTORER);
        memcpy(&before->sa_mask, &was.mask, sizeof(was.mask));
    }
    return true;
}

SHOWN int sigaction(int signal, const struct sigaction *restrict asked,
                    struct sigaction *restrict before)
{
    if (virtual_clock != NULL && signal == SIGSYS && virtual_trapped() != SIM_GATE_OPEN) {
        if (before != NULL) {
            *before = program[signal];
        }
        program[signal] = asked != NULL ? *asked : program[signal];
        return 0; /* trap() is its handler */
    }
    if (virtual_clock != NULL && signal == SIGSEGV && set_fault_handler(asked, before)) {
        return 0;
    }
    if (virtual_clock == NULL || signal < 1 || signal >= NSIG || is_fault(signal)) {
        return OPENLY(REAL(sigaction)(signal, asked, before));
    }
    struct sigaction now, was = program[signal];
    int rc = OPENLY(REAL(sigaction)(signal, NULL, &now));
    if (rc == 0 && asked != NULL) {
        struct sigaction mine = *asked;
        if (asked->sa_handler != SIG_DFL && asked->sa_handler != SIG_IGN) {
            mine.sa_sigaction = take;
            mine.sa_flags |= SA_SIGINFO;
            sigdelset(&mine.sa_mask, SIGSYS);
            program[signal] = *asked;
        }
        rc = OPENLY(REAL(sigaction)(signal, &mine, NULL));
        program[signal] = rc == 0 ? *asked : was;
    }
    if (rc == 0 && before != NULL) {
        *before = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == take ? was : now;
    }
    return rc;
}

static sighandler_t set_handler(int signal, sighandler_t handler, int flags)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags}, before;
    sigemptyset(&a.sa_mask);
    return sigaction(signal, &a, &before) == 0 ? before.sa_handler : SIG_ERR;
}

SHOWN sighandler_t signal(int number, sighandler_t handler)
{
    return set_handler(number, handler, SA_RESTART);
}

SHOWN sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

sighandler_t __sysv_signal(int number, sighandler_t handler);
SHOWN sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    return sysv_signal(number, handler);
}

/* ---- waits for signals ---- */

static bool has_handled(void *before)
{
    return handled != *(unsigned *)before;
}

static int await_handler(unsigned before)
{
    virtual_await(has_handled, &before, SIM_NEVER, "a signal");
    errno = EINTR;
    return -1;
}

SHOWN int pause(void)
{
    return virtual_in() ? await_handler(handled) : OPENLY(REAL(pause)());
}

SHOWN int sigsuspend(const sigset_t *mask)
{
    if (!virtual_in()) {
        return OPENLY(REAL(sigsuspend)(mask));
    }
    sigset_t before, own = *mask;
    unsigned count = handled;
    sigdelset(&own, SIGSYS);
    OPENLY(pthread_sigmask(SIG_SETMASK, &own, &before));
    await_handler(count);
    OPENLY(pthread_sigmask(SIG_SETMASK, &before, NULL));
    errno = EINTR;
    return -1;
}

struct taking {
    const sigset_t *set;
    siginfo_t *info;
    int signal, error;
};

static bool has_taken(void *taking)
{
    struct taking *t = taking;
    t->signal = OPENLY(REAL(sigtimedwait)(t->set, t->info, &(struct timespec){0, 0}));
    t->error = errno;
    return t->signal >= 0 || t->error != EAGAIN;
}

static int await_taken(const sigset_t *set, siginfo_t *info, int64_t ns)
{
    struct taking t = {.set = set, .info = info};
    enum virtual_end end = virtual_await(has_taken, &t, virtual_after(ns), "a signal");
    if (end == VIRTUAL_HOLDS && t.signal >= 0) {
        return t.signal;
    }
    errno = end == VIRTUAL_LATE ? EAGAIN : end == VIRTUAL_SIGNAL ? EINTR : t.error;
    return -1;
}

SHOWN int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                       const struct timespec *restrict t)
{
    return virtual_in() ? await_taken(set, info, virtual_ns(t))
                        : OPENLY(REAL(sigtimedwait)(set, info, t));
}

SHOWN int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
    return virtual_in() ? await_taken(set, info, -1) : OPENLY(REAL(sigwaitinfo)(set, info));
}

SHOWN int sigwait(const sigset_t *restrict set, int *restrict number)
{
    if (!virtual_in()) {
        return OPENLY(REAL(sigwait)(set, number));
    }
    int error = errno, rc;
    while ((rc = await_taken(set, NULL, -1)) < 0 && errno == EINTR) {
    }
    int failed = rc < 0 ? errno : 0;
    *number = rc;
    errno = error;
    return failed;
}
