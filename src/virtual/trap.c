/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls that nobody has made by a name of this library: by stdio, by others of libc's
 * functions, by instructions of the program's own. The kernel sends SIGSYS in their place (Linux
 * 5.11, "syscall user dispatch"), to the thread itself, and trap() makes them: in virtual time
 * those of calls.c, as they are all others.
 *
 * Invariants:
 *   - Only threads of the simulation have it, one by one; a forked process and an executed program
 *     have it not until they ask for it.
 *   - Calls from `open_text` pass: this library's own, and libportals', unless libc is between the
 *     two. So do all while `gate` is open: in trap() itself, in libc's functions that are called by
 *     OPENLY(), while time passes (task.c shuts it afterwards).
 *   - While a gate may be shut SIGSYS is not blocked: the kernel would end the process. trap()
 *     leaves it out of every mask.
 */
#include "virtual.h"

#include "base/log.h"
#include "base/sys.h"

#include <errno.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#define PR_SYS_DISPATCH_ON 1
#endif

enum { RESTORER = 0x04000000, SYSCALL_BYTES = 2 };
enum { CALL_TRAPPED = 2 }; /* si_code: SYS_USER_DISPATCH */
/* The clock of the processor is to be trapped again: it was not for a thread that was made. */
static __thread bool tsc_due __attribute__((tls_model("initial-exec")));
static const uint64_t sigsys_bit = UINT64_C(1) << (SIGSYS - 1);

/* The kernel returns from trap() by this. Debuggers and unwinders know it by its instructions. */
void virtual_restore(void);
__asm__(".text\n"
        ".balign 16\n"
        "nop\n"
        ".globl virtual_restore\n"
        ".hidden virtual_restore\n"
        ".type virtual_restore, @function\n"
        "virtual_restore:\n"
        "    mov $15, %rax\n"
        "    syscall\n"
        ".size virtual_restore, . - virtual_restore\n");

bool virtual_install(int signal, const struct virtual_action *to, struct virtual_action *before)
{
    struct virtual_action a = *to;
    if (a.restorer == NULL) {
        a.flags = (a.flags != 0 ? a.flags : SA_SIGINFO | SA_NODEFER | SA_RESTART) | RESTORER;
        a.restorer = virtual_restore;
    }
    return SYS_CALL(SYS_rt_sigaction, signal, &a, before, sizeof(a.mask)) == 0;
}

/* ---- what passes ---- */

struct text {
    uintptr_t from, to;
};

static struct text open_text, portals_text;

struct texts {
    struct text own, portals, libc, program;
};

static void add(struct text *t, uintptr_t from, uintptr_t to)
{
    t->from = t->to == 0 || from < t->from ? from : t->from;
    t->to = to > t->to ? to : t->to;
}

static int find_text(struct dl_phdr_info *info, size_t size, void *texts)
{
    struct texts *t = texts;
    const uintptr_t here = (uintptr_t)find_text;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
        if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0) {
            continue;
        }
        if (here >= from && here < to) {
            add(&t->own, from, to);
        } else if (strstr(info->dlpi_name, "/libportals.so") != NULL) {
            add(&t->portals, from, to);
        } else if (strstr(info->dlpi_name, "/libc.so") != NULL) {
            add(&t->libc, from, to);
        } else if (info->dlpi_name[0] == '\0') {
            add(&t->program, from, to);
        }
    }
    return 0;
}

static bool apart(const struct text *a, const struct text *b)
{
    return b->to == 0 || a->to <= b->from || b->to <= a->from;
}

static void choose_text(void)
{
    struct texts t = {.own = {0, 0}};
    dl_iterate_phdr(find_text, &t);
    open_text = t.own;
    portals_text = t.portals;
    if (t.portals.to != 0) {
        struct text both = t.own;
        add(&both, t.portals.from, t.portals.to);
        if (apart(&both, &t.libc) && apart(&both, &t.program)) {
            open_text = both;
        }
    }
}

bool virtual_is_open(uintptr_t pc)
{
    return pc >= open_text.from && pc < open_text.to;
}

bool virtual_is_portals(uintptr_t pc)
{
    return pc >= portals_text.from && pc < portals_text.to;
}

/* ---- calls that are trapped ---- */

/* The mask of the interrupted thread is the one that it has when trap() returns. */
static long change_mask(ucontext_t *u, const long a[6])
{
    const uint64_t *set = (const uint64_t *)a[1];
    uint64_t *before = (uint64_t *)a[2], now;
    if (a[3] != sizeof(uint64_t)) {
        return -EINVAL;
    }
    memcpy(&now, &u->uc_sigmask, sizeof(now));
    uint64_t was = now;
    if (set != NULL) {
        now = a[0] == SIG_BLOCK     ? now | *set
              : a[0] == SIG_UNBLOCK ? now & ~*set
              : a[0] == SIG_SETMASK ? *set
                                    : now;
        if (a[0] != SIG_BLOCK && a[0] != SIG_UNBLOCK && a[0] != SIG_SETMASK) {
            return -EINVAL;
        }
        now &= ~sigsys_bit;
        memcpy(&u->uc_sigmask, &now, sizeof(now));
    }
    if (before != NULL) {
        *before = was;
    }
    return 0;
}

static long set_action(const long a[6])
{
    struct virtual_action asked;
    const struct virtual_action *to = (const struct virtual_action *)a[1];
    if (to == NULL) {
        bool ours = a[0] == SIGSEGV && virtual_tsc_action(NULL, (struct virtual_action *)a[2]);
        return ours ? 0 : SYS_CALL(SYS_rt_sigaction, a[0], NULL, a[2], a[3]);
    }
    asked = *to;
    asked.mask &= ~sigsys_bit;
    if (a[0] == SIGSEGV && a[3] == sizeof(asked.mask) &&
        virtual_tsc_action(&asked, (struct virtual_action *)a[2])) {
        return 0;
    }
    return a[0] == SIGSYS ? 0 : SYS_CALL(SYS_rt_sigaction, a[0], &asked, a[2], a[3]);
}

/* Makes the call where it is, with the gate open until the thread waits the next time: of a new
 * thread or process trap() cannot return twice. */
static bool must_be_there(long number, const long a[6])
{
    return number == SYS_clone3 || number == SYS_vfork ||
           (number == SYS_clone && (a[0] & CLONE_VM) != 0);
}

static long make(long number, const long a[6], ucontext_t *u)
{
    long value;
    if (number == SYS_rt_sigprocmask) {
        return change_mask(u, a);
    }
    if (number == SYS_rt_sigaction) {
        return set_action(a);
    }
    if (virtual_in() && virtual_call(number, a, &value)) {
        return value;
    }
    bool executes = number == SYS_execve || number == SYS_execveat;
    bool tsc = executes && virtual_tsc_off();
    if (executes && virtual_clock != NULL) {
        virtual_deaf(); /* the signal would end a program without this library */
    }
    value = SYS_CALL(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (executes && virtual_clock != NULL) {
        virtual_listen();
    }
    virtual_tsc_on(tsc);
    if ((number == SYS_fork || number == SYS_clone) && value == 0) {
        virtual_tsc_off();
        virtual_clock = NULL; /* it is in the midst of what its parent does */
    }
    return value;
}

/* The thread has read the processor's clock: its fault sends this signal (tsc.c). */
static void read_tsc(const siginfo_t *info, ucontext_t *u)
{
    struct sim_task *me = virtual_self;
    if (me == NULL || info->si_code != SI_TKILL || info->si_pid != getpid()) {
        return;
    }
    uint8_t shut = me->shut;
    me->gate = me->shut = SIM_GATE_OPEN;
    virtual_read_tsc(u);
    me->shut = me->gate = shut;
}

static void trap(int signal, siginfo_t *info, void *context)
{
    ERRNO_KEPT;
    ucontext_t *u = context;
    greg_t *g = u->uc_mcontext.gregs;
    struct sim_task *me = virtual_self;
    const long number = info->si_syscall;
    const long a[6] = {g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8], g[REG_R9]};
    if (info->si_code != CALL_TRAPPED) {
        read_tsc(info, u);
        return;
    }
    if (me == NULL) {
        g[REG_RAX] = make(number, a, u);
        return;
    }
    me->gate = SIM_GATE_OPEN;
    virtual_tsc_on(tsc_due);
    tsc_due = false;
    if (number == SYS_rt_sigreturn) { /* of another handler, on the stack above this one */
        me->gate = me->shut;
        __asm__ volatile("mov %0, %%rsp\n"
                         "mov $15, %%eax\n"
                         "syscall\n"
                         :
                         : "r"(g[REG_RSP])
                         : "memory");
        __builtin_unreachable();
    }
    if (must_be_there(number, a)) {
        tsc_due = virtual_tsc_off();
        g[REG_RIP] -= SYSCALL_BYTES;
        g[REG_RAX] = number;
        return;
    }
    uint8_t shut = me->shut;
    me->shut = SIM_GATE_OPEN;
    g[REG_RAX] = make(number, a, u);
    me->shut = me->gate = shut;
}

/* ---- on and off ---- */

static bool set(bool on)
{
    return SYS_CALL(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH,
                    on ? PR_SYS_DISPATCH_ON : PR_SYS_DISPATCH_OFF, on ? open_text.from : 0,
                    on ? open_text.to - open_text.from : 0, on ? &virtual_self->gate : NULL) == 0;
}

static bool refused; /* by the kernel */

uint8_t virtual_trapped(void)
{
    return open_text.to != 0 && !refused ? SIM_GATE_SHUT : SIM_GATE_OPEN;
}

void virtual_trap(void)
{
    struct sim_task *me = virtual_self;
    if (open_text.to == 0) {
        struct virtual_action a = {.handler = trap};
        choose_text();
        refused = !virtual_install(SIGSYS, &a, NULL);
    }
    me->gate = me->shut = SIM_GATE_OPEN;
    if (!refused && set(true)) {
        me->shut = me->gate = SIM_GATE_SHUT;
        virtual_listen();
        virtual_trap_tsc();
    } else if (!refused || virtual_clock->rank == 0) {
        refused = true;
        log_line(LOG_WARN,
                 "rank %u: the kernel does not let system calls be trapped (syscall user "
                 "dispatch, Linux 5.11): stdio's reads of pipes, and system calls that a "
                 "program makes by instructions, hold the other ranks up",
                 virtual_clock->rank);
    }
}

void virtual_untrap(void)
{
    struct sim_task *me = virtual_self;
    if (me != NULL && me->shut != SIM_GATE_OPEN) {
        virtual_tsc_off();
        me->shut = me->gate = SIM_GATE_OPEN;
        set(false);
    }
}
