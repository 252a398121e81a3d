/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock: nobody is in it beside another, nobody waits for ever, whatever mixture
 * of threads that come often and threads that come seldom.
 */
#include "base/lock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4 };

static struct lock lock;
static uint64_t count; /* guarded by `lock`, not atomic */
static _Atomic int in;
static _Atomic int clashes;

struct visitor {
    long visits;
    long pause; /* turns of doing something else between two visits */
    bool tries;
    pthread_t thread;
};

/* Every other time by its slot, if it has the bias. */
static void visit(bool tries)
{
    static __thread unsigned visits;
    uint32_t slot = lock_slot;
    bool by_slot = visits++ % 2 == 0 && lock_enter_slot(&lock, slot);
    if (!by_slot && tries) {
        while (!lock_try(&lock)) {
        }
    } else if (!by_slot) {
        lock_take(&lock);
    }
    clashes += atomic_fetch_add(&in, 1) != 0;
    count++;
    atomic_fetch_sub(&in, 1);
    if (by_slot) {
        lock_leave_slot(&lock, slot);
    } else {
        lock_give(&lock);
    }
}

static void *run(void *arg)
{
    const struct visitor *v = arg;
    for (long i = 0; i < v->visits; i++) {
        visit(v->tries);
        for (volatile long k = 0; k < v->pause; k++) {
        }
    }
    return NULL;
}

static void all_meet(struct visitor *visitors, int n)
{
    uint64_t expected = 0;
    count = 0;
    for (int i = 0; i < n; i++) {
        expected += (uint64_t)visitors[i].visits;
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, run, &visitors[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(visitors[i].thread, NULL);
    }
    assert_int_equal(count, expected);
    assert_int_equal(clashes, 0);
}

static void one_often_others_seldom(void **state)
{
    struct visitor v[THREADS] = {
        {200000, 0, false, 0}, {2000, 500, false, 0}, {500, 5000, true, 0}, {500, 5000, false, 0}};
    all_meet(v, THREADS);
}

static void all_often(void **state)
{
    struct visitor v[THREADS] = {
        {20000, 0, false, 0}, {20000, 0, false, 0}, {20000, 3, true, 0}, {20000, 10, false, 0}};
    all_meet(v, THREADS);
}

/* The bias goes from thread to thread as each has its turn alone. */
static void one_after_the_other(void **state)
{
    for (int i = 0; i < 20; i++) {
        struct visitor v = {1000, 0, i % 2 == 0, 0};
        all_meet(&v, 1);
        visit(false);
    }
}

/* More threads than slots, each long enough alone to earn the bias. */
static void more_threads_than_slots(void **state)
{
    struct visitor v[2 * LOCK_SLOTS];
    for (unsigned i = 0; i < 2 * LOCK_SLOTS; i++) {
        v[i] = (struct visitor){2000, i % 4, false, 0};
    }
    all_meet(v, 2 * LOCK_SLOTS);
}

static void earns_the_bias_and_loses_it(void **state)
{
    count = 0;
    for (int i = 0; i < 1000; i++) {
        visit(false);
    }
    assert_int_equal(lock.bias, lock_asymmetric ? lock_slot : 0);
    struct visitor v = {1, 0, true, 0};
    all_meet(&v, 1);
    assert_int_equal(lock.bias, 0);
    visit(false);
}

static void without_membarrier(void **state)
{
    bool before = lock_asymmetric;
    lock = (struct lock){0};
    lock_asymmetric = false;
    struct visitor v[2] = {{100000, 0, false, 0}, {100000, 0, false, 0}};
    all_meet(v, 2);
    assert_int_equal(lock.bias, 0);
    lock_asymmetric = before;
}

static int set_up(void **state)
{
    lock_setup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_often_others_seldom), cmocka_unit_test(all_often),
        cmocka_unit_test(one_after_the_other),     cmocka_unit_test(earns_the_bias_and_loses_it),
        cmocka_unit_test(more_threads_than_slots), cmocka_unit_test(without_membarrier),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
