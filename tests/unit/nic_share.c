/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places of handlers' messages (src/nic/share.h): S1 and S2 against a plain count, as peers and
 * contexts take and give them in any order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../splitmix.h"
#include "nic/share.h"

enum { PEERS = 5, CONTEXTS = 4, STEPS = 20000, MOST = 64 };

struct world {
    struct shares shares;
    unsigned peer[PEERS];
    unsigned by[PEERS][CONTEXTS];
    struct share *last[PEERS][CONTEXTS];
    unsigned all;
};

static void begin(struct world *w, unsigned limit)
{
    *w = (struct world){.all = 0};
    shares_init(&w->shares, limit);
}

static bool take(struct world *w, unsigned p, unsigned c)
{
    if (!share_is_open(&w->shares, &w->peer[p], c)) {
        return false;
    }
    w->last[p][c] = share_take(&w->shares, &w->peer[p], c);
    assert_non_null(w->last[p][c]);
    w->by[p][c]++;
    w->all++;
    return true;
}

static void give(struct world *w, unsigned p, unsigned c)
{
    share_give(w->last[p][c]);
    w->by[p][c]--;
    w->all--;
}

static void empty(struct world *w)
{
    for (unsigned p = 0; p < PEERS; p++) {
        for (unsigned c = 0; c < CONTEXTS; c++) {
            while (w->by[p][c] != 0) {
                give(w, p, c);
            }
        }
        assert_int_equal(w->peer[p], 0);
    }
    assert_int_equal(w->shares.taken, 0);
    for (unsigned i = 0; i < SHARE_CHAINS; i++) {
        assert_true(list_empty(&w->shares.chain[i]));
    }
}

static unsigned take_all(struct world *w, unsigned p, unsigned c)
{
    unsigned taken = 0;
    while (take(w, p, c)) {
        taken++;
    }
    return taken;
}

/* What may be taken, by the words of share.h. */
static bool should_be_open(const struct world *w, unsigned p, unsigned c)
{
    unsigned at_peer = 0;
    for (unsigned i = 0; i < CONTEXTS; i++) {
        at_peer += w->by[p][i];
    }
    int free = (int)w->shares.limit - (int)w->all;
    return at_peer == 0 || ((int)at_peer < free && (int)w->by[p][c] < free - (int)at_peer);
}

static void in_any_order(void **state)
{
    for (unsigned limit = 1; limit <= MOST; limit++) {
        struct world w;
        uint64_t seed = limit;
        begin(&w, limit);
        for (unsigned i = 0; i < STEPS / MOST; i++) {
            uint64_t r = splitmix(&seed);
            unsigned p = r % PEERS, c = (r >> 8) % CONTEXTS;
            if ((r >> 16) % 3 != 0) {
                bool open = should_be_open(&w, p, c), first = w.peer[p] == 0;
                assert_int_equal(take(&w, p, c), open);
                assert_true(!open || first || w.all < limit);
            } else if (w.by[p][c] != 0) {
                give(&w, p, c);
            }
            assert_int_equal(w.shares.taken, w.all);
            assert_true(w.all <= limit + PEERS);
        }
        empty(&w);
    }
}

/* However many others take all that they may, a peer has its first place. */
static void a_peer_has_its_first(void **state)
{
    for (unsigned limit = 1; limit <= MOST; limit++) {
        struct world w;
        begin(&w, limit);
        for (unsigned p = 0; p < PEERS; p++) {
            assert_true(take_all(&w, p, 0) >= 1);
        }
        empty(&w);
    }
}

static void parts(void **state)
{
    struct world w;
    begin(&w, 600);
    assert_int_equal(take_all(&w, 0, 0), 200); /* one context: a third */
    unsigned second = take_all(&w, 0, 1);
    assert_true(second >= 60);
    assert_int_equal(take_all(&w, 0, 0), 0);
    for (unsigned c = 0; c < CONTEXTS; c++) {
        take_all(&w, 0, c);
    }
    assert_true(w.peer[0] > 200 && w.peer[0] <= 300); /* one peer: half at most */
    unsigned other = take_all(&w, 1, 0);
    assert_true(other >= 100);
    for (unsigned i = 0; i < 150; i++) {
        give(&w, 0, 0);
    }
    assert_true(take_all(&w, 1, 0) > 0); /* what is given back is anybody's */
    empty(&w);
}

/* Who has fewer gets the next one: a context with many waits until it has no more than another
 * could have. */
static void who_has_fewer_comes_first(void **state)
{
    struct world w;
    begin(&w, 60);
    unsigned first = take_all(&w, 0, 0);
    take_all(&w, 0, 1);
    give(&w, 0, 0);
    assert_false(take(&w, 0, 0));
    assert_true(take(&w, 0, 1));
    assert_true(first > w.by[0][0]);
    empty(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_any_order),
        cmocka_unit_test(a_peer_has_its_first),
        cmocka_unit_test(parts),
        cmocka_unit_test(who_has_fewer_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
