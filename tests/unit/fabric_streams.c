/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams (fabric/udp/stream.c): when a packet of a message is lost, those behind it begin and come
 * to their places all the same, and end after it; how many, and how much is kept, is bounded; those
 * that must wait for their turn do not keep out what they wait for; a peer that dies meanwhile ends
 * them all, in order; one that begins what it does not go on with holds up itself alone.
 */
#define PIPELINE 32
#define ENDS 3
#include "fabric_fixture.h"

#include "fabric/slmp/wire.h"
#include "fabric/udp/channel.h"
#include "fabric/udp/stream.h"
#include "fabric/udp/udp.h"
#include "udp_net.h"

static const struct net_faults quiet = {.latency = 20000};

static struct plan many[PIPELINE];
static unsigned sent_plans;
static uint32_t first_number; /* of the messages of a test, in their channel */
static bool losing;

static void pass(void)
{
    net_pass(5000);
}

/* The second packet of the first message does not pass, however often it is sent. */
static bool is_second(const uint8_t *packet, size_t length)
{
    struct slmp_wire w;
    return losing && slmp_wire_parse(&w, packet, length) == SLMP_PARSED &&
           w.kind == SLMP_KIND_DATA && w.channel == FABRIC_REQUEST && w.id == first_number &&
           w.offset != 0 && w.offset < 1472;
}

/* The peer of IN that came first. */
static struct udp_channel *incoming(void)
{
    struct udp_peer *p = container_of(udp_of(ends[IN].fabric)->peers.next, struct udp_peer, link);
    return &p->channel[FABRIC_REQUEST];
}

static unsigned streams_used(void)
{
    unsigned n = 0;
    for (const struct udp_stream *l = udp_stream_first(incoming()); l != NULL;
         l = udp_stream_behind(incoming(), l)) {
        n++;
    }
    return n;
}

/* What is kept of messages that wait is within its bounds. */
static void check_kept(void)
{
    const struct udp_fabric *f = udp_of(ends[IN].fabric);
    for (const struct udp_stream *l = udp_stream_first(incoming()); l != NULL;
         l = udp_stream_behind(incoming(), l)) {
        assert_true(l->count <= (l == udp_stream_first(incoming()) ? STAGED_MOST : STAGED_BEHIND));
    }
    assert_true(f->buffers <= BUFFERS_MOST);
    assert_true(f->spare_pieces <= UDP_PIECES);
    assert_true(slmp_held(f->engine) <= f->config.held_max);
}

static void begin(void)
{
    net_begin(1, &quiet);
    between_polls = pass;
    turns_tried = false;
    idle_most = 4000000;
    setenv("PINWHEEL_UDP_PACKET", "1472", 1);
    open_both("udp");
    first_number = (uint32_t)arrived[FABRIC_REQUEST];
    arrived[FABRIC_REQUEST] = 0;
    sent_plans = 0;
    losing = true;
    net_choose(is_second);
}

static void end(void)
{
    for (unsigned i = 0; i < sent_plans; i++) {
        free_plan(&many[i]);
        plans[i] = NULL;
    }
    close_both();
}

static struct plan *send_one(size_t length)
{
    struct plan *plan = plans[sent_plans] = &many[sent_plans];
    make_plan(plan, length, WHOLE, WHOLE);
    return plan;
}

static void off(bool in_turn, bool unmatched)
{
    struct plan *plan = &many[sent_plans];
    plan->in_turn = in_turn;
    plan->unmatched = unmatched;
    assert_true(send_plan(FABRIC_REQUEST, sent_plans, sent_plans));
    sent_plans++;
}

static void run(int64_t ns)
{
    for (int64_t stop = net_now() + ns; net_now() < stop;) {
        poll_both();
    }
}

static bool is_in_place(const struct plan *plan)
{
    return memcmp(plan->to.base, plan->payload, plan->length) == 0;
}

/* All come, in their order, once nothing is lost. */
static void let_it_end(void)
{
    losing = false;
    for (unsigned i = 0; i < sent_plans; i++) {
        finish(&many[i]);
        check_plan(&many[i]);
    }
    assert_int_equal(arrived[FABRIC_REQUEST], sent_plans);
    assert_int_equal(streams_used(), 1);
    assert_false(incoming()->lent);
}

static void nobody_has_ended(void)
{
    for (unsigned i = 0; i < sent_plans; i++) {
        assert_false(many[i].is_done);
    }
}

static void a_loss_holds_up_its_own_message(void **state)
{
    begin();
    send_one(20000);
    off(false, false);
    for (unsigned i = 1; i < 4; i++) {
        send_one(30000)->by_packets = i == 2;
        off(false, false);
    }
    run(100000000);
    nobody_has_ended();
    assert_false(is_in_place(&many[0]));
    assert_true(is_in_place(&many[1]));
    assert_int_equal(many[2].seen, 30000);
    assert_true(is_in_place(&many[3]));
    let_it_end();
    end();
}

/* Short ones go in rows; each has a stream of its own all the same. */
static void short_ones_pass_too(void **state)
{
    begin();
    send_one(20000);
    off(false, false);
    for (unsigned i = 1; i < 6; i++) {
        send_one(i == 3 ? 0 : 8)->headed = true;
        off(false, false);
    }
    run(100000000);
    nobody_has_ended();
    for (unsigned i = 1; i < 6; i++) {
        assert_true(is_in_place(&many[i]));
    }
    let_it_end();
    end();
}

static void streams_are_bounded(void **state)
{
    begin();
    for (unsigned i = 0; i < PIPELINE; i++) {
        send_one(3000 + i);
        off(false, false);
    }
    run(100000000);
    nobody_has_ended();
    assert_int_equal(streams_used(), UDP_STREAMS);
    for (unsigned i = 1; i < PIPELINE; i++) {
        assert_int_equal(is_in_place(&many[i]), i < UDP_STREAMS);
    }
    let_it_end();
    end();
}

static void one_that_waits_is_passed(void **state)
{
    begin();
    send_one(20000);
    off(false, false);
    send_one(30000);
    off(true, false);
    send_one(30000);
    off(false, false);
    run(100000000);
    nobody_has_ended();
    assert_false(is_in_place(&many[1]));
    assert_true(is_in_place(&many[2]));
    let_it_end();
    end();
}

static void one_that_is_not_matched_is_not_passed(void **state)
{
    begin();
    send_one(20000);
    off(false, false);
    send_one(30000);
    off(true, true);
    send_one(30000);
    off(false, false);
    run(100000000);
    nobody_has_ended();
    assert_false(is_in_place(&many[1]) || is_in_place(&many[2]));
    let_it_end();
    end();
}

/* What waits for its turn is kept within bounds, and the first one goes on. */
static void what_waits_is_bounded(void **state)
{
    begin();
    send_one(20000);
    off(false, false);
    for (unsigned i = 1; i < 4; i++) {
        send_one(4 << 20);
        off(true, false);
    }
    run(100000000);
    nobody_has_ended();
    check_kept();
    let_it_end();
    end();
}

/* Who has nothing to do but wait for the network may sleep. */
static void waiting_is_not_work(void **state)
{
    begin();
    send_one(20000);
    off(false, false);
    for (unsigned i = 1; i < PIPELINE; i++) {
        send_one(3000);
        off(i % 3 == 1, i % 6 == 1);
    }
    run(100000000);
    nobody_has_ended();
    const struct udp_peer *p =
        container_of(udp_of(ends[IN].fabric)->peers.next, struct udp_peer, link);
    assert_int_equal(udp_state(p) & RX_BLOCKED, 0);
    assert_false(udp_wants_poll(p));
    let_it_end();
    end();
}

/* What follows one that was cut ends like it, or never begins: a channel has no gaps. */
static void death_ends_all(void **state)
{
    static const struct net_faults nothing = {.lost = 1000, .latency = 20000};
    setenv("PINWHEEL_UDP_SILENCE_MS", "300", 1);
    begin();
    for (unsigned i = 0; i < 12; i++) {
        send_one(i < 3 ? 20000 : 2000);
        off(i == 4, false);
    }
    run(100000000);
    nobody_has_ended();
    net_set(&nothing);
    fabric->close(ends[OUT].fabric);
    slmp_lost(udp_of(ends[IN].fabric)->engine, net_now(),
              container_of(udp_of(ends[IN].fabric)->peers.next, struct udp_peer, link)->session);
    for (unsigned i = 0; i < 100; i++) {
        pass();
        fabric->poll(ends[IN].fabric);
    }
    assert_null(ends[IN].peer);
    assert_int_equal(arrived[FABRIC_REQUEST], UDP_STREAMS);
    for (unsigned i = 0; i < sent_plans; i++) {
        assert_int_equal(many[i].is_done, i < UDP_STREAMS);
        assert_true(i >= UDP_STREAMS || many[i].done == FABRIC_UNDELIVERABLE);
        free_plan(&many[i]);
    }
    fabric->close(ends[IN].fabric);
    fault_remove();
    unsetenv("PINWHEEL_UDP_SILENCE_MS");
}

/* The header of the first one waited, then wants the first packet, of which a piece never comes: it
 * waits for the network from then on, which is no work. Its sender dies, and it ends; the one
 * behind it never begins. */
static void death_before_the_first_packet(void **state)
{
    static const struct net_faults nothing = {.lost = 1000, .latency = 20000};
    for (unsigned waits = 0; waits < 3; waits++) {
        begin();
        struct plan *first = send_one(20000);
        first->waits = waits;
        first->wants_first = true;
        off(false, false);
        send_one(20000);
        off(false, false);
        run(100000000);
        nobody_has_ended();
        assert_int_equal(first->waits, 0);
        const struct udp_peer *p =
            container_of(udp_of(ends[IN].fabric)->peers.next, struct udp_peer, link);
        assert_false((udp_state(p) & RX_BLOCKED) != 0 || udp_wants_poll(p));
        net_set(&nothing);
        fabric->close(ends[OUT].fabric);
        slmp_lost(udp_of(ends[IN].fabric)->engine, net_now(), p->session);
        for (unsigned i = 0; i < 100; i++) {
            pass();
            fabric->poll(ends[IN].fabric);
        }
        assert_null(ends[IN].peer);
        assert_true(many[0].is_done && !many[1].is_done);
        assert_int_equal(many[0].done, FABRIC_UNDELIVERABLE);
        free_plan(&many[0]);
        free_plan(&many[1]);
        fabric->close(ends[IN].fabric);
        fault_remove();
    }
}

/* ---- Beside one that stalls ---- */

enum { BESIDE = 2, STALLED_LENGTH = 3013, OTHERS = 1000 };

static void pass_three(void)
{
    pass();
    if (ends[BESIDE].fabric != NULL) {
        fabric->poll(ends[BESIDE].fabric);
    }
}

/* Of messages of this length, which the other peer has none of, only the first packet passes. */
static bool is_stalled(const uint8_t *packet, size_t length)
{
    struct slmp_wire w;
    return losing && slmp_wire_parse(&w, packet, length) == SLMP_PARSED &&
           w.kind == SLMP_KIND_DATA && w.length == UDP_HEAD + STALLED_LENGTH && w.offset != 0;
}

static void begin_three(void)
{
    setenv("PINWHEEL_UDP_SILENCE_MS", "1000000", 1);
    begin();
    between_polls = pass_three;
    open_end(&ends[BESIDE]);
    connect_end(&ends[BESIDE]);
}

/* The other one's messages, some under way at a time, in the plans that the first one leaves. They
 * have the turns from 0 on: all of them end before any of the first one does. */
static void send_beside(void)
{
    unsigned most = PIPELINE - sent_plans, turn = 0, ended = 0;
    while (ended < OTHERS) {
        while (turn < OTHERS && turn - ended < most) {
            unsigned index = sent_plans + turn % most;
            struct plan *plan = plans[index] = &many[index];
            make_plan(plan, 2 * below(below(8) == 0 ? 30000 : 1500), WHOLE, WHOLE);
            plan->headed = below(3) == 0;
            if (!send_plan_from(&ends[BESIDE], FABRIC_REQUEST, index, turn)) {
                free_plan(plan);
                break;
            }
            turn++;
        }
        for (struct plan *p = plans[sent_plans + ended % most];
             ended < turn && p->is_sent && p->is_done; p = plans[sent_plans + ended % most]) {
            check_plan(p);
            free_plan(p);
            ended++;
        }
        poll_both();
        assert_true(net_now() < 300000000000); /* else one waits for ever */
    }
}

/* The messages of the first one are under way; a thousand of another peer come all the same. What
 * is kept meanwhile does not grow with them. */
static void others_pass(void)
{
    const struct udp_fabric *f = udp_of(ends[IN].fabric);
    run(100000000);
    assert_int_equal(streams_used(), UDP_STREAMS);
    send_beside();
    unsigned buffers = f->buffers;
    size_t held = slmp_held(f->engine);
    check_kept();
    for (unsigned i = 0; i < 2; i++) {
        arrived[FABRIC_REQUEST] = 0;
        send_beside();
        assert_int_equal(f->buffers, buffers);
        assert_int_equal(slmp_held(f->engine), held);
        check_kept();
    }
    assert_int_equal(streams_used(), UDP_STREAMS);
    nobody_has_ended();
    arrived[FABRIC_REQUEST] = 0;
    let_it_end();
}

static void end_three(void)
{
    between_polls = pass;
    fabric->close(ends[BESIDE].fabric);
    ends[BESIDE].fabric = NULL;
    end();
    unsetenv("PINWHEEL_UDP_SILENCE_MS");
}

/* The sender may have more packets under way than at first. */
static void widen(void)
{
    net_choose(NULL);
    send_one(300000);
    off(false, false);
    finish(&many[0]);
    free_plan(&many[0]);
    arrived[FABRIC_REQUEST] = sent_plans = 0;
}

/* As many messages as there are streams are opened, and no more of their payload follows; the one
 * behind them is told to wait, and comes when they have. */
static void one_that_stalls_holds_up_itself(void **state)
{
    begin_three();
    widen();
    net_choose(is_stalled);
    for (unsigned i = 0; i < UDP_STREAMS + 1; i++) {
        send_one(STALLED_LENGTH)->by_packets = i % 2 == 0;
        off(false, false);
    }
    others_pass();
    end_three();
}

/* Seven wait, with all their pieces, for one that does not come: more than there are buffers. */
static void those_that_wait_hold_up_their_own(void **state)
{
    begin_three();
    widen();
    net_choose(is_stalled);
    send_one(STALLED_LENGTH);
    off(false, false);
    for (unsigned i = 1; i < UDP_STREAMS; i++) {
        send_one(15000);
        off(true, false);
    }
    others_pass();
    assert_int_equal(udp_of(ends[IN].fabric)->buffers, BUFFERS_MOST);
    end_three();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_holds_up_its_own_message),
        cmocka_unit_test(short_ones_pass_too),
        cmocka_unit_test(streams_are_bounded),
        cmocka_unit_test(one_that_waits_is_passed),
        cmocka_unit_test(one_that_is_not_matched_is_not_passed),
        cmocka_unit_test(what_waits_is_bounded),
        cmocka_unit_test(waiting_is_not_work),
        cmocka_unit_test(death_ends_all),
        cmocka_unit_test(death_before_the_first_packet),
        cmocka_unit_test(one_that_stalls_holds_up_itself),
        cmocka_unit_test(those_that_wait_hold_up_their_own),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
