/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream while somebody sends again what he has seen of it, 20,000 packets a second, in virtual
 * time and on a network that loses one packet of a hundred. With a key the number of a packet says
 * that it came before, but for those that the network lost; without one, its place in the channel
 * and its stamp do. The counts of the same stream without all that say what it loses by it.
 */
enum { SEEN = 8192, KEPT = 256 };
#include "slmp_seen.h"

#include "fabric/slmp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

enum { MESSAGES = 3000, MANY = 60000, BEFORE = 1000, LENGTH = 64, RESTARTS = 2 };
#define STEP (10 * US)
#define EVERY (50 * US)
#define OLD (5 * SECOND) /* what is sent again is so old at first */

static const struct net_faults lossy = {.loss = 100, .delay = 20 * US};
static struct slmp_key the_key = {.length = 32};

static uint64_t left[2]; /* packets, by node */

static bool count_and_see(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    left[from]++;
    return see(context, from, bytes, length);
}

struct stream {
    struct net *net;
    struct net_node *node[2];
    struct slmp_config config;
    int64_t clock, next; /* `next`: when a packet is sent again; 0: none is */
    uint64_t replayed;
};

static void begin(struct stream *s, const struct slmp_key *key)
{
    memset(s, 0, sizeof(*s));
    s->net = net_open(31, &lossy);
    s->config = slmp_defaults();
    s->config.mode = SLMP_OWN;
    s->config.key = key;
    s->config.ack_delay = 30 * US; /* as the fabric's */
    for (unsigned i = 0; i < 2; i++) {
        s->config.self = net_address(i);
        s->node[i] = net_add(s->net, &s->config);
    }
    seen.count = 0;
    net_watch(s->net, count_and_see, NULL);
    s->clock = net_now(s->net);
}

static void send_again(struct stream *s)
{
    unsigned k = (unsigned)(net_random(s->net) % seen.count);
    net_inject(s->net, seen.packet[k].from, 1 - seen.packet[k].from, seen.packet[k].bytes,
               seen.packet[k].length);
    s->replayed++;
    s->next += EVERY;
}

static void let_pass(struct stream *s, int64_t time)
{
    for (int64_t end = s->clock + time; s->clock < end;) {
        net_run(s->net, s->clock += STEP);
        while (s->next != 0 && s->next <= s->clock) {
            send_again(s);
        }
    }
}

/* Sends messages, so many under way at a time. */
static void talk(struct stream *s, unsigned messages, unsigned under_way)
{
    uint64_t before = s->node[0]->sent, given = 0;
    int64_t limit = s->clock + 100 * SECOND;
    while (s->node[0]->sent - before < messages) {
        while (given < messages && given - (s->node[0]->sent - before) < under_way) {
            assert_int_equal(net_send(s->node[0], s->node[1], 0, LENGTH, SLMP_RELIABLE, 0), 0);
            given++;
        }
        let_pass(s, STEP);
        assert_true(s->clock < limit);
    }
}

struct tally {
    int64_t took, rtt;
    uint64_t from_sender, from_receiver, retransmitted, timeouts, replayed;
};

/* The same stream alone or replayed; some of it has passed when that begins. */
static struct tally measure(const struct slmp_key *key, unsigned under_way, bool replay)
{
    unsigned messages = under_way > 1 ? MANY : MESSAGES;
    struct stream s;
    begin(&s, key);
    talk(&s, BEFORE, 1);
    let_pass(&s, OLD);
    const struct slmp_counters *c = slmp_counters(s.node[0]->engine);
    struct tally t = {
        .took = -s.clock, .retransmitted = -c->retransmitted, .timeouts = -c->timeouts};
    left[0] = left[1] = 0;
    s.next = replay ? s.clock : 0;
    talk(&s, messages, under_way);
    struct slmp_address to = net_address(1);
    t.took += s.clock;
    t.rtt = slmp_peer_info(s.node[0]->engine, &to).rtt;
    t.retransmitted += c->retransmitted;
    t.timeouts += c->timeouts;
    t.from_sender = left[0];
    t.from_receiver = left[1];
    t.replayed = s.replayed;
    assert_int_equal(s.node[1]->received, BEFORE + messages);
    assert_int_equal(s.node[0]->closed + s.node[1]->closed, 0);
    net_close(s.net);
    return t;
}

static void compare(const struct slmp_key *key, unsigned under_way)
{
    struct tally alone = measure(key, under_way, false), t = measure(key, under_way, true);
    uint64_t by_and_by = (uint64_t)(t.took / MS) + 1; /* answers to what is old, of a channel */
    assert_true(t.replayed >= (uint64_t)(t.took / EVERY));
    assert_true(t.took <= alone.took + alone.took / 2);
    assert_true(t.rtt <= 2 * alone.rtt);
    assert_true(t.retransmitted <= 2 * alone.retransmitted);
    assert_true(t.timeouts <= alone.timeouts + 10);
    assert_true(t.from_sender <= alone.from_sender + alone.from_sender / 10 + by_and_by);
    assert_true(t.from_receiver <= alone.from_receiver + alone.from_receiver / 10 + by_and_by);
}

static void one_at_a_time(void **state)
{
    compare(NULL, 1);
}

static void many_at_a_time(void **state)
{
    compare(NULL, 100);
}

static void one_at_a_time_with_a_key(void **state)
{
    compare(&the_key, 1);
}

static void many_at_a_time_with_a_key(void **state)
{
    compare(&the_key, 100);
}

/* Packets of sessions that are over, the greetings of these as well: who has begun again answers
 * few of them, and talks as before. */
static void old_sessions(const struct slmp_key *key)
{
    struct stream s;
    begin(&s, key);
    for (unsigned i = 0; i < RESTARTS; i++) {
        talk(&s, 10, 1);
        net_kill(s.node[1]);
        s.config.self = net_address(1);
        net_again(s.node[1], &s.config);
        assert_int_equal(net_send(s.node[0], s.node[1], 0, LENGTH, SLMP_RELIABLE, 0), 0);
        let_pass(&s, SECOND); /* it ends as undeliverable */
    }
    talk(&s, 10, 1);
    let_pass(&s, OLD);
    uint64_t opened = s.node[0]->opened, closed = s.node[0]->closed;
    left[0] = left[1] = 0;
    s.next = s.clock;
    let_pass(&s, SECOND);
    assert_true(s.replayed >= 19000);
    /* Each session has a token at either side and a greeting, and each of these 16 answers at
     * once and 100 in a second. */
    assert_true(left[0] + left[1] < (RESTARTS + 1) * 3 * (16 + 100));
    talk(&s, 1000, 1);
    if (key != NULL) { /* without, copies of OPEN may be as good as the first */
        assert_int_equal(s.node[0]->opened, opened);
        assert_int_equal(s.node[0]->closed, closed);
    }
    net_close(s.net);
}

static void sessions_that_are_over(void **state)
{
    old_sessions(NULL);
}

static void sessions_that_are_over_with_a_key(void **state)
{
    old_sessions(&the_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(many_at_a_time),
        cmocka_unit_test(one_at_a_time_with_a_key),
        cmocka_unit_test(many_at_a_time_with_a_key),
        cmocka_unit_test(sessions_that_are_over),
        cmocka_unit_test(sessions_that_are_over_with_a_key),
    };
    for (unsigned i = 0; i < 32; i++) {
        the_key.bytes[i] = (uint8_t)i;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
