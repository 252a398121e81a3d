/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums that a sender has left open are completed, and no others; and nothing beyond a frame is
 * read, whatever its lengths say. */
#include "raw/source/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DATA = 33, MOST = 200 };

struct frame {
    uint8_t bytes[MOST];
    unsigned length, packet, inner, field, inner_length;
    bool v6;
};

static void put(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static unsigned sum_of(const uint8_t *data, unsigned length, unsigned sum)
{
    for (unsigned i = 0; i < length; i++) {
        sum += (unsigned)data[i] << (i % 2 == 0 ? 8 : 0);
    }
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static unsigned pseudo(const struct frame *f)
{
    unsigned protocol = f->bytes[f->packet + (f->v6 ? 6 : 9)];
    return sum_of(f->bytes + f->packet + (f->v6 ? 8 : 12), f->v6 ? 32 : 8,
                  protocol + f->inner_length);
}

/* A frame of so many tags, whose checksum is open. */
static struct frame make(unsigned tags, bool v6, bool udp)
{
    struct frame f = {.v6 = v6};
    unsigned head = udp ? 8 : 20;
    memset(f.bytes, 0x5a, sizeof(f.bytes));
    f.packet = 14 + 4 * tags;
    for (unsigned i = 0; i < tags; i++) {
        put(f.bytes + 12 + (size_t)4 * i, i + 1 < tags ? 0x88a8 : 0x8100);
    }
    put(f.bytes + f.packet - 2, v6 ? 0x86dd : 0x0800);
    f.inner = f.packet + (v6 ? 40 : 20);
    f.inner_length = head + DATA;
    f.length = f.inner + f.inner_length;
    uint8_t *p = f.bytes + f.packet;
    p[0] = v6 ? 0x60 : 0x45;
    put(p + (v6 ? 4 : 2), f.inner_length + (v6 ? 0 : 20));
    p[v6 ? 6 : 9] = udp ? 17 : 6;
    put(p + 6, v6 ? p[6] << 8 | p[7] : 0x4000);
    if (udp) {
        put(f.bytes + f.inner + 4, f.inner_length);
    }
    f.field = f.inner + (udp ? 6 : 16);
    put(f.bytes + f.field, pseudo(&f));
    return f;
}

static bool right(const struct frame *f)
{
    return sum_of(f->bytes + f->inner, f->inner_length, pseudo(f)) == 0xffff;
}

static void finished(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 12; way++) {
        struct frame f = make(way / 4, (way & 1) != 0, (way & 2) != 0), done;
        assert_false(right(&f));
        done = f;
        assert_true(raw_checksum_finish(done.bytes, done.length));
        assert_true(right(&done));
        /* right as it is now, or damaged, it stays */
        struct frame again = done;
        assert_false(raw_checksum_finish(again.bytes, again.length));
        again.bytes[again.field] ^= 0x10;
        done = again;
        assert_false(raw_checksum_finish(again.bytes, again.length));
        assert_memory_equal(again.bytes, done.bytes, sizeof(done.bytes));
    }
}

static void stays(struct frame f)
{
    struct frame before = f;
    assert_false(raw_checksum_finish(f.bytes, f.length));
    assert_memory_equal(f.bytes, before.bytes, sizeof(f.bytes));
}

static void others(void **state)
{
    struct frame f = make(0, false, true);
    (void)state;
    put(f.bytes + f.packet + 6, 0x2000); /* a fragment */
    stays(f);
    put(f.bytes + f.packet + 6, 3);
    stays(f);
    f = make(0, false, true);
    f.bytes[f.packet + 9] = 1;
    stays(f);
    f = make(0, false, true);
    put(f.bytes + f.field, 0); /* UDP without a checksum */
    stays(f);
    f = make(0, false, true);
    put(f.bytes + f.inner + 4, 7);
    stays(f);
    put(f.bytes + f.inner + 4, f.inner_length + 1);
    stays(f);
    stays(make(3, false, true)); /* more tags than rules know */
}

/* Memory of just the frame's length, for a sanitizer to see. */
static void lies(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 8; way++) {
        struct frame f = make(way / 4, (way & 1) != 0, (way & 2) != 0);
        for (unsigned length = 14; length <= f.length; length++) {
            for (unsigned value = 0; value < 512; value++) {
                uint8_t *copy = malloc(length);
                assert_non_null(copy);
                memcpy(copy, f.bytes, length);
                unsigned at = value < 256 ? f.packet : f.packet + (f.v6 ? 5 : 3);
                if (at < length) {
                    copy[at] = (uint8_t)value;
                }
                (void)raw_checksum_finish(copy, length);
                free(copy);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finished),
        cmocka_unit_test(others),
        cmocka_unit_test(lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
