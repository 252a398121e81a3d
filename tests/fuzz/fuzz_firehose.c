/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Firehose between hostile peers: node 0 is ours; what nodes 1 and 2 send it the input says, header
 * by header or as plain bytes, with tokens of requests that node 0 has under way, when one of
 * them dies, and when memory of node 0 is gone. Whatever comes, the tables agree, no more is pinned
 * than may be, each request ends at most once, and when both peers are dead all have ended.
 *
 * An input is a sequence of: what (a byte), then as its case below reads.
 */
#include "fuzz.h"

#include "../../lib/firehose/inside.h"

#include <errno.h>
#include <string.h>

enum { PAGE = 4096, REQUESTS = 8, F = 4, VICTIMS = 4 };

static const uint8_t *input;
static size_t left;
static struct pw_firehose *table;
static long pinned;
static struct pw_firehose_request request[REQUESTS];
static int asked[REQUESTS]; /* 1: it will be told of */
static int told[REQUESTS];  /* 1: forgotten memory is still pinned */

static uint8_t next(void)
{
    return left > 0 ? (left--, *input++) : 0;
}

static int move(void *client, const struct pw_firehose_region *unpins, size_t u,
                struct pw_firehose_region *pins, size_t n)
{
    pinned -= (long)u;
    MUST(pinned >= 0);
    if (n > 0 && next() % 8 == 1) {
        return -ENOMEM;
    }
    pinned += (long)n;
    MUST(pinned <= 2 * F + VICTIMS);
    return 0;
}

static int carry(void *client, unsigned node, const void *bytes, size_t length)
{
    MUST(length <= 4096);
    return next() % 64 == 63;
}

static void completed(void *context, struct pw_firehose_request *r, int error, int local_hit)
{
    int *one = context;
    MUST(*one == 1);
    *one = 0;
}

static const struct pw_firehose_ops ops = {.move = move, .send = carry};

/* The token of a move that is under way, as a peer would know it. */
static uint64_t token(unsigned which)
{
    struct list *at;
    for (at = table->alive.next; at != &table->alive; at = at->next) {
        if (which-- == 0) {
            struct call *c = container_of(at, struct call, alive);
            return c->asked && c->token != 0 ? c->token : c->engine.token;
        }
    }
    return which;
}

static void message(unsigned node)
{
    unsigned char bytes[4096];
    struct message m = {.type = 1 + next() % 5,
                        .callback = next() % 2,
                        .error = next() % 4 == 0 ? -(int)next() : 0,
                        .unpin_count = next() % 4,
                        .pin_count = next() % 6,
                        .args_length = next() % 8};
    m.token = token(next() % 16);
    if (m.type != MESSAGE_MOVE) {
        m.unpin_count = 0;
    }
    unsigned char *at = wire_write(bytes, &m);
    for (unsigned i = 0; i < m.unpin_count + m.pin_count; i++) {
        struct pin_range range = {.addr = (uint64_t)(next() % 16) * PAGE, .len = PAGE};
        if (next() % 32 == 0) {
            range.addr += (uint64_t)next() << (next() % 64);
            range.len += (uint64_t)next() << (next() % 64);
        }
        at = wire_put(at, &range, m.type == MESSAGE_ANSWER);
    }
    memset(at, 7, m.args_length);
    pw_firehose_deliver(table, node, bytes, wire_size(&m));
}

static void forgotten(void *context)
{
    int *one = context;
    MUST(*one == 1);
    *one = 0;
}

static void act(uint8_t what)
{
    unsigned i = next() % REQUESTS, node = 1 + next() % 2;
    struct pw_firehose_request *one = &request[i];
    uint64_t addr = (uint64_t)(next() % 16) * PAGE;
    unsigned char plain[64];
    int rc;
    switch (what % 9) {
    case 0:
    case 1:
    case 2:
        message(node);
        break;
    case 3:
        for (unsigned k = 0; k < sizeof(plain); k++) {
            plain[k] = next();
        }
        pw_firehose_deliver(table, next() % 4, plain, next() % sizeof(plain));
        break;
    case 4:
        if (asked[i] == 0) {
            asked[i] = 1;
            rc = pw_firehose_remote_pin(table, node, addr, (uint64_t)(1 + next() % 3) * PAGE,
                                        next() % 2 * PW_FIREHOSE_REMOTE_CALLBACK, one, NULL,
                                        completed, &asked[i]);
            asked[i] = rc < 0 ? 0 : asked[i];
        }
        break;
    case 5:
        if (asked[i] == 0) {
            pw_firehose_local_pin(table, addr, PAGE, one);
        }
        break;
    case 6:
        pw_firehose_release(table, &one, 1);
        break;
    case 7:
        if (told[i] == 0) {
            told[i] = 1;
            rc = pw_firehose_forget(table, addr, (uint64_t)(1 + next() % 3) * PAGE, forgotten,
                                    &told[i]);
            MUST(rc == 0 || rc == PW_FIREHOSE_LATER);
            told[i] = rc == 0 ? 0 : told[i];
        }
        break;
    default:
        if (next() % 32 == 0) {
            pw_firehose_peer_dead(table, node);
        }
    }
    if (next() % 2 == 0) {
        pw_firehose_poll(table);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pw_firehose_config c = {.nodes = 3,
                                   .page = PAGE,
                                   .max_pinnable = 1 << 30,
                                   .m = 2 * F * PAGE,
                                   .maxvictim = VICTIMS * PAGE,
                                   .patience = 3,
                                   .da_limit = 2,
                                   .flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV,
                                   .ops = &ops};
    char text[200];
    input = data;
    left = size;
    pinned = 0;
    memset(request, 0, sizeof(request));
    memset(asked, 0, sizeof(asked));
    memset(told, 0, sizeof(told));
    MUST(pw_firehose_init(&c, &table, NULL) == 0);
    while (left > 0) {
        act(next());
        if (pin_check(table->pin, text, sizeof(text)) != 0) {
            fprintf(stderr, "%s\n", text);
            abort();
        }
    }
    for (unsigned node = 1; node < 3; node++) {
        MUST(pw_firehose_peer_dead(table, node) == 0);
    }
    pw_firehose_poll(table);
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct pw_firehose_request *one = &request[i];
        MUST(asked[i] == 0);
        pw_firehose_release(table, &one, 1);
    }
    pw_firehose_poll(table);
    for (unsigned i = 0; i < REQUESTS; i++) {
        MUST(told[i] == 0);
    }
    MUST(pw_firehose_fini(table) == 0);
    MUST(pinned == 0);
    return 0;
}
