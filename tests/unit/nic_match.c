/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching against a model: a plain list searched from its start, over random
 * entries, masks, wildcards, removals and headers.
 */
#include "nic/match/match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MOST 600

struct model {
    struct match_entry entry;
    int number;
    int used;
};

static struct model pool[MOST];
static struct model *order[MOST];
static int count;
static uint64_t seed = 20261121;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static int model_matches(const struct match_entry *e, const struct match_header *h)
{
    return ((e->bits ^ h->bits) & ~e->ignore) == 0 &&
           ((e->any & MATCH_ANY_NID) != 0 || e->nid == h->nid) &&
           ((e->any & MATCH_ANY_PID) != 0 || e->pid == h->pid);
}

static struct match_entry *model_first(const struct match_header *h)
{
    for (int i = 0; i < count; i++) {
        if (model_matches(&order[i]->entry, h) &&
            (!order[i]->entry.picky || h->fits == NULL || h->fits(&order[i]->entry, h))) {
            return &order[i]->entry;
        }
    }
    return NULL;
}

static bool odd_does_not_fit(const struct match_entry *e, const struct match_header *h)
{
    return ((const struct model *)e)->number % 2 == 0 || h->length == 0;
}

static struct model *free_model(void)
{
    for (int i = 0; i < MOST; i++) {
        if (!pool[i].used) {
            return &pool[i];
        }
    }
    return NULL;
}

static void append_random(struct match_list *list)
{
    static const uint64_t masks[] = {0, 0xff, 0xf0, ~0ull, 0xfffffffful << 32, 1, 0xffull << 56, 3};
    struct model *m = free_model();
    if (m == NULL) {
        return;
    }
    m->entry.ignore = masks[next_random() % 8];
    m->entry.bits = next_random() % 32 | (next_random() % 4) << 56;
    m->entry.nid = (uint32_t)(next_random() % 3);
    m->entry.pid = (uint32_t)(next_random() % 3);
    m->entry.any = (uint8_t)(next_random() % 4);
    m->entry.picky = next_random() % 2;
    m->number = (int)(next_random() % 1000);
    m->used = 1;
    match_append(list, &m->entry);
    order[count++] = m;
}

static void remove_random(struct match_list *list)
{
    if (count == 0) {
        return;
    }
    int at = (int)(next_random() % (unsigned)count);
    match_remove(list, &order[at]->entry);
    order[at]->used = 0;
    for (count--; at < count; at++) {
        order[at] = order[at + 1];
    }
}

static void agrees_with_a_plain_list(void **state)
{
    struct match_list list = {0};
    for (int step = 0; step < 60000; step++) {
        uint64_t what = next_random() % 10;
        /* The list grows for a while, then shrinks, and so on. */
        unsigned grow = (step / 5000) % 2 == 0 ? 3 : 1;
        if (what < grow) {
            append_random(&list);
        } else if (what < 4) {
            remove_random(&list);
        } else {
            struct match_header h = {
                .bits = next_random() % 32 | (next_random() % 4) << 56,
                .nid = (uint32_t)(next_random() % 3),
                .pid = (uint32_t)(next_random() % 3),
                .fits = next_random() % 2 ? odd_does_not_fit : NULL,
                .length = next_random() % 2,
            };
            assert_ptr_equal(match_first(&list, &h), model_first(&h));
            for (int i = 0; i < count; i += 7) {
                if (match_is_first(&list, &order[i]->entry, &h)) {
                    assert_ptr_equal(&order[i]->entry, model_first(&h));
                }
            }
        }
        assert_int_equal(list.entries, count);
    }
    while (match_any(&list) != NULL) {
        match_remove(&list, match_any(&list));
        count--;
    }
    assert_int_equal(count, 0);
    match_free(&list);
}

/* Searches of what is not there move all entries from the fresh ones to the table. */
static void file_all(struct match_list *list, struct match_entry *more, int n)
{
    for (int i = 0; i < n; i++) {
        match_append(list, &more[i]);
    }
    assert_null(match_first(list, &(struct match_header){.bits = 999}));
    assert_null(list->fresh);
}

/* Of the fresh entries the eldest is told from all others. */
static void the_likely_fresh_entry_is_told(void **state)
{
    struct match_list list = {0};
    struct match_entry e[3] = {{.bits = 5}, {.bits = 5}, {.bits = 6}};
    for (int i = 0; i < 3; i++) {
        match_append(&list, &e[i]);
    }
    struct match_header five = {.bits = 5}, six = {.bits = 6};
    assert_true(match_is_first(&list, &e[0], &five));
    assert_false(match_is_first(&list, &e[1], &five));
    assert_false(match_is_first(&list, &e[0], &six));
    assert_false(match_is_first(&list, &e[2], &six)); /* it is, but that takes a walk */
    match_remove(&list, &e[0]);
    assert_true(match_is_first(&list, &e[1], &five));
    match_remove(&list, &e[1]);
    match_remove(&list, &e[2]);
    match_free(&list);
}

/* Of those in the table, with one mask, the first of each key is. */
static void the_likely_entry_is_told(void **state)
{
    struct match_list list = {0};
    struct match_entry e[3] = {{.bits = 5}, {.bits = 5}, {.bits = 6}}, others[20] = {{.bits = 0}};
    for (int i = 0; i < 3; i++) {
        match_append(&list, &e[i]);
    }
    file_all(&list, others, 20);
    struct match_header five = {.bits = 5}, six = {.bits = 6};
    assert_true(match_is_first(&list, &e[0], &five));
    assert_false(match_is_first(&list, &e[1], &five));
    assert_false(match_is_first(&list, &e[0], &six));
    assert_true(match_is_first(&list, &e[2], &six));
    match_remove(&list, &e[0]);
    assert_true(match_is_first(&list, &e[1], &five));
    struct match_entry any[20];
    for (int i = 0; i < 20; i++) {
        any[i] = (struct match_entry){.bits = 0, .ignore = ~0ull};
    }
    match_append(&list, &any[0]);
    assert_ptr_equal(match_first(&list, &six), &e[2]); /* older than what is fresh */
    assert_ptr_equal(match_first(&list, &(struct match_header){.bits = 999}), &any[0]);
    match_remove(&list, &any[0]);
    for (int i = 1; i < 20; i++) {
        any[i].bits = (uint64_t)i;
        any[i].ignore = ~63ull; /* 999 has other low bits */
    }
    file_all(&list, any + 1, 19);
    assert_false(match_is_first(&list, &e[1], &five)); /* a second mask: it must be searched */
    while (match_any(&list) != NULL) {
        match_remove(&list, match_any(&list));
    }
    match_free(&list);
}

/* Who has few entries, or takes them in order, never pays for the table. */
static void in_order_nothing_is_filed(void **state)
{
    struct match_list list = {0};
    struct match_entry e[64];
    for (uint64_t round = 0; round < 4; round++) {
        for (uint64_t i = 0; i < 64; i++) {
            e[i] = (struct match_entry){.bits = i};
            match_append(&list, &e[i]);
        }
        for (uint64_t i = 0; i < 64; i++) {
            assert_ptr_equal(match_first(&list, &(struct match_header){.bits = i}), &e[i]);
            match_remove(&list, &e[i]);
        }
    }
    assert_int_equal(list.cells, 0);
    match_free(&list);
}

static void empty_list_has_nothing(void **state)
{
    struct match_list list = {0};
    struct match_header h = {0};
    assert_null(match_first(&list, &h));
    assert_null(match_any(&list));
    match_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_list_has_nothing),
        cmocka_unit_test(the_likely_fresh_entry_is_told),
        cmocka_unit_test(the_likely_entry_is_told),
        cmocka_unit_test(in_order_nothing_is_filed),
        cmocka_unit_test(agrees_with_a_plain_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
