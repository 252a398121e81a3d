/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between the source and the rings of users; see owner.h. */
#include "raw/serve/owner.h"

#include "base/sys.h"
#include "raw/source/iface.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWS_TURNS = 64, TICK_NS = 100000000, SAID_NS = 1000000000, FDS = 1024 + OWNER_GUESTS + 2 };

void owner_say(const struct owner *o, const char *format, ...)
{
    char line[512];
    va_list list;
    if (o->o.say != NULL) {
        va_start(list, format);
        vsnprintf(line, sizeof(line), format, list);
        va_end(list);
        o->o.say(line);
    }
}

void owner_say_no(struct owner *o, const struct policy_peer *peer, const char *why)
{
    char who[64];
    int64_t now = clock_ns();
    if (o->said == 0 || now - o->said > SAID_NS) {
        o->said = now;
        owner_say(o, "refused: %s: %s", owner_who(peer, who), why);
    }
}

void owner_report(const struct owner *o, unsigned number)
{
    const struct owner_context *c = &o->context[number];
    const struct owner_counts *n = &c->counts;
    char who[64];
    owner_say(o,
              "context %u: %s: frames %llu; dropped: his ring was full %llu, no room in the kernel "
              "%llu, not his (any more) %llu; sent %llu, refused %llu, no room to leave %llu, "
              "nonsense %llu",
              number, owner_who(&c->peer, who), (unsigned long long)n->frames,
              (unsigned long long)n->full, (unsigned long long)n->lost,
              (unsigned long long)n->stray, (unsigned long long)n->sent,
              (unsigned long long)n->refused, (unsigned long long)n->no_room,
              (unsigned long long)n->nonsense);
}

/* ---- Frames ---- */

static void hand(struct owner_context *c, const struct raw_frame *f)
{
    int verdict = RAW_NONE;
    if (c->state == OWNER_COMING || c->state == OWNER_LIVE) {
        verdict = raw_match_sets(c->part.set, c->part.sets, f->bytes, f->length);
        if (verdict == RAW_NONE && c->next.sets > 0) {
            verdict = raw_match_sets(c->next.set, c->next.sets, f->bytes, f->length);
        }
    }
    if (verdict == RAW_NONE) {
        c->counts.stray++;
    } else {
        bool put = ring_put(&c->ring, f->bytes, f->length, verdict, f->time);
        *(put ? &c->counts.frames : &c->counts.full) += 1;
    }
}

static void ring_bell(struct owner *o, const struct owner_context *c)
{
    static const struct serve_head bell = {.kind = SERVE_BELL};
    if (c->guest >= 0) {
        /* if his socket is full, it has bells enough */
        (void)serve_send(o->guest[c->guest].fd, &bell, "", -1);
    }
}

static int bring(struct owner *o, unsigned number)
{
    struct raw_frame frames[RAW_BATCH];
    struct owner_context *c = &o->context[number];
    struct raw_source *s = o->o.source;
    bool open = c->state == OWNER_COMING || c->state == OWNER_LIVE;
    int n = s->ops->receive(s, number, frames, open ? c->share : RAW_BATCH);
    for (int i = 0; i < n; i++) {
        hand(c, &frames[i]);
        s->ops->done(s, &frames[i], RAW_DROP, 0);
    }
    if (n > 0 && open && ring_wakes(&c->ring)) {
        ring_bell(o, c);
    }
    return n;
}

static bool may_send(const struct owner *o, const struct owner_context *c, uint32_t length)
{
    const struct policy_line *line = &o->o.policy->of[c->part.line];
    return line->sends &&
           (line->any_source || !o->o.own_source || memcmp(o->frame + 6, o->o.address, 6) == 0) &&
           raw_match_sets(&line->send, 1, o->frame, length) != RAW_NONE;
}

/* Sends what a user has given, up to his share. */
static int collect(struct owner *o, struct owner_context *c)
{
    struct raw_source *s = o->o.source;
    int count = 0;
    for (unsigned i = 0; i < c->share && s->ops->room(s, RAW_FRAME_LEAST) != NULL; i++) {
        int length = ring_get(&c->ring, o->frame);
        if (length == 0) {
            break;
        }
        if (length < 0) {
            c->counts.nonsense++;
            if (length == -EPROTO) {
                break;
            }
            continue;
        }
        count++;
        if (!may_send(o, c, (uint32_t)length)) {
            c->counts.refused++;
            continue;
        }
        uint8_t *room = s->ops->room(s, (uint32_t)length);
        if (room != NULL) {
            memcpy(room, o->frame, (size_t)length);
        }
        bool sent = room != NULL && s->ops->send(s, (uint32_t)length) == 0;
        *(sent ? &c->counts.sent : &c->counts.no_room) += 1;
    }
    return count;
}

int owner_turn(struct owner *o)
{
    int total = 0;
    for (unsigned i = 0; i < o->o.contexts; i++) {
        unsigned number = o->turns[i];
        struct owner_context *c = &o->context[number];
        int n = bring(o, number);
        if (n < 0 && n != -ENODATA) {
            snprintf(o->error, sizeof(o->error), "%s: %s", o->o.iface, strerror(-n));
            return n;
        }
        total += n > 0 ? n : 0;
        total += c->state == OWNER_LIVE ? collect(o, c) : 0;
    }
    if (total > 0) {
        o->o.source->ops->flush(o->o.source);
        o->frames += (uint64_t)total;
    }
    if (o->news || ++o->count % NEWS_TURNS == 0) {
        int rc = owner_news(o);
        return rc < 0 ? rc : total;
    }
    return total;
}

/* ---- Patience ---- */

static void ask_patience(struct owner *o, struct owner_context *c, int64_t now)
{
    bool moved, nonsense;
    uint32_t waiting = ring_waiting(&c->ring, &moved, &nonsense);
    c->counts.nonsense += nonsense;
    if (waiting == 0 || moved) {
        c->since = now;
    } else if (now - c->since > o->o.patience && c->guest >= 0) {
        char why[RAW_ERROR];
        snprintf(why, sizeof(why), "no frame was taken for %.1f s although %u were there",
                 (double)(now - c->since) / 1e9, waiting);
        owner_leave(o, &o->guest[c->guest], SERVE_GONE, -ETIMEDOUT, why);
    }
}

/* What is asked ten times a second: is the interface there, does everybody take his frames? */
static int tick(struct owner *o, int64_t now)
{
    struct raw_source *s = o->o.source;
    o->looked = now;
    o->deaf = false;
    for (unsigned i = 0; i < o->o.contexts; i++) {
        struct owner_context *c = &o->context[i];
        if (c->state == OWNER_LIVE) {
            ask_patience(o, c, now);
        }
        if (c->state != OWNER_FREE && s->ops->lost != NULL) {
            c->counts.lost = s->ops->lost(s, i) - c->lost_before;
        }
        if (c->state == OWNER_LIVE) {
            ring_tell(&c->ring, c->counts.lost + c->counts.full);
        }
    }
    for (unsigned i = 0; i < OWNER_GUESTS; i++) {
        struct owner_guest *g = &o->guest[i];
        if (g->fd >= 0 && g->context < 0 && !g->waiting && now - g->since > o->o.patience) {
            owner_leave(o, g, SERVE_REFUSED, -ETIMEDOUT, "nothing was asked for");
        }
    }
    if (o->o.own_source) { /* which may have changed; that of an interface without a name stays */
        (void)raw_iface_address(o->o.iface, o->o.address);
    }
    int rc = s->ops->wait(s, 0);
    if (rc < 0) {
        snprintf(o->error, sizeof(o->error), "%s: %s", o->o.iface,
                 rc == -ENODEV ? "the interface is gone" : strerror(-rc));
    }
    return rc;
}

int owner_news(struct owner *o)
{
    int64_t now = clock_ns();
    o->news = false;
    owner_listen(o);
    int rc = owner_change(o);
    if (rc == 0 && now - o->looked > TICK_NS) {
        rc = tick(o, now);
    }
    return rc;
}

/* ---- Sleeping ---- */

static bool sleeping(struct owner *o, bool sleeps)
{
    bool work = false;
    for (unsigned i = 0; i < o->o.contexts; i++) {
        struct owner_context *c = &o->context[i];
        if (c->state == OWNER_LIVE) {
            ring_owner_sleeps(&c->ring, sleeps);
            work = work || (sleeps && ring_has(&c->ring));
        }
    }
    return work;
}

int owner_wait(struct owner *o, int milliseconds)
{
    struct pollfd fds[FDS];
    int source[1024];
    nfds_t n = 0;
    o->news = true;
    o->o.source->ops->flush(o->o.source); /* what found no room in the kernel before */
    if (o->o.spin) {
        return 0;
    }
    unsigned count = o->o.source->ops->fds(o->o.source, source, 1024);
    for (unsigned i = 0; i < count; i++) {
        fds[n++] = (struct pollfd){.fd = source[i], .events = POLLIN};
    }
    for (unsigned i = 0; i < OWNER_GUESTS; i++) {
        if (o->guest[i].fd >= 0 && !o->guest[i].waiting) {
            fds[n++] = (struct pollfd){.fd = o->guest[i].fd, .events = POLLIN};
        }
    }
    if (o->o.listen >= 0 && !o->deaf) {
        fds[n++] = (struct pollfd){.fd = o->o.listen, .events = POLLIN};
    }
    if (o->o.installer != NULL) {
        fds[n++] = (struct pollfd){.fd = o->o.installer->fd, .events = POLLIN};
    }
    int rc = sleeping(o, true) ? 0 : poll(fds, n, milliseconds);
    int failed = rc < 0 && errno != EINTR ? -errno : 0;
    (void)sleeping(o, false);
    return failed;
}

/* ---- Beginning, end ---- */

int owner_open(struct owner **owner, const struct owner_options *options)
{
    struct owner *o = calloc(1, sizeof(*o));
    *owner = o;
    if (o == NULL) {
        return -ENOMEM;
    }
    o->o = *options;
    for (unsigned i = 0; i < OWNER_GUESTS; i++) {
        o->guest[i].fd = -1;
        o->guest[i].context = -1;
    }
    for (unsigned i = 0; i < RAW_CONTEXTS; i++) {
        o->context[i].guest = -1;
        o->context[i].ring.fd = -1;
        o->turns[i] = i;
    }
    o->looked = clock_ns();
    return 0;
}

void owner_close(struct owner *o, int error, const char *why)
{
    for (unsigned i = 0; i < OWNER_GUESTS; i++) {
        if (o->guest[i].fd >= 0) {
            owner_leave(o, &o->guest[i], SERVE_GONE, error, why);
        }
    }
    for (unsigned i = 0; i < RAW_CONTEXTS; i++) {
        struct owner_context *c = &o->context[i];
        if (c->state != OWNER_FREE) {
            owner_report(o, i);
        }
        ring_close(&c->ring);
        table_free(&c->part);
        table_free(&c->next);
        free(c->text);
        free(c->next_text);
    }
    free(o);
}
