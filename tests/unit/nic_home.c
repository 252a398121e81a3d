/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The home of the first thread, with threads and masks of a script: which of them get the whole
 * mask when the NIC thread looks, and for which first thread the home ends.
 */
#include "nic_place_world.h"

#include <sys/prctl.h>

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

/* Only the first one's own sleep on the doorbell keeps its home. */
static void who_sleeps_on_the_doorbell_stays_at_home(void **state)
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

static void *sleep_on_doorbell(void *arg)
{
    place_sleeps(&nic, true);
    return NULL;
}

static void who_sleeps_beside_it_keeps_nothing(void **state)
{
    pthread_t thread;
    hold_home();
    world.ran += MS;
    assert_int_equal(pthread_create(&thread, NULL, sleep_on_doorbell, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(place_rest(&nic));
    assert_true(is_mask(&world.mask, "11"));
}

/* The name of the thread tries to be taken for its state. */
static void state_is_not_in_the_name(void **state)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
    assert_int_equal(prctl(PR_SET_NAME, "a) S (b) Z"), 0);
    assert_int_equal(__real_sys_task_state(path), 'R');
    assert_int_equal(__real_sys_task_state("/proc/self/task/0/stat"), '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_found_by_their_masks),
        cmocka_unit_test(own_masks_of_others_stay),
        cmocka_unit_test(home_ends_without_polls),
        cmocka_unit_test(who_is_held_up_stays_at_home),
        cmocka_unit_test(home_is_not_kept_for_who_left_it),
        cmocka_unit_test(home_ends_where_the_kernel_does_not_say),
        cmocka_unit_test(who_sleeps_on_the_doorbell_stays_at_home),
        cmocka_unit_test(who_sleeps_beside_it_keeps_nothing),
        cmocka_unit_test(state_is_not_in_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
