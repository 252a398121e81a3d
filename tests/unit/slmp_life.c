/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How SLMP sessions begin and end: first exchange, both at once, silence, restart, packets
 * of sessions that are no more, strangers; and when things happen: timeouts, delayed
 * acknowledgements, windows, a bottleneck.
 */
#include "slmp_net.h"

#include "fabric/slmp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

static const struct net_faults clean = {.delay = 100 * US};
static const struct net_faults cut_off = {.loss = 10000, .delay = 100 * US};

/* The packets that a test looks at: when each left, and its bytes. */
enum { SEEN = 4096, KEPT = 512 };
struct seen {
    struct net *net;
    unsigned count;
    struct {
        int64_t at;
        unsigned from;
        size_t length;
        uint8_t bytes[KEPT];
    } packet[SEEN];
};
static struct seen seen;

static bool see(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    if (seen.count < SEEN) {
        seen.packet[seen.count].at = net_now(seen.net);
        seen.packet[seen.count].from = from;
        seen.packet[seen.count].length = length;
        memcpy(seen.packet[seen.count].bytes, bytes, length < KEPT ? length : KEPT);
    }
    seen.count++;
    return false;
}

static void watch(struct net *n)
{
    memset(&seen, 0, sizeof(seen));
    seen.net = n;
    net_watch(n, see, NULL);
}

static unsigned kind_of(unsigned i)
{
    return seen.packet[i].length > SLMP_HEADER ? seen.packet[i].bytes[10] : SLMP_KIND_PLAIN;
}

static void send_one(struct net_node *a, struct net_node *b, size_t length)
{
    assert_int_equal(net_send(a, b, 0, length, SLMP_RELIABLE, 0), 0);
}

static void the_first_exchange(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(1, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    watch(n);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    static const unsigned kinds[] = {SLMP_KIND_PLAIN,  SLMP_KIND_WELCOME, SLMP_KIND_OPEN,
                                     SLMP_KIND_OPENED, SLMP_KIND_DATA,    SLMP_KIND_ACK};
    assert_int_equal(seen.count, 6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(kind_of(i), kinds[i]);
        assert_int_equal(seen.packet[i].from, i % 2);
    }
    assert_int_equal(seen.packet[0].bytes[0] << 8, SLMP_SYN | SLMP_VER);
    assert_int_equal(seen.packet[4].length, SLMP_OVERHEAD + 100);
    /* The acknowledgement waited for data to ride on, and no longer. */
    assert_int_equal(seen.packet[5].at - seen.packet[4].at, 100 * US + c.ack_delay);
    assert_int_equal(a->sent, 1);
    assert_int_equal(a->opened, 1);
    assert_true(b->last_peer == a->incarnation && a->last_peer == b->incarnation);
    net_close(n);
}

static void both_open_at_once(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net_faults bad = {.loss = 2000, .late = 3000, .later = 300 * MS, .delay = 100 * US};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct net *n = net_open(seed, seed == 1 ? &clean : &bad);
        struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
        for (unsigned i = 0; i < 10; i++) {
            send_one(a, b, 100 + i);
            send_one(b, a, 200 + i);
        }
        assert_true(net_settle(n, b, 10, 100 * SECOND));
        assert_true(net_settle(n, a, 10, 100 * SECOND));
        net_run(n, net_now(n) + SECOND);
        assert_int_equal(a->received + b->received, 20);
        assert_int_equal(a->opened, 1);
        assert_int_equal(b->opened, 1);
        net_close(n);
    }
}

static void nobody_is_there(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(1, &cut_off);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    int64_t begun = net_now(n);
    send_one(a, b, 100);
    send_one(a, b, 100);
    net_run(n, begun + c.silence - 1);
    assert_int_equal(a->undeliverable, 0);
    net_run(n, begun + 2 * c.silence);
    assert_int_equal(a->undeliverable, 2);
    assert_int_equal(slmp_deadline(a->engine), SLMP_NEVER);
    net_close(n);
}

/* Nobody has answered for so long that the next hello is far away; then somebody is there, and is
 * wanted again, by a message or without: it is asked within config.rto_initial. */
static void who_comes_late_is_asked_soon(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct slmp_address to = net_address(1);
    for (unsigned by_message = 0; by_message < 2; by_message++) {
        struct net *n = net_open(1, &cut_off);
        struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
        int64_t begun = net_now(n);
        assert_int_equal(slmp_contact(a->engine, begun, &to), 0);
        net_run(n, begun + 7 * c.rto_initial + MS); /* the last hello left a moment ago */
        net_faults(n, &clean);
        assert_true(slmp_deadline(a->engine) > net_now(n) + 2 * c.rto_initial);
        if (by_message != 0) {
            send_one(a, b, 100);
        } else {
            assert_int_equal(slmp_contact(a->engine, net_now(n), &to), 0);
        }
        net_run(n, net_now(n) + c.rto_initial + MS);
        assert_int_equal(a->opened, 1);
        assert_int_equal(b->opened, 1);
        net_close(n);
    }
}

/* The peer dies under way; it comes back with what it knew, or as another. */
static void silence_then(bool restart)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(2, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 5000);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    net_faults(n, &cut_off);
    int64_t begun = net_now(n);
    send_one(a, b, 1000000);
    net_run(n, begun + c.silence / 2);
    assert_int_equal(a->undeliverable, 0);
    net_run(n, begun + 2 * c.silence);
    assert_int_equal(a->undeliverable, 1);
    assert_int_equal(a->closed, 1);
    if (restart) {
        net_kill(b);
        net_again(b, &c);
    }
    net_faults(n, &clean);
    send_one(a, b, 300);
    assert_true(net_settle(n, b, 2, 10 * SECOND));
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(a->sent, 2);
    assert_int_equal(a->opened, 2);
    assert_int_equal(a->last_peer, b->incarnation);
    net_close(n);
}

static void silence_means_undeliverable(void **state)
{
    silence_then(false);
    silence_then(true);
}

/* A process is gone and another is at its address: the old one's peer learns it with its
 * next packet, and what was under way is undeliverable. */
static void a_restarted_peer_is_another(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(4, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    uint64_t first = a->last_peer;
    net_kill(b);
    net_again(b, &c);
    send_one(a, b, 100);
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(a->undeliverable, 1);
    assert_int_equal(a->closed, 1);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 2, SECOND));
    assert_int_not_equal(a->last_peer, first);
    /* The other way round: the restarted one speaks first. */
    net_kill(a);
    net_again(a, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 3, SECOND));
    assert_int_equal(b->closed, 2); /* one when it was killed */
    assert_int_equal(b->last_peer, a->incarnation);
    net_close(n);
}

/* All that was ever sent comes once more, to who knew it and to who has restarted. */
static void old_packets_do_nothing(void **state)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    struct net *n = net_open(5, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    watch(n);
    for (unsigned i = 0; i < 20; i++) {
        send_one(a, b, 200);
    }
    assert_true(net_settle(n, b, 20, SECOND));
    net_run(n, net_now(n) + SECOND);
    unsigned count = seen.count;
    struct seen *old = malloc(sizeof(*old));
    assert_non_null(old);
    *old = seen;
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < count; i++) {
            net_inject(n, old->packet[i].from, 1 - old->packet[i].from, old->packet[i].bytes,
                       old->packet[i].length);
        }
        net_run(n, net_now(n) + SECOND);
        assert_int_equal(b->received, 20);
        assert_int_equal(a->sent, 20);
        assert_int_equal(a->opened, 1);
        assert_int_equal(a->closed, turn == 2); /* the restarted one knows nothing of it */
        assert_int_equal(b->began, 20);
        if (turn == 1) {
            net_kill(b);
            net_again(b, &c);
        }
    }
    assert_true(slmp_counters(b->engine)->stale >= 20);
    free(old);
    net_close(n);
}

static void what_no_peer_would_send(void **state)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    struct net *n = net_open(6, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    watch(n);
    send_one(a, b, 400);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    const struct slmp_counters *k = slmp_counters(b->engine);
    uint8_t bytes[KEPT];
    for (unsigned i = 0; i < 6; i++) { /* every packet, cut at every length */
        for (size_t length = 0; length < seen.packet[i].length; length++) {
            net_inject(n, 0, 1, seen.packet[i].bytes, length);
        }
    }
    net_run(n, net_now(n) + SECOND);
    assert_true(k->malformed > 50 && k->corrupt > 300);
    uint64_t corrupt = k->corrupt, refused = k->refused;
    memcpy(bytes, seen.packet[4].bytes, seen.packet[4].length);
    bytes[SLMP_OVERHEAD + 7] ^= 1;
    net_inject(n, 0, 1, bytes, seen.packet[4].length);
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(k->corrupt, corrupt + 1);
    /* An OPEN of a version that nobody speaks, with its checksum right. */
    memcpy(bytes, seen.packet[2].bytes, seen.packet[2].length);
    bytes[11] = SLMP_VERSION + 1;
    slmp_wire_seal(bytes, seen.packet[2].length, NULL, 0);
    net_inject(n, 0, 1, bytes, seen.packet[2].length);
    /* Plain data where sessions are wanted. */
    static const uint8_t plain[] = {0xc0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 'x'};
    net_inject(n, 0, 1, plain, sizeof(plain));
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(k->version, 1);
    assert_int_equal(k->refused, refused + 1);
    assert_int_equal(b->received, 1);
    assert_int_equal(b->closed + b->torn, 0);
    send_one(a, b, 400);
    assert_true(net_settle(n, b, 2, SECOND)); /* and the session lives */
    net_close(n);
}

/* Strangers greet and send; nothing is kept of them beyond peers_max, and who is known
 * stays known. */
static void strangers_take_no_room(void **state)
{
    struct slmp_config c = slmp_defaults();
    c.peers_max = 4;
    struct net *n = net_open(7, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    for (unsigned i = 0; i < 20000; i++) {
        struct slmp_address from = {0x0a000000 + i, 7};
        uint8_t plain[12] = {0x40, 0, 0, 0, 0, 1, 0, 0, 0, (uint8_t)(i % 2), 'x', 'y'};
        static const uint8_t hello[10] = {0x50};
        struct slmp_packet p;
        slmp_input(b->engine, net_now(n), &from, i % 3 == 0 ? hello : plain,
                   i % 3 == 0 ? sizeof(hello) : sizeof(plain));
        while (slmp_output(b->engine, net_now(n), &p)) {
        }
    }
    assert_true(slmp_counters(b->engine)->no_room > 0);
    send_one(a, b, 100);
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(a->sent, 2);
    assert_int_equal(b->closed, 0);
    net_close(n);
}

/* ---- Times ---- */

/* RFC 6298: SRTT = R, RTTVAR = R / 2, RTO = SRTT + 4 RTTVAR; doubled at each timeout. Before the
 * first one the packet is sent again, after two round trips. */
static void timeouts_double(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net_faults slow = {.delay = 10 * MS};
    struct net *n = net_open(8, &slow);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    struct slmp_address to = net_address(1);
    int64_t rto = slmp_peer_info(a->engine, &to).rto;
    int64_t rtt = 20 * MS + c.ack_delay;
    assert_int_equal(slmp_peer_info(a->engine, &to).rtt, rtt);
    assert_int_equal(rto, 3 * rtt + c.ack_delay);
    net_faults(n, &cut_off);
    watch(n);
    send_one(a, b, 100);
    net_run(n, net_now(n) + 3 * SECOND);
    assert_true(seen.count >= 6);
    assert_int_equal(seen.packet[1].at - seen.packet[0].at, 2 * rtt + c.ack_delay);
    for (unsigned i = 2; i < 6; i++) {
        assert_int_equal(seen.packet[i].at - seen.packet[i - 1].at, rto << (i - 2));
    }
    net_close(n);
}

static bool lose_one(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    unsigned *data = context;
    return length > 1000 && ++*data == 5;
}

/* One packet in the middle is lost: it is sent again without a timeout. */
static void a_gap_is_filled_at_once(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net_faults slow = {.delay = 10 * MS};
    struct net *n = net_open(9, &slow);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    unsigned data = 0;
    net_watch(n, lose_one, &data);
    send_one(a, b, 15000);
    assert_true(net_settle(n, b, 1, 90 * MS)); /* two for the session, data, and again */
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(slmp_counters(a->engine)->timeouts, 0);
    assert_int_equal(slmp_counters(a->engine)->retransmitted, 1);
    net_close(n);
}

/* Behind the lost packet only one more has left: no three can tell of it, but time does, long
 * before a timeout. */
static void a_gap_near_the_end_is_filled_soon(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(9, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    unsigned data = 3; /* the first of three packets passes, the second does not */
    net_watch(n, lose_one, &data);
    int64_t begun = net_now(n);
    send_one(a, b, 4000);
    assert_true(net_settle(n, b, 2, SECOND));
    assert_int_equal(slmp_counters(a->engine)->retransmitted, 1);
    assert_in_range(net_now(n) - begun, 3 * clean.delay, 4 * clean.delay);
    net_close(n);
}

/* Bytes per second of one long message in the middle of its life. */
static double rate(const struct net_faults *f, unsigned senders)
{
    enum { LENGTH = 3000000, COUNT = 4 };
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(10, f);
    struct net_node *b = net_add(n, &c);
    for (unsigned i = 0; i < senders; i++) {
        struct net_node *a = net_add(n, &c);
        for (unsigned k = 0; k < COUNT; k++) {
            send_one(a, b, LENGTH);
        }
    }
    int64_t begun = net_now(n);
    assert_true(net_settle(n, b, COUNT * senders, 1000 * SECOND));
    double r = (double)COUNT * LENGTH * senders / ((double)(net_now(n) - begun) / 1e9);
    net_close(n);
    return r;
}

/* A gigabit and a round trip of 1 ms: 120 MB/s less headers. */
static void random_loss_is_not_congestion(void **state)
{
    struct net_faults f = {.delay = 500 * US, .per_packet = 12 * US, .queue = 200};
    double without = rate(&f, 1);
    assert_true(without > 0.75 * 1472 / 12e-6);
    f.loss = 100;
    double with = rate(&f, 1);
    print_message("no loss %.1f MB/s, 1 %% lost %.1f MB/s\n", without / 1e6, with / 1e6);
    assert_true(with >= without / 2);
}

/* The queue before a slow cable is a quarter of the window: it is used and not flooded. */
static void a_short_queue_is_not_flooded(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net_faults f = {.delay = 500 * US, .per_packet = 12 * US, .queue = 64};
    struct net *n = net_open(11, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    for (unsigned k = 0; k < 5; k++) {
        send_one(a, b, 3000000);
    }
    int64_t begun = net_now(n);
    assert_true(net_settle(n, b, 5, 100 * SECOND));
    double r = 15e6 / ((double)(net_now(n) - begun) / 1e9);
    const struct slmp_counters *k = slmp_counters(a->engine);
    print_message("%.1f MB/s, %zu of %zu packets sent again\n", r / 1e6, (size_t)k->retransmitted,
                  (size_t)k->packets_out);
    assert_true(r > 0.6 * 1472 / 12e-6);
    assert_true(k->retransmitted < k->packets_out / 10);
    net_close(n);
}

static void configurations_that_cannot_be(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct slmp_upcalls none = {0};
    struct slmp_config bad[] = {c, c, c, c, c};
    bad[0].window = 100;
    bad[1].packet_size = SLMP_PACKET_MIN - 1;
    bad[2].plain_window = c.window + 1;
    bad[3].peers_max = 0;
    bad[4].silence = 0;
    for (unsigned i = 0; i < 5; i++) {
        assert_null(slmp_open(&bad[i], &none, &(struct reason){""}));
    }
    struct slmp *e = slmp_open(&c, &none, &(struct reason){""});
    struct slmp_message m = {.channel = SLMP_CHANNELS};
    assert_int_equal(slmp_send(e, 0, &m), -22);
    m = (struct slmp_message){.body_length = SLMP_LENGTH_MAX, .head_length = 1};
    assert_int_equal(slmp_send(e, 0, &m), -90);
    slmp_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_exchange),
        cmocka_unit_test(both_open_at_once),
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(who_comes_late_is_asked_soon),
        cmocka_unit_test(silence_means_undeliverable),
        cmocka_unit_test(a_restarted_peer_is_another),
        cmocka_unit_test(old_packets_do_nothing),
        cmocka_unit_test(what_no_peer_would_send),
        cmocka_unit_test(strangers_take_no_room),
        cmocka_unit_test(timeouts_double),
        cmocka_unit_test(a_gap_is_filled_at_once),
        cmocka_unit_test(a_gap_near_the_end_is_filled_soon),
        cmocka_unit_test(random_loss_is_not_congestion),
        cmocka_unit_test(a_short_queue_is_not_flooded),
        cmocka_unit_test(configurations_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
