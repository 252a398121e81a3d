/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong, answered in four ways. Rank 0 pings, rank 1 answers:
 *
 *   CPU        rank 1's program waits for the ping and puts it back
 *   TRIGGERED  a PtlTriggeredPut for each ping waits on the counter of the entry
 *   STORED     handlers/pingpong.c: the whole ping first
 *   STREAMED   handlers/pingpong.c: packet by packet
 *
 * In all ways but the first rank 1's program only waits for the last ping. In a round each size and
 * way has a batch of iterations:
 *
 *   rank 0: PING command ──► rank 1: sets up the way's entry ──► READY ──► iterations
 *
 * Each iteration is timed alone, and the median stands for the batch. The report has the median
 * over the rounds, so that a disturbance of the machine, which hits all ways of one round, counts
 * for little. A ping's bytes come from a pool of random bytes, in each iteration from another
 * offset: so no buffer has to be filled, and bytes left from the iteration before differ almost
 * everywhere. Rank 0 compares every answer, whose bytes have travelled in both directions. In ways
 * that store a ping in its memory, rank 1 compares that memory after the last ping.
 */
#include "demo.h"

#include "pingpong.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHIFT = 64, SHIFTS = 1024, ROUNDS_MIN = 3 };
#define BUDGET_NS 10e9 /* for the whole measurement, if it is limited */

const char *const demo_way_names[WAYS] = {"cpu", "triggered", "stored", "streamed"};

struct demo_pattern {
    uint64_t length;
    uint8_t bytes[];
};

struct demo_pattern *demo_pattern(uint64_t largest)
{
    uint64_t words = (largest + SHIFT * SHIFTS) / 8 + 1, x = 0x9e3779b97f4a7c15;
    struct demo_pattern *p = malloc(sizeof(*p) + words * 8);
    if (p == NULL) {
        return NULL;
    }
    p->length = words * 8;
    for (uint64_t i = 0; i < words; i++) { /* xorshift64* */
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        uint64_t value = x * 0x2545f4914f6cdd1d;
        memcpy(p->bytes + 8 * i, &value, 8);
    }
    return p;
}

void demo_pattern_free(struct demo_pattern *pattern)
{
    free(pattern);
}

static uint64_t shift_of(uint64_t iteration)
{
    return iteration % SHIFTS * SHIFT;
}

static uint64_t differing(const uint8_t *a, const uint8_t *b, uint64_t length)
{
    uint64_t n = 0;
    if (memcmp(a, b, length) != 0) {
        for (uint64_t i = 0; i < length; i++) {
            n += a[i] != b[i];
        }
    }
    return n;
}

/* ---- Rank 1 ---- */

int demo_pinged_open(struct demo_link *l, uint64_t largest, struct demo_pinged *p)
{
    *p = (struct demo_pinged){.pattern = demo_pattern(largest),
                              .buffer = aligned_alloc(64, (largest + 63) / 64 * 64)};
    if (p->pattern == NULL || p->buffer == NULL) {
        return link_say(l, "no memory for messages of %" PRIu64 " bytes", largest);
    }
    memset(p->buffer, 0, largest);
    return link_md(l, p->buffer, largest, PTL_CT_NONE, &p->md) != 0 ||
                   !link_ok(l, PtlCTAlloc(l->ni, &p->ct), "PtlCTAlloc")
               ? -1
               : 0;
}

void demo_pinged_close(struct demo_pinged *p)
{
    demo_pattern_free(p->pattern);
    free(p->buffer);
}

/* Sets up the entry and the objects that answer the pings of a command. */
static int set_up(struct demo_link *l, struct demo_pinged *p, const struct demo_command *c,
                  ptl_handle_me_t *me)
{
    struct pingpong_state state;
    ptl_handlers_t handlers;
    bool by_handlers = c->way == WAY_STORED || c->way == WAY_STREAMED;
    if (by_handlers) {
        pingpong_handlers(c->way == WAY_STORED ? PINGPONG_STORED : PINGPONG_STREAMED, c->size,
                          l->packet, BITS_PONG, &state, &handlers);
    }
    if (!link_ok(l, PtlCTSet(p->ct, (ptl_ct_event_t){0, 0}), "PtlCTSet") ||
        link_entry(l, p->buffer, c->size, BITS_PING, 0, p->ct, by_handlers ? &handlers : NULL,
                   me) != 0) {
        return -1;
    }
    for (uint64_t i = 0; c->way == WAY_TRIGGERED && i < c->count; i++) {
        int code = PtlTriggeredPut(p->md, 0, c->size, PTL_NO_ACK_REQ, l->peer, LINK_INDEX,
                                   BITS_PONG, 0, NULL, 0, p->ct, i + 1);
        if (!link_ok(l, code, "PtlTriggeredPut")) {
            return -1;
        }
    }
    return 0;
}

static int answer_by_cpu(struct demo_link *l, struct demo_pinged *p, const struct demo_command *c)
{
    for (uint64_t i = 0; i < c->count; i++) {
        if (link_wait(l, p->ct, i + 1, "a ping") != 0) {
            return -1;
        }
        int code =
            PtlPut(p->md, 0, c->size, PTL_NO_ACK_REQ, l->peer, LINK_INDEX, BITS_PONG, 0, NULL, 0);
        if (!link_ok(l, code, "PtlPut")) {
            return -1;
        }
    }
    return 0;
}

int demo_pinged_serve(struct demo_link *l, struct demo_pinged *p, const struct demo_command *c)
{
    ptl_handle_me_t me;
    struct demo_command ready = {.kind = DEMO_READY};
    bool stored = c->way == WAY_STORED ? c->size > l->packet : c->way != WAY_STREAMED;
    if (set_up(l, p, c, &me) != 0 || link_send(l, &ready, sizeof(ready)) != 0 ||
        (c->way == WAY_CPU && answer_by_cpu(l, p, c) != 0) ||
        link_wait(l, p->ct, c->count, "the last ping") != 0) {
        return -1;
    }
    if (stored) {
        uint64_t shift = shift_of(c->first + c->count - 1);
        p->wrong += differing(p->buffer, p->pattern->bytes + shift, c->size);
    }
    return link_unlink(l, me);
}

/* ---- Rank 0 ---- */

struct pinger {
    struct demo_link *l;
    struct demo_pingpong *result;
    struct demo_pattern *pattern;
    uint8_t *buffer;    /* the buffer that answers are put into */
    ptl_handle_ct_t ct; /* counts the bytes of answers */
    ptl_handle_md_t md;
    uint64_t answered; /* bytes of answers so far */
    uint64_t iteration;
    double *times;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the quantile `part` of the sorted values, interpolated. */
static double quantile(double *values, size_t count, double part)
{
    double at = part * (double)(count - 1);
    size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;
    return values[below] + (at - (double)below) * (values[above] - values[below]);
}

static void check_answer(struct pinger *p, enum demo_way way, uint64_t size, uint64_t shift)
{
    struct demo_pingpong *r = p->result;
    uint64_t wrong = differing(p->buffer, p->pattern->bytes + shift, size);
    if (wrong != 0 && r->first_wrong[0] == '\0') {
        snprintf(r->first_wrong, sizeof(r->first_wrong),
                 "%" PRIu64 " of the %" PRIu64 " bytes of iteration %" PRIu64 ", way \"%s\"", wrong,
                 size, p->iteration, demo_way_names[way]);
    }
    r->checked += size;
    r->wrong += wrong;
}

/* Runs one batch; *median gets the median of its half round trips. */
static int ping_batch(struct pinger *p, enum demo_way way, uint64_t size, long count,
                      double *median)
{
    struct demo_link *l = p->l;
    struct demo_command c = {.kind = DEMO_PING,
                             .way = way,
                             .size = size,
                             .count = (uint64_t)count,
                             .first = p->iteration};
    if (link_send(l, &c, sizeof(c)) != 0 || link_receive(l, &c, sizeof(c)) != 0) {
        return -1;
    }
    for (long i = 0; i < count; i++, p->iteration++) {
        uint64_t shift = shift_of(p->iteration);
        double start = now_ns();
        int code =
            PtlPut(p->md, shift, size, PTL_NO_ACK_REQ, l->peer, LINK_INDEX, BITS_PING, 0, NULL, 0);
        p->answered += size;
        if (!link_ok(l, code, "PtlPut") || link_wait(l, p->ct, p->answered, "an answer") != 0) {
            return -1;
        }
        p->times[i] = (now_ns() - start) / 2;
        check_answer(p, way, size, shift);
    }
    qsort(p->times, (size_t)count, sizeof(*p->times), compare);
    *median = quantile(p->times, (size_t)count, 0.5);
    return 0;
}

static int list_sizes(const struct demo_options *o, struct demo_pingpong *r)
{
    r->rows = 0;
    for (uint64_t size = o->smallest; size < o->largest; size *= 2) {
        r->row[r->rows++].bytes = size;
    }
    r->row[r->rows++].bytes = o->largest;
    return r->rows;
}

typedef double round_times[DEMO_SIZES][WAYS][DEMO_ROUNDS];

static int ping_rounds(struct pinger *p, const struct demo_options *o, round_times *times)
{
    struct demo_pingpong *r = p->result;
    double start = now_ns(), unused;
    for (int s = 0; s < r->rows; s++) { /* one warm-up iteration, so that pages and paths exist */
        for (int way = 0; way < WAYS; way++) {
            if (ping_batch(p, (enum demo_way)way, r->row[s].bytes, 1, &unused) != 0) {
                return -1;
            }
        }
    }
    for (r->rounds = 0; r->rounds < o->rounds; r->rounds++) {
        if (o->limited && r->rounds >= ROUNDS_MIN && now_ns() - start > BUDGET_NS) {
            break;
        }
        demo_progress("ping-pong: round %d of %d", r->rounds + 1, o->rounds);
        for (int s = 0; s < r->rows; s++) {
            for (int w = 0; w < WAYS; w++) {
                int way = (w + r->rounds) % WAYS; /* each round begins with another way */
                if (ping_batch(p, (enum demo_way)way, r->row[s].bytes, r->iterations,
                               &(*times)[s][way][r->rounds]) != 0) {
                    return -1;
                }
            }
        }
    }
    return 0;
}

static void summarise(struct demo_pingpong *r, round_times *times)
{
    for (int s = 0; s < r->rows; s++) {
        for (int way = 0; way < WAYS; way++) {
            double *t = (*times)[s][way];
            size_t n = (size_t)r->rounds;
            qsort(t, n, sizeof(*t), compare);
            r->row[s].way[way] = (struct demo_time){
                .median_ns = quantile(t, n, 0.5),
                .low_ns = quantile(t, n, 0.25),
                .high_ns = quantile(t, n, 0.75),
            };
        }
    }
}

int demo_pingpong(struct demo_link *l, const struct demo_options *o, struct demo_pingpong *result)
{
    ptl_handle_me_t me;
    struct pinger p = {.l = l,
                       .result = result,
                       .pattern = demo_pattern(o->largest),
                       .buffer = aligned_alloc(64, (o->largest + 63) / 64 * 64),
                       .times = calloc((size_t)o->iterations, sizeof(double))};
    round_times *times = calloc(1, sizeof(*times));
    int rc = -1;
    *result = (struct demo_pingpong){.iterations = o->iterations / o->rounds};
    list_sizes(o, result);
    if (p.pattern == NULL || p.buffer == NULL || p.times == NULL || times == NULL) {
        link_say(l, "no memory for messages of %" PRIu64 " bytes", o->largest);
        goto out;
    }
    memset(p.buffer, 0, o->largest);
    if (!link_ok(l, PtlCTAlloc(l->ni, &p.ct), "PtlCTAlloc") ||
        link_md(l, p.pattern->bytes, p.pattern->length, PTL_CT_NONE, &p.md) != 0 ||
        link_entry(l, p.buffer, o->largest, BITS_PONG, PTL_ME_EVENT_CT_BYTES, p.ct, NULL, &me) !=
            0) {
        goto out;
    }
    rc = ping_rounds(&p, o, times);
    if (rc == 0) {
        summarise(result, times);
        rc = link_unlink(l, me);
        PtlMDRelease(p.md);
    }
out:
    demo_progress(NULL);
    demo_pattern_free(p.pattern);
    free(p.buffer);
    free(p.times);
    free(times);
    return rc;
}
