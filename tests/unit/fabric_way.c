/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way a large payload takes to a peer that is far: by reference, but through cells from when
 * the peer's handlers have taken one packet by packet until it has put one away.
 */
#include "fabric_fixture.h"

#include "fabric/shm/shm.h"

enum { LARGE = 16 * PACKET };

enum use { PUT_AWAY, BY_PACKETS };

static struct tx_channel *channel(void)
{
    return &shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST];
}

/* Sends a payload to be used so; true if it goes by reference. */
static bool goes_by_reference(size_t length, enum use use)
{
    struct plan plan;
    channel()->far = true;
    channel()->slow = UINT32_MAX; /* whatever is timed now */
    make_plan(&plan, length, WHOLE, WHOLE);
    plan.by_packets = use == BY_PACKETS;
    plans[0] = &plan;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    bool referred = !list_empty(&channel()->referred);
    finish(&plan);
    check_plan(&plan);
    free_plan(&plan);
    return referred;
}

static void follows_the_use(void **state)
{
    open_both("auto");
    assert_true(goes_by_reference(LARGE, PUT_AWAY));
    assert_true(goes_by_reference(LARGE, PUT_AWAY));
    assert_true(goes_by_reference(LARGE, BY_PACKETS)); /* nobody knew */
    assert_false(goes_by_reference(LARGE, BY_PACKETS));
    assert_false(goes_by_reference(LARGE, BY_PACKETS));
    assert_false(goes_by_reference(LARGE, PUT_AWAY));
    assert_true(goes_by_reference(LARGE, PUT_AWAY));
    close_both();
}

/* What goes through cells at any distance says nothing of large ones. */
static void short_ones_tell_nothing(void **state)
{
    open_both("auto");
    assert_true(goes_by_reference(LARGE, BY_PACKETS));
    assert_false(goes_by_reference(PACKET, PUT_AWAY));
    assert_false(goes_by_reference(100, PUT_AWAY));
    assert_false(goes_by_reference(LARGE, BY_PACKETS));
    close_both();
}

static void only_one_way_is_that_way(void **state)
{
    open_both("vm");
    assert_true(goes_by_reference(LARGE, BY_PACKETS));
    assert_true(goes_by_reference(LARGE, BY_PACKETS));
    close_both();
    open_both("cells");
    assert_false(goes_by_reference(LARGE, PUT_AWAY));
    assert_false(goes_by_reference(LARGE, PUT_AWAY));
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_use),
        cmocka_unit_test(short_ones_tell_nothing),
        cmocka_unit_test(only_one_way_is_that_way),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
