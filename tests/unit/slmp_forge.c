/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of docs/slmp.md, "What a tag does not cover", row by row, by a forger who reads every
 * packet and sends what he likes in place of it: here packets are forged when their receiver waits
 * for them, before the genuine one comes (slmp_attack.c has what he does afterwards).
 */
enum { KEPT = 320, SEEN = 1024, KIND = 10 };

#include "slmp_seen.h"

#include "fabric/slmp/mac.h"
#include "fabric/slmp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

static const struct net_faults clean = {.delay = 100 * US};
static struct slmp_key the_key = {.length = 32};

/* The forger: of packets of `kind` from node `from` he keeps the first and loses all. */
static struct {
    unsigned kind, from, count;
    struct seen_packet first, last;
} held;

static bool hold(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    bool is = from == held.from && length > KIND && length <= KEPT && bytes[KIND] == held.kind;
    if (is) {
        held.last = (struct seen_packet){.from = from, .length = length};
        memcpy(held.last.bytes, bytes, length);
        held.first = held.count++ == 0 ? held.last : held.first;
    }
    return is;
}

static void hold_kind(struct net *n, unsigned kind, unsigned from)
{
    held.kind = kind;
    held.from = from;
    held.count = 0;
    net_watch(n, hold, NULL);
}

static void let_go(void)
{
    held.kind = 0;
}

static struct slmp_config member(unsigned index)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.window = 64;
    c.key = &the_key;
    c.self = net_address(index);
    return c;
}

static struct net *two_members(struct net_node *node[2])
{
    struct net *n = net_open(33, &clean);
    for (unsigned i = 0; i < 2; i++) {
        struct slmp_config c = member(i);
        node[i] = net_add(n, &c);
    }
    return n;
}

static void restart(struct net_node *node)
{
    struct slmp_config c = member(node->index);
    net_kill(node);
    net_again(node, &c);
}

static void send_one(struct net_node *a, struct net_node *b)
{
    assert_int_equal(net_send(a, b, 0, 100, SLMP_RELIABLE, 0), 0);
}

static void wait_ms(struct net *n, int64_t ms)
{
    net_run(n, net_now(n) + ms * MS);
}

static void leave(struct net_node *a, const struct net_node *b)
{
    struct slmp_address at = net_address(b->index);
    struct slmp_peer *p = slmp_known(a->engine, &at);
    assert_non_null(p);
    slmp_leave(a->engine, p);
}

static void inject(struct net *n, const struct seen_packet *p)
{
    net_inject(n, p->from, 1 - p->from, p->bytes, p->length);
}

/* What packets of a forger may not change. */
struct tally {
    uint64_t received, opened, closed, undeliverable;
};

static struct tally count(struct net_node *node[2])
{
    return (struct tally){node[0]->received + node[1]->received, node[0]->opened + node[1]->opened,
                          node[0]->closed + node[1]->closed,
                          node[0]->undeliverable + node[1]->undeliverable};
}

static void assert_same(const struct tally *a, const struct tally *b)
{
    assert_int_equal(a->received, b->received);
    assert_int_equal(a->opened, b->opened);
    assert_int_equal(a->closed, b->closed);
    assert_int_equal(a->undeliverable, b->undeliverable);
}

/* ---- "Every tag covers all bytes of its packet from the first" ---- */

/* Brings two members so far that node `held.from` has sent a packet of the kind, which was lost. */
static struct net *up_to(unsigned kind, struct net_node *node[2])
{
    struct net *n = two_members(node);
    bool by_second = kind == SLMP_KIND_WELCOME || kind == SLMP_KIND_OPENED ||
                     kind == SLMP_KIND_ACK || kind == SLMP_KIND_RESET;
    bool in_session = kind == SLMP_KIND_LEAVE || kind == SLMP_KIND_RESET;
    if (in_session) {
        send_one(node[0], node[1]);
        assert_true(net_settle(n, node[1], 1, SECOND));
        wait_ms(n, 100);
    }
    if (kind == SLMP_KIND_RESET) {
        restart(node[1]);
    }
    hold_kind(n, kind, by_second);
    if (kind == SLMP_KIND_LEAVE) {
        leave(node[0], node[1]);
    } else {
        send_one(node[0], node[1]);
    }
    for (int i = 0; i < 100 && held.count == 0; i++) {
        wait_ms(n, 1);
    }
    assert_true(held.count > 0);
    return n;
}

/* Without the bit that says that there is a tag there is a checksum, which is wrong; with another
 * kind a packet of a session that is not there, with another number one that has come. */
static uint64_t dropped(const struct slmp_counters *k)
{
    return k->forged + k->malformed + k->refused + k->stale + k->corrupt + k->replayed;
}

/* Each bit turned in turn, while the receiver waits for just this packet: none is taken, and the
 * genuine one, which comes last, is. */
static void a_packet_with_a_bit_turned_is_nobodys(void **state)
{
    static const unsigned kinds[] = {SLMP_KIND_HELLO,  SLMP_KIND_WELCOME, SLMP_KIND_OPEN,
                                     SLMP_KIND_OPENED, SLMP_KIND_DATA,    SLMP_KIND_ACK,
                                     SLMP_KIND_RESET,  SLMP_KIND_LEAVE};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct net_node *node[2];
        struct net *n = up_to(kinds[i], node);
        struct seen_packet p = held.last;
        struct tally before = count(node), after;
        const struct slmp_counters *k = slmp_counters(node[1 - p.from]->engine);
        uint64_t before_them = dropped(k), messages = k->messages_out, taken = k->version;
        for (size_t bit = 0; bit < 8 * p.length; bit++) {
            p.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            inject(n, &p);
            p.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        net_run(n, net_now(n) + 150 * US);
        after = count(node);
        assert_same(&before, &after);
        assert_int_equal(dropped(k) - before_them, 8 * p.length);
        assert_int_equal(k->version, taken);
        assert_int_equal(k->messages_out, messages); /* a changed ACK acknowledges nothing */
        let_go();
        p = held.last;
        inject(n, &p);
        wait_ms(n, 200);
        after = count(node);
        bool ends = kinds[i] == SLMP_KIND_RESET || kinds[i] == SLMP_KIND_LEAVE;
        assert_true(ends ? after.closed > before.closed : after.closed == before.closed);
        assert_int_equal(node[1]->received, 1); /* of a RESET, what came before it */
        net_close(n);
    }
}

/* ---- HELLO, WELCOME, OPEN, OPENED ---- */

/* The answers to one exchange are shown to its initiator in the next one, with the same peer, at
 * the moment when it waits for such a one: what it has drawn is another number. */
static void an_old_answer_is_none_to_the_next_exchange(void **state)
{
    static const unsigned kinds[] = {SLMP_KIND_WELCOME, SLMP_KIND_OPENED};
    for (size_t i = 0; i < 2; i++) {
        struct net_node *node[2];
        struct net *n = up_to(kinds[i], node);
        struct seen_packet old = held.first;
        let_go();
        wait_ms(n, 3000); /* it asks again, and there is a session */
        assert_int_equal(node[0]->opened, 1);
        restart(node[0]);
        hold_kind(n, kinds[i], 1);
        send_one(node[0], node[1]);
        for (int k = 0; k < 100 && held.count == 0; k++) {
            wait_ms(n, 1);
        }
        assert_true(held.count > 0);
        struct tally before = count(node), after;
        uint64_t stale = slmp_counters(node[0]->engine)->stale;
        inject(n, &old);
        net_run(n, net_now(n) + 150 * US);
        after = count(node);
        assert_same(&before, &after);
        assert_int_equal(slmp_counters(node[0]->engine)->stale, stale + 1);
        let_go();
        net_close(n);
    }
}

/* A copy of an OPEN: the session that it opened lives, and its OPENED is given again, word by
 * word; the session is over, and it opens none. */
static void an_open_opens_once(void **state)
{
    struct net_node *node[2];
    struct net *n = up_to(SLMP_KIND_OPEN, node);
    struct seen_packet copy = held.first;
    let_go();
    hold_kind(n, SLMP_KIND_OPENED, 1);
    inject(n, &copy);
    wait_ms(n, 5);
    assert_int_equal(node[1]->opened, 1);
    assert_true(held.count > 0);
    struct seen_packet opened = held.first;
    unsigned given = held.count;
    inject(n, &copy);
    net_run(n, net_now(n) + 150 * US);
    assert_true(held.count > given);
    assert_int_equal(held.last.length, opened.length);
    assert_memory_equal(held.last.bytes, opened.bytes, opened.length);
    assert_int_equal(node[1]->opened, 1);
    let_go();
    assert_true(net_settle(n, node[1], 1, 5 * SECOND));
    leave(node[0], node[1]);
    wait_ms(n, 100);
    assert_int_equal(node[1]->closed, 1);
    net_kill(node[0]); /* and says nothing of its own */
    hold_kind(n, SLMP_KIND_WELCOME, 1);
    inject(n, &copy);
    wait_ms(n, 100);
    assert_int_equal(held.count, 1); /* the question whether it is there */
    assert_int_equal(node[1]->opened, 1);
    let_go();
    net_close(n);
}

/* ---- RESET ---- */

/* A RESET as who has the key would make it: that answers the packet `question`. */
static struct seen_packet reset_for(struct slmp_mac *g, const struct seen_packet *model,
                                    const struct seen_packet *question)
{
    enum { TOKEN = 18, RESET = 30, TAG_OF_DATA = 24 };
    struct seen_packet r = *model;
    size_t tag = question->length - 100 - TAG_OF_DATA; /* in front of 100 bytes of payload */
    memcpy(r.bytes + TOKEN, question->bytes + TOKEN, 4);
    memcpy(r.bytes + RESET, question->bytes + tag, 8);
    memcpy(r.bytes + RESET + 24, question->bytes + tag + 8, 8);
    assert_true(slmp_mac_greeting(g, r.bytes, r.length - SLMP_TAG, r.bytes + r.length - SLMP_TAG));
    return r;
}

/* The packets of a session that node 0 has sent, in their order. */
static unsigned of_session(const struct seen_packet *packet[SEEN])
{
    unsigned found = 0;
    for (unsigned i = 0; i < seen.count; i++) {
        unsigned kind = seen.packet[i].bytes[KIND];
        bool numbered = kind == SLMP_KIND_DATA || kind == SLMP_KIND_ACK;
        if (seen.packet[i].from == 0 && numbered) {
            packet[found++] = &seen.packet[i];
        }
    }
    return found;
}

/* It is believed for the last 256 packets of the session, and for none before. */
static void a_reset_answers_one_of_the_last_packets(void **state)
{
    enum { LAST = 256 };
    struct slmp_mac *g = slmp_mac_open(&the_key, &(struct reason){""});
    struct net_node *node[2];
    struct net *n = up_to(SLMP_KIND_RESET, node);
    struct seen_packet model = held.first;
    assert_non_null(g);
    net_close(n);
    for (unsigned too_old = 0; too_old < 2; too_old++) {
        n = two_members(node);
        watch(n);
        for (unsigned i = 0; i < LAST + 40; i++) { /* each leaves as a packet of its own */
            send_one(node[0], node[1]);
            assert_true(net_settle(n, node[1], i + 1, SECOND));
        }
        wait_ms(n, 100);
        assert_true(seen.count < SEEN);
        const struct seen_packet *packet[SEEN];
        const struct seen_packet *question = packet[of_session(packet) - LAST - too_old];
        assert_int_equal(question->bytes[KIND], SLMP_KIND_DATA);
        struct seen_packet r = reset_for(g, &model, question);
        r.from = 1;
        inject(n, &r);
        wait_ms(n, 1);
        assert_int_equal(node[0]->closed, too_old ? 0 : 1);
        net_close(n);
    }
    slmp_mac_close(g);
}

int main(void)
{
    for (unsigned i = 0; i < the_key.length; i++) {
        the_key.bytes[i] = (uint8_t)(7 * i + 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_with_a_bit_turned_is_nobodys),
        cmocka_unit_test(an_old_answer_is_none_to_the_next_exchange),
        cmocka_unit_test(an_open_opens_once),
        cmocka_unit_test(a_reset_answers_one_of_the_last_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
