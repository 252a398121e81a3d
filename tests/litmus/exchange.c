/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all traffic; see exchange.h.
 *
 * A message of kind FORWARD is a row of packets that each begin with where they
 * go, since a payload handler knows nothing else of its message. One of kind
 * HOST says so in its header data: node 8 bits, piece 24 bits, length 16 bits.
 */
#include "exchange.h"

#include "spin.h"
#include "spin_handler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { PUT, GET, FORWARD, HOST, KINDS };
enum { PT_WINDOW, PT_SOURCE, PT_FORWARD, PT_HOST };

/* One message of the plan. */
struct plan {
    enum kind kind;
    int to;    /* the node it goes to */
    int third; /* the node where its payload lands in the end */
    size_t length;
    ptl_ack_req_t ack;
};

/* What a packet of a FORWARD message begins with. */
struct ticket {
    uint32_t nid, pid;
    uint64_t offset; /* in the window there */
    uint32_t length; /* of the packet */
    uint32_t piece;
};

/* State of the handlers of PT 2 and PT 3. */
struct state {
    uint64_t lost;
    ptl_process_t id[EXCHANGE_NODES];
};

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned char pattern(uint64_t key, size_t i)
{
    return (unsigned char)((key * 167u + 13u) ^ (i * 7u) ^ (i >> 8));
}

/* The i-th message of a node. */
static struct plan plan_of(const struct exchange *x, int node, unsigned i)
{
    uint64_t r = mix(x->seed ^ (uint64_t)node << 40 ^ (uint64_t)i << 8);
    struct plan m;
    m.kind = (enum kind)(r % KINDS);
    m.to = (int)(r / 16 % (unsigned)x->nodes);
    m.third = (int)(r / 256 % (unsigned)x->nodes);
    /* log-uniform, so that all ways through the rings are used */
    unsigned bits = (unsigned)(r / 4096 % 13);
    m.length =
        bits == 0 ? 0 : ((size_t)1 << (bits - 1)) + (mix(r) & (((size_t)1 << (bits - 1)) - 1));
    m.ack = r >> 60 & 1 ? PTL_ACK_REQ : PTL_CT_ACK_REQ;
    if (m.kind == FORWARD) {
        m.length = sizeof(struct ticket) + m.length % (EXCHANGE_PIECE - sizeof(struct ticket));
    }
    return m;
}

static uint64_t piece_of(const struct exchange *x, int node, unsigned i)
{
    return (uint64_t)node * x->ops + i;
}

/* Messages that land at the window because of one planned message. A packet that
 * is too short for a ticket is left out. */
static uint64_t landings(const struct exchange *x, const struct plan *m)
{
    switch (m->kind) {
    case PUT:
    case HOST:
        return 1;
    case FORWARD: {
        uint64_t n = m->length / x->packet;
        return n + (m->length % x->packet >= sizeof(struct ticket));
    }
    default:
        return 0;
    }
}

/* ---- handlers ---- */

/* A handler that cannot send counts it; the initiator cannot know. */
static int account(struct state *s, int code)
{
    if (code == PTL_NO_SPACE) {
        PtlHandlerFAdd(&s->lost, NULL, 1);
        return SUCCESS;
    }
    return code == PTL_OK ? SUCCESS : FAIL;
}

__handler static int forward(const ptl_payload_t p, void *state)
{
    struct ticket t;
    if (p.length < sizeof(t)) {
        return SUCCESS;
    }
    memcpy(&t, p.base, sizeof(t));
    if (t.length != p.length) {
        return FAIL;
    }
    ptl_process_t to = {.phys = {.nid = t.nid, .pid = t.pid}};
    return account(state, PtlHandlerPutFromDeviceEx(p.base, p.length, PTL_NO_ACK_REQ, to, PT_WINDOW,
                                                    0, t.offset, NULL, t.piece));
}

__handler static int from_host(const ptl_header_t h, void *state)
{
    struct state *s = state;
    uint64_t piece = h.hdr_data >> 16 & 0xffffff;
    int code = account(s, PtlHandlerPutFromHostEx(0, h.hdr_data & 0xffff, PTL_NO_ACK_REQ,
                                                  s->id[h.hdr_data >> 40], PT_WINDOW, 0,
                                                  piece * EXCHANGE_PIECE, NULL, piece));
    return code == SUCCESS ? DROP : FAIL;
}

/* ---- objects ---- */

static ptl_me_t entry(void *start, size_t length, unsigned options)
{
    ptl_me_t e;
    memset(&e, 0, sizeof(e));
    e.start = start;
    e.length = length;
    e.ct_handle = PTL_CT_NONE;
    e.uid = PTL_UID_ANY;
    e.options = options | PTL_ME_EVENT_LINK_DISABLE;
    e.match_id.phys.nid = PTL_NID_ANY;
    e.match_id.phys.pid = PTL_PID_ANY;
    e.ignore_bits = ~(ptl_match_bits_t)0;
    return e;
}

static const char *append(struct exchange *x, unsigned pt, void *start, size_t length,
                          unsigned options, const ptl_handlers_t *handlers)
{
    ptl_pt_index_t got;
    ptl_handle_me_t handle;
    ptl_me_t e = entry(start, length, options);
    if (PtlPTAlloc(x->ni, 0, x->eq, pt, &got) != PTL_OK ||
        PtlMEAppendHandlers(x->ni, pt, &e, handlers, PTL_PRIORITY_LIST, NULL, &handle) != PTL_OK) {
        return "an entry cannot be appended";
    }
    return NULL;
}

const char *exchange_open(struct exchange *x)
{
    size_t window = (size_t)x->nodes * x->ops * EXCHANGE_PIECE;
    x->window = calloc(1, window);
    x->source = malloc(EXCHANGE_PIECE);
    x->replies = calloc(x->ops, EXCHANGE_PIECE);
    x->arrived = calloc((size_t)x->nodes * x->ops, sizeof(bool));
    if (x->window == NULL || x->source == NULL || x->replies == NULL || x->arrived == NULL) {
        return "no memory";
    }
    for (size_t i = 0; i < EXCHANGE_PIECE; i++) {
        x->source[i] = pattern((uint64_t)x->me, i);
    }
    if (PtlEQAlloc(x->ni, 65536, &x->eq) != PTL_OK ||
        PtlEQAlloc(x->ni, 65536, &x->mdeq) != PTL_OK || PtlCTAlloc(x->ni, &x->ct) != PTL_OK) {
        return "no queues";
    }
    ptl_md_t md = {x->replies, (size_t)x->ops * EXCHANGE_PIECE,
                   PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SEND_DISABLE, x->mdeq,
                   x->ct};
    if (PtlMDBind(x->ni, &md, &x->reply_md) != PTL_OK) {
        return "no MD";
    }
    struct state s = {0};
    memcpy(s.id, x->id, sizeof(s.id));
    ptl_handlers_t h = {
        .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_state = &s, .hpu_initial_length = sizeof(s)};
    ptl_handlers_t on_payload = h, on_header = h;
    on_payload.payload_handler = forward;
    on_header.header_handler = from_host;
    if (PtlHPUAllocMem(x->ni, sizeof(s), &on_payload.hpu_mem) != PTL_OK ||
        PtlHPUAllocMem(x->ni, sizeof(s), &on_header.hpu_mem) != PTL_OK) {
        return "no HPU memory";
    }
    const char *failure = append(x, PT_WINDOW, x->window, window, PTL_ME_OP_PUT, NULL);
    failure = failure != NULL
                  ? failure
                  : append(x, PT_SOURCE, x->source, EXCHANGE_PIECE, PTL_ME_OP_GET, NULL);
    failure = failure != NULL ? failure
                              : append(x, PT_FORWARD, NULL, 0,
                                       PTL_ME_OP_PUT | PTL_ME_EVENT_SUCCESS_DISABLE, &on_payload);
    failure = failure != NULL ? failure
                              : append(x, PT_HOST, x->source, EXCHANGE_PIECE,
                                       PTL_ME_OP_PUT | PTL_ME_EVENT_SUCCESS_DISABLE, &on_header);
    for (int node = 0; node < x->nodes; node++) {
        for (unsigned i = 0; i < x->ops; i++) {
            struct plan m = plan_of(x, node, i);
            int lands = m.kind == PUT ? m.to : m.third;
            x->expected += lands == x->me ? landings(x, &m) : 0;
        }
    }
    return failure;
}

void exchange_close(struct exchange *x)
{
    free(x->window);
    free(x->source);
    free(x->replies);
    free(x->arrived);
}

/* ---- the traffic ---- */

static const char *take_arrival(struct exchange *x, const ptl_event_t *e)
{
    static _Thread_local char text[160];
    if (e->ni_fail_type != PTL_NI_OK) {
        snprintf(text, sizeof(text), "an event of PT %u with ni_fail_type %d", e->pt_index,
                 e->ni_fail_type);
        return text;
    }
    if (e->type == PTL_EVENT_PUT && e->pt_index == PT_WINDOW) {
        x->arrivals++;
        if (e->mlength != e->rlength || e->hdr_data >= (uint64_t)x->nodes * x->ops) {
            return "an arrival with wrong numbers";
        }
        x->arrived[e->hdr_data] = true;
    }
    return NULL;
}

bool exchange_serve(struct exchange *x, const char **failure)
{
    static _Thread_local char text[160];
    ptl_handle_eq_t queues[] = {x->eq, x->mdeq};
    ptl_event_t e;
    unsigned which;
    int code = PtlEQPoll(queues, 2, 1, &e, &which);
    for (; code == PTL_OK; code = PtlEQPoll(queues, 2, 0, &e, &which)) {
        if (which == 0) {
            *failure = take_arrival(x, &e);
        } else if (e.ni_fail_type != PTL_NI_OK) {
            snprintf(text, sizeof(text), "event type %d of an operation: ni_fail_type %d", e.type,
                     e.ni_fail_type);
            *failure = text;
        }
        if (*failure != NULL) {
            return false;
        }
    }
    ptl_ct_event_t value;
    if (code != PTL_EQ_EMPTY || PtlCTGet(x->ct, &value) != PTL_OK || value.failure != 0) {
        *failure = "a queue or counter fails";
        return false;
    }
    x->answers = value.success;
    return x->answers == x->answered && x->arrivals >= x->expected;
}

/* Writes the payload of a message into its buffer. */
static void fill(const struct exchange *x, const struct plan *m, unsigned i, unsigned char *to)
{
    uint64_t piece = piece_of(x, x->me, i);
    for (size_t at = 0; at < m->length; at++) {
        to[at] = pattern(piece, at);
    }
    if (m->kind != FORWARD) {
        return;
    }
    for (size_t at = 0; at + sizeof(struct ticket) <= m->length; at += x->packet) {
        size_t rest = m->length - at;
        struct ticket t = {
            .nid = x->id[m->third].phys.nid,
            .pid = x->id[m->third].phys.pid,
            .offset = piece * EXCHANGE_PIECE + at,
            .length = (uint32_t)(rest < x->packet ? rest : x->packet),
            .piece = (uint32_t)piece,
        };
        memcpy(to + at, &t, sizeof(t));
    }
}

static int start_one(struct exchange *x, unsigned i)
{
    struct plan m = plan_of(x, x->me, i);
    uint64_t piece = piece_of(x, x->me, i), at = (uint64_t)i * EXCHANGE_PIECE;
    ptl_process_t to = x->id[m.to];
    switch (m.kind) {
    case GET:
        return PtlGet(x->reply_md, at, m.length, to, PT_SOURCE, 0, 0, NULL);
    case HOST:
        return PtlPut(x->reply_md, at, 0, m.ack, to, PT_HOST, 0, 0, NULL,
                      (uint64_t)m.third << 40 | piece << 16 | m.length);
    default:
        fill(x, &m, i, x->replies + at);
        return PtlPut(x->reply_md, at, m.length, m.ack, to, m.kind == PUT ? PT_WINDOW : PT_FORWARD,
                      0, m.kind == PUT ? piece * EXCHANGE_PIECE : 0, NULL, piece);
    }
}

const char *exchange_start(struct exchange *x)
{
    const char *failure = NULL;
    for (unsigned i = 0; i < x->ops; i++) {
        if (start_one(x, i) != PTL_OK) {
            return "an operation is refused";
        }
        x->answered++;
        if (i % 64 == 63) {
            exchange_serve(x, &failure);
        }
        if (failure != NULL) {
            return failure;
        }
    }
    return NULL;
}

/* Compares what came of one message. */
static bool same(const struct exchange *x, const struct plan *m, int node, unsigned i)
{
    uint64_t piece = piece_of(x, node, i);
    const unsigned char *got = x->window + piece * EXCHANGE_PIECE;
    uint64_t key = m->kind == HOST ? (uint64_t)m->to : piece;
    for (size_t at = 0; at < m->length; at++) {
        size_t in_packet = at % x->packet;
        size_t rest = m->length - (at - in_packet);
        if (m->kind == FORWARD &&
            (in_packet < sizeof(struct ticket) || rest < sizeof(struct ticket))) {
            continue; /* the ticket, or a packet too short for one */
        }
        if (got[at] != pattern(key, at)) {
            return false;
        }
    }
    return true;
}

const char *exchange_check(struct exchange *x, uint64_t *missing)
{
    static _Thread_local char text[160];
    *missing = x->expected > x->arrivals ? x->expected - x->arrivals : 0;
    if (x->arrivals > x->expected) {
        return "more arrived than was sent";
    }
    for (int node = 0; node < x->nodes; node++) {
        for (unsigned i = 0; i < x->ops; i++) {
            struct plan m = plan_of(x, node, i);
            int lands = m.kind == PUT ? m.to : m.third;
            bool here = m.kind != GET && lands == x->me && landings(x, &m) != 0;
            if (x->arrived[piece_of(x, node, i)] != here && *missing == 0) {
                snprintf(text, sizeof(text), "message %u of node %d %s", i, node,
                         here ? "did not arrive" : "should not have come");
                return text;
            }
            if (here && *missing == 0 && !same(x, &m, node, i)) {
                snprintf(text, sizeof(text),
                         "message %u of node %d, kind %d, %zu bytes: wrong bytes", i, node, m.kind,
                         m.length);
                return text;
            }
        }
    }
    for (unsigned i = 0; i < x->ops; i++) {
        struct plan m = plan_of(x, x->me, i);
        for (size_t at = 0; m.kind == GET && at < m.length; at++) {
            if (x->replies[(size_t)i * EXCHANGE_PIECE + at] != pattern((uint64_t)m.to, at)) {
                snprintf(text, sizeof(text), "reply %u from node %d: byte %zu of %zu is wrong", i,
                         m.to, at, m.length);
                return text;
            }
        }
    }
    return NULL;
}
