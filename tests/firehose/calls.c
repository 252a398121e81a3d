/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call of libpinwheel-firehose: what it gives and refuses, alone and between nodes. */
#include "net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { F = 4, VICTIMS = 4 };

static struct pw_firehose_config config_of(unsigned nodes, unsigned flags)
{
    return (struct pw_firehose_config){.flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV | flags,
                                       .max_pinnable = UINT64_C(1) << 30,
                                       .m = (uint64_t)F * (nodes - 1) * NET_PAGE,
                                       .maxvictim = VICTIMS * NET_PAGE};
}

static struct net *open_net(unsigned nodes)
{
    struct pw_firehose_config c = config_of(nodes, 0);
    return net_open(&c, nodes, 1);
}

struct told {
    int times, error, local_hit;
    struct net_node *node;
    struct pw_firehose_request *other; /* released in the callback */
    int pin_in_callback;
};

static void completed(void *context, struct pw_firehose_request *r, int error, int local_hit)
{
    struct told *t = context;
    struct pw_firehose_request more = {0};
    t->times++;
    t->error = error;
    t->local_hit = local_hit;
    if (t->node != NULL) {
        t->pin_in_callback = pw_firehose_local_pin(t->node->table, net_page(0), 1, &more);
        assert_int_equal(pw_firehose_release(t->node->table, &t->other, 1), 0);
    }
}

static size_t arguments(void *context, void *args)
{
    memcpy(args, "hello", 6);
    return 6;
}

static int release(struct net_node *n, struct pw_firehose_request *r)
{
    return pw_firehose_release(n->table, &r, 1);
}

static int pin(struct net_node *n, unsigned page, unsigned pages, struct pw_firehose_request *r,
               struct told *t)
{
    return pw_firehose_remote_pin(n->table, 1, net_page(page) + 8, pages * NET_PAGE - 8, 0, r, NULL,
                                  completed, t);
}

static struct pw_firehose_stats stats(struct net_node *n)
{
    struct pw_firehose_stats s;
    pw_firehose_stats(n->table, &s);
    return s;
}

static void remote_pins(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0}, q = {0};
    struct told t = {0};
    assert_int_equal(pin(a, 3, 2, &r, &t), PW_FIREHOSE_LATER);
    assert_int_equal(release(a, &r), -EBUSY);
    assert_int_equal(pin(a, 3, 2, &r, &t), -EBUSY);
    assert_int_equal(pw_firehose_try_remote_pin(a->table, 1, net_page(3), 8, &q), -EAGAIN);
    net_settle(net);
    assert_true(t.times == 1 && t.error == 0 && t.local_hit == 0);
    assert_true(r.addr == net_page(3) && r.len == 2 * NET_PAGE && r.node == 1);
    assert_true(memcmp(r.handle, &r.addr, 8) == 0 && r.handle[8] == 1);
    assert_true(net->node[1].pinned[3] == 1 && net->node[1].pinned[4] == 1);

    assert_int_equal(pin(a, 4, 1, &q, &t), 0); /* a hit without the lock */
    assert_true(t.times == 2 && t.local_hit == 1 && q.addr == net_page(4));
    assert_int_equal(release(a, &q), 0);
    assert_int_equal(release(a, &q), -EALREADY);
    assert_int_equal(pw_firehose_remote_pin(a->table, 1, net_page(3), 2 * NET_PAGE,
                                            PW_FIREHOSE_RETURN_IF_PINNED, &q, NULL, completed, &t),
                     0);
    assert_int_equal(t.times, 2);
    assert_int_equal(release(a, &q), 0);
    assert_int_equal(pw_firehose_try_remote_pin(a->table, 1, net_page(4), 8, &q), 0);
    assert_int_equal(release(a, &q), 0);
    assert_int_equal(pw_firehose_partial_remote_pin(a->table, 1, net_page(2), 4 * NET_PAGE, &q), 0);
    assert_true(q.addr == net_page(3) && q.len == 2 * NET_PAGE);
    assert_int_equal(release(a, &q), 0);
    assert_int_equal(pw_firehose_partial_remote_pin(a->table, 1, net_page(9), 8, &q), -EAGAIN);
    assert_int_equal(release(a, &r), 0);

    struct pw_firehose_stats s = stats(a);
    assert_int_equal(s.remote.pin, 3);
    assert_int_equal(s.remote.hit, 2);
    assert_int_equal(s.remote.miss, 1);
    assert_int_equal(s.remote.try_hit, 1);
    assert_int_equal(s.remote.try_miss, 1);
    assert_int_equal(s.remote.partial_hit, 1);
    assert_int_equal(s.remote.partial_miss, 1);
    assert_int_equal(s.remote.release, 5);
    assert_int_equal(s.moves, 1);
    assert_int_equal(s.refused, 3);
    assert_int_equal(net_close(net), 0);
}

static void local_pins(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0}, q = {0}, big = {0};
    assert_int_equal(pw_firehose_try_local_pin(a->table, net_page(1), 1, &r), -EAGAIN);
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(1) + 1, NET_PAGE, &r), 0);
    assert_true(r.len == 2 * NET_PAGE && a->pinned[1] == 1 && a->pinned[2] == 1);
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(2), 8, &q), 0);
    assert_int_equal(stats(a).local.hit, 1);
    assert_int_equal(release(a, &q), 0);
    assert_int_equal(pw_firehose_partial_local_pin(a->table, net_page(0), 2 * NET_PAGE, &q), 0);
    assert_true(q.addr == net_page(1) && q.len == NET_PAGE);
    assert_int_equal(release(a, &q), 0);
    assert_int_equal(release(a, &r), 0);
    assert_true(a->pinned[1] == 1); /* lazily */
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(5), VICTIMS * NET_PAGE, &big), 0);
    assert_true(a->pinned[1] == 0 && a->units == VICTIMS);
    assert_int_equal(release(a, &big), 0);
    assert_int_equal(net_close(net), 0);
}

static void remote_callbacks(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0], *b = &net->node[1];
    struct pw_firehose_request r = {0}, q = {0}, p = {0};
    struct told t = {0}, u = {0};
#define CALL(request, told)                                                                        \
    pw_firehose_remote_pin(a->table, 1, net_page(6), 2 * NET_PAGE, PW_FIREHOSE_REMOTE_CALLBACK,    \
                           request, arguments, completed, told)
    assert_int_equal(CALL(&r, &t), PW_FIREHOSE_LATER);
    assert_int_equal(CALL(&q, &u), PW_FIREHOSE_LATER); /* pending */
    net_settle(net);
    assert_true(t.times == 1 && u.times == 1 && t.local_hit == 0 && u.local_hit == 0);
    assert_int_equal(b->called, 2);
    assert_true(b->args_length == 6 && memcmp(b->args, "hello", 6) == 0);
    assert_int_equal(stats(a).moves, 1);
    assert_int_equal(stats(a).remote.pending, 1);
    assert_int_equal(CALL(&p, &t), 0); /* a hit runs none */
    assert_true(b->called == 2 && t.local_hit == 1);
    release(a, &r);
    release(a, &q);
    release(a, &p);
    assert_int_equal(net_close(net), 0);
}

/* In a callback a release is legal, a pin is not. */
static void calls_in_callbacks(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0}, q = {0};
    struct told none = {0}, t = {.node = a, .other = &q};
    pin(a, 1, 1, &q, &none);
    net_settle(net);
    pin(a, 2, 1, &r, &t);
    net_settle(net);
    assert_int_equal(t.pin_in_callback, -EDEADLK);
    assert_int_equal(stats(a).refused, 1);
    release(a, &r);
    assert_int_equal(net_close(net), 0);
}

static void wrong_calls(void **state)
{
    struct pw_firehose_config c = config_of(2, 0);
    c.patience = 20;
    struct net *net = net_open(&c, 2, 1);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0}, q = {0}, *none = NULL;
    struct told t = {0};
#define REMOTE(node, addr, len)                                                                    \
    pw_firehose_remote_pin(a->table, node, addr, len, 0, &r, NULL, completed, &t)
    assert_int_equal(REMOTE(0, net_page(0), 1), -EINVAL); /* oneself */
    assert_int_equal(REMOTE(2, net_page(0), 1), -EINVAL);
    assert_int_equal(REMOTE(1, net_page(0), 0), -EINVAL);
    assert_int_equal(REMOTE(1, UINT64_MAX - 5, 7), -EINVAL);
    assert_int_equal(REMOTE(1, net_page(0), (F + 1) * NET_PAGE), -EMSGSIZE);
    assert_int_equal(pw_firehose_local_pin(a->table, UINT64_MAX - 5, 7, &r), -EINVAL);
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(0), 5 * NET_PAGE, &r), -EMSGSIZE);
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(0), 1, NULL), -EINVAL);
    assert_int_equal(pw_firehose_release(a->table, &none, 1), -EINVAL);
    assert_int_equal(release(a, &r), -EALREADY);
    assert_int_equal(stats(a).refused, 10);
    assert_int_equal(pin(a, 0, F, &q, &t), PW_FIREHOSE_LATER);
    net_settle(net);
    assert_int_equal(pin(a, 9, 1, &r, &t), -ETIMEDOUT); /* it holds all firehoses itself */
    assert_int_equal(t.times, 1);
    release(a, &q);
    assert_int_equal(pin(a, 9, 1, &r, &t), PW_FIREHOSE_LATER);
    net_settle(net);
    assert_int_equal(net_close(net), 1); /* one was not released */
}

static void limits(void **state)
{
    static const struct pw_firehose_ops ops = {.move = (void *)1, .send = (void *)1};
    uint64_t mb = 1 << 20;
    struct pw_firehose_config c = {.nodes = 3, .page = 4096, .max_pinnable = 400 * mb, .ops = &ops};
    struct pw_firehose_info i;
    unsetenv("GASNET_FIREHOSE_M");
    unsetenv("GASNET_FIREHOSE_MAXVICTIM_M");
    assert_int_equal(pw_firehose_limits(&c, &i), 0);
    assert_true(i.m == 300 * mb && i.maxvictim == 100 * mb);
    assert_int_equal(i.firehoses, 300 * mb / 4096 / 2);
    assert_true(i.max_local_pin == 100 * mb && i.max_local_regions == 0);
    setenv("GASNET_FIREHOSE_M", "256", 1);
    assert_int_equal(pw_firehose_limits(&c, &i), 0);
    assert_true(i.m == 256 * mb && i.maxvictim == 144 * mb);
    setenv("GASNET_FIREHOSE_MAXVICTIM_M", "65536KB", 1);
    assert_int_equal(pw_firehose_limits(&c, &i), 0);
    assert_true(i.m == 256 * mb && i.maxvictim == 64 * mb);
    static const char *const wrong[] = {"x", "-1", "1TB", "1 MB", "99999999999999999999", "1GB"};
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
        setenv("GASNET_FIREHOSE_M", wrong[k], 1);
        assert_int_equal(pw_firehose_limits(&c, &i), -EINVAL);
    }
    c.flags = PW_FIREHOSE_NO_ENV;
    c.m = 4096 * 3 * 32 - 4096; /* below the minima */
    assert_int_equal(pw_firehose_limits(&c, &i), -EINVAL);
    c.m = 4096 * 3 * 32;
    assert_int_equal(pw_firehose_limits(&c, &i), 0);
    c.maxvictim = 4096 * 4095;
    assert_int_equal(pw_firehose_limits(&c, &i), -EINVAL);
    c.maxvictim = 400 * mb;
    assert_int_equal(pw_firehose_limits(&c, &i), -EINVAL);
    c.m = c.maxvictim = 0;
    c.flags |= PW_FIREHOSE_REGIONS;
    assert_int_equal(pw_firehose_limits(&c, &i), 0);
    assert_true(i.max_local_pin == 128 << 10 && i.max_remote_pin == 128 << 10);
    assert_true(i.max_local_regions == 800 && i.max_remote_regions == 1200);
    c.max_regions = 100;
    assert_int_equal(pw_firehose_limits(&c, &i), 0);
    assert_true(i.max_remote_regions == 75 / 2 && i.max_local_regions == 25);
    c.flags = PW_FIREHOSE_LOCAL_ONLY | PW_FIREHOSE_NO_ENV;
    c.max_regions = 0;
    assert_int_equal(pw_firehose_limits(&c, &i), 0);
    assert_true(i.m == 0 && i.maxvictim == 400 * mb && i.max_remote_pin == 0);
    unsetenv("GASNET_FIREHOSE_M");
    unsetenv("GASNET_FIREHOSE_MAXVICTIM_M");
}

/* A pin that fails is told to who asked; what was there stays. */
static void pins_that_fail(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0], *b = &net->node[1];
    struct pw_firehose_request r = {0}, q = {0};
    struct told t = {0}, u = {0};
    pin(a, 0, 1, &r, &t);
    net_settle(net);
    b->fail_pins = 1;
    pin(a, 0, 2, &q, &u);
    net_settle(net);
    assert_true(u.times == 1 && u.error == -ENOMEM && b->pinned[0] == 1 && b->pinned[1] == 0);
    assert_int_equal(release(a, &q), -EALREADY);
    a->fail_pins = 1;
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(0), 1, &q), -ENOMEM);
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(0), 1, &q), 0);
    release(a, &q);
    release(a, &r);
    assert_int_equal(net_close(net), 0);
}

/* With mlock() itself, a limit of 64 KiB and no CAP_IPC_LOCK; and memory that is not mapped. */
static void locks_memory(void)
{
    struct rlimit limit = {65536, 65536};
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r[8] = {{0}}, q = {0};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (geteuid() == 0 && seteuid(65534) != 0)) {
        _exit(3);
    }
    a->lock_memory = true;
    char *memory =
        mmap(NULL, 64 * NET_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *other =
        mmap(NULL, 16 * NET_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = (uint64_t)(uintptr_t)memory;
    bool right = net_lock(other, 14 * NET_PAGE) == 0;
    right &= pw_firehose_local_pin(a->table, at, 2 * NET_PAGE, &r[0]) == 0;
    int rc = pw_firehose_local_pin(a->table, at + 4 * NET_PAGE, 1, &q);
    right &= rc == -ENOMEM || rc == -EAGAIN || rc == -EPERM;
    net_unlock(other, NET_PAGE);
    right &= pw_firehose_local_pin(a->table, at + 4 * NET_PAGE, 1, &q) == 0;
    right &= release(a, &q) == 0;
    munmap(memory + 32 * NET_PAGE, NET_PAGE);
    net_unlock(other, NET_PAGE * 14);
    right &= pw_firehose_local_pin(a->table, at + 31 * NET_PAGE, 2 * NET_PAGE, &q) == -ENOMEM;
    right &= pw_firehose_local_pin(a->table, at, 2 * NET_PAGE, &q) == 0;
    right &= release(a, &q) == 0 && release(a, &r[0]) == 0;
    _exit(right ? 0 : 1);
}

static void pins_beyond_the_limit(void **state)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        locks_memory();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_peer_dies(void **state)
{
    struct net *net = open_net(3);
    struct net_node *a = &net->node[0], *c = &net->node[2];
    struct pw_firehose_request held = {0}, sent = {0}, pending = {0}, far = {0}, called = {0};
    struct told t = {0}, u = {0}, v = {0}, w = {0}, x = {0};
    pin(a, 0, 1, &held, &t);
    net_settle(net);
    pw_firehose_remote_pin(c->table, 0, net_page(1), 1, 0, &far, NULL, completed, &w);
    net_settle(net);
    assert_int_equal(a->units, 1);
    net->held = true;
    pin(a, 1, 1, &sent, &u);
    pin(a, 1, 1, &pending, &v);
    pw_firehose_remote_pin(a->table, 1, net_page(1), 1, PW_FIREHOSE_REMOTE_CALLBACK, &called,
                           arguments, completed, &x);
    net_kill(net, 1);
    assert_true(u.error == -EPIPE && v.error == -EPIPE && x.error == -EPIPE);
    assert_int_equal(pin(a, 0, 1, &sent, &u), -EPIPE);
    assert_int_equal(release(a, &held), 0);
    net_kill(net, 2); /* what it had here is a victim now */
    net->held = false;
    net_settle(net);
    assert_int_equal(stats(a).pinned, 1);
    struct pw_firehose_request all = {0};
    assert_int_equal(pw_firehose_local_pin(a->table, net_page(20), VICTIMS * NET_PAGE, &all), 0);
    assert_true(a->pinned[1] == 0 && a->units == VICTIMS);
    release(a, &all);
    net_close(net);
}

static void pinned_before(void **state)
{
    struct pw_firehose_region before = {.addr = net_page(8), .len = 2 * NET_PAGE};
    struct pw_firehose_config c = config_of(2, 0);
    c.m += 2 * NET_PAGE;
    c.prepinned = &before;
    c.prepinned_count = 1;
    struct net *net = net_open(&c, 2, 1);
    struct net_node *b = &net->node[1];
    struct pw_firehose_request r = {0}, q = {0};
    struct told t = {0};
    assert_int_equal(pw_firehose_try_local_pin(b->table, net_page(8), 2 * NET_PAGE, &r), 0);
    b->pinned[8] = 1;                                                      /* as the client did */
    assert_int_equal(pin(&net->node[0], 8, 1, &q, &t), PW_FIREHOSE_LATER); /* not told to others */
    net_settle(net);
    assert_true(t.error == 0 && b->units == 0);
    release(b, &r);
    release(&net->node[0], &q);
    assert_int_equal(net_close(net), 0);
}

static void hostile_messages(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0};
    struct told t = {0};
    unsigned char bytes[200];
    net->held = true;
    pin(a, 0, 1, &r, &t);
    struct net_message *m = &net->message[0];
    memcpy(bytes, m->bytes, m->length);
    struct pw_firehose *b = net->node[1].table;
    assert_int_equal(pw_firehose_deliver(b, 0, bytes, m->length - 1), -EPROTO);
    assert_int_equal(pw_firehose_deliver(b, 0, bytes, 3), -EPROTO);
    assert_int_equal(pw_firehose_deliver(b, 1, bytes, m->length), -EPROTO);
    assert_int_equal(pw_firehose_deliver(b, 9, bytes, m->length), -EPROTO);
    assert_int_equal(
        pw_firehose_deliver(a->table, 1, "no message of ours, but long enough for one", 43),
        -EPROTO);
    bytes[4] ^= 2; /* the version */
    assert_int_equal(pw_firehose_deliver(b, 0, bytes, m->length), -EPROTO);
    assert_int_equal(stats(&net->node[1]).refused, 5);
    net->held = false;
    net_settle(net);
    assert_true(t.times == 1 && t.error == 0);
    release(a, &r);
    assert_int_equal(net_close(net), 0);
}

static void regions(void **state)
{
    struct pw_firehose_config c = config_of(2, PW_FIREHOSE_REGIONS);
    c.max_region = 4 * NET_PAGE;
    c.m = 4 * c.max_region;
    c.maxvictim = 4 * c.max_region;
    struct net *net = net_open(&c, 2, 1);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0}, q = {0}, p = {0};
    struct told t = {0};
    assert_int_equal(pin(a, 1, 2, &r, &t), PW_FIREHOSE_LATER);
    net_settle(net);
    assert_int_equal(pin(a, 2, 2, &q, &t), PW_FIREHOSE_LATER); /* joined with the one before */
    net_settle(net);
    assert_true(q.addr == net_page(1) && q.len == 3 * NET_PAGE && net->node[1].units == 2);
    assert_int_equal(pin(a, 1, 3, &p, &t), 0);
    assert_int_equal(pin(a, 0, 5, &p, &t), -EBUSY);
    release(a, &p);
    assert_int_equal(pin(a, 0, 5, &p, &t), -EMSGSIZE);
    release(a, &q);
    release(a, &r);
    assert_int_equal(net_close(net), 0);
}

/* Tries of what is pinned allocate nothing, are counted as tries, and give what they give with the
 * lock: a try the unit, a partial one the pages that were asked for. */
static void tries_that_hit(void **state)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        struct pw_firehose_config c = config_of(2, kind == 1 ? PW_FIREHOSE_REGIONS : 0);
        c.max_region = kind == 1 ? 4 * NET_PAGE : 0;
        c.m *= kind == 1 ? 4 : 1;
        c.maxvictim *= kind == 1 ? 4 : 1;
        struct net *net = net_open(&c, 2, 1);
        struct net_node *a = &net->node[0];
        struct pw_firehose_request r = {0}, q = {0}, p = {0};
        uint64_t pages = kind == 1 ? 3 : 1;
        assert_int_equal(pw_firehose_local_pin(a->table, net_page(1), pages * NET_PAGE, &r), 0);
        assert_int_equal(release(a, &r), 0);
        uint64_t before = stats(a).request_alloc;
        assert_int_equal(pw_firehose_try_local_pin(a->table, net_page(1) + 5, 9, &q), 0);
        assert_true(q.addr == net_page(1) && q.len == pages * NET_PAGE);
        assert_int_equal(pw_firehose_partial_local_pin(a->table, net_page(1) + 5, 9, &p), 0);
        assert_true(p.addr == net_page(1) && p.len == NET_PAGE);
        struct pw_firehose_stats s = stats(a);
        assert_int_equal(s.request_alloc, before);
        assert_true(s.local.try_hit == 1 && s.local.partial_hit == 1 && s.local.hit == 0);
        assert_int_equal(release(a, &q), 0);
        assert_int_equal(release(a, &q), -EALREADY);
        assert_int_equal(net_close(net), 1); /* that of `p` */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remote_pins),      cmocka_unit_test(local_pins),
        cmocka_unit_test(remote_callbacks), cmocka_unit_test(calls_in_callbacks),
        cmocka_unit_test(wrong_calls),      cmocka_unit_test(limits),
        cmocka_unit_test(pins_that_fail),   cmocka_unit_test(pins_beyond_the_limit),
        cmocka_unit_test(a_peer_dies),      cmocka_unit_test(pinned_before),
        cmocka_unit_test(hostile_messages), cmocka_unit_test(regions),
        cmocka_unit_test(tries_that_hit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
