/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP with a job key: who has it talks as ever, on any network; nobody else changes
 * anything, whatever he sends, repeats or forwards.
 */
enum { SEEN = 2048, KEPT = 512 };
#include "slmp_seen.h"

#include "fabric/slmp/mac.h"
#include "fabric/slmp/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

static const struct net_faults clean = {.delay = 100 * US};
static struct slmp_key the_key = {.length = 32}, other_key = {.length = 32};

static struct slmp_config config(const struct slmp_key *key)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.window = 64;
    c.key = key;
    return c;
}

static void send_one(struct net_node *a, struct net_node *b, size_t length)
{
    assert_int_equal(net_send(a, b, 0, length, SLMP_RELIABLE, 0), 0);
}

/* ---- Tags ---- */

static void from_hex(const char *hex, uint8_t *to, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        to[i] = (uint8_t)byte;
    }
}

/* Computed with Python's hmac, openssl's AES and Poly1305 from its definition. */
static void tags_are_what_the_document_says(void **state)
{
    static const struct {
        uint64_t number;
        const char *tag;
    } right[] = {{0, "1b358891f3a12d89ccfa714ad4882cd0"},
                 {5, "362c1367e3adfcf1407577ac38e0e871"},
                 {1ULL << 40, "44b914946b5012c8f59850dd360cdb40"},
                 {5, "362c1367e3adfcf1407577ac38e0e871"}};
    uint8_t tag[SLMP_TAG], expected[SLMP_TAG];
    struct slmp_mac *g = slmp_mac_open(&the_key, &(struct reason){""});
    assert_non_null(g);
    from_hex("f89be710b888dc372b1bdad11cda83d7", expected, SLMP_TAG);
    assert_true(slmp_mac_greeting(g, "hello", 5, tag));
    assert_memory_equal(tag, expected, SLMP_TAG);
    static const char names[] = "names of a session";
    struct slmp_session_key *l = slmp_mac_session_key(g, names, sizeof(names) - 1);
    assert_non_null(l);
    const struct iovec part[] = {{"header", 6}, {"payload of a packet", 19}};
    for (unsigned i = 0; i < 4; i++) {
        from_hex(right[i].tag, expected, SLMP_TAG);
        assert_true(slmp_mac_tag(g, l, right[i].number, part, 2, tag));
        assert_memory_equal(tag, expected, SLMP_TAG);
        assert_true(slmp_tag_equal(tag, expected));
        tag[i] ^= 1;
        assert_false(slmp_tag_equal(tag, expected));
    }
    slmp_session_key_free(l);
    slmp_mac_close(g);
}

/* ---- Who has the key ---- */

static void the_first_exchange(void **state)
{
    struct slmp_config c = config(&the_key);
    struct net *n = net_open(1, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    watch(n);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    static const struct {
        unsigned kind, length;
    } right[] = {{SLMP_KIND_HELLO, 50},  {SLMP_KIND_WELCOME, 66}, {SLMP_KIND_OPEN, 74},
                 {SLMP_KIND_OPENED, 74}, {SLMP_KIND_DATA, 168},   {SLMP_KIND_ACK, 68}};
    assert_int_equal(seen.count, 6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(seen.packet[i].bytes[10], right[i].kind);
        assert_int_equal(seen.packet[i].bytes[13], SLMP_TAGGED);
        assert_int_equal(seen.packet[i].length, right[i].length);
    }
    assert_int_equal(a->sent, 1);
    net_close(n);
}

static void exchange(uint64_t seed, const struct net_faults *f, const struct slmp_config *c)
{
    enum { MESSAGES = 400 };
    struct net *n = net_open(seed, f);
    struct net_node *a = net_add(n, c), *b = net_add(n, c);
    net_talk(a, b, MESSAGES);
    assert_int_equal(a->received + b->received, 2 * MESSAGES);
    assert_int_equal(a->sent + b->sent, 2 * MESSAGES);
    assert_int_equal(a->torn + b->torn + a->undeliverable + b->undeliverable, 0);
    assert_int_equal(slmp_counters(a->engine)->malformed > 0, f->spoil > 0);
    assert_int_equal(slmp_counters(a->engine)->forged > 0, f->spoil > 0);
    assert_int_equal(slmp_counters(a->engine)->replayed > 0, f->twice > 0);
    net_close(n);
}

static void bad_networks(void **state)
{
    struct slmp_config c = config(&the_key);
    struct net_faults f = {
        .loss = 500, .twice = 500, .late = 1000, .later = 3 * MS, .spoil = 300, .delay = 200 * US};
    struct net_faults good = {.late = 1000, .later = MS, .delay = 50 * US};
    exchange(1, &f, &c);
    exchange(2, &good, &c);
    c.ordered = true;
    c.packet_size = SLMP_PACKET_MIN + 40;
    c.window = 1024;
    exchange(3, &f, &c);
}

static void a_restarted_peer_is_another(void **state)
{
    struct slmp_config c = config(&the_key);
    struct net *n = net_open(4, &clean);
    c.self = net_address(0);
    struct net_node *a = net_add(n, &c);
    c.self = net_address(1); /* who ends a session must say where he is */
    struct net_node *b = net_add(n, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    net_kill(b);
    net_again(b, &c);
    send_one(a, b, 100);
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(a->undeliverable, 1);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 2, SECOND));
    net_close(n);
}

/* ---- Who has not ---- */

static void another_key_or_none(void **state)
{
    struct slmp_config with = config(&the_key), wrong = config(&other_key), none = config(NULL);
    const struct slmp_config *stranger[] = {&wrong, &none};
    for (unsigned i = 0; i < 2; i++) {
        struct net *n = net_open(5, &clean);
        struct net_node *a = net_add(n, &with), *b = net_add(n, stranger[i]);
        send_one(a, b, 100);
        send_one(b, a, 100);
        net_run(n, net_now(n) + 60 * SECOND);
        assert_int_equal(a->began + b->began + a->opened + b->opened, 0);
        assert_int_equal(a->undeliverable, 1);
        assert_int_equal(b->undeliverable, 1);
        assert_true(slmp_counters(a->engine)->forged > 0);
        assert_true(slmp_counters(b->engine)->forged + slmp_counters(b->engine)->refused > 0);
        net_close(n);
    }
}

/* Every packet once more, then with each of its bits turned, then cut. */
static void what_a_listener_can_do(void **state)
{
    struct slmp_config c = config(&the_key);
    struct net *n = net_open(6, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    watch(n);
    send_one(a, b, 100);
    send_one(b, a, 100);
    assert_true(net_settle(n, b, 1, SECOND) && net_settle(n, a, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    unsigned count = seen.count;
    const struct slmp_counters *k = slmp_counters(b->engine);
    for (unsigned i = 0; i < count; i++) {
        unsigned from = seen.packet[i].from;
        size_t length = seen.packet[i].length;
        uint8_t bytes[KEPT];
        memcpy(bytes, seen.packet[i].bytes, length);
        net_inject(n, from, 1 - from, bytes, length);
        net_inject(n, 1 - from, from, bytes, length); /* and where it came from */
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            net_inject(n, from, 1 - from, bytes, length);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        for (size_t cut = 0; cut < length; cut++) {
            net_inject(n, from, 1 - from, bytes, cut);
        }
        net_run(n, net_now(n) + SECOND);
        assert_int_equal(a->received + b->received, 2);
        assert_int_equal(a->opened + b->opened, 2);
        assert_int_equal(a->closed + b->closed, 0);
    }
    assert_true(k->forged > 1000 && k->replayed > 0 && k->malformed > 0 && k->stale > 0);
    uint64_t forged = k->forged;
    static const uint8_t plain[] = {0xc0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 'x'};
    static const uint8_t hello[] = {0x50, 0, 0, 0, 0, 1, 0, 0, 0, 0};
    net_inject(n, 0, 1, plain, sizeof(plain));
    net_inject(n, 0, 1, hello, sizeof(hello));
    send_one(a, b, 100);
    send_one(b, a, 100);
    assert_true(net_settle(n, b, 2, SECOND) && net_settle(n, a, 2, SECOND)); /* it lives */
    assert_int_equal(k->forged, forged + 2);
    net_close(n);
}

/* A third who sees a session's token asks, from an address of his own, for the RESET that
 * would end it: nobody gives him one. When the session is over everybody does. */
static void a_reset_is_not_to_be_had(void **state)
{
    struct slmp_config c = config(&the_key);
    struct net *n = net_open(7, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    watch(n);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_run(n, net_now(n) + SECOND);
    struct slmp_address third = {99, 99};
    struct slmp_packet p;
    for (unsigned turn = 0; turn < 2; turn++) {
        bool reset = false;
        slmp_input(b->engine, net_now(n), &third, seen.packet[4].bytes, seen.packet[4].length);
        while (slmp_output(b->engine, net_now(n), &p)) {
            reset = reset || p.header[10] == SLMP_KIND_RESET;
        }
        assert_int_equal(reset, turn == 1);
        net_kill(b);
        net_again(b, &c);
    }
    net_close(n);
}

/* Who sits between three and tells one that he is another is found out. */
static void greetings_for_others(void **state)
{
    struct slmp_config c = config(&the_key);
    struct net *n = net_open(8, &clean);
    struct net_node *node[3];
    for (unsigned i = 0; i < 3; i++) {
        c.self = net_address(i);
        node[i] = net_add(n, &c);
    }
    watch(n);
    send_one(node[0], node[1], 100);
    assert_true(net_settle(n, node[1], 1, SECOND));
    uint64_t forged = slmp_counters(node[2]->engine)->forged;
    net_inject(n, 0, 2, seen.packet[0].bytes, seen.packet[0].length);
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(slmp_counters(node[2]->engine)->forged, forged + 1);
    send_one(node[0], node[2], 100);
    assert_true(net_settle(n, node[2], 1, SECOND));
    net_close(n);
}

/* ---- What cannot be ---- */

static void configurations_that_cannot_be(void **state)
{
    struct slmp_config c = config(&the_key);
    struct slmp_upcalls none = {0};
    struct slmp_message m = {.way = SLMP_UNACKED};
    struct slmp_key shorter = the_key;
    c.mode = SLMP_AUTO;
    struct reason why;
    assert_null(slmp_open(&c, &none, &why));
    assert_string_equal(why.text, "a configuration that cannot be");
    c.mode = SLMP_OWN;
    shorter.length = SLMP_KEY_MIN - 1;
    c.key = &shorter;
    assert_null(slmp_open(&c, &none, &(struct reason){""}));
    c.key = &the_key;
    struct slmp *e = slmp_open(&c, &none, &(struct reason){""});
    assert_int_equal(slmp_send(e, 0, &m), -EPERM);
    slmp_close(e);
}

static void make_file(const char *path, size_t length, mode_t mode)
{
    static const uint8_t bytes[SLMP_KEY_MAX + 1];
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void key_texts(void **state)
{
    static const char text[] = "0123456789abcdef0123456789abcdef";
    struct slmp_key key;
    assert_int_equal(slmp_key_take(&key, text, 31), -1);
    assert_int_equal(slmp_key_take(&key, text, SLMP_KEY_MAX + 1), -1);
    assert_int_equal(slmp_key_take(&key, text, 32), 0);
    assert_true(key.length == 32 && memcmp(key.bytes, text, 32) == 0);
}

static void key_files(void **state)
{
    static const struct {
        size_t length;
        mode_t mode;
        const char *wrong;
    } file[] = {{32, 0600, NULL},
                {SLMP_KEY_MAX, 0400, NULL},
                {31, 0600, "has 31 bytes"},
                {SLMP_KEY_MAX + 1, 0600, "has 1025 bytes"},
                {32, 0640, "has mode 0640"},
                {32, 0604, "has mode 0604"}};
    struct reason why;
    char folder[] = "/tmp/slmp_key.XXXXXX", path[64];
    struct slmp_key key;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/key", folder);
    assert_int_equal(slmp_key_read(&key, path, &why), -1);
    assert_non_null(strstr(why.text, "No such file"));
    assert_int_equal(slmp_key_read(&key, folder, &why), -1);
    assert_non_null(strstr(why.text, "no regular file"));
    for (unsigned i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
        make_file(path, file[i].length, file[i].mode);
        assert_int_equal(slmp_key_read(&key, path, &why), file[i].wrong != NULL ? -1 : 0);
        assert_int_equal(key.length, file[i].wrong != NULL ? 0 : file[i].length);
        assert_true(file[i].wrong == NULL || strstr(why.text, file[i].wrong) != NULL);
    }
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_what_the_document_says),
        cmocka_unit_test(the_first_exchange),
        cmocka_unit_test(bad_networks),
        cmocka_unit_test(a_restarted_peer_is_another),
        cmocka_unit_test(another_key_or_none),
        cmocka_unit_test(what_a_listener_can_do),
        cmocka_unit_test(a_reset_is_not_to_be_had),
        cmocka_unit_test(greetings_for_others),
        cmocka_unit_test(configurations_that_cannot_be),
        cmocka_unit_test(key_texts),
        cmocka_unit_test(key_files),
    };
    for (unsigned i = 0; i < 32; i++) {
        the_key.bytes[i] = (uint8_t)i;
        other_key.bytes[i] = (uint8_t)(i + 1);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
