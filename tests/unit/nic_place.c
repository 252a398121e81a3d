/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits beside a peer on the same core, with clock, cores, masks and peers of a script: who waits
 * leaves for a core without peers by a mask that is gone at once, polls on there for a while, and
 * does neither where there is no such core, where the program has set a mask, or without a peer.
 * The clock goes on by TICK_NS a reading, which is all that the time of a wait is made of.
 */
#include "nic_place_world.h"

static bool never(void *arg)
{
    return false;
}

static void wait_ms(int ms)
{
    assert_false(nic_wait(&nic, never, NULL, ms * (int64_t)MS));
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
