/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/textscan.c with the test in place of the NIC: it cuts texts into
 * messages and packets of many sizes, calls the handlers with the packets of a
 * message in a random order (fixed seeds), and compares the result with a count
 * of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spin_handler.h"
#include "textscan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What handlers call ---- */

static uint8_t *host;
static uint64_t host_length;

int PtlHandlerFAdd(uint64_t *value, uint64_t *before, uint64_t inc)
{
    if (before != NULL) {
        *before = *value;
    }
    *value += inc;
    return PTL_OK;
}

int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t length,
                         unsigned int options)
{
    assert_int_equal(options, PTL_HANDLER_HOST_MEM);
    assert_true(offset <= host_length && length <= host_length - offset);
    memcpy(host + offset, local, length);
    return PTL_OK;
}

/* ---- Helpers ---- */

static uint64_t seed;

static uint64_t below(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static struct textscan_filter filter_of(const char *const *words, unsigned count)
{
    struct textscan_filter f = {0};
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(textscan_add(&f, words[i], strlen(words[i])), TEXTSCAN_ADDED);
    }
    return f;
}

static int folded(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static int of_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c > 127;
}

/* How often a word stands in a text: tried at every place. */
static uint64_t occurrences(const uint8_t *text, uint64_t length, const char *word)
{
    uint64_t n = strlen(word), found = 0;
    for (uint64_t at = 0; at + n <= length; at++) {
        uint64_t same = 0;
        while (same < n && folded(text[at + same]) == folded((uint8_t)word[same])) {
            same++;
        }
        found += same == n && (at == 0 || !of_word(text[at - 1])) &&
                 (at + n == length || !of_word(text[at + n]));
    }
    return found;
}

static void shuffle(uint64_t *order, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint64_t i = count; i > 1; i--) {
        uint64_t other = below(i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

struct machine {
    struct textscan_filter filter;
    uint64_t packet;
    ptl_handlers_t handlers[TEXTSCAN_SLOTS];
    struct textscan_state *slot[TEXTSCAN_SLOTS];
};

static void start(struct machine *m, uint64_t packet, uint64_t messages)
{
    m->packet = packet;
    host_length = textscan_host_size(messages);
    host = calloc(1, host_length);
    assert_non_null(host);
    for (unsigned s = 0; s < TEXTSCAN_SLOTS; s++) {
        static struct textscan_state initial;
        memset(&initial, 0xee, sizeof(initial)); /* only what is said to be copied may count */
        m->slot[s] = calloc(1, sizeof(*m->slot[s]));
        assert_non_null(m->slot[s]);
        textscan_handlers(s, &m->filter, packet, PTL_HPU_MEM_NONE, host, messages, &initial,
                          &m->handlers[s]);
        assert_ptr_equal(m->handlers[s].handler_host_mem, host);
        assert_int_equal(m->handlers[s].handler_host_length, host_length);
        memcpy(m->slot[s], m->handlers[s].hpu_initial_state, m->handlers[s].hpu_initial_length);
    }
}

static void stop(struct machine *m)
{
    for (unsigned s = 0; s < TEXTSCAN_SLOTS; s++) {
        free(m->slot[s]);
    }
    free(host);
}

/* One message, its packets in random order. */
static void deliver(struct machine *m, uint64_t number, const uint8_t *text, uint64_t length)
{
    const ptl_handlers_t *h = &m->handlers[number % TEXTSCAN_SLOTS];
    struct textscan_state *state = m->slot[number % TEXTSCAN_SLOTS];
    uint64_t order[TEXTSCAN_PACKETS], packets = (length + m->packet - 1) / m->packet;
    static uint8_t copy[65536];
    ptl_header_t header = {.type = PTL_REQUEST_PUT, .length = length, .hdr_data = number};
    assert_int_equal(h->header_handler(header, state), PROCESS_DATA);
    shuffle(order, packets);
    for (uint64_t i = 0; i < packets; i++) {
        uint64_t at = order[i] * m->packet;
        ptl_payload_t p = {.length = length - at < m->packet ? length - at : m->packet,
                           .offset = at,
                           .base = copy};
        assert_true(p.length <= sizeof(copy));
        memcpy(copy, text + at, p.length); /* a handler sees its packet only */
        memset(copy + p.length, 'x', p.length < sizeof(copy) ? 1 : 0);
        assert_int_equal(h->payload_handler(p, state), SUCCESS);
    }
    assert_int_equal(h->completion_handler(0, false, state), SUCCESS);
}

static void scan(struct machine *m, const uint8_t *text, uint64_t length, uint64_t message,
                 struct textscan_totals *totals)
{
    uint64_t messages = (length + message - 1) / message;
    for (uint64_t i = 0; i < messages; i++) {
        uint64_t at = i * message;
        deliver(m, i, text + at, length - at < message ? length - at : message);
    }
    textscan_result(host, messages, &m->filter, totals);
    assert_int_equal(totals->messages, messages);
}

static void compare(const struct machine *m, const uint8_t *text, uint64_t length,
                    const char *const *words, const struct textscan_totals *totals)
{
    uint64_t bytes[256] = {0};
    for (uint64_t i = 0; i < length; i++) {
        bytes[text[i]]++;
    }
    assert_memory_equal(bytes, totals->bytes, sizeof(bytes));
    for (unsigned w = 0; w < m->filter.count; w++) {
        uint64_t n = occurrences(text, length, words[w]);
        if (n != totals->words[w]) {
            fail_msg("\"%s\": %llu, not %llu; packets of %llu bytes", words[w],
                     (unsigned long long)totals->words[w], (unsigned long long)n,
                     (unsigned long long)m->packet);
        }
    }
}

/* ---- Tests ---- */

static void random_texts_in_any_order_of_packets(void **state)
{
    static const char *const words[] = {"a", "ab", "aba", "b", "bb", "abbab", "\xc3\xa4", "a1"};
    static const char letters[] = "aaabbbAB  \n-1\xc3\xa4";
    static uint8_t text[60000];
    struct machine m = {.filter = filter_of(words, 8)};
    seed = 20240601;
    for (int round = 0; round < 300; round++) {
        uint64_t packet = 1 + below(round % 3 == 0 ? 4 : 300);
        uint64_t message = packet * (1 + below(TEXTSCAN_PACKETS));
        uint64_t length = below(round % 2 == 0 ? 200 : 20000);
        uint64_t runs = 1 + below(60); /* now and then a very long word */
        for (uint64_t i = 0; i < length; i++) {
            text[i] = (uint8_t)letters[below(below(runs) == 0 ? 14 : 6)];
        }
        struct textscan_totals totals;
        start(&m, packet, (length + message - 1) / message);
        scan(&m, text, length, message, &totals);
        assert_int_equal(totals.packets >= length / packet, 1);
        compare(&m, text, length, words, &totals);
        stop(&m);
    }
}

static void any_bytes(void **state)
{
    static const char *const words[] = {"a", "0", "zz"};
    static uint8_t text[40000];
    struct machine m = {.filter = filter_of(words, 3)};
    struct textscan_totals totals;
    seed = 77;
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (uint8_t)below(256);
    }
    start(&m, 64, 5);
    scan(&m, text, sizeof(text), 128 * 64, &totals);
    compare(&m, text, sizeof(text), words, &totals);
    stop(&m);
}

/* A word cut by an edge of packets and of messages, after each of its letters. */
static void a_word_over_every_edge(void **state)
{
    static const char *const words[] = {"boundary", "bound", "ary", "y"};
    enum { PACKET = 64, MESSAGE = 3 * PACKET, LENGTH = 20 * MESSAGE };
    uint8_t text[LENGTH];
    struct machine m = {.filter = filter_of(words, 4)};
    struct textscan_totals totals;
    for (unsigned cut = 0; cut <= 8; cut++) {
        memset(text, '.', sizeof(text));
        for (unsigned edge = PACKET; edge < LENGTH; edge += PACKET) {
            memcpy(text + edge - cut, "Boundary", 8);
        }
        start(&m, PACKET, 20);
        scan(&m, text, LENGTH, MESSAGE, &totals);
        assert_int_equal(totals.words[0], LENGTH / PACKET - 1);
        compare(&m, text, LENGTH, words, &totals);
        stop(&m);
    }
}

/* A word that reaches over several packets, and one that is too long. */
static void long_words(void **state)
{
    char longest[TEXTSCAN_WORD_MAX + 1] = "";
    memset(longest, 'w', TEXTSCAN_WORD_MAX);
    const char *const words[] = {longest, "w", "ww"};
    struct machine m = {.filter = filter_of(words, 3)};
    for (uint64_t packet = 1; packet < 40; packet++) {
        for (uint64_t n = 0; n < 80; n++) {
            uint8_t text[100];
            struct textscan_totals totals;
            memset(text, 'w', n);
            text[n] = ' ';
            memset(text + n + 1, 'w', 2);
            start(&m, packet, 100);
            scan(&m, text, n + 3, 2 * packet, &totals);
            compare(&m, text, n + 3, words, &totals);
            stop(&m);
        }
    }
}

static void joining_does_not_depend_on_the_grouping(void **state)
{
    static const char *const words[] = {"a", "aa", "aaa", "aaaa"};
    static const char letters[] = "aaaa ";
    struct textscan_filter f = filter_of(words, 4);
    seed = 4;
    for (int round = 0; round < 2000; round++) {
        uint8_t text[24];
        uint64_t left[TEXTSCAN_WORDS] = {0}, right[TEXTSCAN_WORDS] = {0};
        struct textscan_edges part[3], l, r;
        uint64_t at = 0;
        for (int i = 0; i < 24; i++) {
            text[i] = (uint8_t)letters[below(5)];
        }
        for (int i = 0; i < 3; i++) {
            uint64_t length = i == 2 ? 24 - at : below(24 - at + 1);
            uint64_t inside[TEXTSCAN_WORDS] = {0};
            textscan_stretch(&f, text + at, length, inside, &part[i]);
            for (int w = 0; w < 4; w++) {
                left[w] += inside[w];
                right[w] += inside[w];
            }
            at += length;
        }
        l = part[0];
        textscan_join(&f, &l, &part[1], left);
        textscan_join(&f, &l, &part[2], left);
        textscan_end(&f, &l, left);
        r = part[1];
        textscan_join(&f, &r, &part[2], right);
        l = part[0];
        textscan_join(&f, &l, &r, right);
        textscan_end(&f, &l, right);
        for (int w = 0; w < 4; w++) {
            assert_int_equal(left[w], right[w]);
            assert_int_equal(left[w], occurrences(text, 24, words[w]));
        }
    }
}

static void nothing_at_all(void **state)
{
    static const char *const words[] = {"a"};
    struct machine m = {.filter = filter_of(words, 1)};
    struct textscan_totals totals;
    start(&m, 64, 1);
    textscan_result(host, 0, &m.filter, &totals);
    compare(&m, (const uint8_t *)"", 0, words, &totals);
    deliver(&m, 0, (const uint8_t *)"", 0); /* a message without payload */
    textscan_result(host, 1, &m.filter, &totals);
    assert_int_equal(totals.messages, 1);
    compare(&m, (const uint8_t *)"", 0, words, &totals);
    stop(&m);
}

static void what_cannot_be_right_fails(void **state)
{
    struct machine m = {.filter = {0}};
    start(&m, 64, 1);
    ptl_header_t header = {.type = PTL_REQUEST_PUT, .length = 64 * TEXTSCAN_PACKETS + 1};
    uint8_t byte = 'x';
    ptl_payload_t beyond = {.length = 1, .offset = 64 * TEXTSCAN_PACKETS, .base = &byte};
    assert_int_equal(textscan_header(header, m.slot[0]), FAIL);
    header.length--;
    assert_int_equal(textscan_header(header, m.slot[0]), PROCESS_DATA);
    assert_int_equal(textscan_payload(beyond, m.slot[0]), FAIL);
    assert_int_equal(textscan_completion(1, false, m.slot[0]), FAIL);
    assert_int_equal(textscan_completion(0, true, m.slot[0]), FAIL);
    stop(&m);
}

static void filters_take_words_only(void **state)
{
    struct textscan_filter f = {0};
    char word[64];
    memset(word, 'q', sizeof(word));
    assert_int_equal(textscan_add(&f, "", 0), TEXTSCAN_EMPTY);
    assert_int_equal(textscan_add(&f, "a b", 3), TEXTSCAN_BYTE);
    assert_int_equal(textscan_add(&f, "a-b", 3), TEXTSCAN_BYTE);
    assert_int_equal(textscan_add(&f, word, TEXTSCAN_WORD_MAX + 1), TEXTSCAN_LONG);
    assert_int_equal(textscan_add(&f, word, TEXTSCAN_WORD_MAX), TEXTSCAN_ADDED);
    assert_int_equal(textscan_add(&f, "Word", 4), TEXTSCAN_ADDED);
    assert_int_equal(textscan_add(&f, "wORD", 4), TEXTSCAN_TWICE);
    for (int i = 2; i < TEXTSCAN_WORDS; i++) {
        snprintf(word, sizeof(word), "w%d", i);
        assert_int_equal(textscan_add(&f, word, strlen(word)), TEXTSCAN_ADDED);
    }
    assert_int_equal(textscan_add(&f, "more", 4), TEXTSCAN_FULL);
    assert_int_equal(f.count, TEXTSCAN_WORDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts_in_any_order_of_packets),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(a_word_over_every_edge),
        cmocka_unit_test(long_words),
        cmocka_unit_test(joining_does_not_depend_on_the_grouping),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(what_cannot_be_right_fails),
        cmocka_unit_test(filters_take_words_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
