/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits beside a peer on the same core, with clock, cores, masks and peers of a script: who waits
 * leaves for a core without peers by a mask that is gone at once, polls on there for a while, and
 * does neither where there is no such core, where the program has set a mask, or without a peer.
 * The clock goes on by TICK_NS a reading, which is all that the time of a wait is made of.
 */
#include "nic/nic.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <cmocka.h>

enum { TICK_NS = 1000, MS = 1000000, CALLS = 64 };

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
} world;

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
    *mask = world.mask;
    return 0;
}

/* place.c is compiled to make its system calls here. */
long __wrap_syscall(long number, long a, long b, long c);
long __wrap_syscall(long number, long a, long b, long c)
{
    sigset_t blocked;
    if (number == SYS_getcpu) {
        *(unsigned *)a = (unsigned)world.core;
        return 0;
    }
    assert_int_equal(number, SYS_sched_setaffinity);
    assert_int_equal(a, 0);
    assert_int_equal(b, sizeof(world.mask));
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
static bool arm(struct fabric *f, enum bell_kind kind, uint32_t *word)
{
    world.sleeps++;
    return false;
}

static const struct fabric_ops ops = {
    .poll = no, .peek = no, .flows = no, .arm = arm, .waits_on = waits_on};
static struct process process;
static struct nic nic;
static _Atomic uint32_t bell;

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
    nic.bell = &bell;
    nic.spin_ns = 20000;
    nic.yield_ns = 100000;
    list_init(&nic.fired);
    list_init(&nic.invoked);
    place_open(&nic);
}

static bool never(void *arg)
{
    return false;
}

static void wait_ms(int ms)
{
    assert_false(nic_wait(&nic, never, NULL, ms * (int64_t)MS));
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

static void who_meets_a_peer_leaves(void **state)
{
    open_nic(2, 0, -1);
    world.peer = 0;
    wait_ms(4);
    assert_int_equal(world.moves, 1);
    assert_int_equal(world.core, 1);
    assert_int_equal(world.sets, 2);
    assert_true(is_mask(&world.set[0], "01"));
    assert_true(is_mask(&world.mask, "11"));
    assert_true(world.set_blocked);
    assert_int_equal(world.yields, 0); /* nor does it give the new core away */
    assert_int_equal(world.sleeps, 0);
    wait_ms(12);
    assert_int_equal(world.moves, 1);
    assert_int_not_equal(world.sleeps, 0); /* what takes longer than a slice is slept through */
    assert_int_equal(world.said[1], 1);
}

/* The peer is to see that the thread has left before that one runs again, and stays. */
static void who_leaves_says_so_before(void **state)
{
    open_nic(2, 0, -1);
    world.peer = 0;
    wait_ms(1);
    assert_int_equal(world.moves, 1);
    assert_int_equal(world.said[0], 0);
    assert_int_equal(world.said[1], -1);
}

static void cores_of_other_peers_are_left_out(void **state)
{
    open_nic(4, 1, -1);
    world.peer = 1;
    world.other = 0;
    wait_ms(2);
    assert_int_equal(world.core, 2);
    assert_true(is_mask(&world.set[0], "0011"));
    assert_true(is_mask(&world.mask, "1111"));
}

/* Spins, yields and sleeps as ever. */
static void assert_stays(void)
{
    wait_ms(4);
    assert_int_equal(world.sets, 0);
    assert_int_not_equal(world.yields, 0);
    assert_int_not_equal(world.sleeps, 0);
}

static void who_meets_nobody_stays(void **state)
{
    open_nic(2, 0, -1);
    assert_stays();
    open_nic(2, 0, -1);
    world.peer = 1;
    assert_stays();
    assert_int_equal(world.said[1], 0);
}

static void where_every_core_has_peers_nobody_leaves(void **state)
{
    open_nic(2, 0, -1);
    world.peer = 0;
    world.other = 1;
    assert_stays();
}

static void own_masks_stay(void **state)
{
    open_nic(4, 0, -1);
    world.peer = 0;
    CPU_CLR(3, &world.mask);
    assert_stays();
    assert_true(is_mask(&world.mask, "1110"));
    open_nic(1, 0, -1); /* set before */
    world.peer = 0;
    assert_stays();
}

static void who_has_a_home_or_may_not_spin_stays(void **state)
{
    open_nic(2, 0, 0);
    world.peer = 0;
    assert_stays();
    open_nic(2, 0, -1);
    process.options.number[OPT_SPIN_US] = 0;
    place_open(&nic);
    world.peer = 0;
    nic.spin_ns = 0;
    assert_stays();
}

/* Who is brought back leaves again, once a millisecond at the most. */
static void each_look_is_one_move(void **state)
{
    open_nic(2, 0, -1);
    world.peer = 0;
    world.comes_back = true;
    wait_ms(20);
    assert_in_range(world.moves, 18, 20);
    assert_int_equal(world.moves, world.looks);
    assert_int_equal(world.sets, 2 * world.moves);
    assert_true(is_mask(&world.mask, "11"));
}

/* It ends when a peer is met again and there is nowhere to go, or after 50 ms. */
static void apart_ends(void **state)
{
    open_nic(2, 0, -1);
    world.peer = 0;
    wait_ms(3);
    world.peer = 1;
    world.other = 0;
    wait_ms(2);
    assert_int_not_equal(world.sleeps, 0);
    open_nic(2, 0, -1);
    world.peer = 0;
    wait_ms(1);
    world.clock += 51 * (int64_t)MS;
    wait_ms(1);
    assert_int_equal(world.moves, 1);
    assert_int_not_equal(world.sleeps, 0);
}

/* Who polls looks in the place of a yield. */
static void who_polls_leaves(void **state)
{
    open_nic(2, 0, -1);
    world.peer = 0;
    for (int i = 0; i < 20 * EMPTY_POLLS_YIELD; i++) {
        nic_note_poll(&nic, false);
    }
    assert_int_equal(world.moves, 1);
    assert_int_equal(world.yields, 0);
    open_nic(2, 0, -1);
    for (int i = 0; i < 20 * EMPTY_POLLS_YIELD; i++) {
        nic_note_poll(&nic, false);
    }
    assert_int_equal(world.yields, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_meets_a_peer_leaves),
        cmocka_unit_test(who_leaves_says_so_before),
        cmocka_unit_test(cores_of_other_peers_are_left_out),
        cmocka_unit_test(who_meets_nobody_stays),
        cmocka_unit_test(where_every_core_has_peers_nobody_leaves),
        cmocka_unit_test(own_masks_stay),
        cmocka_unit_test(who_has_a_home_or_may_not_spin_stays),
        cmocka_unit_test(each_look_is_one_move),
        cmocka_unit_test(apart_ends),
        cmocka_unit_test(who_polls_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
