/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include "../splitmix.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

uint64_t net_page(unsigned page)
{
    return NET_BASE + (uint64_t)page * NET_PAGE;
}

/* mlock() and munlock() do nothing under a sanitizer. */
int net_lock(void *memory, size_t length)
{
    return (int)syscall(SYS_mlock, memory, length);
}

int net_unlock(void *memory, size_t length)
{
    return (int)syscall(SYS_munlock, memory, length);
}

static void count(struct net_node *n, const struct pw_firehose_region *r, int by)
{
    long units = atomic_fetch_add(&n->units, by) + by, most = atomic_load(&n->most);
    while (units > most && !atomic_compare_exchange_weak(&n->most, &most, units)) {
    }
    for (uint64_t at = r->addr; at < r->addr + r->len; at += NET_PAGE) {
        if (at >= NET_BASE && at < net_page(NET_PAGES)) {
            int now = atomic_fetch_add(&n->pinned[(at - NET_BASE) / NET_PAGE], by) + by;
            assert_true(now >= 0);
        }
    }
}

static int move(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
                struct pw_firehose_region *pins, size_t pin_count)
{
    struct net_node *n = client;
    for (size_t i = 0; i < unpin_count; i++) {
        if (n->lock_memory) {
            assert_int_equal(net_unlock((void *)(uintptr_t)unpins[i].addr, unpins[i].len), 0);
        }
        count(n, &unpins[i], -1);
    }
    if (pin_count > 0 && n->fail_pins > 0) {
        n->fail_pins--;
        return -ENOMEM;
    }
    for (size_t i = 0; i < pin_count; i++) {
        int error = 0;
        if (n->lock_memory && net_lock((void *)(uintptr_t)pins[i].addr, pins[i].len) != 0) {
            error = -errno;
        }
        if (error != 0) {
            while (i-- > 0) {
                net_unlock((void *)(uintptr_t)pins[i].addr, pins[i].len);
                count(n, &pins[i], -1);
            }
            return error;
        }
        count(n, &pins[i], 1);
        memcpy(pins[i].handle, &pins[i].addr, sizeof(pins[i].addr));
        pins[i].handle[8] = (unsigned char)n->self;
    }
    return 0;
}

static int send(void *client, unsigned node, const void *bytes, size_t length)
{
    struct net_node *n = client;
    struct net *net = n->net;
    if (n->dead || net->node[node].dead) {
        return 0; /* lost: who sent it is told by net_kill() */
    }
    void *copy = malloc(length);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    pthread_mutex_lock(&net->lock);
    assert_true(net->waiting < NET_MESSAGES);
    net->message[net->waiting++] = (struct net_message){n->self, node, length, copy};
    pthread_mutex_unlock(&net->lock);
    return 0;
}

bool net_deliver(struct net_node *n)
{
    struct net *net = n->net;
    struct net_message m = {0};
    pthread_mutex_lock(&net->lock);
    size_t start = splitmix_below(&net->random, net->waiting);
    for (size_t i = 0; i < net->waiting && !net->held; i++) {
        size_t at = (start + i) % net->waiting;
        if (net->message[at].to == n->self) {
            m = net->message[at];
            net->message[at] = net->message[--net->waiting];
            break;
        }
    }
    pthread_mutex_unlock(&net->lock);
    if (m.bytes == NULL) {
        return false;
    }
    if (!n->dead) {
        int rc = pw_firehose_deliver(n->table, m.from, m.bytes, m.length);
        assert_true(rc == 0 || net->node[m.from].dead);
    }
    free(m.bytes);
    return true;
}

/* One message of its own, and one of somebody else, who has no thread here. */
static void poll(void *client)
{
    struct net_node *n = client;
    net_deliver(n);
    for (unsigned i = 0; i < n->net->nodes; i++) {
        struct net_node *other = &n->net->node[i];
        if (other != n && !other->dead) {
            net_deliver(other);
        }
    }
}

static void remote(void *client, unsigned node, const struct pw_firehose_region *regions,
                   size_t region_count, const void *args, size_t length)
{
    struct net_node *n = client;
    n->called++;
    n->call_count = region_count;
    n->call_addr = regions[0].addr;
    n->args_length = length;
    memcpy(n->args, args, length);
    for (uint64_t at = regions[0].addr; at < regions[0].addr + regions[0].len; at += NET_PAGE) {
        assert_true(n->pinned[(at - NET_BASE) / NET_PAGE] > 0);
    }
}

static const struct pw_firehose_ops ops = {move, send, poll, remote};

struct net *net_open(const struct pw_firehose_config *config, unsigned nodes, uint64_t seed)
{
    struct net *net = calloc(1, sizeof(*net));
    assert_non_null(net);
    pthread_mutex_init(&net->lock, NULL);
    net->random = seed;
    net->nodes = nodes;
    for (unsigned i = 0; i < nodes; i++) {
        struct pw_firehose_config c = *config;
        net->node[i].net = net;
        net->node[i].self = i;
        c.nodes = nodes;
        c.self = i;
        c.page = NET_PAGE;
        c.ops = &ops;
        c.client = &net->node[i];
        assert_int_equal(pw_firehose_init(&c, &net->node[i].table, NULL), 0);
    }
    return net;
}

int net_close(struct net *net)
{
    int left = 0;
    for (unsigned i = 0; i < net->nodes; i++) {
        left += pw_firehose_fini(net->node[i].table);
    }
    while (net->waiting > 0) {
        free(net->message[--net->waiting].bytes);
    }
    free(net);
    return left;
}

/* Targets have no thread of their own in most tests: a poll here is a poll of all. */
void net_settle(struct net *net)
{
    /* In a round without messages a poll may send one: so the second such round in turn is the
     * last. */
    for (unsigned quiet = 0; quiet < 2;) {
        bool moved = false;
        for (unsigned i = 0; i < net->nodes; i++) {
            if (!net->node[i].dead) {
                moved |= net_deliver(&net->node[i]);
                pw_firehose_poll(net->node[i].table);
            }
        }
        quiet = moved ? 0 : quiet + 1;
    }
}

void net_kill(struct net *net, unsigned node)
{
    net->node[node].dead = true;
    for (unsigned i = 0; i < net->nodes; i++) {
        if (i != node && !net->node[i].dead) {
            assert_int_equal(pw_firehose_peer_dead(net->node[i].table, node), 0);
            pw_firehose_poll(net->node[i].table);
        }
    }
}
