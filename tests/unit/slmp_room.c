/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has a place at an SLMP engine, and who gives way: clients that come, send a message and are
 * gone without a word, by the thousand; others that are stopped, or live and have nothing to say;
 * strangers that take what they can get.
 */
#include "slmp_town.h"

#include "fabric/slmp/wire.h"

#include <errno.h>

/* Ten thousand of them, each killed after its message, none with a word; and the last one is
 * served as the first was. From a host each, and all from one. */
static void ten_thousand_come_and_die(void **state)
{
    for (unsigned one_host = 0; one_host < 2; one_host++) {
        begin(64);
        for (unsigned i = 0; i < 10000; i++) {
            struct client *c = come(FIRST + (one_host ? 0 : i), (uint16_t)(one_host ? i + 1 : 7));
            if (!says(c, 16, SECOND)) {
                fail_msg("client %u is not let in", i);
            }
            forget(c);
            pass(50 * MS);
        }
        assert_int_equal(server.received, 10000);
        assert_true(server.opened - server.closed <= 64);
        end();
    }
}

/* An idle job costs nothing, and of those that are stopped nobody wants to know anything. */
static void who_is_stopped_keeps_his_session(void **state)
{
    begin(64);
    struct client *stopped = come(FIRST, 1);
    assert_true(says(stopped, 16, SECOND));
    stopped->stopped = true;
    many_come(FIRST + 1, 50, 100 * MS);
    uint64_t packets = slmp_counters(server.engine)->packets_out;
    pass(3600 * SECOND);
    assert_int_equal(slmp_counters(server.engine)->packets_out, packets);
    assert_int_equal(slmp_deadline(server.engine), SLMP_NEVER);
    assert_true(has_session(stopped));
    stopped->stopped = false;
    assert_true(says(stopped, 16, SECOND));
    assert_int_equal(stopped->opened, 1);
    assert_int_equal(server.closed, 0);
    end();
}

/* Room becomes short, so that all are asked, and those who do not answer are not needed for
 * anybody else: nobody loses anything. */
static void who_is_asked_is_not_dead(void **state)
{
    begin(64);
    struct client *stopped = come(FIRST, 1);
    assert_true(says(stopped, 16, SECOND));
    stopped->stopped = true;
    many_come(FIRST + 1, 62, 100 * MS);
    uint64_t packets = slmp_counters(server.engine)->packets_out;
    pass(3600 * SECOND);
    assert_in_range(slmp_counters(server.engine)->packets_out - packets, 1, 50);
    assert_int_equal(slmp_deadline(server.engine), SLMP_NEVER);
    assert_int_equal(server.closed, 0);
    stopped->stopped = false;
    assert_true(says(stopped, 16, SECOND));
    assert_int_equal(stopped->opened, 1);
    end();
}

/* There is no room: those who do not answer give way, and nobody who does. */
static void the_absent_give_way_first(void **state)
{
    begin(64);
    many_come(FIRST, 10, 100 * MS);
    for (unsigned i = 0; i < 10; i++) {
        clients[i]->stopped = true;
    }
    many_come(FIRST + 1, 54, 100 * MS);
    pass(5 * SECOND);
    assert_int_equal(server.closed, 0);
    many_come(FIRST + 2, 10, SECOND);
    assert_int_equal(sessions(FIRST), 0);
    assert_int_equal(sessions(FIRST + 1), 54);
    assert_int_equal(sessions(FIRST + 2), 10);
    for (unsigned i = 10; i < count; i++) {
        assert_int_equal(clients[i]->closed + clients[i]->undeliverable, 0);
    }
    /* One comes to itself: its session is no more, it learns that and gets another. */
    struct client *c = clients[0];
    c->stopped = false;
    assert_false(says(c, 16, SECOND));
    assert_int_equal(c->undeliverable, 1);
    assert_true(says(c, 16, 5 * SECOND));
    assert_int_equal(c->opened, 2);
    end();
}

static struct slmp_address needed;

static bool is_needed(void *context, struct slmp_peer *p)
{
    return p == slmp_known(server.engine, &needed);
}

/* One for whom a message is on its way, and one from whom the application waits for something,
 * both silent, stay until their own time is over, whoever comes. */
static void who_is_waited_for_stays(void **state)
{
    struct slmp_config c = config(16);
    struct slmp_upcalls up = upcalls(&server);
    up.busy = is_needed;
    begin_with(&c, &up);
    many_come(FIRST, 2, 10 * MS);
    needed = clients[1]->at;
    clients[0]->stopped = clients[1]->stopped = true;
    many_come(FIRST + 1, 10, 2 * SECOND);
    send_to(clients[0]);
    for (unsigned i = 0; i < 160; i++) {
        struct client *new = come(FIRST + 2 + i, 1);
        say(new, 16);
        pass(50 * MS);
        forget(new);
    }
    assert_true(server.closed > 50);
    assert_true(has_session(clients[0]) && has_session(clients[1]));
    assert_int_equal(server.undeliverable, 0);
    pass(20 * SECOND);
    assert_int_equal(server.undeliverable, 1);
    end();
}

/* A host that has all places shares them with another one, and no further. */
static void places_are_shared(void **state)
{
    begin(64);
    many_come(FIRST, 64, 10 * MS);
    many_come(FIRST + 1, 40, 1100 * MS);
    assert_int_equal(sessions(FIRST), 32);
    assert_int_equal(sessions(FIRST + 1), 32);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(clients[i]->undeliverable, 0);
        assert_int_equal(clients[i]->closed, !has_session(clients[i]));
    }
    end();
}

static struct slmp_whose by_net(void *context, const struct slmp_address *a)
{
    return (struct slmp_whose){.name = a->ip >> 8,
                               .standing = a->ip >> 24 == 10 ? SLMP_OURS : SLMP_OTHERS};
}

/* Those of another user have half of the places, from whatever addresses, and the last of them
 * gives way to one of ours; never the other way round. */
static void others_have_half(void **state)
{
    struct slmp_config c = config(64);
    struct slmp_upcalls up = upcalls(&server);
    up.whose = by_net;
    begin_with(&c, &up);
    for (unsigned i = 0; i < 100; i++) {
        say(come(0x0b000000 + i, 1), 16);
        pass(10 * MS);
    }
    unsigned others = 0;
    for (unsigned i = 0; i < count; i++) {
        others += has_session(clients[i]);
    }
    assert_int_equal(others, 32);
    pass(30 * SECOND);
    many_come(FIRST, 64, 10 * MS);
    assert_int_equal(sessions(FIRST), 64);
    uint64_t refused = slmp_counters(server.engine)->no_room;
    pass(2 * SECOND);
    say(come(0x0c000000, 1), 16);
    pass(SECOND);
    assert_true(slmp_counters(server.engine)->no_room > refused);
    assert_int_equal(sessions(FIRST), 64);
    end();
}

/* All ranks of a large host, with what an engine offers by itself. */
static void a_thousand_of_one_host(void **state)
{
    begin(slmp_defaults().peers_max);
    many_come(FIRST, 1000, 0);
    assert_int_equal(sessions(FIRST), 1000);
    assert_int_equal(server.closed, 0);
    end();
}

/* Without the first packet of a message the others are held. */
static bool is_first(const uint8_t *bytes, size_t length)
{
    static const uint8_t zero[4];
    return length > SLMP_OVERHEAD && bytes[10] == SLMP_KIND_DATA && memcmp(bytes + 6, zero, 4) == 0;
}

/* Those of one host can fill half of the memory, not the share of the next; and what the dead
 * hold is given back to the living. */
static void memory_is_shared_and_given_back(void **state)
{
    enum { LARGE = 15000, ROOM = 64000 };
    struct slmp_config c = config(64);
    struct slmp_upcalls up = upcalls(&server);
    c.held_max = ROOM;
    begin_with(&c, &up);
    many_come(FIRST, 6, 0);
    many_come(FIRST + 1, 3, 0);
    server.lost = is_first;
    for (unsigned i = 0; i < 7; i++) {
        say(clients[i], LARGE);
        pass(i == 5 ? SECOND : 100 * MS);
        if (i == 5) {
            assert_in_range(slmp_held(server.engine), ROOM / 3, ROOM / 2 + 1000);
        }
    }
    size_t both = slmp_held(server.engine);
    assert_true(both > ROOM / 2 + 10000); /* that of the next host has got what it needs */
    for (unsigned i = 0; i < 6; i++) {
        clients[i]->stopped = true;
    }
    pass(2 * SECOND);
    assert_int_equal(server.closed, 0);
    for (unsigned i = 7; i < 9; i++) {
        say(clients[i], LARGE);
    }
    pass(8 * SECOND);
    assert_true(sessions(FIRST) < 6);
    server.lost = NULL;
    pass(20 * SECOND);
    for (unsigned i = 6; i < 9; i++) {
        assert_int_equal(clients[i]->sent, 2);
        assert_int_equal(clients[i]->undeliverable, 0);
    }
    end();
}

/* Others that are forgotten meanwhile do not spoil an exchange that is under way. */
static void a_greeting_survives_others(void **state)
{
    begin(64);
    struct client *slow = come(FIRST, 7);
    say(slow, 16);
    assert_true(client_works(slow)); /* the hello; its answer: */
    assert_true(server_works());
    slow->stopped = true;
    for (unsigned i = 0; i < 300; i++) {
        struct client *c = come(FIRST + 1 + i, 7);
        assert_true(says(c, 16, SECOND));
        forget(c);
        pass(50 * MS);
    }
    uint64_t stale = slmp_counters(server.engine)->stale;
    slow->stopped = false;
    pass(100 * MS);
    assert_int_equal(slow->sent, 1);
    assert_int_equal(slmp_counters(server.engine)->stale, stale);
    end();
}

/* Who is full of peers that live, and wants to reach one more, lets the one go that he has heard
 * longest ago. */
static void our_own_wish_finds_a_place(void **state)
{
    begin(16);
    many_come(FIRST, 16, 10 * MS);
    struct client *c = come(FIRST, 2000);
    assert_int_equal(slmp_contact(server.engine, server.now, &c->at), -ENOBUFS);
    pass(2 * SECOND);
    send_to(c);
    pass(SECOND);
    assert_int_equal(server.sent, 1);
    assert_int_equal(sessions(FIRST), 16);
    assert_int_equal(clients[0]->closed, 1);
    assert_true(says(clients[0], 16, SECOND));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_come_and_die),
        cmocka_unit_test(who_is_stopped_keeps_his_session),
        cmocka_unit_test(who_is_asked_is_not_dead),
        cmocka_unit_test(the_absent_give_way_first),
        cmocka_unit_test(who_is_waited_for_stays),
        cmocka_unit_test(places_are_shared),
        cmocka_unit_test(others_have_half),
        cmocka_unit_test(a_thousand_of_one_host),
        cmocka_unit_test(memory_is_shared_and_given_back),
        cmocka_unit_test(a_greeting_survives_others),
        cmocka_unit_test(our_own_wish_finds_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
