/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word of an entry (pin/word.h), load by load and store by store: hits, releases, evictions,
 * roll-backs and moves of the lock's holder in all interleavings, on a memory where a load may see
 * any store that it is not forbidden to by what its thread has seen.
 *
 * For each memory order in word.h a test weakens it to relaxed, and the violation is found; but for
 * that of word_take()'s exchange, which guards against what this memory does not do: a load of an
 * identity that is given later.
 */
#include "pin_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define PIN_LOAD(at, order) model_load(at, order_##order, __func__)
#define PIN_STORE(at, value, order) model_store(at, value, order_##order, __func__)
#define PIN_CAS(at, seen, value, order) model_cas(at, seen, value, order_##order, __func__)
#include "pin/word.h"

static bool thorough; /* with an argument: three threads everywhere */

/* ---- What the threads do ---- */

static struct pin_word entry;
static _Atomic uint64_t epoch;
enum { LEN = 4096, NODE = 1 };

/* A hit and its release; the release takes the lock if it must, and lists the entry again. */
static void hit(uint64_t addr)
{
    uint32_t generation;
    if (!word_take(&entry, NODE, addr, 8, &generation)) {
        return;
    }
    model_use(addr);
    enum word_drop how = word_drop(&entry, generation, &epoch);
    if (how == WORD_STALE) {
        model_note("a use is not known any more");
    }
    if (how == WORD_SLOW) {
        model_lock();
        uint64_t word = PIN_LOAD(&entry.word, relaxed);
        if (word & WORD_HIT) {
            if (word_use(&entry, -1) > 2) {
                model_note("more uses than there are threads");
            }
        } else if (word_use(&entry, -1) == 0) {
            word_open(&entry);
        }
        model_unlock();
    }
}

static void first_twice(void)
{
    hit(LEN);
    hit(LEN);
}

static void first(void)
{
    hit(LEN);
}

static void second(void)
{
    hit(2 * LEN);
}

/* Replaces the first range by the second, if it is idle. */
static void move(void)
{
    model_lock();
    if (word_seize(&entry)) {
        model_pin(0);
        word_name(&entry, NODE, 2 * LEN, LEN);
        model_pin(2 * LEN);
        word_open(&entry);
    }
    model_unlock();
}

/* Finds it in use, or not: its last release is told to take the lock; then tries again. */
static void shut_and_move(void)
{
    model_lock();
    if (word_seize(&entry) || word_shut(&entry) == 0) {
        word_open(&entry);
    }
    model_unlock();
    move();
}

/* Whoever ends all shuts it and replaces it only if nobody used it. */
static void close_down(void)
{
    model_lock();
    if (word_shut(&entry) == 0) {
        model_pin(0);
        word_name(&entry, NODE, 2 * LEN, LEN);
        model_pin(2 * LEN);
        word_open(&entry);
    }
    model_unlock();
}

/* Takes it as a replacement, gives it back, and somebody else moves it later. */
static void roll_back_and_move(void)
{
    model_lock();
    if (word_seize(&entry)) {
        word_open(&entry);
    }
    model_unlock();
    move();
}

/* A hit under the lock beside hits without it. */
static void locked_hit(void)
{
    model_lock();
    uint64_t word = PIN_LOAD(&entry.word, relaxed);
    bool mine = (word & WORD_HIT) && PIN_LOAD(&entry.addr, relaxed) == LEN;
    if (mine) {
        word_use(&entry, 1);
    }
    model_unlock();
    if (mine) {
        model_use(LEN);
        model_lock();
        word = PIN_LOAD(&entry.word, relaxed);
        if (word_use(&entry, -1) == 0 && !(PIN_LOAD(&entry.word, relaxed) & WORD_HIT)) {
            word_open(&entry);
        }
        model_unlock();
    }
}

/* Replaces it; what it has read as the time of the last release must be right. */
static void move_by_stamp(void)
{
    model_lock();
    if (word_seize(&entry)) {
        if (PIN_LOAD(&entry.stamp, relaxed) != model_last(&entry.stamp)) {
            model_note("the stamp of the last release is not seen");
        }
        word_open(&entry);
    }
    model_unlock();
}

static void end(void)
{
    uint64_t last = model_last(&entry.word);
    if (word_uses(last) != 0) {
        model_note("a use is left");
    }
    if (!(last & WORD_HIT)) {
        model_note("the entry cannot be hit any more");
    }
}

static const char *explore(void (*a)(void), void (*b)(void), void (*c)(void))
{
    const struct model_place places[] = {
        {&entry.word, WORD_HIT}, {&entry.addr, LEN},  {&entry.len, LEN},
        {&entry.stamp, 7},       {&entry.node, NODE}, {&epoch, 8},
    };
    return model_explore(&(struct model){.places = places,
                                         .count = sizeof(places) / sizeof(places[0]),
                                         .pinned = LEN,
                                         .script = {a, b, c},
                                         .end = end});
}

static void hits_beside_a_move(void **state)
{
    assert_null(explore(first, second, move));
    assert_null(explore(first_twice, move, NULL));
    if (thorough) {
        assert_null(explore(first, first, move));
    }
}

static void slow_releases(void **state)
{
    assert_null(explore(first, shut_and_move, NULL));
    assert_null(explore(first, close_down, NULL));
    if (thorough) {
        assert_null(explore(first, first, shut_and_move));
    }
}

static void roll_backs(void **state)
{
    assert_null(explore(first, roll_back_and_move, NULL));
    if (thorough) {
        assert_null(explore(first, second, roll_back_and_move));
    }
}

static void hits_with_and_without_lock(void **state)
{
    assert_null(explore(first, locked_hit, move));
}

static void stamps(void **state)
{
    assert_null(explore(first, first, move_by_stamp));
}

/* Each order is needed: without it something goes wrong, and is found. */
static void orders_are_needed(void **state)
{
    static const struct {
        const char *function;
        enum order order;
        void (*a)(void), (*b)(void), (*c)(void);
    } weak[] = {
        {"word_take", order_acquire, first, move, NULL},
        {"word_drop", order_release, first, move, NULL},
        {"word_seize", order_acquire, first, move, NULL},
        {"word_open", order_release, second, move, NULL},
        {"word_shut", order_acquire, first, close_down, NULL},
    };
    for (unsigned i = 0; i < sizeof(weak) / sizeof(weak[0]); i++) {
        model_weak_function = weak[i].function;
        model_weak_order = weak[i].order;
        print_message("%s, order %d relaxed: ", model_weak_function, model_weak_order);
        const char *wrong = explore(weak[i].a, weak[i].b, weak[i].c);
        model_weak_function = NULL;
        assert_non_null(wrong);
    }
}

int main(int argc, char **argv)
{
    thorough = argc > 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_beside_a_move),
        cmocka_unit_test(slow_releases),
        cmocka_unit_test(roll_backs),
        cmocka_unit_test(hits_with_and_without_lock),
        cmocka_unit_test(stamps),
        cmocka_unit_test(orders_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
