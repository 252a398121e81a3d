/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers on frames, from a program (pinwheel_raw.h), on a capture file, which needs no privilege:
 * program PINGS ICMP COUNT. PINGS is a file of `frames.py make pings`, of which twelve are
 * answered; ICMP and COUNT are images of examples/raw/icmp_echo.c and handlers/count.c.
 */
#include "pinwheel_raw.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PINGS = 12, SHORT_NOT = 5 }; /* SHORT_NOT: of them, longer than 100 bytes */

static const char *pings, *icmp, *count, *ask;

static struct pw_raw *fresh(void)
{
    struct pw_raw *raw;
    assert_int_equal(pw_raw_new(&raw), 0);
    return raw;
}

/* The call has failed with `rc`, and the line says what. */
static void refused(struct pw_raw *raw, int result, int rc, const char *text)
{
    assert_int_equal(result, rc);
    if (strstr(pw_raw_error(raw), text) == NULL) {
        fail_msg("\"%s\" instead of \"%s\"", pw_raw_error(raw), text);
    }
}

static void run_all(struct pw_raw *raw)
{
    int n;
    while ((n = pw_raw_turn(raw)) >= 0) {
        assert_int_equal(pw_raw_wait(raw, 0), 0);
    }
    assert_int_equal(n, -ENODATA);
}

static void answers(void **state)
{
    struct pw_raw *raw = fresh();
    struct pw_raw_context c = {.image = icmp};
    struct pw_raw_source s = {.pcap = pings};
    struct pw_raw_counts n;
    uint8_t frame[9019] = {2};
    size_t length = 0;
    (void)state;
    assert_int_equal(pw_raw_context(raw, &c), 0);
    assert_int_equal(pw_raw_rules(raw, "set p { icmp.type = echo }"), 0);
    assert_int_equal(pw_raw_rules(raw, "icmp-echo"), 0);
    refused(raw, pw_raw_rules(raw, "set p { nonsense }"), -EINVAL, "rules:1");
    assert_int_equal(pw_raw_open(raw, &s), 0);
    refused(raw, pw_raw_open(raw, &s), -EBUSY, "open");
    refused(raw, pw_raw_context(raw, &c), -EBUSY, "before pw_raw_open()");
    run_all(raw);
    assert_int_equal(pw_raw_counts(raw, 0, &n), 0);
    assert_int_equal(n.answered, PINGS);
    assert_int_equal(n.frames, n.answered + n.dropped + n.kept + n.passed);
    assert_int_equal(n.lost, 0);
    assert_int_equal(pw_raw_counts(raw, 1, &n), -EINVAL);
    assert_non_null(pw_raw_state(raw, 0, &length));
    assert_int_equal(length, 65536);
    assert_null(pw_raw_state(raw, 1, &length));
    refused(raw, pw_raw_send(raw, frame, 13), -EINVAL, "14 bytes");
    refused(raw, pw_raw_send(raw, frame, sizeof(frame)), -EINVAL, "14 bytes");
    assert_int_equal(pw_raw_send(raw, frame, 14), 0);
    assert_int_equal(pw_raw_send(raw, frame, 9018), 0);
    pw_raw_close(raw);
}

/* Two contexts with handlers and HPU memory of their own; rules that are set again hold for the
 * frames that come then. */
static void contexts(void **state)
{
    struct pw_raw *raw = fresh();
    struct pw_raw_context echo = {.name = "echo", .image = icmp, .priority = 1, .share = 1};
    struct pw_raw_context totals = {.name = "totals", .image = count, .state = 128};
    struct pw_raw_source s = {.pcap = pings};
    struct pw_raw_counts n;
    size_t length = 0;
    (void)state;
    assert_int_equal(pw_raw_context(raw, &echo), 0);
    assert_int_equal(pw_raw_context(raw, &totals), 1);
    refused(raw, pw_raw_rules(raw, "icmp-echo"), -EINVAL, "there is no context");
    refused(raw, pw_raw_open(raw, &s), -EINVAL, "rules");
    assert_int_equal(pw_raw_rules(raw, "set p context totals { icmp.type = echo }"), 0);
    assert_int_equal(pw_raw_open(raw, &s), 0);
    assert_int_equal(pw_raw_turn(raw), 1);
    const uint64_t *first = pw_raw_state(raw, 1, &length);
    assert_int_equal(length, 128);
    assert_true(first[0] != 0 || first[1] != 0); /* the handler has counted */
    assert_int_equal(pw_raw_rules(raw, "set p context echo { icmp.type = echo }"), 0);
    run_all(raw);
    assert_int_equal(pw_raw_counts(raw, 1, &n), 0);
    uint64_t before = n.frames;
    assert_true(before >= 1 && before <= 2); /* one more may have been read already */
    assert_int_equal(pw_raw_counts(raw, 0, &n), 0);
    assert_true(n.answered >= PINGS - 2 && n.answered < PINGS);
    pw_raw_close(raw);
}

/* A handler that asks a host that does not answer fails, and the host finds the request and the
 * eventfd. */
static void queues(void **state)
{
    struct pw_raw *raw = fresh();
    struct pw_raw_context c = {.image = ask, .slots = 4, .room = 9000, .budget_us = 20000};
    struct pw_raw_source s = {.pcap = pings};
    struct spin_queue_request r;
    struct pw_raw_counts n;
    int fd = -1;
    (void)state;
    assert_int_equal(pw_raw_context(raw, &c), 0);
    struct spin_queue *q = pw_raw_queue(raw, 0, &fd);
    assert_non_null(q);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(pw_raw_rules(raw, "icmp-echo"), 0);
    assert_int_equal(pw_raw_open(raw, &s), 0);
    assert_int_equal(pw_raw_turn(raw), 1);
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_true(spin_queue_take(q, &r));
    assert_int_equal(r.length, 8); /* the first ping has no data */
    run_all(raw);
    assert_int_equal(pw_raw_counts(raw, 0, &n), 0);
    assert_int_equal(n.answered, 0);
    assert_int_equal(n.timeouts, 4);       /* as many as the queue has slots */
    assert_int_equal(n.failed, PINGS - 4); /* the queue is full: they fail at once */
    assert_int_equal(spin_queue_refused(q), PINGS - 4);
    pw_raw_close(raw);
}

/* A host that has stopped answering costs its own context time-outs, and no frame of another. */
static void stopped(void **state)
{
    struct pw_raw *raw = fresh();
    struct pw_raw_context asks = {
        .name = "asks", .image = ask, .slots = 4, .room = 9000, .budget_us = 20000};
    struct pw_raw_context echo = {.name = "echo", .image = icmp, .priority = 1};
    struct pw_raw_source s = {.pcap = pings};
    struct pw_raw_counts n;
    (void)state;
    assert_int_equal(pw_raw_context(raw, &asks), 0);
    assert_int_equal(pw_raw_context(raw, &echo), 1);
    assert_int_equal(pw_raw_rules(raw,
                                  "set a context asks { icmp.type = echo; ip.length = 0..100 }\n"
                                  "set e context echo { icmp.type = echo }"),
                     0);
    assert_int_equal(pw_raw_open(raw, &s), 0);
    run_all(raw);
    assert_int_equal(pw_raw_counts(raw, 0, &n), 0);
    assert_int_equal(n.answered, 0);
    assert_int_equal(n.timeouts, 4);
    assert_true(n.failed > 0);
    assert_int_equal(n.frames, n.timeouts + n.failed + n.dropped);
    assert_int_equal(pw_raw_counts(raw, 1, &n), 0);
    assert_int_equal(n.answered, SHORT_NOT);
    assert_int_equal(n.timeouts + n.failed + n.faults, 0);
    pw_raw_close(raw);
}

static void wrong(void **state)
{
    struct pw_raw *raw = fresh();
    struct pw_raw_context c = {.image = "/nowhere.so"};
    struct pw_raw_source none = {0}, both = {.iface = "a", .tap = "b"}, gone = {.iface = "pwnone"};
    int fd;
    (void)state;
    refused(raw, pw_raw_turn(raw), -EINVAL, "pw_raw_open()");
    refused(raw, pw_raw_wait(raw, 0), -EINVAL, "pw_raw_open()");
    refused(raw, pw_raw_context(raw, &c), -EINVAL, "No such file");
    c.image = NULL;
    refused(raw, pw_raw_context(raw, &c), -EINVAL, "image");
    c = (struct pw_raw_context){.image = icmp, .share = 65};
    refused(raw, pw_raw_context(raw, &c), -EINVAL, "share");
    c = (struct pw_raw_context){.image = icmp, .slots = 3, .room = 8};
    refused(raw, pw_raw_context(raw, &c), -EINVAL, "power of two");
    c = (struct pw_raw_context){.image = icmp, .slots = 4, .room = 8, .state = 8};
    refused(raw, pw_raw_context(raw, &c), -EINVAL, "HPU memory");
    c = (struct pw_raw_context){.image = icmp};
    for (int i = 0; i < 16; i++) {
        assert_int_equal(pw_raw_context(raw, &c), i);
    }
    refused(raw, pw_raw_context(raw, &c), -ENOSPC, "16");
    pw_raw_close(raw);
    raw = fresh();
    assert_int_equal(pw_raw_context(raw, &c), 0);
    assert_null(pw_raw_queue(raw, 0, &fd));
    assert_int_equal(pw_raw_rules(raw, "all"), 0);
    refused(raw, pw_raw_open(raw, &none), -EINVAL, "a source is");
    refused(raw, pw_raw_open(raw, &both), -EINVAL, "a source is");
    refused(raw, pw_raw_open(raw, &gone), -EIO, "there is no interface pwnone");
    pw_raw_close(raw);
    pw_raw_close(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers), cmocka_unit_test(contexts), cmocka_unit_test(queues),
        cmocka_unit_test(stopped), cmocka_unit_test(wrong),
    };
    if (argc != 5) {
        return 2;
    }
    pings = argv[1];
    icmp = argv[2];
    count = argv[3];
    ask = argv[4];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
