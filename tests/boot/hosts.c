/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `pinwheel run --hosts` reads from other hosts, and its agents from it: frames, however
 * they are cut or spoiled, and lists of hosts. Usage: hosts PINWHEEL. The jobs themselves run
 * in tests/udp.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outcome.h"
#include "pinwheel/launch/frames.h"
#include "pinwheel/launch/host_list.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *pinwheel;
static struct outcome o;

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

/* ---- Frames ---- */

/* Some frames of all lengths, with what is behind them if anything. */
static struct frames some_frames(void)
{
    static uint8_t bytes[FRAME_MAX];
    struct frames q = {0};
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    assert_true(frames_put(&q, FRAME_OUT, 4095, bytes, FRAME_MAX));
    assert_true(frames_put(&q, FRAME_DONE, 0, NULL, 0));
    assert_true(frames_put_numbers(&q, FRAME_EXITED, 17, 1, 0x80000002, 2));
    assert_true(frames_put(&q, FRAME_PMI, 3, "cmd=get\n", 8));
    return q;
}

static void frames_may_be_cut_anywhere(void **state)
{
    static const size_t steps[] = {1, 7, 8, 9, 1000, 200000};
    struct frames all = some_frames();
    for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
        struct frames in = {0};
        struct frame f;
        int seen = 0;
        for (size_t at = 0; at < frames_queued(&all); at += steps[s]) {
            size_t left = frames_queued(&all) - at;
            assert_true(frames_append(&in, all.bytes + at, left < steps[s] ? left : steps[s]));
            for (int rc; (rc = frames_get(&in, &f)) != 0; seen++) {
                assert_int_equal(rc, 1);
                if (seen == 0) {
                    assert_int_equal(f.type, FRAME_OUT);
                    assert_int_equal(f.rank, 4095);
                    assert_int_equal(f.length, FRAME_MAX);
                    assert_memory_equal(f.bytes, all.bytes + FRAME_HEAD, FRAME_MAX);
                } else if (seen == 2) {
                    assert_int_equal(frames_number(&f, 0), 1);
                    assert_int_equal(frames_number(&f, 1), 0x80000002);
                    assert_int_equal(frames_number(&f, 2), 0); /* it has two */
                }
            }
        }
        assert_int_equal(seen, 4);
        assert_int_equal(frames_queued(&in), 0);
        frames_free(&in);
    }
    frames_free(&all);
}

static void spoiled_frames_are_refused_or_within_bounds(void **state)
{
    srandom(1);
    for (int round = 0; round < 2000; round++) {
        uint8_t bytes[256];
        struct frames in = {0};
        struct frame f;
        size_t length = (size_t)random() % sizeof(bytes);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = random() % 3 == 0 ? (uint8_t)random() : 0;
        }
        bytes[0] = (uint8_t)(random() % 32);
        assert_true(frames_append(&in, bytes, length));
        while (frames_get(&in, &f) == 1) {
            assert_true(f.type > 0 && f.type < FRAME_TYPES && f.rank >= 0 && f.length <= length);
            unsigned sum = 0;
            for (uint32_t i = 0; i < f.length; i++) {
                sum += f.bytes[i]; /* all of it is there, as a sanitizer would say */
            }
            assert_true(sum <= 255 * f.length);
        }
        frames_free(&in);
    }
    static const uint8_t bad[][FRAME_HEAD] = {
        {0, 0, 0, 0, 0, 0, 0, 0},           /* a type that there is not */
        {FRAME_TYPES, 0, 0, 0, 0, 0, 0, 0}, /* likewise */
        {FRAME_OUT, 1, 0, 0, 0, 0, 0, 0},   /* the reserved byte */
        {FRAME_OUT, 0, 0, 0, 0, 2, 0, 1},   /* one byte too long */
        {FRAME_OUT, 0, 0, 0, 255, 255, 255, 255},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct frames in = {0};
        struct frame f;
        assert_true(frames_append(&in, bad[i], FRAME_HEAD));
        assert_int_equal(frames_get(&in, &f), -EPROTO);
        frames_free(&in);
    }
}

static void a_greeting_is_found_behind_noise(void **state)
{
    static const char text[] = "Welcome!\n" FRAMES_GREETING "1.2\n";
    const uint8_t *noise;
    size_t noise_length;
    char rest[64];
    struct frames in = {0};
    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        assert_int_equal(frames_greeting(&in, &noise, &noise_length, rest), 0);
        assert_true(frames_append(&in, text + i, 1));
    }
    assert_int_equal(frames_greeting(&in, &noise, &noise_length, rest), 1);
    assert_int_equal(noise_length, 9);
    assert_memory_equal(noise, "Welcome!\n", 9);
    assert_string_equal(rest, "1.2");
    assert_int_equal(frames_queued(&in), 0);
    static const char much[70000];
    assert_true(frames_append(&in, much, sizeof(much)));
    assert_int_equal(frames_greeting(&in, &noise, &noise_length, rest), -EPROTO);
    frames_free(&in);
    assert_true(frames_append(&in, FRAMES_GREETING, sizeof(FRAMES_GREETING) - 1));
    assert_true(frames_append(&in, much + 1, 64));
    assert_true(frames_append(&in, "\n", 1));
    assert_int_equal(frames_greeting(&in, &noise, &noise_length, rest), -EPROTO);
    frames_free(&in);
}

/* ---- Lists of hosts ---- */

static void lists_of_hosts(void **state)
{
    struct host_list l = {0};
    char error[256];
    assert_int_equal(host_list_add(&l, "a,user@b.example:3", error, sizeof(error)), 0);
    assert_int_equal(host_list_add(&l, "10.0.0.1:2", error, sizeof(error)), 0);
    assert_int_equal(l.count, 3);
    assert_int_equal(l.ranks, 6);
    assert_string_equal(l.at[1].name, "user@b.example");
    assert_int_equal(host_list_fit(&l, 7, error, sizeof(error)), -1);
    assert_int_equal(host_list_fit(&l, 3, error, sizeof(error)), 0);
    assert_int_equal(l.count, 2);
    assert_int_equal(l.at[1].ranks, 2);
    host_list_free(&l);

    static const char *const bad[] = {"",     ",",    "a,",    "a:",     "a:0",
                                      "a:-1", "a:1x", "a:b",   ":2",     "-oX=y",
                                      "a b",  "a,a",  "a:1:2", "a:4097", "a:4096,b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(host_list_add(&l, bad[i], error, sizeof(error)), -1);
        assert_true(strlen(error) > 0);
        host_list_free(&l);
    }
}

/* ---- Both ends ---- */

/* An agent that is sent these bytes, and then nothing. */
static void feed_agent(const void *bytes, size_t length)
{
    const char *const argv[] = {pinwheel, "run", "--agent", NULL};
    outcome_start(&o, argv);
    for (const char *at = bytes; length > 0;) {
        ssize_t n = write(o.to_in, at, length);
        if (n <= 0) {
            break; /* it has ended: EPIPE */
        }
        at += n;
        length -= (size_t)n;
    }
    outcome_end(&o);
    assert_true(o.status == 0 || o.status == 1);
}

static void an_agent_refuses_what_no_launcher_says(void **state)
{
    static const char text[] = "GET / HTTP/1.0\r\n\r\n";
    feed_agent("", 0);
    assert_string_equal(o.err, "");
    feed_agent(text, sizeof(text));
    assert_contains(o.err, "this is no launcher's");
    static const enum frame_type early[] = {FRAME_SIGNAL, FRAME_END,    FRAME_INPUT,
                                            FRAME_OUT,    FRAME_EXITED, FRAME_START};
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
        struct frames q = {0};
        assert_true(frames_put(&q, early[i], 0, "123456789", 8));
        feed_agent(q.bytes + q.start, frames_queued(&q));
        assert_contains(o.err, "this is no launcher's");
        frames_free(&q);
    }
}

/* Starts `count` ranks of `size`, the first one `first`, and ends. */
static void start_ranks(int first, uint32_t size, uint32_t count)
{
    struct frames q = {0};
    assert_true(frames_put(&q, FRAME_KEY, 0, "k", 1));
    assert_true(frames_put(&q, FRAME_ID, 0, "j", 1));
    assert_true(frames_put(&q, FRAME_ARGUMENT, 0, "true", 4));
    assert_true(frames_put_numbers(&q, FRAME_START, first, size, count, 2));
    assert_true(frames_put(&q, FRAME_END, first, NULL, 0));
    feed_agent(q.bytes + q.start, frames_queued(&q));
    frames_free(&q);
}

static void an_agent_checks_the_ranks_that_it_is_to_start(void **state)
{
    start_ranks(1, 3, 2);
    assert_string_equal(o.err, "");
    static const struct {
        int first;
        uint32_t size, count;
    } bad[] = {{0, 0, 0},     {0, 2, 0},    {0, 2, 3},          {1, 2, 2},       {2, 2, 1},
               {65535, 2, 1}, {0, 5000, 2}, {0, UINT32_MAX, 1}, {0, 2, 1u << 30}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        start_ranks(bad[i].first, bad[i].size, bad[i].count);
        assert_contains(o.err, "this is no launcher's");
    }
}

/* A launcher whose "host" sends what the file has. */
static void launch_with(const char *path)
{
    char script[64];
    snprintf(script, sizeof(script), "%s.sh", path);
    FILE *f = fopen(script, "we");
    assert_non_null(f);
    fprintf(f, "cat %s; exec cat >%s.in\n", path, path);
    assert_int_equal(fclose(f), 0);
    char shell[80];
    snprintf(shell, sizeof(shell), "sh %s", script);
    const char *const argv[] = {pinwheel, "run", "--ssh", shell, "--hosts", "a:2", "true", NULL};
    outcome_start(&o, argv);
    outcome_end(&o);
    unlink(script);
    snprintf(script, sizeof(script), "%s.in", path);
    unlink(script);
}

static void a_launcher_refuses_what_no_agent_says(void **state)
{
    char path[] = "/tmp/pinwheel-hosts-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const struct {
        enum frame_type type;
        int rank;
        const char *bytes;
        size_t length;
    } bad[] = {{FRAME_START, 0, "", 0},
               {FRAME_KEY, 0, "x", 1},
               {FRAME_OUT, 2, "x", 1}, /* there are two ranks */
               {FRAME_OUT, 65535, "x", 1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct frames q = {0};
        static const char greeting[] = FRAMES_GREETING PINWHEEL_VERSION "\n";
        assert_true(frames_append(&q, greeting, sizeof(greeting) - 1));
        assert_true(frames_put(&q, bad[i].type, bad[i].rank, bad[i].bytes, bad[i].length));
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, q.bytes, frames_queued(&q), 0), (ssize_t)frames_queued(&q));
        frames_free(&q);
        launch_with(path);
        assert_int_equal(o.status, 1);
        assert_contains(o.err, "host a: sends what no agent of Pinwheel's sends");
    }
    static const char other[] = FRAMES_GREETING "0.0.0\n";
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, other, sizeof(other) - 1, 0), sizeof(other) - 1);
    launch_with(path);
    assert_int_equal(o.status, 1);
    assert_contains(o.err, "host a: has Pinwheel 0.0.0");
    close(fd);
    unlink(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_may_be_cut_anywhere),
        cmocka_unit_test(spoiled_frames_are_refused_or_within_bounds),
        cmocka_unit_test(a_greeting_is_found_behind_noise),
        cmocka_unit_test(lists_of_hosts),
        cmocka_unit_test(an_agent_refuses_what_no_launcher_says),
        cmocka_unit_test(an_agent_checks_the_ranks_that_it_is_to_start),
        cmocka_unit_test(a_launcher_refuses_what_no_agent_says),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: hosts PINWHEEL\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    pinwheel = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
