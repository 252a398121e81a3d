/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected headers against a model: an array in order of arrival, searched from
 * its start, over random additions, removals and searches, in lists short and long,
 * with more masks than there are indexes, with memory and without. The linker sends
 * the list's calloc() to __wrap_calloc() below.
 */
#include "nic/match/unexpected.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define MOST 4000

struct thing {
    struct unexpected_header header;
    bool odd;
};

/* things[0..count) are in the list, in order of arrival, the others are free. */
static struct thing pool[MOST];
static struct thing *things[MOST];
static unsigned count;
static uint64_t seed;

static unsigned fail_one_in; /* allocations; 0: none fails */
static unsigned failures;
static unsigned allocations;
static unsigned refusals; /* of nothing_fits() */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull >> 11;
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (fail_one_in != 0 && next_random() % fail_one_in == 0) {
        failures++;
        return NULL;
    }
    allocations++;
    return __real_calloc(n, size);
}

static unsigned live(const struct unexpected_list *list)
{
    return (unsigned)__builtin_popcount(list->live);
}

static bool model_matches(const struct match_entry *e, const struct unexpected_key *k)
{
    return ((e->bits ^ k->bits) & ~e->ignore) == 0 &&
           ((e->any & MATCH_ANY_NID) != 0 || e->nid == k->nid) &&
           ((e->any & MATCH_ANY_PID) != 0 || e->pid == k->pid);
}

static bool odd_does_not_fit(const struct match_entry *e, const struct unexpected_header *h)
{
    return !((const struct thing *)h)->odd;
}

static bool nothing_fits(const struct match_entry *e, const struct unexpected_header *h)
{
    refusals++;
    return false;
}

typedef bool fits_function(const struct match_entry *, const struct unexpected_header *);

/* The place in things[] of what a search from `from` on finds, or count. */
static unsigned model_first(const struct match_entry *e, unsigned from, fits_function *fits)
{
    unsigned at = from;
    while (at < count && !(model_matches(e, &things[at]->header.key) &&
                           (fits == NULL || fits(e, &things[at]->header)))) {
        at++;
    }
    return at;
}

struct play {
    uint64_t seed;
    unsigned most;   /* headers */
    unsigned bits;   /* different match bits, so many or few headers with one key */
    unsigned masks;  /* of the table below that searches use */
    unsigned memory; /* fail_one_in */
};

static void play_add(const struct play *p, struct unexpected_list *list)
{
    struct thing *t = things[count];
    memset(&t->header, 0xa5, sizeof(t->header)); /* the list sets what it reads */
    t->header.key =
        (struct unexpected_key){next_random() % p->bits | (next_random() % 4) << 56,
                                (uint32_t)(next_random() % 3), (uint32_t)(next_random() % 3)};
    t->odd = next_random() % 2 != 0;
    unexpected_add(list, &t->header);
    count++;
}

static void play_remove(struct unexpected_list *list, unsigned at)
{
    struct thing *t = things[at];
    unexpected_remove(list, &t->header);
    memmove(&things[at], &things[at + 1], (count - at - 1) * sizeof(things[0]));
    things[--count] = t;
}

/* One search, and often the removal of what it found. */
static void play_search(const struct play *p, struct unexpected_list *list)
{
    static const uint64_t masks[] = {
        0, ~0ull, 0xff, 0xf0, 0xffull << 56, 1, 3, 0xff0f, ~0ull >> 8, 7, ~1ull, 0xaa,
    };
    struct match_entry e = {.ignore = masks[next_random() % p->masks],
                            .bits = next_random() % p->bits | (next_random() % 4) << 56,
                            .nid = (uint32_t)(next_random() % 4), /* 3: nobody */
                            .pid = (uint32_t)(next_random() % 3),
                            .any = (uint8_t)(next_random() % 4)};
    uint64_t picky = next_random() % 8;
    fits_function *fits = picky == 0 ? nothing_fits : picky < 4 ? odd_does_not_fit : NULL;
    /* From the first on, after any header, or after one that matches. */
    uint64_t begin = next_random() % 4;
    unsigned from = 0;
    if (begin != 0 && count != 0) {
        from = (unsigned)(next_random() % count);
        if (begin == 1) {
            from = model_first(&e, from, NULL);
        }
        from = from < count ? from + 1 : 0;
    }
    const struct unexpected_header *after = from == 0 ? NULL : &things[from - 1]->header;
    struct unexpected_header *found = unexpected_first(list, &e, after, fits);
    unsigned at = model_first(&e, from, fits);
    assert_ptr_equal(found, at < count ? &things[at]->header : NULL);
    if (found != NULL && next_random() % 2 != 0) {
        play_remove(list, at);
    }
}

/* Fills the list, keeps it full for a while, empties it; twice. */
static void play(const struct play *p)
{
    struct unexpected_list list = {0};
    seed = p->seed;
    fail_one_in = p->memory;
    count = 0;
    for (unsigned i = 0; i < MOST; i++) {
        things[i] = &pool[i];
    }
    for (unsigned round = 0; round < 2; round++) {
        unsigned steps = p->most * 3 + 300;
        for (unsigned step = 0; step < steps * 2 || count != 0; step++) {
            uint64_t what = next_random() % 10, add = step < steps ? 7 : step < steps * 2 ? 3 : 0;
            if (what < add && count < p->most) {
                play_add(p, &list);
            } else if (what < 8 && step >= steps * 2 && count != 0) {
                play_remove(&list, (unsigned)(next_random() % count));
            } else {
                play_search(p, &list);
            }
            assert_int_equal(list.count, count);
            assert_true(list.live == 0 || list.count > 0);
        }
        assert_null(unexpected_any(&list));
        assert_int_equal(list.live, 0);
    }
    fail_one_in = 0;
    unexpected_free(&list);
}

static void agrees_with_a_plain_list(void **state)
{
    static const struct play plays[] = {
        {.seed = 1, .most = 1, .bits = 2, .masks = 12},
        {.seed = 2, .most = 20, .bits = 4, .masks = 12},
        {.seed = 3, .most = 90, .bits = 16, .masks = 2},
        {.seed = 4, .most = 90, .bits = 1000, .masks = 12},
        {.seed = 5, .most = 600, .bits = 4, .masks = 12},
        {.seed = 6, .most = 600, .bits = 300, .masks = 1},
        {.seed = 7, .most = 2000, .bits = 64, .masks = 3},
        {.seed = 8, .most = 2000, .bits = 1u << 20, .masks = 12},
        {.seed = 9, .most = MOST, .bits = 5000, .masks = 2},
        {.seed = 10, .most = MOST, .bits = 1u << 30, .masks = 12},
    };
    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
        play(&plays[i]);
    }
}

static void needs_no_memory(void **state)
{
    static const struct play plays[] = {
        {.seed = 11, .most = 1000, .bits = 500, .masks = 12, .memory = 1},
        {.seed = 12, .most = 1000, .bits = 500, .masks = 2, .memory = 2},
        {.seed = 13, .most = 1000, .bits = 1u << 20, .masks = 12, .memory = 3},
        {.seed = 14, .most = 2500, .bits = 1u << 20, .masks = 3, .memory = 10},
    };
    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
        failures = 0;
        play(&plays[i]);
        assert_true(failures > 0);
    }
}

static void empty_list_has_nothing(void **state)
{
    struct unexpected_list list = {0};
    struct match_entry any = {.ignore = ~0ull, .any = MATCH_ANY_NID | MATCH_ANY_PID};
    assert_null(unexpected_first(&list, &any, NULL, NULL));
    assert_null(unexpected_any(&list));
    unexpected_free(&list);
}

static void oldest_first_and_on_from_there(void **state)
{
    struct unexpected_list list = {0};
    struct unexpected_header h[4] = {
        {.key = {.bits = 0x15, .nid = 1}},
        {.key = {.bits = 0x25, .nid = 2}},
        {.key = {.bits = 0x25, .nid = 1}},
        {.key = {.bits = 0x26, .nid = 1}},
    };
    for (int i = 0; i < 4; i++) {
        unexpected_add(&list, &h[i]);
    }
    struct match_entry exact = {.bits = 0x25, .nid = 1};
    assert_ptr_equal(unexpected_first(&list, &exact, NULL, NULL), &h[2]);
    assert_null(unexpected_first(&list, &exact, &h[2], NULL));
    struct match_entry fives = {.bits = 5, .ignore = 0xf0, .any = MATCH_ANY_NID};
    assert_ptr_equal(unexpected_first(&list, &fives, NULL, NULL), &h[0]);
    assert_ptr_equal(unexpected_first(&list, &fives, &h[0], NULL), &h[1]);
    assert_ptr_equal(unexpected_first(&list, &fives, &h[1], NULL), &h[2]);
    assert_null(unexpected_first(&list, &fives, &h[2], NULL));
    assert_null(unexpected_first(&list, &fives, NULL, nothing_fits));
    fives.any = MATCH_ANY_PID;
    assert_null(unexpected_first(&list, &fives, NULL, NULL)); /* nobody has nid 0 */
    assert_int_equal(list.count, 4);
    while (unexpected_any(&list) != NULL) {
        unexpected_remove(&list, unexpected_any(&list));
    }
    assert_int_equal(list.count, 0);
    unexpected_free(&list);
}

static struct unexpected_header *new_headers(struct unexpected_list *list, unsigned n)
{
    struct unexpected_header *h = calloc(n, sizeof(*h));
    assert_non_null(h);
    for (unsigned i = 0; i < n; i++) {
        h[i].key.bits = i;
        unexpected_add(list, &h[i]);
    }
    return h;
}

/* Takes them out from the last one on, down to `left`. */
static void remove_down_to(struct unexpected_list *list, unsigned left)
{
    while (list->count > left) {
        unexpected_remove(list, list->last);
    }
}

static void indexes_come_and_go(void **state)
{
    struct unexpected_list list = {0};
    struct unexpected_header *h = new_headers(&list, 1000);
    struct match_entry any = {.ignore = ~0ull, .any = MATCH_ANY_NID | MATCH_ANY_PID};
    struct match_entry e = {.bits = 5};
    assert_ptr_equal(unexpected_first(&list, &any, NULL, NULL), &h[0]);
    assert_null(unexpected_first(&list, &any, NULL, nothing_fits));
    assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[5]);
    assert_int_equal(live(&list), 0); /* a few steps, or no use */
    for (unsigned i = 900; i < 1000; i++) {
        e.bits = i;
        assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[i]);
        assert_int_equal(live(&list), 1);
    }
    for (unsigned bit = 0; bit < 40; bit++) { /* each mask is a new one */
        e.bits = 1000 | 1ull << (20 + bit);
        e.ignore = 1ull << (20 + bit);
        assert_null(unexpected_first(&list, &e, NULL, NULL));
        assert_int_equal(live(&list), bit + 2 < UNEXPECTED_INDEXES ? bit + 2 : UNEXPECTED_INDEXES);
    }
    remove_down_to(&list, 1);
    assert_int_equal(live(&list), 0);
    remove_down_to(&list, 0);
    unexpected_free(&list);
    free(h);
}

/* More masks than indexes, in turn: some have theirs for good, the others walk. A mask
 * that is asked with alone for a while takes the place of another. */
static void masks_in_turn_do_not_displace_each_other(void **state)
{
    struct unexpected_list list = {0};
    struct unexpected_header *h = new_headers(&list, 1000);
    struct match_entry e = {.bits = 999};
    unsigned before = allocations, made = 0;
    for (unsigned i = 0; i < 50 * 12; i++) {
        e.ignore = 1ull << (20 + i % 12);
        assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[999]);
        if (i == UNEXPECTED_INDEXES - 1) {
            made = allocations - before;
        }
    }
    assert_int_equal(allocations - before, made);
    for (unsigned i = 0; i < 200; i++) {
        e.ignore = 1ull << 31; /* the last of them, which walked */
        assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[999]);
    }
    assert_in_range(allocations - before, made + 1, made + made / UNEXPECTED_INDEXES + 1);
    remove_down_to(&list, 0);
    unexpected_free(&list);
    free(h);
}

/* Keys that come and go leave nothing behind in the tables. */
static void tables_grow_with_the_list_alone(void **state)
{
    struct unexpected_list list = {0};
    struct unexpected_header *h = new_headers(&list, 1000);
    struct match_entry e = {.bits = 999};
    assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[999]);
    unsigned before = allocations;
    for (unsigned i = 0; i < 100000; i++) {
        struct unexpected_header *oldest = list.first;
        unexpected_remove(&list, oldest);
        oldest->key.bits = 1000 + i;
        unexpected_add(&list, oldest);
    }
    assert_int_equal(live(&list), 1);
    assert_int_equal(allocations, before);
    remove_down_to(&list, 0);
    unexpected_free(&list);
    free(h);
}

/* fits() is asked once for each header, even where a walk hands over to an index. */
static void fits_is_asked_once(void **state)
{
    struct unexpected_list list = {0};
    struct unexpected_header *h = new_headers(&list, 500);
    struct match_entry e = {.ignore = ~0ull};
    for (unsigned i = 1; i <= 3; i++) {
        refusals = 0;
        assert_null(unexpected_first(&list, &e, NULL, nothing_fits));
        assert_int_equal(refusals, 500);
    }
    assert_int_equal(live(&list), 1);
    remove_down_to(&list, 0);
    unexpected_free(&list);
    free(h);
}

/* Masks that nobody asks with any more cost additions nothing for long. */
static void idle_indexes_go(void **state)
{
    struct unexpected_list list = {0};
    struct unexpected_header *h = new_headers(&list, 100), late = {.key = {.bits = 7}};
    struct match_entry e = {.bits = 99}, other = {.bits = 99, .any = MATCH_ANY_PID};
    assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[99]);
    assert_ptr_equal(unexpected_first(&list, &other, NULL, NULL), &h[99]);
    assert_int_equal(live(&list), 2);
    for (unsigned i = 0; i < 100 * 10; i++) {
        assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[99]);
    }
    unexpected_add(&list, &late);
    assert_int_equal(live(&list), 1);
    unexpected_remove(&list, &late);
    remove_down_to(&list, 0);
    unexpected_free(&list);
    free(h);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Against a walk of the same list that compares one number. The walk is slower by far
 * more than the factor asked for, which leaves room for a busy machine and sanitizers. */
static void long_lists_are_not_walked(void **state)
{
    enum { N = 50000, SEARCHES = 500 };
    struct unexpected_list list = {0};
    struct unexpected_header *h = new_headers(&list, N);
    struct match_entry e = {.bits = N - 1};
    assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[N - 1]); /* makes the index */
    double begin = seconds();
    for (unsigned i = 0; i < SEARCHES; i++) {
        e.bits = N - 1 - i;
        assert_ptr_equal(unexpected_first(&list, &e, NULL, NULL), &h[N - 1 - i]);
        e.bits = N + i;
        assert_null(unexpected_first(&list, &e, NULL, NULL));
    }
    double with_index = seconds() - begin;
    begin = seconds();
    for (unsigned i = 0; i < SEARCHES; i++) {
        const struct unexpected_header *w = list.first;
        while (w->key.bits != N - 1 - i) {
            w = w->next;
        }
        assert_ptr_equal(w, &h[N - 1 - i]);
    }
    double by_walk = seconds() - begin;
    assert_true(with_index * 5 < by_walk);
    remove_down_to(&list, 0);
    unexpected_free(&list);
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_list_has_nothing),
        cmocka_unit_test(oldest_first_and_on_from_there),
        cmocka_unit_test(agrees_with_a_plain_list),
        cmocka_unit_test(needs_no_memory),
        cmocka_unit_test(indexes_come_and_go),
        cmocka_unit_test(idle_indexes_go),
        cmocka_unit_test(masks_in_turn_do_not_displace_each_other),
        cmocka_unit_test(tables_grow_with_the_list_alone),
        cmocka_unit_test(fits_is_asked_once),
        cmocka_unit_test(long_lists_are_not_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
