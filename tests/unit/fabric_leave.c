/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An end of the shared-memory fabric that leaves while its process lives on, before it has
 * noticed a connection: who claimed it is told, and who comes later finds nobody.
 */
#include "fabric_fixture.h"

static enum fabric_connect connect_to(uint32_t pid)
{
    struct reason why = {""};
    return fabric->connect(ends[OUT].fabric, 0x7f000001, pid, &why);
}

static void poll_out(void)
{
    for (unsigned i = 0; i < idle_most; i++) {
        fabric->poll(ends[OUT].fabric);
    }
}

/* What was sent is lost; its sender hears that the end left. */
static void an_unnoticed_connection_is_told(void **state)
{
    struct plan plan;
    open_ends("cells");
    assert_int_equal(connect_to(ends[IN].pid), FABRIC_UP);
    make_plan(&plan, 8, WHOLE, WHOLE);
    plans[0] = &plan;
    assert_true(send_plan(FABRIC_REQUEST, 0, 0));
    assert_non_null(ends[OUT].peer);
    fabric->close(ends[IN].fabric);
    poll_out();
    assert_null(ends[OUT].peer);
    assert_int_equal(connect_to(ends[IN].pid), FABRIC_LATER);
    fabric->close(ends[OUT].fabric);
    fault_remove();
    free_plan(&plan);
}

/* The same without a message: the claim alone. */
static void a_claim_alone_is_told(void **state)
{
    open_ends("cells");
    assert_int_equal(connect_to(ends[IN].pid), FABRIC_UP);
    fabric->close(ends[IN].fabric);
    poll_out();
    assert_null(ends[OUT].peer);
    fabric->close(ends[OUT].fabric);
    fault_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unnoticed_connection_is_told),
        cmocka_unit_test(a_claim_alone_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
