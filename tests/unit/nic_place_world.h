/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What place.c finds in nic_place.c and nic_home.c: clock, cores, threads, their masks and peers of
 * a script. The clock goes on by TICK_NS a reading, which is all that time is made of.
 */
#ifndef NIC_PLACE_WORLD_H
#define NIC_PLACE_WORLD_H

#include "nic/progress.h"
#include "nic/wait.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

enum { TICK_NS = 1000, MS = 1000000, CALLS = 64, OTHERS = 2 };

static struct {
    int64_t clock;
    cpu_set_t mask;  /* of the thread */
    int core;        /* that it is on */
    int peer;        /* core of the peer that waits; -1: it does not */
    int other;       /* of a second one */
    bool comes_back; /* the scheduler brings the thread back to its first core */
    int said[2];     /* cores that peers were told of last */
    unsigned looks, moves, yields, sleeps;
    cpu_set_t set[CALLS]; /* masks that were set */
    unsigned sets;
    bool set_blocked; /* all of them with signals blocked */
    /* Threads beside the first one; 0: there is none. */
    struct {
        pid_t id;
        cpu_set_t mask;
    } others[OTHERS];
    int64_t ran; /* time on a core of the first thread; -1: the kernel does not say */
    char state;  /* of it; 0: the kernel does not say */
    int entry;   /* of /proc/self/task that is read next */
} world;

static cpu_set_t *mask_of(pid_t thread)
{
    for (int i = 0; i < OTHERS; i++) {
        if (thread != 0 && world.others[i].id == thread) {
            return &world.others[i].mask;
        }
    }
    assert_true(thread == 0 || thread == getpid());
    return &world.mask;
}

int64_t __wrap_clock_ns(void);
int64_t __wrap_clock_ns(void)
{
    return world.clock += TICK_NS;
}

void __wrap_sys_yield(void);
void __wrap_sys_yield(void)
{
    world.yields++;
}

int __wrap_sched_getaffinity(pid_t thread, size_t size, cpu_set_t *mask);
int __wrap_sched_getaffinity(pid_t thread, size_t size, cpu_set_t *mask)
{
    assert_int_equal(size, sizeof(*mask));
    *mask = *mask_of(thread);
    return 0;
}

int64_t __wrap_sys_clock_ns(clockid_t clock);
int64_t __wrap_sys_clock_ns(clockid_t clock)
{
    clockid_t first;
    struct timespec now;
    assert_int_equal(pthread_getcpuclockid(pthread_self(), &first), 0);
    assert_int_equal(clock & 7, first & 7);
    assert_int_equal(clock >> 3, ~getpid());
    assert_int_equal(clock_gettime(clock, &now), 0);
    return world.ran;
}

char __real_sys_task_state(const char *path);
char __wrap_sys_task_state(const char *path);
char __wrap_sys_task_state(const char *path)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "/proc/self/task/%d/stat", getpid());
    assert_string_equal(path, wanted);
    return world.state;
}

/* Entry 0 is the first thread, the others come behind it. */
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    assert_string_equal(path, "/proc/self/task");
    world.entry = 0;
    return (DIR *)&world;
}

struct dirent *__wrap_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d)
{
    static struct dirent e;
    for (; world.entry <= OTHERS; world.entry++) {
        pid_t id = world.entry == 0 ? getpid() : world.others[world.entry - 1].id;
        if (id != 0) {
            world.entry++;
            snprintf(e.d_name, sizeof(e.d_name), "%d", id);
            return &e;
        }
    }
    return NULL;
}

int __wrap_closedir(DIR *d);
int __wrap_closedir(DIR *d)
{
    return 0;
}

/* place.c is compiled to make its system calls here; so are all of base/ in builds with sanitizers,
 * whose locks sleep and ask for their thread. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    sigset_t blocked;
    if (number == SYS_gettid || number == SYS_futex) {
        return __real_syscall(number, a, b, c, d, e, f);
    }
    if (number == SYS_getcpu) {
        *(unsigned *)a = (unsigned)world.core;
        return 0;
    }
    assert_int_equal(number, SYS_sched_setaffinity);
    assert_int_equal(b, sizeof(world.mask));
    if (a != 0) { /* by the NIC thread */
        *mask_of((pid_t)a) = *(const cpu_set_t *)c;
        return 0;
    }
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    world.set_blocked &= sigismember(&blocked, SIGTERM) == 1;
    world.mask = world.set[world.sets++ % CALLS] = *(const cpu_set_t *)c;
    if (!CPU_ISSET(world.core, &world.mask)) {
        world.core = 0;
        while (!CPU_ISSET(world.core, &world.mask)) {
            world.core++;
        }
        world.moves++;
    } else if (world.comes_back) {
        world.core = 0;
    }
    return 0;
}

static void waits_on(struct fabric *f, int core, int64_t now, cpu_set_t *others)
{
    assert_int_equal(now, world.clock);
    world.said[0] = world.said[1];
    world.said[1] = core;
    world.looks += core >= 0;
    CPU_SET(world.peer, others);
    CPU_SET(world.other, others);
}

static bool no(struct fabric *f)
{
    return false;
}

/* A wait that would sleep goes on. */
static bool arm(struct fabric *f, enum doorbell_kind kind, uint32_t *word)
{
    world.sleeps++;
    return false;
}

static const struct fabric_home ops_home = {.flows = no, .waits_on = waits_on};
static const struct fabric_ops ops = {.poll = no, .peek = no, .arm = arm, .home = &ops_home};
static struct process process;
static struct nic nic;
static _Atomic uint32_t doorbell;

static void open_nic(int cores, int core, int64_t home)
{
    memset(&world, 0, sizeof(world));
    world.clock = 1000 * (int64_t)MS;
    world.core = core;
    world.peer = world.other = -1;
    world.set_blocked = true;
    for (int i = 0; i < cores; i++) {
        CPU_SET(i, &world.mask);
    }
    process.options.number[OPT_SPIN_US] = 20;
    process.options.number[OPT_YIELD_US] = 100;
    process.options.number[OPT_CORE] = home;
    memset(&nic, 0, sizeof(nic));
    nic.process = &process;
    nic.ops = &ops;
    nic.now = clock_ns;
    nic.doorbell = &doorbell;
    nic.spin_ns = 20000;
    nic.yield_ns = 100000;
    list_init(&nic.fired);
    list_init(&nic.invoked);
    place_open(&nic);
}

/* A mask of `cores`, 0 or 1 each, from core 0 on. */
static bool is_mask(const cpu_set_t *mask, const char *cores)
{
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (int i = 0; cores[i] != '\0'; i++) {
        if (cores[i] == '1') {
            CPU_SET(i, &wanted);
        }
    }
    return CPU_EQUAL(mask, &wanted);
}

#endif
