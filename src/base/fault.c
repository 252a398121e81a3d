/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Design notes; for what it is for, see fault.h.
 *
 * - The signal handler never jumps: it edits the registers to which the kernel
 *   returns, so the signal mask, the alternate stack and a sanitizer's view of the
 *   signal are left in the ordinary way.
 * - `slots` is written under `lock` and read by the signal handler without it. A fork() waits for
 * the thread that holds the lock, so that in the child `slots` and the installed handlers agree.
 * `before` is complete before our handler is installed.
 * - When the program has installed a handler above ours, the chain cannot be cut:
 *   theirs may call ours at any time. Then ours stays where it is for good, with its
 *   `before`; installing again must not put it above theirs as well, or the two
 *   would call each other in a circle. fault_refresh() may, since what it puts there is
 *   another function, on_fault_again(), which passes on to theirs; and on_fault(), which
 *   theirs may call, passes on to what was first. A program that takes its own handler away
 *   again puts on_fault() back, and all is as before.
 * - Signals of fault_end() carry the address of `mark`: others of the same number are the
 *   program's.
 */
#include "fault.h"

#include "base/forks.h"
#include "base/mutex.h"
#include "base/sys.h"
#include "base/thread.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* nic_copy_x86_64.S */
extern const char nic_text_begin[], nic_text_end[], nic_text_fault[];

/* If the faulting instruction lies between `begin` and `end`, the thread goes on at `landing`, with
 * the same stack. */
static const struct {
    const char *begin, *end, *landing;
} fixups[] = {
    {nic_text_begin, nic_text_end, nic_text_fault},
};

struct fault_slot {
    int signal;
    bool below; /* the program has installed a handler above ours */
    /* on_fault_again() was installed; the program may have found it and call it */
    bool again;
    struct sigaction before; /* the action that was installed when ours came */
    /* the program's later action, above which on_fault_again() was put, and to which it passes
     * on */
    struct sigaction later;
};

static struct fault_slot slots[] = {
    {.signal = SIGSEGV}, {.signal = SIGBUS},        {.signal = SIGFPE},
    {.signal = SIGILL},  {.signal = FAULT_OVERDUE},
};
#define SLOTS (sizeof(slots) / sizeof(slots[0]))

static struct mutex lock;
static unsigned users;

/* Read by the signal handler: with the initial-exec model an access never allocates memory. */
static _Thread_local struct fault_guard *thread_guard __attribute__((tls_model("initial-exec")));
static _Thread_local bool thread_has_stack __attribute__((tls_model("initial-exec")));

__thread pid_t fault_thread __attribute__((tls_model("initial-exec")));

/* FAULT_OVERDUE signals that fault_end() sends carry this variable's address. */
static char mark;

#define FLAGS_TRAP 0x100
#define FLAGS_DIRECTION 0x400
#define FLAGS_NESTED_TASK 0x4000
#define FLAGS_ALIGN_CHECK 0x40000

/* True for a fault of the instruction that the thread was executing. False for a signal that a
 * process sent, and for the kernel's early notice of a broken memory page that nobody has accessed
 * yet (BUS_MCEERR_AO). */
static bool is_synchronous(int signal, const siginfo_t *info)
{
    return info->si_code > 0 && signal != FAULT_OVERDUE &&
           !(signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

static bool fix_up(ucontext_t *context)
{
    uintptr_t ip = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    for (size_t i = 0; i < sizeof(fixups) / sizeof(fixups[0]); i++) {
        if (ip >= (uintptr_t)fixups[i].begin && ip < (uintptr_t)fixups[i].end) {
            context->uc_mcontext.gregs[REG_RIP] = (greg_t)fixups[i].landing;
            return true;
        }
    }
    return false;
}

/* True if fault_end() sent the signal. It may come so late that the turn it was meant for has
 * ended. */
static bool is_end(int signal, const siginfo_t *info)
{
    return signal == FAULT_OVERDUE && info->si_code == SI_QUEUE &&
           info->si_value.sival_ptr == &mark;
}

static bool divert(int signal, const siginfo_t *info, ucontext_t *context)
{
    struct fault_guard *guard = thread_guard;
    if (guard == NULL || !guard->armed) {
        return false;
    }
    greg_t *r = context->uc_mcontext.gregs;
    guard->armed = 0;
    guard->signal = signal;
    guard->code = info->si_code;
    guard->address = (uintptr_t)info->si_addr;
    guard->instruction = (uintptr_t)r[REG_RIP];
    guard->stack_pointer = (uintptr_t)r[REG_RSP];
    r[REG_RIP] = (greg_t)guard->landing;
    /* the stack pointer is as a call instruction would leave it */
    r[REG_RSP] = (greg_t)guard->stack - 8;
    r[REG_RDI] = (greg_t)guard;
    r[REG_EFL] &= ~(greg_t)(FLAGS_TRAP | FLAGS_DIRECTION | FLAGS_NESTED_TASK | FLAGS_ALIGN_CHECK);
    return true;
}

/* Does what the kernel does by default: nothing for FAULT_OVERDUE; any other signal kills the
 * process. A fault comes again by itself, since its instruction runs again when the handler
 * returns; all other signals are sent again to this thread, and delivered when it does. */
static void die_by_default(int signal, siginfo_t *info)
{
    if (signal == FAULT_OVERDUE) {
        return; /* the default of FAULT_OVERDUE is to ignore the signal */
    }
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigaction(signal, &by_default, NULL);
    if (!is_synchronous(signal, info)) {
        pid_t pid = getpid(), tid = (pid_t)SYS_CALL(SYS_gettid);
        if (SYS_CALL(SYS_rt_tgsigqueueinfo, pid, tid, signal, info) != 0) {
            SYS_CALL(SYS_tgkill, pid, tid, signal);
        }
    }
}

static void pass_on(struct fault_slot *slot, struct sigaction *to, siginfo_t *info,
                    ucontext_t *context)
{
    struct sigaction before = *to;
    if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_IGN) {
        /* A fault cannot be ignored: the kernel would kill the process. */
        if (is_synchronous(slot->signal, info)) {
            die_by_default(slot->signal, info);
        }
        return;
    }
    if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL) {
        die_by_default(slot->signal, info);
        return;
    }
    sigset_t mask;
    sigorset(&mask, &context->uc_sigmask, &before.sa_mask);
    if (!(before.sa_flags & SA_NODEFER)) {
        sigaddset(&mask, slot->signal);
    }
    if (before.sa_flags & (int)SA_RESETHAND) {
        *to = (struct sigaction){.sa_handler = SIG_DFL};
    }
    sys_signal_mask(SIG_SETMASK, &mask, NULL);
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(slot->signal, info, context);
    } else {
        before.sa_handler(slot->signal);
    }
}

/* Handles signals of fault_end(), faults in nic_copy() and faults in guarded code. Returns false
 * for all others, which the caller passes on to the program's handler. */
static bool serve(int signal, siginfo_t *info, ucontext_t *context)
{
    if (is_end(signal, info)) {
        struct fault_guard *guard = thread_guard;
        if (guard != NULL && fault_guard_overdue(guard)) {
            divert(signal, info, context);
        }
        return true;
    }
    return is_synchronous(signal, info) && (fix_up(context) || divert(signal, info, context));
}

static struct fault_slot *slot_of(int signal)
{
    size_t i = 0;
    while (i < SLOTS - 1 && slots[i].signal != signal) {
        i++;
    }
    return &slots[i];
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    if (!serve(signal, info, context)) {
        struct fault_slot *slot = slot_of(signal);
        pass_on(slot, &slot->before, info, context);
    }
    errno = saved_errno;
}

static void on_fault_again(int signal, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    if (!serve(signal, info, context)) {
        struct fault_slot *slot = slot_of(signal);
        pass_on(slot, &slot->later, info, context);
    }
    errno = saved_errno;
}

static bool runs(const struct sigaction *action, void (*handler)(int, siginfo_t *, void *))
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == handler;
}

static bool is_ours(const struct sigaction *action)
{
    return runs(action, on_fault) || runs(action, on_fault_again);
}

static bool is_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Installs `handler`, one of the two of this file, above the action `below`. */
static int put_above(int signal, const struct sigaction *below,
                     void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    /* A system call that a process's signal interrupts must fail with EINTR or be restarted as it
     * was with the program's own handler: SA_RESTART is taken over from that. */
    if (!is_handler(below) || (below->sa_flags & SA_RESTART)) {
        action.sa_flags |= SA_RESTART;
    }
    sigemptyset(&action.sa_mask);
    return sigaction(signal, &action, NULL) == 0 ? 0 : -errno;
}

static int install(struct fault_slot *slot)
{
    struct sigaction current;
    if (sigaction(slot->signal, NULL, &current) != 0) {
        return -errno;
    }
    if (is_ours(&current) || (slot->below && is_handler(&current))) {
        return 0;
    }
    slot->below = false;
    slot->before = current;
    return put_above(slot->signal, &current, on_fault);
}

static void uninstall(struct fault_slot *slot)
{
    struct sigaction current;
    if (sigaction(slot->signal, NULL, &current) != 0) {
        return;
    }
    if (runs(&current, on_fault)) {
        sigaction(slot->signal, &slot->before, NULL);
    } else if (runs(&current, on_fault_again)) {
        sigaction(slot->signal, &slot->later, NULL);
        slot->below = is_handler(&slot->later);
    } else {
        slot->below = true;
    }
}

int fault_install(void)
{
    int rc = 0;
    forks_take(&lock);
    if (users == 0) {
        for (size_t i = 0; i < SLOTS && rc == 0; i++) {
            rc = install(&slots[i]);
            for (size_t j = 0; rc != 0 && j < i; j++) {
                uninstall(&slots[j]);
            }
        }
    }
    if (rc == 0) {
        users++;
    }
    forks_give(&lock);
    return rc;
}

void fault_remove(void)
{
    forks_take(&lock);
    if (users > 0 && --users == 0) {
        for (size_t i = 0; i < SLOTS; i++) {
            uninstall(&slots[i]);
        }
    }
    forks_give(&lock);
}

void fault_fork(void)
{
    users = 0;
    fault_thread = 0;
}

/* Puts on_fault_again() above the handler that the program has installed since. That happens once
 * for a signal: a handler that has found on_fault_again() in its place may call it, and both would
 * call each other for ever. */
static void refresh(struct fault_slot *slot)
{
    struct sigaction current;
    if (sigaction(slot->signal, NULL, &current) != 0 || runs(&current, on_fault_again)) {
        return;
    }
    if (runs(&current, on_fault)) {
        slot->again = false;
    } else if (!is_handler(&current)) {
        slot->before = current;
        slot->below = slot->again = false;
        put_above(slot->signal, &current, on_fault);
    } else if (!slot->again) {
        slot->again = true;
        slot->later = current;
        put_above(slot->signal, &current, on_fault_again);
    }
}

void fault_refresh(void)
{
    forks_take(&lock);
    for (size_t i = 0; i < SLOTS && users > 0; i++) {
        refresh(&slots[i]);
    }
    forks_give(&lock);
}

void fault_keep(sigset_t *blocked)
{
    for (size_t i = 0; i < SLOTS; i++) {
        sigdelset(blocked, slots[i].signal);
    }
}

pid_t fault_ask_thread_id(void)
{
    fault_thread = (pid_t)SYS_CALL(SYS_gettid);
    return fault_thread;
}

void fault_end(struct fault_guard *guard, uint64_t turn)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = FAULT_OVERDUE;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = &mark;
    atomic_store_explicit(&guard->overdue, turn, memory_order_relaxed);
    pid_t thread = __atomic_load_n(&guard->thread, __ATOMIC_RELAXED);
    SYS_CALL(SYS_rt_tgsigqueueinfo, getpid(), thread, FAULT_OVERDUE, &info);
}

struct fault_guard *fault_set_guard(struct fault_guard *guard)
{
    struct fault_guard *before = thread_guard;
    thread_guard = guard;
    return before;
}

/* ---- Alternate signal stacks ---- */

/* The handler of a sanitizer or of the program may run on this stack above ours. */
#define SIGNAL_STACK_SIZE ((size_t)128 << 10)
#define PAGE ((size_t)4096)

static struct once stack_once;
static pthread_key_t stack_key;
static int stack_key_error;

static void free_stack(void *mapping)
{
    stack_t current;
    if (sigaltstack(NULL, &current) == 0 && current.ss_sp == (char *)mapping + PAGE) {
        stack_t none = {.ss_flags = SS_DISABLE};
        sigaltstack(&none, NULL);
    }
    thread_has_stack = false;
    munmap(mapping, PAGE + SIGNAL_STACK_SIZE);
}

static void make_stack_key(void)
{
    stack_key_error = thread_key_create(&stack_key, free_stack);
}

int fault_thread_stack(void)
{
    if (thread_has_stack) {
        return 0;
    }
    stack_t current;
    if (sigaltstack(NULL, &current) != 0) {
        return -errno;
    }
    if (!(current.ss_flags & SS_DISABLE)) {
        thread_has_stack = true;
        return 0;
    }
    once(&stack_once, make_stack_key);
    if (stack_key_error != 0) {
        return -stack_key_error;
    }
    char *mapping = mmap(NULL, PAGE + SIGNAL_STACK_SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        return -errno;
    }
    stack_t stack = {.ss_sp = mapping + PAGE, .ss_size = SIGNAL_STACK_SIZE};
    int rc = mprotect(mapping, PAGE, PROT_NONE) == 0 ? 0 : -errno;
    if (rc == 0) {
        rc = -thread_key_set(stack_key, mapping);
    }
    if (rc == 0 && sigaltstack(&stack, NULL) != 0) {
        rc = -errno;
        thread_key_set(stack_key, NULL);
    }
    if (rc != 0) {
        munmap(mapping, PAGE + SIGNAL_STACK_SIZE);
        return rc;
    }
    thread_has_stack = true;
    return 0;
}
