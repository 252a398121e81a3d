/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a descriptor, sorted to contexts; see sorted.h. */
#include "raw/source/sorted.h"

#include "base/list.h"
#include "base/sys.h"
#include "raw/source/iface.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct raw_sorted *sorted_of(struct raw_source *s)
{
    return container_of(s, struct raw_sorted, source);
}

static uint64_t now_ns(struct raw_source *s)
{
    (void)s;
    return (uint64_t)clock_ns();
}

static unsigned slots_of(const struct raw_sorted *s)
{
    return s->wanted.contexts * SORTED_QUEUE + RAW_BATCH;
}

static uint8_t *slot_of(const struct raw_sorted *s, uint64_t slot)
{
    return s->memory + slot * SORTED_SLOT;
}

/* ---- Receiving ---- */

/* Puts the frame of a slot into the queue of its context, if it is for handlers. False: the slot
 * stays the caller's. */
static bool sort(struct raw_sorted *s, uint32_t slot, uint32_t length, uint64_t time)
{
    uint8_t *bytes = slot_of(s, slot);
    if (length > RAW_FRAME_MOST || length < RAW_FRAME_LEAST) {
        s->counts.too_long++;
        return false;
    }
    int verdict = raw_match(s->rules, bytes, length);
    if (verdict == RAW_NONE) {
        s->counts.unmatched++;
        return false;
    }
    if (s->ops->counts == NULL) {
        raw_source_count(&s->counts, &s->wanted, verdict, length);
    }
    if (raw_action(s->rules, verdict) != RAW_HANDLERS) {
        return false;
    }
    struct raw_sorted_queue *q = &s->queue[s->wanted.context[verdict >> 1]];
    if (q->count == SORTED_QUEUE) {
        s->lost[s->wanted.context[verdict >> 1]]++;
        return false; /* matched and not brought: so raw_engine_lost() counts it */
    }
    q->frame[(q->first + q->count++) % SORTED_QUEUE] = (struct raw_frame){
        .bytes = bytes, .length = length, .verdict = verdict, .time = time, .slot = slot};
    return true;
}

static int read_some(struct raw_sorted *s)
{
    uint64_t time = now_ns(&s->source);
    int length = 0;
    for (unsigned i = 0; i < RAW_BATCH && s->free_count > 0; i++) {
        uint32_t slot = s->free[s->free_count - 1];
        length = s->ops->read(s, slot_of(s, slot));
        if (length < 0) {
            break;
        }
        if (length > 0 && sort(s, slot, (uint32_t)length, time)) {
            s->free_count--;
        }
    }
    return length >= 0 || length == -EAGAIN ? 0 : length;
}

static int sorted_receive(struct raw_source *source, unsigned context, struct raw_frame *frames,
                          unsigned most)
{
    struct raw_sorted *s = sorted_of(source);
    struct raw_sorted_queue *q = &s->queue[context];
    unsigned n = 0;
    /* the first context reads for all */
    int rc = context == 0 ? read_some(s) : 0;
    if (s->wanted.contexts == 0) {
        return rc;
    }
    for (; n < most && q->count > 0; n++, q->count--) {
        frames[n] = q->frame[q->first];
        q->first = (q->first + 1) % SORTED_QUEUE;
    }
    return rc < 0 ? rc : (int)n;
}

/* ---- Sending ---- */

static int send_frame(struct raw_sorted *s, const uint8_t *frame, uint32_t length)
{
    int rc = s->ops->write(s, frame, length);
    *(rc == 0 ? &s->counts.sent : &s->counts.send_full) += 1;
    return rc;
}

static void sorted_done(struct raw_source *source, const struct raw_frame *frame,
                        enum raw_fate fate, uint32_t length)
{
    struct raw_sorted *s = sorted_of(source);
    if (fate == RAW_REPLY) {
        (void)send_frame(s, frame->bytes, length);
    } else if (fate == RAW_PASS) {
        *(source->can_pass ? &s->counts.passed : &s->counts.pass_failed) += 1;
    }
    s->free[s->free_count++] = (uint32_t)frame->slot;
}

static uint8_t *sorted_room(struct raw_source *source, uint32_t length)
{
    struct raw_sorted *s = sorted_of(source);
    return slot_of(s, slots_of(s));
}

static int sorted_send(struct raw_source *source, uint32_t length)
{
    return send_frame(sorted_of(source), sorted_room(source, length), length);
}

static void sorted_flush(struct raw_source *source)
{
}

static int sorted_wait(struct raw_source *source, int milliseconds)
{
    struct raw_sorted *s = sorted_of(source);
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    if (s->spin) {
        return raw_iface_gone_now_and_then(s->ifindex, &s->idle) ? -ENODEV : 0;
    }
    int rc = poll(&p, 1, milliseconds);
    if (rc == 0 || (rc > 0 && (p.revents & POLLERR) != 0)) {
        return raw_iface_gone(s->ifindex) ? -ENODEV : 0;
    }
    return rc < 0 && errno != EINTR ? -errno : 0;
}

/* ---- Rules, counts ---- */

static void set_rules(struct raw_sorted *s, const struct raw_wanted *wanted)
{
    *s->rules = *wanted->rules;
    s->wanted = *wanted;
    s->wanted.rules = s->rules;
}

static int sorted_rules(struct raw_source *source, const struct raw_wanted *wanted,
                        char error[RAW_ERROR])
{
    struct raw_sorted *s = sorted_of(source);
    int rc = s->ops->rules != NULL ? s->ops->rules(s, wanted, error) : 0;
    if (rc == 0) {
        set_rules(s, wanted);
    }
    return rc;
}

static unsigned sorted_fds(struct raw_source *source, int *fds, unsigned most)
{
    fds[0] = sorted_of(source)->fd;
    return most > 0 ? 1 : 0;
}

static uint64_t sorted_lost(struct raw_source *source, unsigned context)
{
    return sorted_of(source)->lost[context];
}

static void sorted_counts(struct raw_source *source, struct raw_source_counts *counts)
{
    struct raw_sorted *s = sorted_of(source);
    *counts = s->counts;
    if (s->ops->counts != NULL) {
        s->ops->counts(s, counts);
    }
}

/* ---- Opening ---- */

int raw_sorted_open(struct raw_sorted *s, const char *name, const struct raw_wanted *wanted)
{
    static const struct raw_source_ops ops = {
        .receive = sorted_receive,
        .done = sorted_done,
        .room = sorted_room,
        .send = sorted_send,
        .flush = sorted_flush,
        .wait = sorted_wait,
        .rules = sorted_rules,
        .counts = sorted_counts,
        .fds = sorted_fds,
        .lost = sorted_lost,
        .now = now_ns,
        .close = raw_sorted_close,
    };
    s->source.ops = &ops;
    s->source.name = name;
    s->wanted.contexts = wanted->contexts;
    unsigned slots = slots_of(s);
    s->memory = malloc((size_t)(slots + 1) * SORTED_SLOT);
    s->free = calloc(slots, sizeof(*s->free));
    s->queue = calloc(wanted->contexts + 1, sizeof(*s->queue)); /* none is no failure */
    s->rules = malloc(sizeof(*s->rules));
    if (s->memory == NULL || s->free == NULL || s->queue == NULL || s->rules == NULL) {
        return -ENOMEM;
    }
    set_rules(s, wanted);
    for (unsigned i = 0; i < slots; i++) {
        s->free[s->free_count++] = i;
    }
    return 0;
}

void raw_sorted_close(struct raw_source *source)
{
    struct raw_sorted *s = sorted_of(source);
    if (s->ops->close != NULL) {
        s->ops->close(s);
    }
    if (s->fd >= 0) {
        close(s->fd);
    }
    free(s->memory);
    free(s->free);
    free(s->queue);
    free(s->rules);
    free(s);
}
