/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is gone under a pin: what is told with pw_firehose_forget() is unpinned here and at
 * peers before it counts as gone, and pinned anew after that. */
#include "net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { F = 4, VICTIMS = 4 };

static struct net *open_net(unsigned nodes)
{
    struct pw_firehose_config c = {.flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV,
                                   .max_pinnable = UINT64_C(1) << 30,
                                   .m = (uint64_t)F * (nodes - 1) * NET_PAGE,
                                   .maxvictim = VICTIMS * NET_PAGE,
                                   .patience = 20};
    return net_open(&c, nodes, 1);
}

static void gone(void *context)
{
    ++*(int *)context;
}

static void completed(void *context, struct pw_firehose_request *r, int error, int local_hit)
{
    *(int *)context = error == 0 ? 1 : error;
}

static int forget(struct net_node *n, unsigned page, unsigned pages, int *told)
{
    return pw_firehose_forget(n->table, net_page(page), pages * NET_PAGE, gone, told);
}

static int release(struct net_node *n, struct pw_firehose_request *r)
{
    return pw_firehose_release(n->table, &r, 1);
}

static int local(struct net_node *n, unsigned page, struct pw_firehose_request *r)
{
    return pw_firehose_local_pin(n->table, net_page(page), 8, r);
}

static int try_local(struct net_node *n, unsigned page, struct pw_firehose_request *r)
{
    return pw_firehose_try_local_pin(n->table, net_page(page), 8, r);
}

static int try_remote(struct net_node *n, unsigned page, struct pw_firehose_request *r)
{
    return pw_firehose_try_remote_pin(n->table, 1 - n->self, net_page(page), 8, r);
}

/* Pins a page of the other node, and waits until that has ended. */
static int remote(struct net_node *n, unsigned page, struct pw_firehose_request *r)
{
    int told = 0;
    int rc = pw_firehose_remote_pin(n->table, 1 - n->self, net_page(page), 8, 0, r, NULL, completed,
                                    &told);
    if (rc < 0) {
        return rc;
    }
    net_settle(n->net);
    return told;
}

static struct pw_firehose_stats stats(struct net_node *n)
{
    struct pw_firehose_stats s;
    pw_firehose_stats(n->table, &s);
    return s;
}

static void idle_here(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0};
    int told = 0;
    for (unsigned page = 3; page < 6; page++) {
        assert_int_equal(local(a, page, &r), 0);
        assert_int_equal(release(a, &r), 0);
    }
    assert_int_equal(forget(a, 3, 2, &told), 0);
    assert_true(a->pinned[3] == 0 && a->pinned[4] == 0 && a->pinned[5] == 1 && told == 0);
    assert_int_equal(try_local(a, 3, &r), -EAGAIN);
    assert_int_equal(local(a, 5, &r), 0);
    assert_int_equal(stats(a).local.miss, 3);
    assert_int_equal(release(a, &r), 0);
    assert_int_equal(local(a, 3, &r), 0);
    assert_int_equal(stats(a).local.miss, 4);
    assert_int_equal(release(a, &r), 0);
    assert_int_equal(stats(a).forgotten, 2);
    assert_int_equal(forget(a, 40, 4, &told), 0);
    assert_int_equal(pw_firehose_forget(a->table, net_page(0), 0, NULL, NULL), -EINVAL);
    assert_int_equal(pw_firehose_forget(a->table, UINT64_MAX - 8, 4096, NULL, NULL), -EINVAL);
    assert_int_equal(pw_firehose_forget(a->table, 0, UINT64_MAX, NULL, NULL), 0);
    assert_int_equal(stats(a).pinned, 0);
    assert_int_equal(net_close(net), 0);
}

static void used_here(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0];
    struct pw_firehose_request r = {0}, q = {0}, other = {0};
    int told = 0;
    assert_int_equal(local(a, 3, &r), 0);
    assert_int_equal(local(a, 3, &q), 0); /* a hit without the lock */
    assert_int_equal(forget(a, 3, 1, &told), PW_FIREHOSE_LATER);
    assert_int_equal(try_local(a, 3, &other), -EAGAIN);
    assert_int_equal(local(a, 3, &other), -ETIMEDOUT);
    assert_int_equal(release(a, &r), 0);
    pw_firehose_poll(a->table);
    assert_true(told == 0 && a->pinned[3] == 1);
    assert_int_equal(release(a, &q), 0);
    pw_firehose_poll(a->table);
    assert_true(told == 1 && a->pinned[3] == 0);
    assert_int_equal(local(a, 3, &other), 0);
    assert_int_equal(release(a, &other), 0);
    assert_int_equal(net_close(net), 0);
}

static void idle_at_the_peer(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0], *b = &net->node[1];
    struct pw_firehose_request r = {0};
    int told = 0;
    assert_int_equal(remote(a, 3, &r), 1);
    assert_int_equal(release(a, &r), 0);
    assert_int_equal(forget(b, 0, 8, &told), PW_FIREHOSE_LATER);
    assert_int_equal(try_local(b, 3, &r), -EAGAIN);
    assert_true(told == 0 && b->pinned[3] == 1);
    net_settle(net);
    assert_true(told == 1 && b->pinned[3] == 0);
    assert_int_equal(try_remote(a, 3, &r), -EAGAIN);
    assert_int_equal(stats(a).revoked, 1);
    assert_int_equal(remote(a, 3, &r), 1);
    assert_true(b->pinned[3] == 1);
    assert_int_equal(release(a, &r), 0);
    assert_int_equal(net_close(net), 0);
}

/* The peer is slow: it uses the page, and gives it up when it has no use of it. */
static void used_at_the_peer(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0], *b = &net->node[1];
    struct pw_firehose_request r = {0}, q = {0};
    int told = 0;
    assert_int_equal(remote(a, 3, &r), 1);
    assert_int_equal(remote(a, 3, &q), 1);
    assert_int_equal(forget(b, 3, 1, &told), PW_FIREHOSE_LATER);
    net_settle(net);
    assert_true(told == 0 && b->pinned[3] == 1);
    struct pw_firehose_request other = {0};
    assert_int_equal(try_remote(a, 3, &other), -EAGAIN);
    assert_int_equal(release(a, &r), 0);
    net_settle(net);
    assert_int_equal(told, 0);
    assert_int_equal(release(a, &q), 0);
    net_settle(net);
    assert_true(told == 1 && b->pinned[3] == 0);
    assert_int_equal(net_close(net), 0);
}

static void peer_dies(void **state)
{
    struct net *net = open_net(3);
    struct net_node *a = &net->node[0], *b = &net->node[1];
    struct pw_firehose_request r = {0};
    int told = 0;
    assert_int_equal(remote(a, 3, &r), 1);
    assert_int_equal(forget(b, 3, 1, &told), PW_FIREHOSE_LATER);
    net_settle(net);
    assert_int_equal(told, 0);
    net_kill(net, 0);
    pw_firehose_poll(b->table);
    assert_true(told == 1 && b->pinned[3] == 0);
    net_close(net);
}

/* Each has pages of the other one and forgets its own. */
static void both_at_once(void **state)
{
    struct net *net = open_net(2);
    struct pw_firehose_request r[2] = {{0}, {0}};
    int told[2] = {0};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(remote(&net->node[i], 3, &r[i]), 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(forget(&net->node[i], 3, 1, &told[i]), PW_FIREHOSE_LATER);
    }
    net_settle(net);
    assert_int_equal(release(&net->node[0], &r[0]), 0);
    net_settle(net);
    assert_true(told[0] == 0 && told[1] == 1);
    assert_int_equal(release(&net->node[1], &r[1]), 0);
    net_settle(net);
    assert_int_equal(told[0], 1);
    assert_int_equal(net_close(net), 0);
}

/* A request for a page that its node has forgotten and still uses begins anew until it is free. */
static void request_meanwhile(void **state)
{
    struct net *net = open_net(2);
    struct net_node *a = &net->node[0], *b = &net->node[1];
    struct pw_firehose_request r = {0}, q = {0};
    int told = 0, pinned = 0;
    assert_int_equal(local(b, 3, &r), 0);
    assert_int_equal(forget(b, 3, 1, &told), PW_FIREHOSE_LATER);
    assert_int_equal(
        pw_firehose_remote_pin(a->table, 1, net_page(3), 8, 0, &q, NULL, completed, &pinned),
        PW_FIREHOSE_LATER);
    for (unsigned i = 0; i < 8; i++) {
        net_deliver(b);
        pw_firehose_poll(b->table);
        net_deliver(a);
        pw_firehose_poll(a->table);
    }
    assert_true(pinned == 0 && stats(a).restarted > 0);
    assert_int_equal(release(b, &r), 0);
    net_settle(net);
    assert_true(told == 1 && pinned == 1 && b->pinned[3] == 1);
    assert_int_equal(release(a, &q), 0);
    assert_int_equal(net_close(net), 0);
}

static void another_version(void **state)
{
    struct net *net = open_net(2);
    uint32_t message[10] = {0x70774648, 0x0101};
    char text[400] = "";
    int saved = dup(2), file = memfd_create("stderr", 0);
    assert_true(saved >= 0 && file >= 0 && dup2(file, 2) == 2);
    int rc = pw_firehose_deliver(net->node[0].table, 1, message, sizeof(message));
    pw_firehose_deliver(net->node[0].table, 1, message, sizeof(message));
    dup2(saved, 2);
    assert_int_equal(rc, -EPROTO);
    assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
    assert_non_null(strstr(text, "a message of node 1 has version 1, not 2"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    close(saved);
    close(file);
    assert_int_equal(stats(&net->node[0]).refused, 2);
    net_close(net);
}

/* ---- Pages that are really others ---- */

/* A pin is a second mapping of the page that is at the address at that time: what a network does
 * that holds pages. `frame` is which page of the file that is, as the page table knows it. */
static struct {
    int file;
    char *memory;
    unsigned frame;
} real;

static int alias(void *client, const struct pw_firehose_region *unpins, size_t u,
                 struct pw_firehose_region *pins, size_t n)
{
    for (size_t i = 0; i < u; i++) {
        void *at;
        memcpy(&at, unpins[i].handle, sizeof(at));
        assert_int_equal(munmap(at, NET_PAGE), 0);
    }
    for (size_t i = 0; i < n; i++) {
        void *at = mmap(NULL, NET_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, real.file,
                        (off_t)real.frame * NET_PAGE);
        assert_ptr_not_equal(at, MAP_FAILED);
        memcpy(pins[i].handle, &at, sizeof(at));
    }
    return 0;
}

/* The network writes to the pinned page of the memory. */
static void network_writes(struct pw_firehose *table, const char *text)
{
    struct pw_firehose_request r = {0}, *one = &r;
    char *at;
    assert_int_equal(pw_firehose_local_pin(table, (uintptr_t)real.memory, NET_PAGE, one), 0);
    memcpy(&at, r.handle, sizeof(at));
    strcpy(at, text);
    assert_int_equal(pw_firehose_release(table, &one, 1), 0);
}

static void replace_page(bool tell, char *seen)
{
    static const struct pw_firehose_ops ops = {.move = alias};
    struct pw_firehose_config c = {.nodes = 1,
                                   .page = NET_PAGE,
                                   .flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV,
                                   .max_pinnable = 4 * NET_PAGE,
                                   .ops = &ops};
    struct pw_firehose *table;
    real.file = memfd_create("pages", 0);
    assert_int_equal(ftruncate(real.file, 2 * NET_PAGE), 0);
    real.frame = 0;
    real.memory = mmap(NULL, NET_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, real.file, 0);
    assert_ptr_not_equal(real.memory, MAP_FAILED);
    assert_int_equal(pw_firehose_init(&c, &table, NULL), 0);
    network_writes(table, "old");
    assert_string_equal(real.memory, "old");

    real.frame = 1; /* the program maps other memory at the same address */
    assert_ptr_equal(mmap(real.memory, NET_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          real.file, NET_PAGE),
                     real.memory);
    if (tell) {
        assert_int_equal(pw_firehose_forget(table, (uintptr_t)real.memory, NET_PAGE, NULL, NULL),
                         0);
    }
    network_writes(table, "new");
    strcpy(seen, real.memory);
    assert_int_equal(pw_firehose_fini(table), 0);
    munmap(real.memory, NET_PAGE);
    close(real.file);
}

static void old_pages(void **state)
{
    char seen[8];
    replace_page(true, seen);
    assert_string_equal(seen, "new");
    replace_page(false, seen);
    assert_string_equal(seen, ""); /* the network has written to the page that was there before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_here),         cmocka_unit_test(used_here),
        cmocka_unit_test(idle_at_the_peer),  cmocka_unit_test(used_at_the_peer),
        cmocka_unit_test(peer_dies),         cmocka_unit_test(both_at_once),
        cmocka_unit_test(request_meanwhile), cmocka_unit_test(another_version),
        cmocka_unit_test(old_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
