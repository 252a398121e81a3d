/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of node 0 that share its table: each pins as many pages of node 1 as there are firehoses,
 * or one, or some of its own, and releases them; deadlock is avoided, each thread gets all its
 * rounds, what it holds is pinned, and no more than M + MAXVICTIM ever is. In the second test both
 * nodes forget memory meanwhile.
 *
 * Usage: threads [ROUNDS]
 */
#include "net.h"

#include "../splitmix.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 8, F = 8, VICTIMS = 8 };

static unsigned rounds = 20;
static struct net *net;
static _Atomic unsigned wrong;
static _Atomic int forgetting; /* calls whose memory is still pinned */

static void completed(void *context, struct pw_firehose_request *r, int error, int local_hit)
{
    atomic_store((_Atomic int *)context, error == 0 ? 1 : -1);
}

static void forgotten(void *context)
{
    atomic_fetch_sub(&forgetting, 1);
}

static void forget(struct net_node *n, uint64_t *r)
{
    uint64_t addr = net_page((unsigned)splitmix_below(r, 64));
    atomic_fetch_add(&forgetting, 1);
    int rc =
        pw_firehose_forget(n->table, addr, (1 + splitmix_below(r, 3)) * NET_PAGE, forgotten, NULL);
    wrong += rc < 0;
    if (rc == 0) {
        forgotten(NULL);
    }
}

static void held(struct net_node *n, uint64_t addr, unsigned pages)
{
    for (unsigned i = 0; i < pages; i++) {
        wrong += n->pinned[(addr - NET_BASE) / NET_PAGE + i] != 1;
    }
}

static void *run(void *argument)
{
    uint64_t r = (uintptr_t)argument;
    struct net_node *a = &net->node[0], *b = &net->node[1];
    for (unsigned i = 0; i < rounds; i++) {
        struct pw_firehose_request request = {0}, *one = &request;
        _Atomic int done = 0;
        unsigned kind = (unsigned)splitmix_below(&r, 4);
        unsigned pages = kind == 0 ? F : 1 + (unsigned)splitmix_below(&r, 2);
        uint64_t addr = net_page((unsigned)splitmix_below(&r, kind == 1 ? 6 : 64));
        if (kind == 3) {
            wrong += pw_firehose_local_pin(a->table, addr, pages * NET_PAGE, one) != 0;
            held(a, addr, pages);
        } else {
            int rc = pw_firehose_remote_pin(a->table, 1, addr, pages * NET_PAGE, 0, one, NULL,
                                            completed, (void *)&done);
            wrong += rc < 0;
            while (rc >= 0 && atomic_load(&done) == 0) {
                net_deliver(a);
                pw_firehose_poll(a->table);
                sched_yield();
            }
            wrong += atomic_load(&done) != 1;
            held(b, addr, pages);
        }
        wrong += pw_firehose_release(a->table, &one, 1) != 0;
    }
    return NULL;
}

struct server {
    _Atomic bool stop;
    bool forgets;
};

/* Node 1 works by itself, and forgets memory of both if it is to. */
static void *serve(void *argument)
{
    struct server *s = argument;
    uint64_t r = 1;
    while (!atomic_load(&s->stop)) {
        if (s->forgets && splitmix_below(&r, 16) == 0) {
            forget(&net->node[splitmix_below(&r, 2)], &r);
        }
        net_deliver(&net->node[1]);
        pw_firehose_poll(net->node[1].table);
        sched_yield();
    }
    return NULL;
}

static void share(bool forgets)
{
    pthread_t thread[THREADS], server;
    struct server work = {.forgets = forgets};
    struct pw_firehose_stats s;
    struct pw_firehose_config c = {.flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV,
                                   .max_pinnable = 1 << 30,
                                   .m = F * NET_PAGE,
                                   .maxvictim = VICTIMS * NET_PAGE,
                                   .da_limit = 4};
    net = net_open(&c, 2, 7);
    assert_int_equal(pthread_create(&server, NULL, serve, &work), 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, run, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    atomic_store(&work.stop, true);
    pthread_join(server, NULL);
    net_settle(net);
    assert_int_equal(wrong, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(net->node[i].most <= F + VICTIMS);
    }
    pw_firehose_stats(net->node[0].table, &s);
    assert_int_equal(forgetting, 0);
    assert_int_equal(s.local.pin + s.remote.pin - s.restarted, THREADS * rounds);
    assert_true(forgets || s.restarted + s.forgotten + s.revoked == 0);
    assert_int_equal(s.local.hit + s.local.pending + s.local.miss, s.local.pin);
    assert_int_equal(s.remote.hit + s.remote.pending + s.remote.miss, s.remote.pin);
    assert_int_equal(s.local.release + s.remote.release, THREADS * rounds);
    assert_true(forgets || s.moves == s.remote.miss + s.local.miss);
    print_message("%lu misses, deadlock avoided %lu times, %lu rollbacks; %lu units "
                  "forgotten, %lu revoked, %lu requests begun anew\n",
                  (unsigned long)(s.remote.miss + s.local.miss), (unsigned long)s.deadlocks_avoided,
                  (unsigned long)s.rollbacks, (unsigned long)s.forgotten, (unsigned long)s.revoked,
                  (unsigned long)s.restarted);
    assert_int_equal(net_close(net), 0);
}

static void threads_share(void **state)
{
    share(false);
}

static void threads_forget(void **state)
{
    share(true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share),
        cmocka_unit_test(threads_forget),
    };
    rounds = argc > 1 ? (unsigned)atoi(argv[1]) : rounds;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
