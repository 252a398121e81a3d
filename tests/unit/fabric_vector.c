/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scatter and gather of the shared-memory fabric: payloads of all sizes, from memory in
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
        carry(&plan);
        /* The way it took: only a reference lets go of the lock. */
        bool reference = is_vm() && length > INLINE_MOST && from == WHOLE && plan.room != 0;
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

/* What can be wrong with memory in parts. */
enum damage { NO_ACCESS, WRAPS, TOO_SHORT, NO_LIST, NO_WRITE, DAMAGES };

static void spoil(struct memory *m, enum damage damage, size_t length)
{
    struct iovec *part = part_of(m, below(length));
    switch (damage) {
    case NO_ACCESS:
        part->iov_base = forbidden + below(4096);
        break;
    case WRAPS:
        part->iov_base = (void *)(UINTPTR_MAX - part->iov_len / 2);
        break;
    case TOO_SHORT:
        m->vector.count = (size_t)(part - m->vector.parts);
        break;
    case NO_LIST:
        free((struct iovec *)m->vector.parts);
        m->vector.parts = NULL;
        break;
    default:
        part->iov_base = read_only;
    }
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
    carry(&plan);
    carry(&plain);
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

/* Several messages at once, some bad: each ends in its turn, as it must. */
static void pipeline(const char *way)
{
    struct plan in_flight[PIPELINE];
    uint64_t turn = 0, ended = 0;
    open_both(way);
    arrived[FABRIC_REQUEST] = 0;
    while (ended < 600) {
        while (turn < 600 && turn - ended < PIPELINE) {
            struct plan *plan = plans[turn % PIPELINE] = &in_flight[turn % PIPELINE];
            size_t length = 1 + below(sizes[below(SIZES - 1)] + 1);
            bool bad = below(5) == 0, source = below(2) == 0;
            make_plan(plan, length, bad ? SMALL_PARTS : (enum shape)below(SHAPES),
                      bad ? SMALL_PARTS : (enum shape)below(SHAPES));
            plan->bad_source = bad && source;
            plan->bad_target = bad && !source;
            if (bad) {
                spoil(source ? &plan->from : &plan->to, (enum damage)below(NO_WRITE), length);
            }
            if (!send_plan(FABRIC_REQUEST, turn % PIPELINE, turn)) {
                free_plan(plan);
                break;
            }
            turn++;
        }
        poll_both();
        for (struct plan *p; ended < turn && (p = plans[ended % PIPELINE])->is_sent && p->is_done;
             ended++) {
            check_plan(p);
            free_plan(p);
        }
    }
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
static void source_can_be_taken_back(void **state)
{
    open_both("cells");
    struct plan plan;
    make_plan(&plan, 1 << 20, SMALL_PARTS, SMALL_PARTS);
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

/* The same for a deposit by reference, between two of its copies: the first has filled as
 * many parts as one call can, and nothing behind them is touched. */
static void target_can_be_taken_back(void **state)
{
    open_both("vm");
    struct plan plan;
    make_plan(&plan, 1 << 18, WHOLE, SMALL_PARTS);
    plan.taken_back = true;
    struct vector kept = plan.to.vector;
    carry(&plan);
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
    in_hand = NULL;
    carry_sound_ones();
    free_plan(&plan);
    close_both();
}

static int set_up(void **state)
{
    forbidden = mmap(NULL, BAD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    read_only = mmap(NULL, BAD_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return forbidden == MAP_FAILED || read_only == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    return munmap(forbidden, BAD_BYTES) | munmap(read_only, BAD_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sizes_through_cells),
        cmocka_unit_test(all_sizes_by_reference),
        cmocka_unit_test(bad_parts_through_cells),
        cmocka_unit_test(bad_parts_by_reference),
        cmocka_unit_test(pipeline_through_cells),
        cmocka_unit_test(pipeline_by_reference),
        cmocka_unit_test(at_once_gathers_all_or_nothing),
        cmocka_unit_test(source_can_be_taken_back),
        cmocka_unit_test(target_can_be_taken_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
