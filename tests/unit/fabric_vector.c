/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scatter and gather of the fabrics: payloads of all sizes, from memory in
 * parts to memory in parts, by each way that a payload can take; bad parts, and vectors
 * that are taken back while they are in use.
 */
#include "fabric_fixture.h"

#include <limits.h>

static const size_t sizes[] = {
    0,      1,    7,    8,    9,        100,          1023,          1024,
    1025,   4095, 4096, 4097, 3 * 4096, 3 * 4096 + 1, 17 * 4096 - 1, 100000,
    1 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static bool is_vm(void)
{
    return options.number[OPT_SHM_LARGE] == 2;
}

static void try_size(size_t length, enum shape from, enum shape to)
{
    size_t rooms[] = {length, length / 2, 0, length + 1000};
    for (unsigned i = 0; i < 4; i++) {
        struct plan plan;
        make_plan(&plan, length, from, to);
        plan.room = rooms[i];
        plan.headed = below(3) == 0;
        enum fabric_class class = (enum fabric_class)below(FABRIC_CLASSES);
        carry_as(class, &plan);
        /* The way it took: only a reference lets go of the lock. No ask is one. */
        bool reference = is_vm() && class != FABRIC_ASK && length > INLINE_MOST && from == WHOLE &&
                         plan.room != 0;
        assert_true(reference ? unlocks != 0 : unlocks == 0 || from == WHOLE);
        free_plan(&plan);
    }
    struct plan plan;
    make_plan(&plan, length, from, to);
    plan.by_packets = true;
    carry(&plan);
    free_plan(&plan);
}

static void all_sizes(const char *way)
{
    open_both(way);
    for (unsigned i = 0; i < SIZES; i++) {
        for (unsigned shapes = 0; shapes < SHAPES * SHAPES; shapes++) {
            try_size(sizes[i], (enum shape)(shapes / SHAPES), (enum shape)(shapes % SHAPES));
        }
    }
    try_size(((size_t)5 << 20) + 3, WHOLE, LARGE_PARTS); /* more than one copy by reference */
    close_both();
}

static void all_sizes_through_cells(void **state)
{
    all_sizes("cells");
}

static void all_sizes_by_reference(void **state)
{
    all_sizes("vm");
}

static void all_sizes_over_udp(void **state)
{
    all_sizes("udp");
}

/* The ends are told of a bad part as of a bad contiguous buffer. */
static void try_damage(size_t length, bool source, enum damage damage, enum shape shape)
{
    struct plan plan, plain;
    enum shape other = (enum shape)below(SHAPES);
    make_plan(&plan, length, source ? shape : other, source ? other : shape);
    make_plan(&plain, length, source ? WHOLE : other, source ? other : WHOLE);
    plan.bad_source = plain.bad_source = source;
    plan.bad_target = plain.bad_target = !source;
    spoil(source ? &plan.from : &plan.to, damage, length);
    if (source) {
        plain.tx.base = forbidden;
    } else {
        plain.to.base = forbidden;
    }
    /* What is short for the ring of one class is long for that of another. */
    enum fabric_class class = (enum fabric_class)below(FABRIC_CLASSES);
    carry_as(class, &plan);
    carry_as(class, &plain);
    assert_int_equal(plan.done, plain.done);
    assert_int_equal(plan.sent, plain.sent);
    carry_sound_ones();
    free_plan(&plan);
    free_plan(&plain);
}

static void all_damages(const char *way)
{
    open_both(way);
    for (unsigned i = 1; i < SIZES; i++) {
        for (unsigned d = 0; d < DAMAGES; d++) {
            enum shape shape = below(2) == 0 ? LARGE_PARTS : SMALL_PARTS;
            if (d != NO_WRITE) {
                try_damage(sizes[i], true, (enum damage)d, shape);
            }
            try_damage(sizes[i], false, (enum damage)d, shape);
        }
    }
    close_both();
}

static void bad_parts_through_cells(void **state)
{
    all_damages("cells");
}

static void bad_parts_by_reference(void **state)
{
    all_damages("vm");
}

static void bad_parts_over_udp(void **state)
{
    all_damages("udp");
}

static void pipeline(const char *way)
{
    open_both(way);
    stream(600, sizes[SIZES - 2]);
    close_both();
}

static void pipeline_through_cells(void **state)
{
    pipeline("cells");
}

static void pipeline_by_reference(void **state)
{
    pipeline("vm");
}

static void pipeline_over_udp(void **state)
{
    pipeline("udp");
}

/* At once is all of it or nothing. */
static void at_once_gathers_all_or_nothing(void **state)
{
    open_both("vm");
    struct plan fits, large;
    make_plan(&fits, 4 * PACKET, LARGE_PARTS, SMALL_PARTS);
    make_plan(&large, 17 * PACKET, LARGE_PARTS, SMALL_PARTS);
    fits.tx.at_once = large.tx.at_once = true;
    plans[0] = &large;
    assert_false(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    plans[0] = &fits;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    assert_true(fits.is_sent);
    finish(&fits);
    check_plan(&fits);
    free_plan(&fits);
    free_plan(&large);
    close_both();
}

/* A vector that is taken back while its payload leaves is not looked at again, and the
 * receiver learns that the payload is none. */
static void take_source_back(const char *way, size_t length)
{
    open_both(way);
    struct plan plan;
    make_plan(&plan, length, SMALL_PARTS, SMALL_PARTS);
    plan.bad_source = true;
    plans[0] = &plan;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    for (int i = 0; i < 3; i++) {
        poll_both();
    }
    assert_false(plan.is_sent);
    struct vector kept = plan.from.vector;
    plan.from.vector.parts = (struct iovec *)forbidden;
    plan.tx.vector = (struct vector *)forbidden;
    plan.tx.fault = FABRIC_UNDELIVERABLE;
    finish(&plan);
    assert_int_equal(plan.sent, FABRIC_UNDELIVERABLE);
    assert_int_equal(plan.done, FABRIC_SEGV);
    plan.from.vector = kept;
    carry_sound_ones();
    free_plan(&plan);
    close_both();
}

static void source_can_be_taken_back(void **state)
{
    take_source_back("cells", 1 << 20);
}

static void source_can_be_taken_back_over_udp(void **state)
{
    take_source_back("udp", 16 << 20);
}

/* The same for a deposit by reference, between two of its copies: the first has filled as
 * many parts as one call can, and nothing behind them is touched. */
static void target_can_be_taken_back(void **state)
{
    open_both("vm");
    struct plan plan;
    make_plan(&plan, 1 << 18, WHOLE, SMALL_PARTS);
    plan.taken_back = true;
    struct vector kept = plan.to.vector;
    carry_as(FABRIC_REQUEST, &plan); /* an ask is no reference */
    assert_int_equal(unlocks, 2);
    plan.to.vector = kept;
    uint8_t *found = malloc(plan.length);
    get_bytes(&plan.to, found, plan.length);
    uint64_t most = (uint64_t)2 * IOV_MAX * 17, some = IOV_MAX;
    assert_memory_equal(found, plan.payload, some);
    for (uint64_t i = most; i < plan.length; i++) {
        assert_int_equal(found[i], 0xee);
    }
    free(found);
    in_progress = NULL;
    carry_sound_ones();
    free_plan(&plan);
    close_both();
}

int main(void)
{
    idle_most = UINT_MAX; /* packets take time; a test that hangs has a time-out */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sizes_through_cells),
        cmocka_unit_test(all_sizes_by_reference),
        cmocka_unit_test(bad_parts_through_cells),
        cmocka_unit_test(bad_parts_by_reference),
        cmocka_unit_test(pipeline_through_cells),
        cmocka_unit_test(pipeline_by_reference),
        cmocka_unit_test(all_sizes_over_udp),
        cmocka_unit_test(bad_parts_over_udp),
        cmocka_unit_test(pipeline_over_udp),
        cmocka_unit_test(source_can_be_taken_back_over_udp),
        cmocka_unit_test(at_once_gathers_all_or_nothing),
        cmocka_unit_test(source_can_be_taken_back),
        cmocka_unit_test(target_can_be_taken_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
