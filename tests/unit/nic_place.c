/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits beside a peer on the same core, with clock, cores, masks and peers of a script: who waits
 * leaves for a core without peers by a mask that is gone at once, polls on there for a while, and
 * does neither where there is no such core, where the program has set a mask, or without a peer.
 * The clock goes on by TICK_NS a reading, which is all that the time of a wait is made of.
 *
 * And the home of the first thread, with threads of a script: which of them get the whole mask when
 * the NIC thread looks, and for which first thread the home ends.
 */
#include "nic/nic.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

enum { TICK_NS = 1000, MS = 1000000, CALLS = 64, OTHERS = 2, STAT_FD = 1000 };

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

int __wrap_sys_open(const char *path, int flags, mode_t mode);
int __wrap_sys_open(const char *path, int flags, mode_t mode)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "/proc/self/task/%d/stat", getpid());
    assert_string_equal(path, wanted);
    return world.state != 0 ? STAT_FD : -ENOENT;
}

/* The name of the thread tries to be taken for its state. */
ssize_t __wrap_sys_read(int fd, void *to, size_t n);
ssize_t __wrap_sys_read(int fd, void *to, size_t n)
{
    assert_int_equal(fd, STAT_FD);
    return snprintf(to, n, "%d (a) %c) %c 1 2", getpid(), world.state == 'R' ? 'S' : 'R',
                    world.state);
}

int __wrap_sys_close(int fd);
int __wrap_sys_close(int fd)
{
    assert_int_equal(fd, STAT_FD);
    return 0;
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

/* ---- the home ---- */

static void hold_home(void)
{
    open_nic(2, 0, 1);
    world.state = 'R';
    place_hold(&nic);
    assert_true(is_mask(&world.mask, "01"));
    place_tend(&nic);
}

/* A thread that the first one makes has its mask; where one was before, it is not one more. */
static void make_other(int i, pid_t id)
{
    world.others[i].id = id;
    world.others[i].mask = world.mask;
}

static void threads_are_found_by_their_masks(void **state)
{
    hold_home();
    for (pid_t id = 2000000000; id < 2000000003; id++) {
        make_other(0, id);
        place_tend(&nic);
        assert_true(is_mask(&world.others[0].mask, "11"));
        assert_true(is_mask(&world.mask, "01"));
    }
    make_other(1, 2000000003);
    world.others[0].id = 0; /* the end of the home is soon after */
    place_free(&nic);
    assert_true(is_mask(&world.others[1].mask, "11"));
    assert_true(is_mask(&world.mask, "11"));
}

static void own_masks_of_others_stay(void **state)
{
    hold_home();
    make_other(0, 2000000000);
    CPU_ZERO(&world.others[0].mask);
    CPU_SET(0, &world.others[0].mask);
    place_tend(&nic);
    place_free(&nic);
    assert_true(is_mask(&world.others[0].mask, "10"));
}

/* Computes, or sleeps elsewhere. */
static void home_ends_without_polls(void **state)
{
    hold_home();
    world.ran += MS;
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
    assert_false(place_rest(&nic));
    hold_home();
    world.state = 'S';
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
}

static void who_is_held_up_stays_at_home(void **state)
{
    hold_home();
    for (int i = 0; i < 5; i++) {
        world.ran += 1000;
        make_other(0, 2000000000 + i);
        assert_true(place_rest(&nic));
        assert_true(is_mask(&world.mask, "01"));
        assert_true(is_mask(&world.others[0].mask, "11"));
    }
    world.ran += MS; /* given a core at last, it computes */
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
}

/* A program that gives the first thread the whole mask has ended the home; another poll begins it.
 */
static void home_is_not_kept_for_who_left_it(void **state)
{
    for (int asleep = 0; asleep < 2; asleep++) {
        hold_home();
        CPU_SET(0, &world.mask);
        place_sleeps(&nic, asleep == 1);
        assert_false(place_rest(&nic));
        place_hold(&nic);
        assert_true(is_mask(&world.mask, "01"));
    }
}

static void home_ends_where_the_kernel_does_not_say(void **state)
{
    hold_home();
    world.state = 0;
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
    open_nic(2, 0, 1);
    world.state = 'R';
    world.ran = -1;
    place_hold(&nic);
    place_tend(&nic);
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
}

/* Only the first one's own sleep on the bell keeps its home. */
static void who_sleeps_on_the_bell_stays_at_home(void **state)
{
    hold_home();
    world.state = 'S';
    place_sleeps(&nic, true);
    make_other(0, 2000000000);
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "01"));
    assert_true(is_mask(&world.others[0].mask, "11"));
    place_sleeps(&nic, false);
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
}

static void *sleep_on_bell(void *arg)
{
    place_sleeps(&nic, true);
    return NULL;
}

static void who_sleeps_beside_it_keeps_nothing(void **state)
{
    pthread_t thread;
    hold_home();
    world.ran += MS;
    assert_int_equal(pthread_create(&thread, NULL, sleep_on_bell, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
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
        cmocka_unit_test(threads_are_found_by_their_masks),
        cmocka_unit_test(own_masks_of_others_stay),
        cmocka_unit_test(home_ends_without_polls),
        cmocka_unit_test(who_is_held_up_stays_at_home),
        cmocka_unit_test(home_is_not_kept_for_who_left_it),
        cmocka_unit_test(home_ends_where_the_kernel_does_not_say),
        cmocka_unit_test(who_sleeps_on_the_bell_stays_at_home),
        cmocka_unit_test(who_sleeps_beside_it_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
