/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the UDP fabric acknowledges, in virtual time on a network that does nothing wrong: within
 * 50 us while somebody polls, and in the poll that takes the packet where nobody may come back
 * soon; but on an answer where there is one.
 */
#include "fabric/udp/udp.h"
#include "fabric_fixture.h"
#include "udp_net.h"

#define US 1000
#define MS (1000 * US)

enum { WAY = 20 * US, STEP = US, LENT = INLINE_MOST + 8 }; /* one packet */

static const struct net_faults quiet = {.latency = WAY};

/* While the two meet, polls are so far apart that nobody takes them for a habit. */
static void pass(void)
{
    net_pass(25 * US);
}

static void begin(void)
{
    net_begin(1, &quiet);
    between_polls = pass;
    idle_most = 1000;
    open_both("udp");
    between_polls = NULL;
}

/* Sends a message that is the sender's until it is acknowledged. */
static void lend(struct plan *plan)
{
    make_plan(plan, LENT, WHOLE, WHOLE);
    plans[0] = plan;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    assert_false(plan->is_sent);
}

/* Polls one end only, until a message is acknowledged; gives how long that took. */
static int64_t until_sent(const struct plan *plan, unsigned end, int64_t most)
{
    int64_t begun = net_now();
    while (!plan->is_sent && net_now() - begun < most) {
        net_pass(STEP);
        fabric->poll(ends[end].fabric);
    }
    return net_now() - begun;
}

/* The receiver takes a message in one poll, and is not seen again. */
static void who_polls_once_has_acknowledged(void **state)
{
    struct plan plan;
    begin();
    lend(&plan);
    net_pass(WAY);
    fabric->poll(ends[IN].fabric);
    assert_true(plan.is_done);
    assert_in_range(until_sent(&plan, OUT, MS), 0, WAY + STEP);
    check_plan(&plan);
    free_plan(&plan);
    close_both();
}

/* A program that computes for 200 us between any two polls: each poll acknowledges. */
static void who_polls_now_and_then_too(void **state)
{
    begin();
    for (int i = 0; i < 20; i++) {
        struct plan plan;
        lend(&plan);
        net_pass(200 * US);
        fabric->poll(ends[IN].fabric);
        assert_in_range(until_sent(&plan, OUT, 180 * US), 0, WAY + STEP);
        free_plan(&plan);
    }
    close_both();
}

/* Who comes back at once each time has its acknowledgements wait, up to 50 us. */
static void who_polls_on_waits_for_an_answer(void **state)
{
    begin();
    for (int i = 0; i < 20; i++) {
        struct plan plan;
        int64_t came = 0;
        lend(&plan);
        while (!plan.is_sent) {
            net_pass(STEP);
            poll_both();
            came = came == 0 && plan.is_done ? net_now() : came;
            assert_true(came == 0 || net_now() - came <= 50 * US + WAY + STEP);
        }
        assert_true(i < UDP_HABIT || net_now() - came > WAY + 5 * US);
        free_plan(&plan);
    }
    close_both();
}

/* It has come back at once each time, but when it was the NIC thread that did so, before it slept:
 * that tells nothing of the program. */
static void sleep_ends_the_habit(void **state)
{
    struct plan plan;
    uint32_t word;
    begin();
    for (int i = 0; i < 20; i++) {
        lend(&plan);
        while (!plan.is_sent) {
            net_pass(STEP);
            poll_both();
        }
        free_plan(&plan);
    }
    for (int i = 0; i < 100; i++) { /* nothing is due any more */
        net_pass(STEP);
        poll_both();
    }
    assert_true(fabric->arm(ends[IN].fabric, DOORBELL_FD, &word));
    fabric->disarm(ends[IN].fabric, true);
    lend(&plan);
    net_pass(WAY);
    fabric->poll(ends[IN].fabric);
    assert_in_range(until_sent(&plan, OUT, MS), 0, WAY + STEP);
    free_plan(&plan);
    close_both();
}

/* Messages there and back in turn need no packets but their own. */
static void answers_carry_acknowledgements(void **state)
{
    enum { TURNS = 50 };
    struct reason why = {""};
    begin();
    /* IN answers: it has the peer since it was spoken to. */
    assert_int_equal(fabric->connect(ends[IN].fabric, 0x7f000001, ends[OUT].pid, &why), FABRIC_UP);
    uint64_t before = net_counts().packets;
    for (unsigned i = 0; i < TURNS; i++) {
        struct plan plan;
        make_plan(&plan, 8, WHOLE, WHOLE);
        plans[0] = &plan;
        uint64_t turn = arrived[FABRIC_REQUEST];
        uint8_t header[FABRIC_HEADER] = {0};
        memcpy(header + 8, &turn, sizeof(turn));
        struct end *from = &ends[i % 2 == 0 ? OUT : IN];
        assert_int_equal(fabric->send_short(from->peer, FABRIC_REQUEST, header, plan.payload, 8),
                         SHORT_SENT);
        while (!plan.is_done) {
            net_pass(STEP);
            poll_both();
        }
        free_plan(&plan);
    }
    assert_in_range(net_counts().packets - before, TURNS, TURNS + 2 * UDP_HABIT);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_polls_once_has_acknowledged),
        cmocka_unit_test(who_polls_now_and_then_too),
        cmocka_unit_test(who_polls_on_waits_for_an_answer),
        cmocka_unit_test(sleep_ends_the_habit),
        cmocka_unit_test(answers_carry_acknowledgements),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
