/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a program spins on memory, or computes. The coordinator asks a process that has held all
 * others up for long, by SIGSTKFLT. Its running thread is then executed instruction by instruction:
 *
 *      where it was ──► again there, with the same registers ──► and again
 *                        sum of all memory that it may write       the same sum: it spins
 *
 * A thread that comes back to one place with the same registers and the same memory, without a call
 * in between, does so for ever, unless somebody else changes that memory; and nobody else runs.
 * What changes anything on its way (a counter, a random number, the processor's clock) is not told
 * from what computes, and neither is memory that is more than SUM_MOST. So who is said to spin
 * does.
 */
#include "virtual.h"

#include "base/sys.h"

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>

enum { STEPS = 100000, TRACE_FLAG = 0x100, RESUME_FLAG = 0x10000 };
enum { FRAMES = 64, RED_ZONE = 128, CHUNK = 65536 };
static const uint64_t SUM_MOST = UINT64_C(256) << 20;

static struct {
    bool on;
    unsigned steps, rounds;
    gregset_t registers;
    uint8_t vectors[512]; /* the x87 and SSE state */
    uint64_t sum;
    struct virtual_action before; /* of SIGTRAP */
} look;

/* ---- the state of the thread ---- */

static void copy_state(const ucontext_t *u, gregset_t *registers, uint8_t vectors[512])
{
    memset(registers, 0, sizeof(*registers));
    memcpy(registers, u->uc_mcontext.gregs, sizeof(greg_t) * (REG_EFL + 1));
    (*registers)[REG_EFL] &= ~(greg_t)(TRACE_FLAG | RESUME_FLAG);
    memcpy(vectors, u->uc_mcontext.fpregs, 416); /* without what is the kernel's */
    memset(vectors + 416, 0, 96);
}

static bool is_same(const ucontext_t *u)
{
    gregset_t registers;
    uint8_t vectors[512];
    copy_state(u, &registers, vectors);
    return memcmp(registers, look.registers, sizeof(registers)) == 0 &&
           memcmp(vectors, look.vectors, sizeof(vectors)) == 0;
}

/* Adds up a piece of memory; what is not there is left out. */
static uint64_t sum_piece(uint64_t sum, uintptr_t from, uintptr_t to)
{
    static _Alignas(16) uint8_t chunk[CHUNK];
    while (from < to) {
        size_t n = to - from < CHUNK ? to - from : CHUNK;
        struct iovec here = {chunk, n}, there = {(void *)from, n};
        ssize_t got = sys_process_vm_readv(getpid(), &here, 1, &there, 1);
        sum = got > 0 ? sim_sum(sum, chunk, (size_t)got) : sum + 1;
        from += n;
    }
    return sum;
}

/* The file of maps, line by line, without stdio. */
struct maps {
    int fd;
    size_t at, count;
    char text[4096];
};

static bool next_map(struct maps *m, char *line, size_t room)
{
    size_t n = 0;
    for (;;) {
        if (m->at == m->count) {
            ssize_t got = sys_read(m->fd, m->text, sizeof(m->text));
            m->at = 0;
            m->count = got > 0 ? (size_t)got : 0;
            if (m->count == 0) {
                return false;
            }
        }
        char c = m->text[m->at++];
        if (c == '\n') {
            line[n] = '\0';
            return true;
        }
        if (n + 1 < room) {
            line[n++] = c;
        }
    }
}

/* Adds up all memory that the process may write, but this library's, and the stack below the
 * thread's, where its signals' frames are. False: there is too much. */
static bool sum_memory(uintptr_t stack, uint64_t *sum)
{
    static struct maps m;
    char line[256], *end;
    uint64_t all = 0;
    const uintptr_t own = (uintptr_t)&look, segment = (uintptr_t)virtual_clock->segment;
    m = (struct maps){.fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0)};
    *sum = 0;
    while (m.fd >= 0 && all <= SUM_MOST && next_map(&m, line, sizeof(line))) {
        uintptr_t from = strtoul(line, &end, 16);
        uintptr_t to = *end == '-' ? strtoul(end + 1, &end, 16) : 0;
        bool writes = to != 0 && end[0] == ' ' && end[1] == 'r' && end[2] == 'w';
        bool shared = segment >= from && segment < to;
        if (!writes || shared || (own >= from && own < to) ||
            (from >= segment && from < segment + virtual_clock->segment->size)) {
            continue;
        }
        from = stack >= from && stack < to ? stack - RED_ZONE : from;
        all += to - from;
        *sum = all <= SUM_MOST ? sum_piece(sim_mix(*sum, from), from, to) : 0;
    }
    if (m.fd >= 0) {
        sys_close(m.fd);
    }
    return m.fd >= 0 && all <= SUM_MOST;
}

/* ---- the answer ---- */

/* Tells the coordinator where the thread was when it was asked. */
static void tell_stack(uintptr_t pc)
{
    struct sim_rank *r = virtual_clock->shared;
    void *frames[FRAMES];
    int n = backtrace(frames, FRAMES), first = 0;
    uint32_t count = 0;
    while (first < n && (uintptr_t)frames[first] != pc) {
        first++;
    }
    r->frame[count++] = pc;
    for (int i = first + 1; i < n && count < SIM_FRAMES; i++) {
        r->frame[count++] = (uintptr_t)frames[i] - 1; /* of the call */
    }
    atomic_store(&r->frames, count);
}

static void answer(enum sim_spins what)
{
    struct sim_board *b = sim_board(virtual_clock->segment);
    atomic_store(&virtual_clock->shared->spins, what);
    atomic_fetch_add(&b->came, 1);
    futex_wake(&b->came);
}

static void end_look(ucontext_t *u)
{
    look.on = false;
    u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRACE_FLAG;
    virtual_install(SIGTRAP, &look.before, NULL);
}

static void step(int signal, siginfo_t *info, void *context)
{
    ERRNO_KEPT;
    struct sim_task *shut = virtual_open();
    ucontext_t *u = context;
    const greg_t *g = u->uc_mcontext.gregs;
    uintptr_t pc = (uintptr_t)g[REG_RIP];
    uint64_t sum;
    if (!look.on) {
        u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRACE_FLAG;
    } else if (++look.steps > STEPS || !virtual_in() || virtual_is_open(pc)) {
        end_look(u); /* it computes, or makes a call */
        answer(SIM_COMPUTES_LONG);
    } else if (pc == (uintptr_t)look.registers[REG_RIP] && is_same(u)) {
        if (!sum_memory((uintptr_t)g[REG_RSP], &sum)) {
            end_look(u);
            answer(SIM_COMPUTES_LONG);
        } else if (look.rounds++ != 0 && sum == look.sum) {
            end_look(u);
            answer(SIM_SPINS_ON_MEMORY);
        } else {
            look.sum = sum;
        }
    }
    virtual_shut(shut);
}

/* Whether the calling thread has the clock, though it may have stepped out of the simulation: it
 * does not answer then. */
static bool is_running(const struct sim_clock *c)
{
    return c->running->thread == (pid_t)SYS_CALL(SYS_gettid);
}

/* ---- waits for memory ---- */

enum { TICK_NS = 10000000, TICKS = 2 };

/* A timer of the processor's time has ticked. Who has made no call for two ticks waits, in this
 * handler, for what may change memory. */
static void tick(siginfo_t *info, uintptr_t pc)
{
    static uint64_t waits;
    static int ticks;
    struct sim_clock *c = virtual_clock;
    if (virtual_self != c->running) {
        if (!is_running(c)) {
            SYS_CALL(SYS_rt_tgsigqueueinfo, getpid(), c->running->thread, SIGSTKFLT, info);
        }
        return;
    }
    ticks = waits == c->waits ? ticks + 1 : 0;
    waits = c->waits;
    if (ticks < TICKS || !virtual_in() || virtual_is_open(pc)) {
        return;
    }
    ticks = 0;
    snprintf(c->me->outside_of, sizeof(c->me->outside_of), "%s", SIM_MEMORY_WAITS);
    sim_clock_wait(c, SIM_NEVER, SIM_TASK_MEMORY, SIM_MEMORY, false);
    waits = c->waits;
}

static void begin_ticks(void)
{
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGSTKFLT};
    struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}};
    int timer;
    if (SYS_CALL(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &e, &timer) == 0) {
        SYS_CALL(SYS_timer_settime, timer, 0, &every, NULL);
    }
}

/* ---- questions ---- */

/* The coordinator asks: whichever thread this is, the one that has the clock looks. */
static void ask(int signal, siginfo_t *info, void *context)
{
    ERRNO_KEPT;
    struct sim_clock *c = virtual_clock;
    ucontext_t *u = context;
    if (c == NULL || look.on) {
        return;
    }
    if (info->si_code == SI_TIMER) {
        tick(info, (uintptr_t)u->uc_mcontext.gregs[REG_RIP]);
        return;
    }
    if (virtual_self != c->running) {
        if (!is_running(c)) {
            SYS_CALL(SYS_tgkill, getpid(), c->running->thread, SIGSTKFLT);
        }
        return;
    }
    uintptr_t pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    struct sim_task *shut = virtual_open();
    struct virtual_action a = {.handler = step};
    tell_stack(pc);
    if (!virtual_in() || virtual_is_open(pc) || !virtual_install(SIGTRAP, &a, &look.before)) {
        answer(SIM_COMPUTES_LONG);
    } else {
        look.steps = look.rounds = 0;
        copy_state(u, &look.registers, look.vectors);
        look.on = true;
        u->uc_mcontext.gregs[REG_EFL] |= TRACE_FLAG;
    }
    virtual_shut(shut);
}

void virtual_listen(void)
{
    struct virtual_action a = {.handler = ask};
    void *frame;
    if (atomic_load(&virtual_clock->shared->listens) == (uint32_t)getpid()) {
        return; /* another thread has said so */
    }
    backtrace(&frame, 1); /* it loads a library the first time */
    if (virtual_trapped() != SIM_GATE_OPEN && virtual_install(SIGSTKFLT, &a, NULL)) {
        atomic_store(&virtual_clock->shared->listens, (uint32_t)getpid());
        if (sim_machine(virtual_clock)->memory_waits != 0) {
            begin_ticks();
        }
    }
}

void virtual_deaf(void)
{
    atomic_store(&virtual_clock->shared->listens, 0);
}
