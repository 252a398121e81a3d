/* SPDX-License-Identifier: BSD-3-Clause */
/* The program in its simulation: joined when it is loaded, left at its end; how it waits. */
#include "virtual.h"

#include "base/sys.h"
#include "fabric/sim/said.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct sim_clock *virtual_clock;
__thread struct sim_task *virtual_self __attribute__((tls_model("initial-exec")));

void *virtual_real(void **slot, const char *name)
{
    if (*slot == NULL) {
        *slot = dlsym(RTLD_NEXT, name);
    }
    return *slot;
}

/* libportals, if the program has it, takes the clock from here. */
SHOWN struct sim_clock *pinwheel_sim_clock(void);
SHOWN struct sim_clock *pinwheel_sim_clock(void)
{
    return virtual_clock;
}

__attribute__((constructor)) static void join(void)
{
    bool again = false;
    struct sim_clock *c = getenv(SIM_VARIABLE) != NULL ? sim_clock_make(&again) : NULL;
    if (c != NULL) {
        virtual_self = &c->main;
        virtual_clock = c;
        c->handle = virtual_handle;
        c->ring = virtual_ring;
        virtual_first_thread();
        if (c->segment->debugged == c->rank + 1) {
            prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* one that is none of its parents */
        }
        if (!again) {
            sim_clock_hand_over(c, 0, SIM_COMPUTES);
        }
        if (sim_said_by(c, STDOUT_FILENO)) {
            setvbuf(stdout, NULL, _IOLBF, 0); /* a line comes at the time at which it is printed */
        }
        virtual_trap();
    }
}

__attribute__((destructor)) static void leave(void)
{
    if (virtual_clock != NULL) {
        sim_said_all(virtual_clock);
        virtual_untrap();
        sim_clock_leave(virtual_clock);
    }
}

/* ---- time ---- */

/* The NIC does what the program's last calls have made possible, which over other fabrics its own
 * thread does. */
static void let_nic_work(struct sim_clock *c)
{
    if (c->nic != NULL && c->happened != NULL) {
        struct sim_task *shut = virtual_open();
        c->lock(c->nic);
        c->passing = true; /* nothing that happens there lets time pass */
        c->happened(c->taker);
        c->unlock(c->nic);
        c->passing = false;
        virtual_shut(shut);
    }
}

uint64_t virtual_now(void)
{
    if (virtual_in()) {
        sim_clock_charge(virtual_clock);
    }
    return virtual_clock->now + virtual_clock->debt;
}

bool virtual_sleep(uint64_t end)
{
    struct sim_clock *c = virtual_clock;
    sim_clock_break(c);
    let_nic_work(c);
    sim_clock_charge(c);
    uint64_t start = c->now + c->debt;
    c->debt = 0;
    /* a child's end may be a signal that ends the sleep */
    enum sim_task_waits waits =
        end > start && virtual_has_handler(SIGCHLD) ? SIM_TASK_OTHERS : SIM_TASK_TIME;
    do {
        sim_clock_wait(c, end > start ? end : start, waits, SIM_SLEEPS, false);
    } while (c->now < end && !virtual_self->interrupted);
    pthread_testcancel();
    return c->now >= end;
}

void virtual_look(void)
{
    struct sim_clock *c = virtual_clock;
    sim_clock_break(c);
    sim_clock_charge(c);
    c->debt += sim_machine(c)->look;
    uint64_t end = c->now + c->debt;
    c->debt = 0;
    sim_clock_wait(c, end, SIM_TASK_TIME, SIM_SLEEPS, false);
}

uint64_t virtual_after(int64_t ns)
{
    uint64_t now = virtual_now();
    return ns < 0 || (uint64_t)ns > (SIM_NEVER - 1 - now) / PS_PER_NS
               ? SIM_NEVER
               : now + (uint64_t)ns * PS_PER_NS;
}

uint64_t virtual_at(clockid_t clock, const struct timespec *t)
{
    if (t == NULL) {
        return SIM_NEVER;
    }
    bool realtime = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
    int64_t s = t->tv_sec - (realtime ? VIRTUAL_REALTIME_S : VIRTUAL_MONOTONIC_S);
    if (s < 0) {
        return 0;
    }
    return s > 10000000 ? SIM_NEVER
                        : ((uint64_t)s * 1000000000u + (uint64_t)t->tv_nsec) * PS_PER_NS;
}

/* ---- waits ---- */

bool virtual_strangers;

struct sim_task *virtual_step_out(void)
{
    struct sim_task *self = virtual_self;
    if (self != NULL) {
        self->gate = SIM_GATE_OPEN;
        virtual_tsc_off();
    }
    virtual_self = NULL;
    return self;
}

void virtual_step_in(struct sim_task *self)
{
    virtual_self = self;
    virtual_shut(self);
    virtual_tsc_on(self != NULL && self->shut == SIM_GATE_SHUT);
}

/* Notes that something came from outside of the simulation, at no virtual time. */
static void note_outside(const char *what)
{
    struct sim_record *r = virtual_clock->me;
    if (r->outside_of[0] == '\0' && what != NULL) {
        snprintf(r->outside_of, sizeof(r->outside_of), "%s", what);
    }
}

enum virtual_end virtual_await(bool (*holds)(void *arg), void *arg, uint64_t end, const char *what)
{
    struct sim_clock *c = virtual_clock;
    struct sim_task *me = virtual_self;
    bool interrupted = false, waited = false;
    sim_clock_charge(c);
    for (;;) {
        if (holds(arg)) {
            c->me->finds += waited;
            if (waited && me->outside) {
                note_outside(what);
            }
            return VIRTUAL_HOLDS;
        }
        if (interrupted || c->now >= end) {
            return interrupted ? VIRTUAL_SIGNAL : VIRTUAL_LATE;
        }
        if (c->debt != 0) {
            virtual_sleep(c->now + c->debt);
            continue;
        }
        what = what == NULL && virtual_strangers ? "a thread" : what;
        let_nic_work(c);
        sim_clock_wait(c, end, what != NULL ? SIM_TASK_ANYBODY : SIM_TASK_OTHERS, SIM_OUTSIDE,
                       false);
        interrupted = me->interrupted;
        waited = true;
        pthread_testcancel();
    }
}

enum virtual_end virtual_await_again(bool (*holds)(void *arg), void *arg, uint64_t end,
                                     const char *what)
{
    enum virtual_end how;
    do {
        how = virtual_await(holds, arg, end, what);
    } while (how == VIRTUAL_SIGNAL && virtual_restarts());
    return how;
}

void virtual_stir(void)
{
    sim_clock_stir(virtual_clock);
}

void virtual_wake(void)
{
    sim_clock_wake(virtual_clock);
}
