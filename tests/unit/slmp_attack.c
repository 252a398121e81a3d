/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP with a job key, and somebody on the network who has none, but reads every packet and can
 * send any, from any member's address to any other's: what members send and what they answer
 * him, again, elsewhere, as somebody else. No session may begin or end by it, and no message may
 * come twice. The members know their addresses, as the fabric's do, but where said otherwise.
 */
enum { SEEN = 1500, KEPT = 320 };
#include "slmp_seen.h"

#include "fabric/slmp/mac.h"
#include "fabric/slmp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

static const struct net_faults clean = {.delay = 100 * US};
static struct slmp_key the_key = {.length = 32};

enum { MEMBERS = 3, TOKEN = 18, NUMBER_OF_DATA = 44 };

static const struct seen_packet *last_of(unsigned from, unsigned kind)
{
    for (unsigned i = seen.count; i > 0; i--) {
        const struct seen_packet *p = &seen.packet[i - 1];
        if (p->from == from && p->length > 10 && p->bytes[10] == kind) {
            return p;
        }
    }
    return NULL;
}

static struct net *network(struct net_node **node, unsigned members, bool addresses_known)
{
    struct net *n = net_open(21, &clean);
    for (unsigned i = 0; i < members; i++) {
        struct slmp_config c = slmp_defaults();
        c.mode = SLMP_OWN;
        c.window = 64;
        c.key = &the_key;
        c.self = addresses_known ? net_address(i) : c.self;
        node[i] = net_add(n, &c);
    }
    watch(n);
    return n;
}

static void restart(struct net_node *node)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.window = 64;
    c.key = &the_key;
    c.self = net_address(node->index);
    net_kill(node);
    net_again(node, &c);
}

static void send_one(struct net_node *a, struct net_node *b)
{
    assert_int_equal(net_send(a, b, 0, 100, SLMP_RELIABLE, 0), 0);
}

static void wait_a_while(struct net *n)
{
    net_run(n, net_now(n) + SECOND);
}

static void all_talk(struct net *n, struct net_node **node)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        for (unsigned k = 0; k < MEMBERS; k++) {
            if (i != k) {
                send_one(node[i], node[k]);
            }
        }
    }
    wait_a_while(n);
}

struct tally {
    uint64_t received, opened, closed, undeliverable;
};

static struct tally count(struct net_node **node, unsigned members)
{
    struct tally t = {0};
    for (unsigned i = 0; i < members; i++) {
        t.received += node[i]->received;
        t.opened += node[i]->opened;
        t.closed += node[i]->closed;
        t.undeliverable += node[i]->undeliverable;
    }
    return t;
}

static void assert_unchanged(const struct tally *a, const struct tally *b)
{
    assert_int_equal(a->received, b->received);
    assert_int_equal(a->opened, b->opened);
    assert_int_equal(a->closed, b->closed);
    assert_int_equal(a->undeliverable, b->undeliverable);
}

/* Everything that was ever said, and what members answer to that, and so on, goes to everybody
 * as from everybody. One member has begun again before, so that tokens of no session are known. */
static void all_packets_to_all_as_from_all(void **state)
{
    struct net_node *node[MEMBERS];
    struct net *n = network(node, MEMBERS, true);
    all_talk(n, node);
    restart(node[2]);
    all_talk(n, node); /* what goes to the one that began again ends as undeliverable */
    all_talk(n, node);
    struct tally before = count(node, MEMBERS);
    assert_int_equal(before.opened, 6 + 4);
    unsigned known = seen.count;
    for (unsigned i = 0; i < seen.count; i++) {
        struct seen_packet p = seen.packet[i];
        for (unsigned way = 0; way < MEMBERS * MEMBERS; way++) {
            net_inject(n, way / MEMBERS, way % MEMBERS, p.bytes, p.length);
        }
        net_run(n, net_now(n) + 5 * MS);
        struct tally after = count(node, MEMBERS);
        assert_unchanged(&before, &after);
    }
    assert_true(seen.count > known);
    all_talk(n, node);
    assert_int_equal(count(node, MEMBERS).received, before.received + 6);
    net_close(n);
}

/* What A sends to B is shown to C as from A, and what C answers to A as from B. */
static void an_answer_of_somebody_else(void **state)
{
    struct net_node *node[MEMBERS];
    struct net *n = network(node, MEMBERS, true);
    send_one(node[0], node[1]);
    wait_a_while(n);
    struct seen_packet data = *last_of(0, SLMP_KIND_DATA);
    net_inject(n, 0, 2, data.bytes, data.length);
    wait_a_while(n);
    const struct seen_packet *reset = last_of(2, SLMP_KIND_RESET);
    assert_non_null(reset);
    net_inject(n, 1, 0, reset->bytes, reset->length);
    wait_a_while(n);
    assert_int_equal(node[0]->closed, 0);
    send_one(node[0], node[1]);
    assert_true(net_settle(n, node[1], 2, SECOND));
    net_close(n);
}

/* Who asks for all tokens before there is a session has an answer for the one that it will have:
 * equal runs draw equal tokens, so a run before this one tells it here. */
static void an_answer_had_before(void **state)
{
    struct net_node *node[2];
    uint8_t question[KEPT];
    size_t length = 0;
    for (unsigned run = 0; run < 2; run++) {
        struct net *n = network(node, 2, true);
        if (run == 1) {
            memset(question + length - SLMP_TAG_LENGTH, 0x5a, SLMP_TAG_LENGTH);
            net_inject(n, 0, 1, question, length);
            wait_a_while(n);
        }
        send_one(node[0], node[1]);
        wait_a_while(n);
        const struct seen_packet *data = last_of(0, SLMP_KIND_DATA);
        const struct seen_packet *reset = last_of(1, SLMP_KIND_RESET);
        assert_int_equal(node[1]->received, 1);
        if (run == 0) {
            length = data->length;
            memcpy(question, data->bytes, length);
        } else {
            assert_non_null(reset);
            assert_memory_equal(data->bytes + TOKEN, reset->bytes + TOKEN, 4);
            net_inject(n, 1, 0, reset->bytes, reset->length);
            wait_a_while(n);
            assert_int_equal(node[0]->closed, 0);
        }
        net_close(n);
    }
}

/* A peer that began again says so for each packet of the old session: that is believed. */
static void the_right_answer(void **state)
{
    struct net_node *node[2];
    struct net *n = network(node, 2, true);
    send_one(node[0], node[1]);
    wait_a_while(n);
    restart(node[1]);
    for (unsigned i = 0; i < 200; i++) { /* more than a window holds */
        send_one(node[0], node[1]);
    }
    net_run(n, net_now(n) + 100 * MS);
    assert_int_equal(node[0]->closed, 1);
    assert_int_equal(node[0]->undeliverable, 200);
    net_close(n);
}

/* There is nobody at B's address; A gets back all that it sends there, and B has not spoken. Here
 * A does not know its address. */
static void echoes(void **state)
{
    struct net_node *node[2];
    struct net *n = network(node, 2, false);
    net_kill(node[1]);
    send_one(node[0], node[1]);
    for (unsigned i = 0; i < 2000 && net_now(n) < 60 * SECOND; i++) {
        unsigned known = seen.count;
        net_run(n, net_now(n) + 50 * MS);
        for (; known < seen.count; known++) {
            net_inject(n, 1, 0, seen.packet[known].bytes, seen.packet[known].length);
        }
    }
    assert_int_equal(node[0]->opened, 0);
    assert_int_equal(node[0]->undeliverable, 1);
    net_close(n);
}

/* ---- Leaving ---- */

static void leave(struct net_node *a, const struct net_node *b)
{
    struct slmp_address at = net_address(b->index);
    struct slmp_peer *p = slmp_known(a->engine, &at);
    assert_non_null(p);
    slmp_leave(a->engine, p);
}

/* Who leaves says so with a packet of the session: nobody else can, nor again, nor when there is
 * another session. */
static void who_leaves(void **state)
{
    struct net_node *node[MEMBERS];
    struct net *n = network(node, MEMBERS, true);
    all_talk(n, node);
    leave(node[0], node[1]);
    net_kill(node[0]);
    wait_a_while(n); /* it was queued by an engine that is no more */
    assert_int_equal(node[1]->closed, 0);
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.key = &the_key;
    c.self = net_address(0);
    net_again(node[0], &c);
    send_one(node[0], node[1]);
    wait_a_while(n);
    assert_int_equal(node[1]->closed, 1); /* by the OPEN */
    leave(node[0], node[1]);
    wait_a_while(n);
    const struct seen_packet *last = last_of(0, SLMP_KIND_LEAVE);
    assert_non_null(last);
    assert_int_equal(node[1]->closed, 2);
    assert_int_equal(node[2]->closed, 0);
    net_kill(node[0]);
    net_again(node[0], &c);
    send_one(node[0], node[1]);
    wait_a_while(n);
    struct tally before = count(node, MEMBERS);
    struct seen_packet copy = *last;
    for (size_t bit = 0; bit <= 8 * copy.length; bit++) {
        for (unsigned way = 0; way < MEMBERS * MEMBERS; way++) {
            net_inject(n, way / MEMBERS, way % MEMBERS, copy.bytes, copy.length);
        }
        memcpy(copy.bytes, last->bytes, copy.length);
        if (bit < 8 * copy.length) {
            copy.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    wait_a_while(n);
    struct tally after = count(node, MEMBERS);
    assert_unchanged(&before, &after);
    net_close(n);
}

/* ---- What is believed of a packet ---- */

/* slmp_input() says whether a packet is of the session: who waits for a sign of life relies on
 * that, and must not be kept waiting by somebody who has no key. */
static void signs_of_life(void **state)
{
    struct net_node *node[2];
    struct net *n = network(node, 2, true);
    struct slmp_address from = net_address(0);
    send_one(node[0], node[1]);
    wait_a_while(n);
    struct seen_packet data = *last_of(0, SLMP_KIND_DATA);
    assert_false(slmp_input(node[1]->engine, net_now(n), &from, data.bytes, data.length));
    data.bytes[NUMBER_OF_DATA + 7] += 100; /* a number that has not come */
    assert_false(slmp_input(node[1]->engine, net_now(n), &from, data.bytes, data.length));
    send_one(node[0], node[1]);
    struct slmp_packet p;
    assert_true(slmp_output(node[0]->engine, net_now(n), &p));
    uint8_t bytes[KEPT];
    size_t length = p.header_length;
    memcpy(bytes, p.header, length);
    for (unsigned i = 0; i < p.parts; i++) {
        memcpy(bytes + length, p.part[i].iov_base, p.part[i].iov_len);
        length += p.part[i].iov_len;
    }
    assert_true(slmp_input(node[1]->engine, net_now(n), &from, bytes, length));
    wait_a_while(n);
    net_close(n);
}

/* ---- Another version ---- */

/* Packets of the first version, recorded: a hello from node 0 to node 1 and the OPEN behind it,
 * an OPEN without a key. */
static const char old_hello[] = "5000ff73b449000000000700000400000000ab2641488c0f1f9f00000002232900"
                                "00bf65b7ea7452d07e32924053fe5c9c5b";
static const char old_open[] =
    "500054cd054f0000000002010004000000007b56221754cd054f70f7cf006b504ff2"
    "65e08ccf05c00040ab2641488c0f1f9f00000002232900003db21fcb0e8d7a111f80"
    "be86a6c09109";

static struct {
    struct slmp_address from;
    unsigned theirs, ours, times;
} told;

static void on_version(void *context, const struct slmp_address *from, unsigned theirs,
                       unsigned ours)
{
    told.from = *from;
    told.theirs = theirs;
    told.ours = ours;
    told.times++;
}

static void opened(void *context, struct slmp_peer *p, const struct slmp_address *a, uint64_t i)
{
    fail_msg("a session of another version");
}

static size_t from_hex(const char *hex, uint8_t *to)
{
    size_t length = strlen(hex) / 2;
    for (size_t i = 0; i < length; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        to[i] = (uint8_t)byte;
    }
    return length;
}

/* What the first version says is understood as far as that it is the first, when its tag is
 * right, and it is told which version it meets. */
static void the_first_version(void **state)
{
    static const char *const old[] = {old_hello, old_open};
    struct slmp_upcalls up = {.opened = opened, .version = on_version};
    struct slmp_config c = slmp_defaults();
    struct slmp_address from = net_address(0);
    struct slmp_packet p;
    uint8_t bytes[KEPT];
    c.mode = SLMP_OWN;
    c.key = &the_key;
    c.self = net_address(1);
    c.incarnation = 5;
    for (unsigned i = 0; i < 2; i++) {
        struct slmp *e = slmp_open(&c, &up, &(struct reason){""});
        size_t length = from_hex(old[i], bytes);
        memset(&told, 0, sizeof(told));
        slmp_input(e, 1, &from, bytes, length);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.theirs, 1);
        assert_int_equal(told.ours, SLMP_VERSION_KEYED);
        assert_int_equal(told.from.ip, from.ip);
        assert_int_equal(slmp_output(e, 1, &p), i == 0);
        if (i == 0) {
            assert_int_equal(p.header[10], SLMP_KIND_WELCOME);
            assert_true(p.header[11] == SLMP_VERSION_KEYED && p.header[12] == SLMP_VERSION_KEYED);
        }
        bytes[length - 1] ^= 1; /* of somebody without the key nothing is said */
        slmp_input(e, 1, &from, bytes, length);
        assert_int_equal(told.times, 1);
        assert_int_equal(slmp_counters(e)->version, 1);
        assert_int_equal(slmp_counters(e)->forged, 1);
        slmp_close(e);
    }
    const struct reason why = slmp_version_text(&(struct slmp_address){0x0a4d0001, 2201}, 1, 2);
    assert_non_null(strstr(why.text, "10.77.0.1:2201 speaks version 1"));
    assert_non_null(strstr(why.text, "this process version 2"));
    assert_non_null(strstr(why.text, "install the same release"));
}

/* And what it answers to a hello of ours, made here with its tag. */
static void an_answer_of_the_first_version(void **state)
{
    struct slmp_upcalls up = {.opened = opened, .version = on_version};
    struct slmp_config c = slmp_defaults();
    struct slmp_address to = net_address(0);
    struct slmp_packet p;
    struct slmp_wire hello;
    uint8_t bytes[KEPT];
    for (unsigned keyed = 0; keyed < 2; keyed++) {
        c.mode = SLMP_OWN;
        c.key = keyed ? &the_key : NULL;
        c.self = net_address(1);
        c.incarnation = 5;
        struct slmp *e = slmp_open(&c, &up, &(struct reason){""});
        memset(&told, 0, sizeof(told));
        assert_int_equal(slmp_contact(e, 1, &to), 0);
        assert_true(slmp_output(e, 1, &p));
        assert_int_equal(slmp_wire_parse(&hello, p.header, p.length), SLMP_PARSED);
        uint8_t other = keyed ? 1 : 7;
        struct slmp_wire welcome = {.flags = SLMP_VER | SLMP_ACK,
                                    .id = hello.id,
                                    .kind = SLMP_KIND_WELCOME,
                                    .version = other,
                                    .version_max = other,
                                    .incarnation = 9,
                                    .tagged = keyed,
                                    .number = keyed ? hello.number : 0,
                                    .to_ip = c.self.ip,
                                    .to_port = c.self.port};
        size_t length = slmp_wire_write(&welcome, bytes);
        if (keyed) {
            struct slmp_mac *g = slmp_mac_open(&the_key, &(struct reason){""});
            assert_true(slmp_mac_greeting(g, bytes, length - SLMP_TAG, bytes + length - SLMP_TAG));
            slmp_mac_close(g);
        }
        slmp_input(e, 2, &to, bytes, length);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.theirs, other);
        assert_int_equal(told.ours, keyed ? SLMP_VERSION_KEYED : SLMP_VERSION);
        slmp_close(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_packets_to_all_as_from_all),
        cmocka_unit_test(an_answer_of_somebody_else),
        cmocka_unit_test(an_answer_had_before),
        cmocka_unit_test(the_right_answer),
        cmocka_unit_test(echoes),
        cmocka_unit_test(who_leaves),
        cmocka_unit_test(signs_of_life),
        cmocka_unit_test(the_first_version),
        cmocka_unit_test(an_answer_of_the_first_version),
    };
    for (unsigned i = 0; i < 32; i++) {
        the_key.bytes[i] = (uint8_t)i;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
