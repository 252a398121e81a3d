/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor's time-stamp counter, as programs read it by rdtsc and rdtscp: of a thread of the
 * simulation it is the virtual monotonic clock, in nanoseconds (1 GHz). The processor is told to
 * trap these instructions (PR_SET_TSC), by SIGSEGV:
 *
 *      rdtsc ──► SIGSEGV: on_fault() ──► SIGSYS ──► trap() ──► virtual_read_tsc(): time passes
 *
 * The second signal comes when on_fault() has returned, on the program's stack and with its masks,
 * so that all may happen there that may happen in a system call.
 *
 * Invariants:
 *   - on_fault() stays the kernel's handler of SIGSEGV; the one that the program has set, which may
 *     be libportals', is called by it for all other faults, with its flags and mask.
 *   - Threads inherit the trap, and executed programs do, in which nobody would handle it: so it is
 *     off where a thread, process or program begins that is in no simulation. A thread that has it
 *     all the same switches it off at its first such instruction.
 *   - The kernel's own code in the process (vDSO) reads the real counter.
 */
#include "virtual.h"

#include "base/sys.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ucontext.h>

enum { VDSO_BYTES = 0x4000 };
static const uint64_t sigsys_bit = UINT64_C(1) << (SIGSYS - 1);

static struct virtual_action program; /* of SIGSEGV */
static bool installed;
static uintptr_t vdso;

static __thread bool trapped __attribute__((tls_model("initial-exec")));

static void switch_trap(bool on)
{
    trapped = on;
    SYS_CALL(SYS_prctl, PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
}

bool virtual_tsc_off(void)
{
    bool was = trapped;
    if (installed) {
        switch_trap(false);
    }
    return was;
}

void virtual_tsc_on(bool was)
{
    if (was) {
        switch_trap(true);
    }
}

/* The bytes of the instruction that reads the counter; 0: it is none. */
static unsigned reads_tsc(const ucontext_t *u)
{
    const uint8_t *at = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP];
    if (at[0] != 0x0f) {
        return 0;
    }
    return at[1] == 0x31 ? 2 : at[1] == 0x01 && at[2] == 0xf9 ? 3 : 0;
}

/* Has the thread go on behind the instruction, with what it is to have read. */
static void give(ucontext_t *u, unsigned bytes, uint64_t value)
{
    greg_t *g = u->uc_mcontext.gregs;
    g[REG_RAX] = (greg_t)(value & UINT32_MAX);
    g[REG_RDX] = (greg_t)(value >> 32);
    g[REG_RCX] = bytes == 3 ? 0 : g[REG_RCX]; /* rdtscp: processor 0 */
    g[REG_RIP] += bytes;
}

bool virtual_read_tsc(void *context)
{
    ucontext_t *u = context;
    unsigned bytes = reads_tsc(u);
    if (bytes == 0) {
        return false;
    }
    if (virtual_in()) {
        virtual_look();
    }
    give(u, bytes, UINT64_C(1000000000) * VIRTUAL_MONOTONIC_S + virtual_now() / PS_PER_NS);
    return true;
}

/* A fault that is the program's: its handler has it, or it does what the kernel does. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    const struct virtual_action a = program;
    void (*handler)(int, siginfo_t *, void *) = a.handler;
    if (handler == (void *)SIG_IGN && info->si_code <= 0) {
        return; /* it was sent */
    }
    if (handler == (void *)SIG_DFL || handler == (void *)SIG_IGN) {
        struct virtual_action by_default = {.handler = (void *)SIG_DFL, .flags = SA_NODEFER};
        virtual_install(signal, &by_default, NULL);
        if (info->si_code <= 0) { /* a fault comes again by itself */
            SYS_CALL(SYS_tgkill, SYS_CALL(SYS_getpid), SYS_CALL(SYS_gettid), signal);
        }
        return;
    }
    if ((a.flags & SA_RESETHAND) != 0) {
        program.handler = (void *)SIG_DFL;
    }
    /* As long as a gate may be shut (trap.c). */
    SYS_CALL(SYS_rt_sigprocmask, SIG_UNBLOCK, &sigsys_bit, NULL, sizeof(sigsys_bit));
    handler(signal, info, context); /* one that takes only the number finds it there */
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    uintptr_t at = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    if (info->si_code != SI_KERNEL || reads_tsc(u) == 0) {
        pass_on(signal, info, context);
    } else if (virtual_clock == NULL || virtual_self == NULL) {
        switch_trap(false);
    } else if (at >= vdso && at < vdso + VDSO_BYTES) {
        switch_trap(false);
        give(u, reads_tsc(u), __builtin_ia32_rdtsc());
        switch_trap(true);
    } else {
        SYS_CALL(SYS_tgkill, SYS_CALL(SYS_getpid), SYS_CALL(SYS_gettid), SIGSYS);
    }
}

/* Makes on_fault() the handler, as the program's is to be called. */
static bool install(const struct virtual_action *of, struct virtual_action *before)
{
    struct virtual_action a = *of;
    bool asked = a.handler != (void *)SIG_DFL && a.handler != (void *)SIG_IGN;
    a.handler = on_fault;
    a.flags = (asked ? a.flags & ~(unsigned long)SA_RESETHAND : SA_ONSTACK) | SA_SIGINFO;
    a.restorer = NULL;
    a.mask |= sigsys_bit;
    return virtual_install(SIGSEGV, &a, before);
}

bool virtual_tsc_action(const struct virtual_action *asked, struct virtual_action *before)
{
    if (!installed) {
        return false;
    }
    struct virtual_action was = program;
    if (asked != NULL) {
        program = *asked;
        program.mask &= ~sigsys_bit;
        install(&program, NULL);
    }
    if (before != NULL) {
        *before = was;
    }
    return true;
}

void virtual_trap_tsc(void)
{
    if (!installed) {
        struct virtual_action none = {.handler = (void *)SIG_DFL};
        vdso = getauxval(AT_SYSINFO_EHDR);
        installed = install(&none, &program);
    }
    if (installed) {
        switch_trap(true);
    }
}
