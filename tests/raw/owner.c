/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of an interface and its users, in one thread, on an interface that is not there
 * (fake.h): who gets which frames and may send which; what users ask for and are refused; users who
 * scribble over their rings, stop, and leave.
 */
#include "fake.h"
#include "raw/rules/prove.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALICE = 1001, BOB = 1002, EVE = 1003, CONTEXTS = 4 };
static const char text[] = "allow user 1001 contexts 2 ring 16 share 8 {\n"
                           "    udp.dport = 5000..5999\n"
                           "    send udp.sport = 5000..5999\n"
                           "}\n"
                           "allow user 1002 contexts 3 ring 64 {\n"
                           "    udp.dport = 5500..6999\n"
                           "    send udp.sport = 6000\n"
                           "}\n"
                           "allow user 1002 ring 64 any-source { icmp.type = echo; send all }\n";

static struct policy policy;
static struct fake fake;
static struct owner *owner;
static struct serve_message message;
static uint8_t frame[FAKE_FRAME];

static int set_up(void **state)
{
    char error[RAW_ERROR];
    struct owner_options o = {.source = &fake.source,
                              .policy = &policy,
                              .contexts = CONTEXTS,
                              .listen = -1,
                              .patience = INT64_C(3600) * 1000000000,
                              .iface = "fake0",
                              .own_source = true,
                              .address = {2, 0, 0, 0, 0, 1}};
    (void)state;
    fake_open(&fake);
    return policy_parse(&policy, "p", text, strlen(text), error) != 0 ||
           owner_open(&owner, &o) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    owner_close(owner, -ESHUTDOWN, "over");
    return 0;
}

static void turn(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        owner->news = true;
        assert_true(owner_turn(owner) >= 0);
    }
}

/* Asks, and has a context. */
static void join(struct fake_user *u, uid_t uid, const char *rules)
{
    fake_join(owner, u, uid);
    assert_int_equal(fake_say(u, SERVE_ASK, 0, rules), 0);
    turn(3);
    assert_int_equal(fake_hear(u, &message), SERVE_GRANT);
}

static void refused(uid_t uid, unsigned ring, const char *rules, int error, const char *why)
{
    struct fake_user u;
    fake_join(owner, &u, uid);
    (void)fake_say(&u, SERVE_ASK, ring, rules);
    turn(3);
    assert_int_equal(fake_hear(&u, &message), SERVE_REFUSED);
    assert_int_equal(message.head.error, error);
    if (strstr(message.text, why) == NULL) {
        fail_msg("\"%s\" instead of \"%s\"", message.text, why);
    }
    assert_int_equal(fake_hear(&u, &message), 0);
    fake_end(&u);
}

/* A datagram arrives for the user, and is his next frame, byte by byte. */
static void arrives(struct fake_user *u, unsigned port, uint32_t size, uint8_t fill)
{
    uint32_t length = fake_udp(frame, 9, port, size, fill);
    assert_true(fake_arrive(&fake, frame, length) >= 0);
    turn(1);
    struct ring_slot *s = ring_next(&u->ring, 0);
    assert_non_null(s);
    assert_int_equal(s->length, length);
    assert_memory_equal(s->bytes, frame, length);
    ring_done(&u->ring);
}

static void gives(struct fake_user *u, const uint8_t *bytes, uint32_t length)
{
    struct ring_slot *s = ring_room(&u->ring);
    assert_non_null(s);
    memcpy(s->bytes, bytes, length);
    ring_give(&u->ring, length);
}

/* He sends it, and it leaves or does not. */
static void sends(struct fake_user *u, unsigned port, uint8_t source, bool leaves)
{
    unsigned before = fake.sent_count;
    uint32_t length = fake_udp(frame, port, 9, 20, (uint8_t)port);
    frame[11] = source;
    gives(u, frame, length);
    turn(1);
    assert_int_equal(fake.sent_count - before, leaves);
    if (leaves) {
        const struct fake_frame *f = &fake.sent[before % FAKE_QUEUE];
        assert_int_equal(f->length, length);
        assert_memory_equal(f->bytes, frame, length);
    }
}

static struct owner_counts *counts(uid_t uid)
{
    for (unsigned i = 0; i < CONTEXTS; i++) {
        if (owner->context[i].state == OWNER_LIVE && owner->context[i].peer.uid == uid) {
            return &owner->context[i].counts;
        }
    }
    fail_msg("user %u has no context", (unsigned)uid);
    return NULL;
}

/* ---- Frames ---- */

static void frames(void **state)
{
    struct fake_user alice, bob;
    (void)state;
    join(&alice, ALICE, "set a { udp.dport = 5000 }\nset b { udp.dport = 5600 }");
    assert_int_equal(message.head.ring, 16);
    assert_int_equal(message.head.sends, 1);
    assert_string_equal(message.head.iface, "fake0");
    join(&bob, BOB, "set all { udp }");
    arrives(&alice, 5000, 100, 1);
    arrives(&bob, 5500, 200, 2);
    arrives(&alice, 5600, 1400, 3); /* of both policies: of the earlier line */
    arrives(&bob, 6999, 0, 4);
    assert_null(ring_next(&alice.ring, 0));
    assert_null(ring_next(&bob.ring, 0));
    for (unsigned port = 1; port < 9000; port += 53) { /* what the policy does not allow bob */
        uint32_t length = fake_udp(frame, 9, port, 8, 0);
        bool his = port >= 5500 && port <= 6999;
        assert_int_equal(fake_arrive(&fake, frame, length) >= 0, his);
        turn(1);
        if (his) {
            ring_done(&bob.ring);
        }
    }
    sends(&alice, 5001, 1, true);
    sends(&alice, 5999, 1, true);
    sends(&alice, 6000, 1, false);
    sends(&alice, 5001, 9, false); /* in another's name */
    sends(&bob, 6000, 1, true);
    sends(&bob, 5001, 1, false);
    assert_int_equal(counts(ALICE)->refused, 2);
    assert_int_equal(counts(ALICE)->frames, 2);
    fake_end(&alice);
    fake_end(&bob);
}

/* The verdict is that of the user's own rules, and the end of his messages. */
static void verdicts(void **state)
{
    struct fake_user bob;
    (void)state;
    join(&bob, BOB,
         "set a priority 2 { udp.dport = 6000..6100 }\n"
         "set b priority 1 { udp.dport = 6050; end udp.sport = 9; message udp.sport }");
    static const struct {
        unsigned port;
        int verdict;
    } all[] = {{6000, 1 << 1 | 1}, {6050, 0 << 1 | 1}, {6051, 1 << 1 | 1}};
    for (unsigned i = 0; i < 3; i++) {
        (void)fake_arrive(&fake, frame, fake_udp(frame, 9, all[i].port, 1, 1));
        turn(1);
        assert_int_equal(ring_next(&bob.ring, 0)->verdict, all[i].verdict);
        ring_done(&bob.ring);
    }
    (void)fake_arrive(&fake, frame, fake_udp(frame, 8, 6050, 1, 1));
    turn(1);
    assert_int_equal(ring_next(&bob.ring, 0)->verdict, 0 << 1 | 0);
    fake_end(&bob);
}

static void full_to_leave(void **state)
{
    struct fake_user alice;
    (void)state;
    join(&alice, ALICE, "set a { udp.dport = 5000 }");
    fake.full = true;
    for (unsigned i = 0; i < 16; i++) {
        gives(&alice, frame, fake_udp(frame, 5000 + i, 9, i, 0));
    }
    assert_null(ring_room(&alice.ring));
    turn(3);
    assert_int_equal(fake.sent_count, 0);
    fake.full = false;
    turn(1);
    assert_int_equal(fake.sent_count, 8); /* his share */
    turn(1);
    assert_int_equal(fake.sent_count, 16);
    fake_end(&alice);
}

/* ---- Asking ---- */

static void limits(void **state)
{
    struct fake_user a[2], b[3];
    (void)state;
    refused(EVE, 0, "set a { udp.dport = 5000 }", -EACCES, "has no line for user 1003");
    refused(ALICE, 0, "set a { udp.dport = 6000 }", -EACCES, "set a is outside of what line 1");
    refused(ALICE, 0, "set a { nonsense }", -EINVAL, "rules:1: there is no protocol or field");
    refused(ALICE, 32, "set a { udp.dport = 5000 }", -ENOSPC, "line 1 of the policy allows 16");
    refused(ALICE, 3, "set a { udp.dport = 5000 }", -EINVAL, "no ring of 3 slots");
    refused(ALICE, 0,
            "set a { udp.dport = 5000 }\nset b { udp.dport = 5001 }\nset c { udp.dport = 5002 }\n"
            "set d { udp.dport = 5003 }\nset e { udp.dport = 5004 }\nset f { udp.dport = 5005 }\n"
            "set g { udp.dport = 5006 }\nset h { udp.dport = 5007 }\nset i { udp.dport = 5008 }",
            -ENOSPC, "have 9 sets, line 1 of the policy allows 8");
    join(&a[0], ALICE, "set a { udp.dport = 5000 }");
    join(&a[1], ALICE, "set a { udp.dport = 5001 }");
    refused(ALICE, 0, "set a { udp.dport = 5002 }", -ENOSPC, "has all contexts that line 1");
    join(&b[0], BOB, "set a { udp.dport = 6000 }");
    join(&b[1], BOB, "set a { icmp.type = echo }"); /* by his other line */
    refused(BOB, 0, "set a { udp.dport = 6002 }", -ENOSPC, "all 4 contexts of fake0 are taken");
    fake_end(&a[0]);
    turn(3);
    join(&b[2], BOB, "set a { udp.dport = 6002 }");
    arrives(&b[2], 6002, 10, 1);
    arrives(&a[1], 5001, 10, 1);
    sends(&b[1], 1234, 99, true); /* any-source */
    fake.refuses = true;
    assert_int_equal(fake_say(&b[0], SERVE_RULES, 0, "set a { udp.dport = 6003 }"), 0);
    turn(3);
    assert_int_equal(fake_hear(&b[0], &message), SERVE_REFUSED);
    assert_non_null(strstr(message.text, "the interface refuses these"));
    arrives(&b[0], 6000, 10, 1);
    fake_end(&a[1]);
    fake_end(&b[0]);
    fake_end(&b[1]);
    fake_end(&b[2]);
}

static void rules(void **state)
{
    struct fake_user bob;
    (void)state;
    join(&bob, BOB, "set a { udp.dport = 6000 }");
    assert_int_equal(fake_say(&bob, SERVE_RULES, 0, "set a { udp.dport = 7 }"), 0);
    turn(3);
    assert_int_equal(fake_hear(&bob, &message), SERVE_REFUSED);
    assert_int_equal(message.head.error, -EACCES);
    arrives(&bob, 6000, 10, 1);
    assert_int_equal(fake_say(&bob, SERVE_RULES, 0, "set a { udp.dport = 6001 }"), 0);
    turn(3);
    assert_int_equal(fake_hear(&bob, &message), SERVE_DONE);
    arrives(&bob, 6001, 10, 1);
    assert_int_equal(fake_arrive(&fake, frame, fake_udp(frame, 9, 6000, 1, 1)), -1);
    fake_end(&bob);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}

/* What is no message, or out of turn, ends the connection, and leaves no descriptor behind. */
static void messages(void **state)
{
    struct fake_user u, many[OWNER_UNASKED + 1];
    (void)state;
    fake_join(owner, &u, ALICE);
    struct serve_head h = {.kind = SERVE_ASK, .version = SERVE_VERSION + 1};
    assert_int_equal(serve_send(u.fd, &h, "", -1), 0);
    turn(1);
    assert_int_equal(fake_hear(&u, &message), SERVE_REFUSED);
    assert_non_null(strstr(message.text, "both must be of the same release"));
    fake_end(&u);
    for (enum serve_kind kind = 0; kind <= SERVE_KINDS; kind++) {
        if (kind != SERVE_ASK && kind != SERVE_BELL) {
            fake_join(owner, &u, ALICE);
            assert_int_equal(fake_say(&u, kind, 0, ""), 0);
            turn(1);
            assert_int_equal(fake_hear(&u, &message), SERVE_GONE);
            assert_int_equal(fake_hear(&u, &message), 0);
            fake_end(&u);
        }
    }
    for (size_t n = 1; n < sizeof(h); n++) {
        fake_join(owner, &u, ALICE);
        assert_int_equal(send(u.fd, &h, n, 0), (int)n);
        turn(1);
        assert_int_equal(fake_hear(&u, &message), SERVE_GONE);
        fake_end(&u);
    }
    unsigned before = descriptors();
    fake_join(owner, &u, ALICE);
    h.kind = SERVE_BELL;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(serve_send(u.fd, &h, "", 0), 0);
        turn(1);
    }
    assert_int_equal(descriptors(), before + 2);
    fake_end(&u);
    turn(1);
    assert_int_equal(descriptors(), before);
    for (unsigned i = 0; i <= OWNER_UNASKED; i++) {
        fake_join(owner, &many[i], BOB);
    }
    assert_int_equal(fake_hear(&many[OWNER_UNASKED], &message), SERVE_REFUSED);
    assert_int_equal(message.head.error, -EBUSY);
    for (unsigned i = 0; i <= OWNER_UNASKED; i++) {
        fake_end(&many[i]);
    }
}

/* ---- Users who are not well ---- */

/* Bob writes all over his memory, rings and sends rubbish; alice has every frame of hers, byte by
 * byte, and what she sends leaves so; of what bob writes nothing leaves that he may not send. */
static void scribbles(void **state)
{
    struct fake_user alice, bob;
    struct raw_dice d = {.key = 5};
    (void)state;
    join(&alice, ALICE, "set a { udp.dport = 5000..5499 }");
    join(&bob, BOB, "set a { udp.dport = 6000..6499 }");
    uint8_t *memory = (uint8_t *)bob.ring.shared;
    for (unsigned round = 0; round < 3000; round++) {
        for (unsigned i = 0; i < 40; i++) {
            size_t where = raw_dice(&d) % (i % 4 == 0 ? 2 * RING_PAGE : bob.ring.length - 8);
            uint64_t what = raw_dice(&d) >> raw_dice_below(&d, 64);
            memcpy(memory + where, &what, sizeof(what));
        }
        for (unsigned i = 0; i < 3; i++) { /* also counts and lengths that could be */
            atomic_store(&bob.ring.shared->taken, (uint32_t)raw_dice_below(&d, 200));
            atomic_store(&bob.ring.shared->given, raw_dice_below(&d, 100) + (uint32_t)round);
            uint32_t length = raw_dice_below(&d, 3000);
            memcpy(bob.ring.up + (size_t)raw_dice_below(&d, bob.ring.slots) * bob.ring.stride,
                   &length, 4);
            (void)fake_arrive(&fake, frame, fake_udp(frame, 9, 6000 + round % 500, 600, 0xee));
        }
        if (round % 7 == 0) {
            (void)fake_say(&bob, SERVE_BELL, 0, "");
        }
        arrives(&alice, 5000 + round % 500, round % 1400, (uint8_t)round);
        unsigned before = fake.sent_count;
        uint32_t length = fake_udp(frame, 5000 + round % 1000, 9, round % 1400, (uint8_t)round);
        gives(&alice, frame, length);
        turn(1);
        unsigned hers = 0;
        for (unsigned i = before; i < fake.sent_count; i++) {
            const struct fake_frame *f = &fake.sent[i % FAKE_QUEUE];
            bool is = f->length == length && memcmp(f->bytes, frame, length) == 0;
            hers += is;
            /* bob may send from port 6000, and in the interface's name */
            assert_true(is ||
                        (raw_match_sets(&policy.of[1].send, 1, f->bytes, f->length) != RAW_NONE &&
                         memcmp(f->bytes + 6, owner->o.address, 6) == 0));
        }
        assert_int_equal(hers, 1);
    }
    assert_true(counts(BOB)->nonsense > 100);
    assert_true(counts(BOB)->frames > 0);
    assert_int_equal(counts(ALICE)->frames, 3000);
    assert_int_equal(counts(ALICE)->nonsense + counts(ALICE)->full + counts(ALICE)->stray, 0);
    fake_end(&alice);
    fake_end(&bob);
}

/* Who takes no frame loses what finds his ring full, and later his rules. */
static void stops(void **state)
{
    struct fake_user alice, bob;
    (void)state;
    join(&alice, ALICE, "set a { udp.dport = 5000 }");
    join(&bob, BOB, "set a { udp.dport = 6000 }");
    for (unsigned i = 0; i < 100; i++) {
        (void)fake_arrive(&fake, frame, fake_udp(frame, 9, 6000, i, 7));
        arrives(&alice, 5000, i, (uint8_t)i);
    }
    assert_int_equal(counts(BOB)->frames, 64);
    assert_int_equal(counts(BOB)->full, 36);
    owner->looked = 0; /* he is asked now, and has not been before */
    turn(1);
    assert_int_equal(fake_hear(&bob, &message), -EAGAIN);
    owner->o.patience = 0;
    owner->looked = 0;
    turn(3);
    assert_int_equal(fake_hear(&bob, &message), SERVE_GONE);
    assert_int_equal(message.head.error, -ETIMEDOUT);
    assert_non_null(strstr(message.text, "although 64 were there"));
    assert_int_equal(fake_hear(&bob, &message), 0);
    assert_int_equal(fake_arrive(&fake, frame, fake_udp(frame, 9, 6000, 1, 1)), -1);
    owner->o.patience = INT64_C(3600) * 1000000000;
    arrives(&alice, 5000, 10, 1);
    for (unsigned i = 0; i < 10; i++) { /* what he has is his still */
        const struct ring_slot *s = ring_next(&bob.ring, i);
        assert_int_equal(s->length, fake_udp(frame, 9, 6000, i, 7));
        assert_memory_equal(s->bytes, frame, s->length);
    }
    fake_end(&alice);
    fake_end(&bob);
}

/* His rules go with him; frames that were under way then are nobody's, also if somebody else has
 * his context by now. */
static void leaves(void **state)
{
    struct fake_user alice, bob;
    (void)state;
    join(&bob, BOB, "set a { udp.dport = 6000 }");
    assert_int_equal(fake_arrive(&fake, frame, fake_udp(frame, 9, 6000, 1, 1)), 0);
    fake.queue[3] = fake.queue[0]; /* the kernel brings it late */
    fake.queue[0].count = 0;
    unsigned late = fake.queue[3].count;
    fake.queue[3].count = 0;
    fake_end(&bob);
    turn(3);
    assert_int_equal(fake.rules.count, 0);
    assert_int_equal(fake_arrive(&fake, frame, fake_udp(frame, 9, 6000, 1, 1)), -1);
    fake_join(owner, &alice, ALICE);
    assert_int_equal(fake_say(&alice, SERVE_ASK, 0, "set a { udp.dport = 5000 }"), 0);
    owner_listen(owner);
    assert_int_equal(owner_change(owner), 0);
    assert_int_equal(fake_hear(&alice, &message), SERVE_GRANT);
    assert_int_equal(owner->context[0].peer.uid, ALICE);
    fake.queue[0] = fake.queue[3];
    fake.queue[0].count = late;
    turn(1);
    assert_null(ring_next(&alice.ring, 0));
    assert_int_equal(counts(ALICE)->stray, 1);
    arrives(&alice, 5000, 1, 1);
    fake_end(&alice);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(frames),   TEST(verdicts),  TEST(full_to_leave), TEST(limits), TEST(rules),
        TEST(messages), TEST(scribbles), TEST(stops),         TEST(leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
