/* SPDX-License-Identifier: BSD-3-Clause */
/* SLMP engines on a network in virtual time; see slmp_net.h. */
#include "slmp_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A packet under way. Those with equal times arrive in the order in which they left. */
struct flying {
    int64_t at;
    uint64_t order;
    unsigned from, to;
    size_t length;
    uint8_t *bytes;
};

struct net {
    struct net_node node[NET_NODES];
    unsigned nodes;
    struct net_faults faults;
    uint64_t random, order, trace;
    int64_t now;
    int64_t cable[NET_NODES]; /* when the cable of a node is free */
    struct flying *heap;
    size_t count, room;
    unsigned stalled; /* steps since time moved */
    bool (*see)(void *, unsigned, const uint8_t *, size_t);
    void *see_context;
};

#define UNKNOWN_IDENTITY UINT64_MAX /* of the first message after a session began */

/* A message of the applications: its identity is the head, its length follows. */
struct sent {
    struct slmp_message message;
    struct net_node *node;
    uint64_t head[2];
    uint8_t body[];
};

/* What the receiving application keeps of a message. */
struct got {
    uint64_t length, count;
    uint8_t head[16];
    uint8_t *bytes, *times;
};

uint64_t net_random(struct net *n)
{
    n->random ^= n->random << 13;
    n->random ^= n->random >> 7;
    n->random ^= n->random << 17;
    return n->random;
}

static bool chance(struct net *n, unsigned of_10000)
{
    return of_10000 > 0 && net_random(n) % 10000 < of_10000;
}

struct slmp_address net_address(unsigned index)
{
    return (struct slmp_address){.ip = index + 1, .port = (uint16_t)(9000 + index)};
}

static uint8_t byte_of(uint64_t identity, uint64_t at)
{
    uint64_t x = (identity + 1) * 0x9e3779b97f4a7c15u + at * 0xbf58476d1ce4e5b9u;
    return (uint8_t)(x >> 56);
}

/* ---- Packets under way: a heap by time ---- */

static bool before(const struct flying *a, const struct flying *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(struct net *n, const struct flying *f)
{
    if (n->count == n->room) {
        n->room = n->room * 2 + 64;
        n->heap = realloc(n->heap, n->room * sizeof(*n->heap));
        assert_non_null(n->heap);
    }
    size_t i = n->count++;
    for (; i > 0 && before(f, &n->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        n->heap[i] = n->heap[(i - 1) / 2];
    }
    n->heap[i] = *f;
}

static struct flying pop(struct net *n)
{
    struct flying first = n->heap[0], last = n->heap[--n->count];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < n->count) {
        child += child + 1 < n->count && before(&n->heap[child + 1], &n->heap[child]);
        if (!before(&n->heap[child], &last)) {
            break;
        }
        n->heap[i] = n->heap[child];
        i = child;
    }
    n->heap[i] = last;
    return first;
}

static void fly(struct net *n, unsigned from, unsigned to, const void *bytes, size_t length,
                int64_t at)
{
    struct flying f = {.at = at, .order = n->order++, .from = from, .to = to, .length = length};
    f.bytes = malloc(length > 0 ? length : 1);
    assert_non_null(f.bytes);
    memcpy(f.bytes, bytes, length);
    if (length > 0 && chance(n, n->faults.spoil)) {
        f.bytes[net_random(n) % length] ^= (uint8_t)(1u << net_random(n) % 8);
    }
    push(n, &f);
}

void net_inject(struct net *n, unsigned from, unsigned to, const void *packet, size_t length)
{
    fly(n, from, to, packet, length, n->now);
}

/* A packet leaves a node. */
static void leave(struct net *n, unsigned from, const struct slmp_packet *p)
{
    uint8_t bytes[SLMP_PACKET_MAX];
    size_t length = p->header_length;
    unsigned to = p->to.ip - 1;
    memcpy(bytes, p->header, length);
    for (unsigned i = 0; i < p->parts; i++) {
        memcpy(bytes + length, p->part[i].iov_base, p->part[i].iov_len);
        length += p->part[i].iov_len;
    }
    assert_int_equal(length, p->length);
    for (size_t i = 0; i < length; i++) {
        n->trace = (n->trace ^ bytes[i]) * 0x100000001b3u;
    }
    n->trace ^= (uint64_t)n->now;
    if ((n->see != NULL && n->see(n->see_context, from, bytes, length)) ||
        chance(n, n->faults.loss) || to >= n->nodes) {
        return;
    }
    int64_t at = n->now;
    if (n->faults.per_packet > 0) {
        int64_t free_at = n->cable[from] > n->now ? n->cable[from] : n->now;
        if (free_at - n->now > n->faults.queue * n->faults.per_packet) {
            return;
        }
        n->cable[from] = at = free_at + n->faults.per_packet;
    }
    for (int copies = chance(n, n->faults.twice) ? 2 : 1; copies > 0; copies--) {
        int64_t late =
            chance(n, n->faults.late) ? (int64_t)(net_random(n) % (uint64_t)n->faults.later) : 0;
        fly(n, from, to, bytes, length, at + n->faults.delay + late);
    }
}

/* ---- The application ---- */

static void on_opened(void *context, struct slmp_peer *peer, const struct slmp_address *from,
                      uint64_t incarnation)
{
    struct net_node *node = context;
    node->opened++;
    node->last_peer = incarnation;
    for (unsigned c = 0; c < SLMP_CHANNELS; c++) {
        node->next[from->ip - 1][c] = UNKNOWN_IDENTITY;
    }
}

static void on_closed(void *context, struct slmp_peer *peer, const struct slmp_address *from)
{
    ((struct net_node *)context)->closed++;
}

static enum slmp_step on_begin(void *context, struct slmp_incoming *in, const void *first,
                               size_t length)
{
    struct net_node *node = context;
    if (node->stuck[in->channel] || net_random(node->net) % 100 < node->later_begin) {
        return SLMP_LATER;
    }
    if (!in->plain) {
        uint64_t head[2], *next = &node->next[in->from.ip - 1][in->channel];
        assert_true(length >= sizeof(head));
        memcpy(head, first, sizeof(head));
        assert_int_equal(head[1], in->length);
        assert_true(*next == UNKNOWN_IDENTITY || head[0] == *next);
        *next = head[0] + 1;
    }
    struct got *g = calloc(1, sizeof(*g));
    assert_non_null(g);
    in->user = g;
    node->began++;
    return SLMP_GO;
}

static void grow(struct got *g, uint64_t length)
{
    if (length <= g->length) {
        return;
    }
    uint64_t room = 2 * length;
    g->bytes = realloc(g->bytes, room);
    g->times = realloc(g->times, room);
    assert_non_null(g->bytes);
    assert_non_null(g->times);
    memset(g->times + g->length, 0, room - g->length);
    g->length = room;
}

static enum slmp_step on_data(void *context, struct slmp_incoming *in, uint64_t offset,
                              const void *bytes, size_t length)
{
    struct net_node *node = context;
    struct got *g = in->user;
    if (net_random(node->net) % 100 < node->later_data) {
        return SLMP_LATER;
    }
    grow(g, offset + length);
    memcpy(g->bytes + offset, bytes, length);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(g->times[offset + i]++, 0); /* each byte once */
    }
    g->count += length;
    return SLMP_GO;
}

static void on_done(void *context, struct slmp_incoming *in, enum slmp_status status)
{
    struct net_node *node = context;
    struct got *g = in->user;
    if (status == SLMP_OK) {
        uint64_t head[2];
        assert_int_equal(g->count, in->length);
        assert_true(g->count >= sizeof(head));
        memcpy(head, g->bytes, sizeof(head));
        assert_int_equal(head[1], in->length);
        for (uint64_t i = sizeof(head); i < in->length; i++) {
            if (g->bytes[i] != byte_of(head[0], i - sizeof(head))) {
                fail_msg("byte %zu of message %zu is wrong", (size_t)i, (size_t)head[0]);
            }
        }
        node->received++;
        node->bytes += in->length;
    } else {
        node->torn++;
    }
    free(g->bytes);
    free(g->times);
    free(g);
}

static void on_sent(void *context, struct slmp_message *m, enum slmp_status status)
{
    struct net_node *node = context;
    node->sent += status == SLMP_OK;
    node->undeliverable += status != SLMP_OK;
    free(container_of(m, struct sent, message));
}

int net_send(struct net_node *from, const struct net_node *to, unsigned channel, size_t length,
             enum slmp_way way, int64_t gap)
{
    uint64_t *identity = &from->committed[to->index][channel];
    assert_true(length >= sizeof(((struct sent *)0)->head));
    size_t body = length - sizeof(((struct sent *)0)->head);
    struct sent *s = calloc(1, sizeof(*s) + body);
    assert_non_null(s);
    s->head[0] = *identity;
    s->head[1] = length;
    for (size_t i = 0; i < body; i++) {
        s->body[i] = byte_of(*identity, i);
    }
    s->message = (struct slmp_message){.to = net_address(to->index),
                                       .channel = (uint8_t)channel,
                                       .way = way,
                                       .gap = gap,
                                       .head = s->head,
                                       .head_length = sizeof(s->head),
                                       .body = s->body,
                                       .body_length = body};
    int r = slmp_send(from->engine, from->net->now, &s->message);
    if (r != 0) {
        free(s);
        return r;
    }
    (*identity)++;
    return 0;
}

/* ---- Nodes and time ---- */

static void start(struct net_node *node, const struct slmp_config *config)
{
    struct slmp_upcalls up = {.context = node,
                              .opened = on_opened,
                              .closed = on_closed,
                              .begin = on_begin,
                              .data = on_data,
                              .done = on_done,
                              .sent = on_sent};
    struct slmp_config own = *config;
    own.incarnation = node->incarnation = net_random(node->net);
    own.secret = net_random(node->net);
    node->engine = slmp_open(&own, &up, &(struct reason){""});
    assert_non_null(node->engine);
}

struct net_node *net_add(struct net *n, const struct slmp_config *config)
{
    assert_true(n->nodes < NET_NODES);
    struct net_node *node = &n->node[n->nodes];
    node->net = n;
    node->index = n->nodes++;
    start(node, config);
    return node;
}

void net_kill(struct net_node *node)
{
    slmp_close(node->engine);
    node->engine = NULL;
}

void net_again(struct net_node *node, const struct slmp_config *config)
{
    start(node, config);
}

struct net *net_open(uint64_t seed, const struct net_faults *faults)
{
    struct net *n = calloc(1, sizeof(*n));
    assert_non_null(n);
    n->random = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    n->trace = 0xcbf29ce484222325u;
    n->faults = *faults;
    n->now = 1000000000;
    return n;
}

void net_close(struct net *n)
{
    for (unsigned i = 0; i < n->nodes; i++) {
        if (n->node[i].engine != NULL) {
            net_kill(&n->node[i]);
        }
    }
    while (n->count > 0) {
        free(n->heap[--n->count].bytes);
    }
    free(n->heap);
    free(n);
}

void net_faults(struct net *n, const struct net_faults *f)
{
    n->faults = *f;
}

static void pump(struct net_node *node)
{
    struct slmp_packet p;
    while (node->engine != NULL && slmp_output(node->engine, node->net->now, &p)) {
        leave(node->net, node->index, &p);
    }
}

static void resume(struct net_node *node)
{
    for (unsigned i = 0; i < node->net->nodes; i++) {
        struct slmp_address a = net_address(i);
        struct slmp_peer *peer = slmp_known(node->engine, &a);
        for (unsigned c = 0; peer != NULL && c < SLMP_CHANNELS; c++) {
            if (!node->stuck[c]) {
                slmp_resume(node->engine, node->net->now, peer, c);
            }
        }
    }
}

static int64_t next_time(const struct net *n)
{
    int64_t at = n->count > 0 ? n->heap[0].at : SLMP_NEVER;
    for (unsigned i = 0; i < n->nodes; i++) {
        int64_t due = n->node[i].engine != NULL ? slmp_deadline(n->node[i].engine) : SLMP_NEVER;
        at = due < at ? due : at;
        /* An application that said later looks again after a while. */
        int64_t again = n->now + 100000;
        at = n->node[i].later_begin + n->node[i].later_data > 0 && again < at ? again : at;
    }
    return at > n->now || at == SLMP_NEVER ? at : n->now;
}

/* One moment: what arrives now, what is due now, what leaves then. */
static void moment(struct net *n)
{
    while (n->count > 0 && n->heap[0].at <= n->now) {
        struct flying f = pop(n);
        struct slmp_address from = net_address(f.from);
        if (n->node[f.to].engine != NULL) {
            slmp_input(n->node[f.to].engine, n->now, &from, f.bytes, f.length);
        }
        free(f.bytes);
    }
    for (unsigned i = 0; i < n->nodes; i++) {
        struct net_node *node = &n->node[i];
        if (node->engine == NULL) {
            continue;
        }
        if (slmp_deadline(node->engine) <= n->now) {
            slmp_advance(node->engine, n->now);
        }
        if (node->later_begin + node->later_data > 0) {
            resume(node);
        }
        pump(node);
    }
}

static bool step(struct net *n, int64_t until)
{
    int64_t at = next_time(n);
    if (at == SLMP_NEVER || at > until) {
        return false;
    }
    n->stalled = at == n->now ? n->stalled + 1 : 0;
    assert_true(n->stalled < 1000); /* an engine that is due and does nothing */
    n->now = at;
    moment(n);
    return true;
}

void net_run(struct net *n, int64_t until)
{
    while (step(n, until)) {
    }
    n->now = n->now < until ? until : n->now;
}

bool net_settle(struct net *n, const struct net_node *to, uint64_t messages, int64_t longest)
{
    int64_t until = n->now + longest;
    while (to->received < messages && step(n, until)) {
    }
    return to->received == messages;
}

int64_t net_now(const struct net *n)
{
    return n->now;
}

void net_watch(struct net *n, bool (*see)(void *, unsigned, const uint8_t *, size_t), void *context)
{
    n->see = see;
    n->see_context = context;
}

uint64_t net_trace(const struct net *n)
{
    return n->trace;
}

void net_talk(struct net_node *a, struct net_node *b, unsigned messages)
{
    struct net *n = a->net;
    for (unsigned i = 0; i < messages; i++) {
        size_t length = 16 + (i % 7 == 0 ? net_random(n) % 100000 : net_random(n) % 3000);
        assert_int_equal(net_send(a, b, i % 2, length, SLMP_RELIABLE, 0), 0);
        assert_int_equal(net_send(b, a, i % 3 == 0, 16 + length / 2, SLMP_RELIABLE, 0), 0);
    }
    assert_true(net_settle(n, b, messages, 600 * SECOND));
    assert_true(net_settle(n, a, messages, 600 * SECOND));
    net_run(n, net_now(n) + 5 * SECOND);
}
