/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of pinwheel_raw.h, over the engine (src/raw/engine.h). */
#include "pinwheel_raw.h"

#include "base/list.h"
#include "queue.h"
#include "raw/engine.h"
#include "raw/serve/served.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pw_raw {
    struct raw_engine engine;
    bool has_rules, faults;
    char error[RAW_ERROR];
    char *words[RAW_CONTEXTS][3]; /* strings of the program: image, prefix, name */
    char *serve;                  /* the owner's socket; NULL: the source is another one */
    unsigned ring, flags;
    struct queue queue[RAW_CONTEXTS];
};

static int fail(struct pw_raw *raw, int rc, const char *why)
{
    if (why != raw->error) {
        snprintf(raw->error, sizeof(raw->error), "%s", why);
    }
    return rc;
}

int pw_raw_new(struct pw_raw **raw)
{
    *raw = calloc(1, sizeof(**raw));
    if (*raw == NULL) {
        return -ENOMEM;
    }
    (*raw)->faults = pinwheel_hpu_shared.fault_install() == 0;
    return 0;
}

const char *pw_raw_error(const struct pw_raw *raw)
{
    return raw->error;
}

void pw_raw_close(struct pw_raw *raw)
{
    if (raw == NULL) {
        return;
    }
    struct raw_engine *e = &raw->engine;
    for (unsigned c = 0; c < e->count; c++) {
        if (e->source != NULL) {
            raw_context_age(&e->context[c], e->source, 0, true);
            queue_tell(&raw->queue[c]);
        }
    }
    if (e->source != NULL) {
        e->source->ops->flush(e->source);
        e->source->ops->close(e->source);
    }
    for (unsigned c = 0; c < e->count; c++) {
        raw_context_close(&e->context[c]);
        queue_close(&raw->queue[c]);
        for (int i = 0; i < 3; i++) {
            free(raw->words[c][i]);
        }
    }
    if (raw->faults) {
        pinwheel_hpu_shared.fault_remove();
    }
    free(raw->serve);
    free(raw);
}

/* ---- Contexts ---- */

/* Copies a string of the program; NULL: no memory. */
static char *keep(char **into, const char *text)
{
    *into = strdup(text);
    return *into;
}

static int open_context(struct pw_raw *raw, unsigned n, const struct pw_raw_context *c)
{
    struct raw_context *context = &raw->engine.context[n];
    raw->queue[n] = (struct queue){.fd = -1};
    list_init(&context->ages); /* so that it can be closed */
    struct raw_context_options o = {
        .image = keep(&raw->words[n][0], c->image),
        .prefix = keep(&raw->words[n][1], c->prefix != NULL ? c->prefix : "raw"),
        .name = keep(&raw->words[n][2], c->name != NULL ? c->name : ""),
        .state = c->state != 0 ? c->state : 65536,
        .budget_us = c->budget_us != 0 ? c->budget_us : 1000000,
        .age_ns = (uint64_t)(c->age_ms != 0 ? c->age_ms : 1000) * 1000000,
        .messages = c->messages != 0 ? c->messages : 4096,
        .priority = c->priority,
        .share = c->share != 0 ? c->share : RAW_BATCH,
        .timing = "pspin",
    };
    if (o.image == NULL || o.prefix == NULL || o.name == NULL) {
        return fail(raw, -ENOMEM, "no memory");
    }
    if (raw_context_open(context, &o, raw->error) != 0) {
        return -EINVAL;
    }
    int rc = queue_open(&raw->queue[n], c->slots, c->room);
    if (rc != 0) {
        return fail(raw, rc, "slots is no power of two, or the queue has no memory or descriptor");
    }
    queue_bind(&raw->queue[n], context);
    return 0;
}

int pw_raw_context(struct pw_raw *raw, const struct pw_raw_context *c)
{
    struct raw_engine *e = &raw->engine;
    unsigned n = e->count;
    if (e->source != NULL) {
        return fail(raw, -EBUSY, "contexts are added before pw_raw_open()");
    }
    if (n == RAW_CONTEXTS) {
        return fail(raw, -ENOSPC, "there are 16 contexts, which is the most");
    }
    if (c->image == NULL || c->share > RAW_BATCH ||
        (c->name != NULL && strlen(c->name) >= RAW_NAME) ||
        (c->slots > 0 && c->state > 0 && c->state < sizeof(struct spin_queue_end))) {
        return fail(raw, -EINVAL,
                    "a context has an image, a name of 31 letters at most, a share of 64 at most, "
                    "and with a queue HPU memory for its end");
    }
    int rc = open_context(raw, n, c);
    if (rc != 0) {
        raw_context_close(&e->context[n]);
        e->context[n] = (struct raw_context){0};
        queue_close(&raw->queue[n]);
        raw->queue[n] = (struct queue){.fd = -1};
        for (int i = 0; i < 3; i++) {
            free(raw->words[n][i]);
            raw->words[n][i] = NULL;
        }
        return rc;
    }
    e->count = n + 1;
    raw->has_rules = false; /* they are to find the contexts again */
    return (int)n;
}

void *pw_raw_state(struct pw_raw *raw, unsigned context, size_t *length)
{
    if (context >= raw->engine.count) {
        return NULL;
    }
    *length = raw->engine.context[context].state->length;
    return raw->engine.context[context].state->base;
}

struct spin_queue *pw_raw_queue(struct pw_raw *raw, unsigned context, int *fd)
{
    if (context >= raw->engine.count || raw->queue[context].memory == NULL) {
        return NULL;
    }
    *fd = raw->queue[context].fd;
    return &raw->queue[context].queue;
}

int pw_raw_counts(const struct pw_raw *raw, unsigned context, struct pw_raw_counts *counts)
{
    const struct raw_engine *e = &raw->engine;
    struct raw_source_counts source = {0};
    if (context >= e->count) {
        return -EINVAL;
    }
    if (e->source != NULL) {
        e->source->ops->counts(e->source, &source);
    }
    const struct raw_counts *n = &e->context[context].counts;
    *counts = (struct pw_raw_counts){
        .frames = n->frames,
        .answered = n->replied,
        .kept = n->consumed,
        .passed = n->passed,
        .dropped = n->dropped,
        .faults = n->faults,
        .timeouts = n->timeouts,
        .failed = n->failed,
        .no_room = n->no_room,
        .messages = n->messages,
        .ended = n->ended,
        .aged = n->aged,
        .sent = n->sent,
        .lost = raw_engine_lost(e, context, &source),
    };
    return 0;
}

/* ---- Rules, frames ---- */

int pw_raw_rules(struct pw_raw *raw, const char *text)
{
    struct raw_rules *rules = malloc(sizeof(*rules));
    const char *known = raw_rules_known(text);
    int rc = -EINVAL;
    if (rules == NULL) {
        return fail(raw, -ENOMEM, "no memory for the rules");
    }
    text = known != NULL ? known : text;
    if (raw_rules_parse(rules, "rules", text, strlen(text), raw->error) == 0 &&
        raw_engine_rules(&raw->engine, rules, raw->error) == 0) {
        raw->has_rules = true;
        rc = 0;
    }
    free(rules);
    return rc;
}

static int open_served(struct pw_raw *raw)
{
    struct raw_engine *e = &raw->engine;
    char said[RAW_ERROR];
    struct raw_served_options o = {
        .path = raw->serve, .ring = raw->ring, .spin = (raw->flags & PW_RAW_SPIN) != 0};
    for (unsigned c = 0; c < e->count; c++) {
        o.share[c] = e->context[c].options.share;
        o.priority[c] = e->context[c].options.priority;
    }
    return raw_served_open(&e->source, &o, &e->wanted, said, raw->error);
}

static int open_source(struct pw_raw *raw, const struct pw_raw_source *s)
{
    struct raw_engine *e = &raw->engine;
    char said[RAW_ERROR];
    struct raw_iface_options o = {
        .iface = s->iface != NULL ? s->iface : s->tap,
        .mode = (s->flags & PW_RAW_NATIVE) != 0 ? RAW_MODE_NATIVE
                : (s->flags & PW_RAW_SKB) != 0  ? RAW_MODE_SKB
                                                : RAW_MODE_AUTO,
        .yes = (s->flags & PW_RAW_YES) != 0,
        .spin = (s->flags & PW_RAW_SPIN) != 0,
        .observe = (s->flags & PW_RAW_OBSERVE) != 0,
    };
    if (s->pcap != NULL) {
        return raw_pcap_open(&e->source, s->pcap, s->out, &e->wanted, raw->error);
    }
    if (s->tap != NULL) {
        return raw_tap_open(&e->source, &o, &e->wanted, said, raw->error);
    }
    return ((s->flags & PW_RAW_PACKET) != 0 ? raw_packet_open : raw_xdp_open)(
        &e->source, &o, &e->wanted, said, raw->error);
}

int pw_raw_open(struct pw_raw *raw, const struct pw_raw_source *s)
{
    if (raw->engine.source != NULL) {
        return fail(raw, -EBUSY, "it is open");
    }
    if (!raw->has_rules) {
        return fail(raw, -EINVAL, "contexts and then rules come before pw_raw_open()");
    }
    if ((s->iface != NULL) + (s->tap != NULL) + (s->pcap != NULL) + (s->serve != NULL) != 1 ||
        ((s->flags & PW_RAW_OBSERVE) != 0 && (s->flags & PW_RAW_PACKET) == 0)) {
        return fail(raw, -EINVAL,
                    "a source is an interface, a tap, a file or an owner's socket, and "
                    "PW_RAW_OBSERVE is for PW_RAW_PACKET");
    }
    if (s->serve != NULL) {
        free(raw->serve);
        raw->serve = strdup(s->serve);
        raw->ring = s->ring;
        raw->flags = s->flags;
        return raw->serve != NULL ? open_served(raw) : fail(raw, -ENOMEM, "no memory");
    }
    return open_source(raw, s) == 0 ? 0 : -EIO;
}

int pw_raw_again(struct pw_raw *raw)
{
    if (raw->serve == NULL || !raw->has_rules) {
        return fail(raw, -EINVAL, "pw_raw_open() of an owner's socket comes first");
    }
    if (raw->engine.source != NULL) {
        raw->engine.source->ops->close(raw->engine.source);
        raw->engine.source = NULL;
    }
    return open_served(raw);
}

/* What went wrong with the source, in its own words if it has some. */
static int source_failed(struct pw_raw *raw, int rc)
{
    const char *why = raw_served_why(raw->engine.source);
    return fail(raw, rc,
                why[0] != '\0'  ? why
                : rc == -ENODEV ? "the interface is gone"
                                : strerror(-rc));
}

int pw_raw_turn(struct pw_raw *raw)
{
    if (raw->engine.source == NULL) {
        return fail(raw, -EINVAL, "pw_raw_open() comes first");
    }
    int n = raw_engine_turn(&raw->engine);
    for (unsigned c = 0; c < raw->engine.count; c++) {
        queue_tell(&raw->queue[c]);
    }
    return n >= 0 || n == -ENODATA ? n : source_failed(raw, n);
}

int pw_raw_wait(struct pw_raw *raw, int milliseconds)
{
    struct raw_source *s = raw->engine.source;
    if (s == NULL) {
        return fail(raw, -EINVAL, "pw_raw_open() comes first");
    }
    int rc = s->ops->wait(s, milliseconds);
    return rc == 0 ? 0 : source_failed(raw, rc);
}

int pw_raw_send(struct pw_raw *raw, const void *frame, size_t length)
{
    struct raw_source *s = raw->engine.source;
    if (s == NULL || length < RAW_FRAME_LEAST || length > s->frame_most) {
        return fail(raw, -EINVAL, "a frame has 14 bytes, and at most 18 beyond the MTU");
    }
    uint8_t *room = s->ops->room(s, (uint32_t)length);
    if (room == NULL) {
        return fail(raw, -ENOBUFS, "there is no room to send");
    }
    memcpy(room, frame, length);
    int rc = s->ops->send(s, (uint32_t)length);
    s->ops->flush(s);
    return rc == 0 ? 0 : fail(raw, rc, "there is no room to send");
}
