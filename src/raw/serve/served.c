/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A user's side of `pinwheel raw serve`: a source whose frames come by rings from the owner of the
 * interface, a connection and a ring for each context. Frames that handlers send go back by the
 * ring of the context that was read last, which is that of the handler.
 *
 * Frames are given back in the order in which they came, each when it is done.
 */
#include "raw/serve/served.h"

#include "base/list.h"
#include "base/sys.h"
#include "raw/serve/protocol.h"
#include "raw/serve/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 20000, LOOK = 4096 };

struct lane {
    int fd; /* -1: the context has no rules */
    struct ring ring;
    bool sends;
    unsigned sets;           /* of its rules */
    uint8_t index[RAW_SETS]; /* of these in the program's rules */
    uint64_t frames;
};

struct served {
    struct raw_source source;
    struct raw_served_options o;
    char path[128];
    unsigned contexts, current; /* current: the one read last */
    struct lane lane[RAW_CONTEXTS];
    struct raw_source_counts counts;
    unsigned idle;
    int gone; /* -errno */
    char why[RAW_ERROR + 160];
    char iface[16];
    struct raw_rules part;  /* the rules of one context, while they are sent */
    struct raw_rules rules; /* those in place */
    struct raw_wanted wanted;
    struct serve_message message;
    char text[SERVE_TEXT + 1];
};

static struct served *served_of(const struct raw_source *s)
{
    return container_of(s, struct served, source);
}

/* ---- Messages ---- */

static int lose(struct served *s, int error, const char *why)
{
    if (s->gone == 0) {
        s->gone = error;
        snprintf(s->why, sizeof(s->why), "%s: %s", s->path, why);
    }
    return s->gone;
}

/* Takes what the owner has said; bells have done their work by then. */
static int hear(struct served *s, struct lane *l)
{
    int rc;
    while ((rc = serve_receive(l->fd, &s->message, NULL)) == 1) {
        if (s->message.head.kind == SERVE_GONE) {
            char why[RAW_ERROR];
            snprintf(why, sizeof(why), "the owner has ended the context: %.*s",
                     (int)s->message.length, s->message.text);
            return lose(s, s->message.head.error < 0 ? s->message.head.error : -EPROTO, why);
        }
    }
    return rc == -EAGAIN
               ? 0
               : lose(s, -ECONNRESET,
                      "the owner of the interface has gone, and the kernel has its frames");
}

/* Waits for the answer to a request; bells come in between. */
static int answer(struct served *s, struct lane *l, int *fd, char error[RAW_ERROR])
{
    int64_t end = clock_ns() + (int64_t)ANSWER_MS * 1000000;
    for (;;) {
        int rc = serve_receive(l->fd, &s->message, fd);
        const struct serve_head *h = &s->message.head;
        if (rc == 1 && (h->kind == SERVE_GRANT || h->kind == SERVE_DONE)) {
            return 0;
        }
        if (rc == 1 && (h->kind == SERVE_REFUSED || h->kind == SERVE_GONE)) {
            snprintf(error, RAW_ERROR, "%.*s",
                     (int)(s->message.length < RAW_ERROR ? s->message.length : RAW_ERROR - 1),
                     s->message.text);
            return h->error < 0 ? h->error : -EPROTO;
        }
        if (rc != 1 && rc != -EAGAIN) {
            snprintf(error, RAW_ERROR, "%.100s: the owner of the interface has gone", s->path);
            return -ECONNRESET;
        }
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        int left = (int)((end - clock_ns()) / 1000000);
        if (rc == -EAGAIN && (left <= 0 || poll(&p, 1, left) == 0)) {
            snprintf(error, RAW_ERROR, "%.100s: the owner does not answer; is it stopped?",
                     s->path);
            return -ETIMEDOUT;
        }
    }
}

/* Writes the rules of one context as text. -E2BIG. */
static int write_rules(struct served *s, unsigned context, const struct raw_wanted *wanted,
                       char error[RAW_ERROR])
{
    struct lane *l = &s->lane[context];
    l->sets = 0;
    for (unsigned i = 0; i < wanted->rules->count; i++) {
        if (wanted->context[i] == context) {
            l->index[l->sets] = (uint8_t)i;
            s->part.set[l->sets++] = wanted->rules->set[i];
        }
    }
    s->part.count = l->sets;
    if (raw_rules_print(&s->part, s->text, sizeof(s->text)) > SERVE_TEXT) {
        snprintf(error, RAW_ERROR, "the rules of a context have more than %d bytes as text",
                 SERVE_TEXT);
        return -E2BIG;
    }
    return 0;
}

/* ---- Frames ---- */

static int served_receive(struct raw_source *source, unsigned context, struct raw_frame *frames,
                          unsigned most)
{
    struct served *s = served_of(source);
    struct lane *l = &s->lane[context];
    unsigned n = 0;
    s->current = context;
    for (; l->fd >= 0 && n < most; n++) {
        struct ring_slot *slot = ring_next(&l->ring, l->ring.seen);
        if (slot == NULL) {
            break;
        }
        uint32_t length = slot->length, set = (uint32_t)slot->verdict >> 1;
        length = length < l->ring.most ? length : l->ring.most;
        frames[n] = (struct raw_frame){
            .bytes = slot->bytes, .length = length, .time = slot->time, .slot = context};
        frames[n].verdict = set < l->sets ? raw_verdict(l->index[set], (slot->verdict & 1) != 0)
                                          : raw_verdict(l->index[0], true);
        l->ring.seen++;
    }
    l->frames += n;
    return n == 0 && s->gone != 0 ? s->gone : (int)n;
}

/* Copies a frame for the owner; false: there is no room, or the policy lets it send nothing. */
static bool give(struct served *s, struct lane *l, const uint8_t *frame, uint32_t length)
{
    struct ring_slot *slot = l->fd >= 0 && l->sends ? ring_room(&l->ring) : NULL;
    if (slot == NULL || length > l->ring.most) {
        s->counts.send_full++;
        return false;
    }
    if (frame != slot->bytes) {
        memcpy(slot->bytes, frame, length);
    }
    ring_give(&l->ring, length);
    s->counts.sent++;
    return true;
}

static void served_done(struct raw_source *source, const struct raw_frame *frame,
                        enum raw_fate fate, uint32_t length)
{
    struct served *s = served_of(source);
    struct lane *l = &s->lane[frame->slot];
    if (fate == RAW_REPLY) {
        (void)give(s, l, frame->bytes, length);
    } else if (fate == RAW_PASS) {
        s->counts.pass_failed++;
    }
    l->ring.seen--;
    ring_done(&l->ring);
}

static struct lane *sender(struct served *s)
{
    for (unsigned i = 0; i < s->contexts; i++) {
        struct lane *l = &s->lane[(s->current + i) % s->contexts];
        if (l->fd >= 0 && l->sends) {
            return l;
        }
    }
    return NULL;
}

static uint8_t *served_room(struct raw_source *source, uint32_t length)
{
    struct lane *l = sender(served_of(source));
    struct ring_slot *slot = l != NULL && length <= l->ring.most ? ring_room(&l->ring) : NULL;
    return slot != NULL ? slot->bytes : NULL;
}

static int served_send(struct raw_source *source, uint32_t length)
{
    struct served *s = served_of(source);
    uint8_t *frame = served_room(source, length);
    return frame != NULL && give(s, sender(s), frame, length) ? 0 : -ENOBUFS;
}

static void served_flush(struct raw_source *source)
{
    static const struct serve_head bell = {.kind = SERVE_BELL};
    struct served *s = served_of(source);
    for (unsigned c = 0; c < s->contexts; c++) {
        struct lane *l = &s->lane[c];
        if (l->fd >= 0 && ring_rings(&l->ring)) {
            (void)serve_send(l->fd, &bell, "", -1);
        }
    }
}

/* ---- Sleeping ---- */

static bool sleeping(struct served *s, bool sleeps)
{
    bool there = false;
    for (unsigned c = 0; c < s->contexts; c++) {
        struct lane *l = &s->lane[c];
        if (l->fd >= 0) {
            ring_user_sleeps(&l->ring, sleeps);
            there = there || ring_next(&l->ring, l->ring.seen) != NULL;
        }
    }
    return there;
}

static int hear_all(struct served *s)
{
    int rc = s->gone;
    for (unsigned c = 0; c < s->contexts && rc == 0; c++) {
        rc = s->lane[c].fd >= 0 ? hear(s, &s->lane[c]) : 0;
    }
    return rc;
}

/* Frames that are there are for receive(), also those of an owner that has gone since. */
static int served_wait(struct raw_source *source, int milliseconds)
{
    struct served *s = served_of(source);
    struct pollfd fds[RAW_CONTEXTS];
    if (s->o.spin) {
        return ++s->idle % LOOK == 0 ? hear_all(s) : 0;
    }
    for (unsigned c = 0; c < s->contexts; c++) {
        fds[c] = (struct pollfd){.fd = s->lane[c].fd, .events = POLLIN};
    }
    int rc = 0;
    if (!sleeping(s, true)) {
        rc = poll(fds, s->contexts, milliseconds);
        rc = rc < 0 && errno != EINTR ? -errno : rc > 0 ? hear_all(s) : 0;
    }
    bool there = sleeping(s, false);
    return there && rc < 0 ? 0 : rc;
}

/* ---- Rules, counts ---- */

static int swap_one(struct served *s, unsigned context, const struct raw_wanted *wanted,
                    char error[RAW_ERROR])
{
    static const struct serve_head head = {.kind = SERVE_RULES};
    struct lane *l = &s->lane[context];
    bool had = l->fd >= 0;
    int rc = write_rules(s, context, wanted, error);
    if (rc != 0 || (!had && l->sets == 0)) {
        return rc;
    }
    if (!had || l->sets == 0) {
        snprintf(error, RAW_ERROR,
                 "the owner gives contexts by their rules: each keeps some, or has none for good");
        return -EINVAL;
    }
    rc = serve_send(l->fd, &head, s->text, -1);
    if (rc != 0) {
        snprintf(error, RAW_ERROR, "%.100s: %s", s->path, strerror(-rc));
        return rc;
    }
    rc = answer(s, l, NULL, error);
    /* without an answer nobody knows which rules these are */
    return rc == -ETIMEDOUT || rc == -ECONNRESET ? lose(s, rc, "other rules were not answered")
                                                 : rc;
}

static int served_rules(struct raw_source *source, const struct raw_wanted *wanted,
                        char error[RAW_ERROR])
{
    struct served *s = served_of(source);
    int rc = s->gone;
    unsigned done = 0;
    if (rc != 0) {
        snprintf(error, RAW_ERROR, "%.250s", s->why);
    }
    for (; done < s->contexts && rc == 0; done++) {
        rc = swap_one(s, done, wanted, error);
    }
    if (rc == 0) {
        s->rules = *wanted->rules;
        s->wanted = *wanted;
        s->wanted.rules = &s->rules;
        return 0;
    }
    /* those that have other rules by now get theirs again */
    while (done > 0 && s->gone == 0) {
        char ignored[RAW_ERROR];
        int again = swap_one(s, --done, &s->wanted, ignored);
        if (again != 0 && again != -EINVAL) {
            (void)lose(s, again, "rules could be neither swapped nor put back");
        }
    }
    return rc;
}

/* What the owner has handed over stands for all that was matched. */
static void served_counts(struct raw_source *source, struct raw_source_counts *counts)
{
    struct served *s = served_of(source);
    *counts = s->counts;
    for (unsigned c = 0; c < s->contexts; c++) {
        if (s->lane[c].fd >= 0 && s->lane[c].sets > 0) {
            unsigned counter = s->wanted.counter[s->lane[c].index[0]];
            counts->matched[counter].frames = s->lane[c].frames + ring_lost(&s->lane[c].ring);
        }
    }
}

static uint64_t now_ns(struct raw_source *source)
{
    (void)source;
    return (uint64_t)clock_ns();
}

static void served_close(struct raw_source *source)
{
    struct served *s = served_of(source);
    for (unsigned c = 0; c < s->contexts; c++) {
        ring_close(&s->lane[c].ring);
        if (s->lane[c].fd >= 0) {
            close(s->lane[c].fd);
        }
    }
    free(s);
}

/* ---- Opening ---- */

static int ask(struct served *s, unsigned context, const struct raw_wanted *wanted,
               char error[RAW_ERROR])
{
    struct lane *l = &s->lane[context];
    int fd = -1;
    int rc = write_rules(s, context, wanted, error);
    if (rc != 0 || l->sets == 0) {
        return rc;
    }
    l->fd = serve_connect(s->path);
    if (l->fd < 0) {
        rc = l->fd;
        snprintf(error, RAW_ERROR, "%.100s: %s%s", s->path, strerror(-rc),
                 rc == -ENOENT || rc == -ECONNREFUSED
                     ? "; there is no `pinwheel raw serve --socket` of this name"
                     : "");
        return rc;
    }
    struct serve_head head = {.kind = SERVE_ASK,
                              .version = SERVE_VERSION,
                              .ring = s->o.ring,
                              .share = s->o.share[context],
                              .priority = s->o.priority[context]};
    /* an owner that has turned us away has said why before */
    (void)serve_send(l->fd, &head, s->text, -1);
    rc = answer(s, l, &fd, error);
    const struct serve_head *h = &s->message.head;
    if (rc == 0) {
        rc = h->kind == SERVE_GRANT && h->version == SERVE_VERSION && fd >= 0
                 ? ring_map(&l->ring, fd, h->ring, h->frame_most)
                 : -EPROTO;
        if (rc != 0) {
            snprintf(error, RAW_ERROR, "%.100s: what the owner gives is no ring: %s", s->path,
                     strerror(-rc));
        } else {
            fd = -1; /* the ring's */
            l->sends = h->sends != 0;
            s->source.frame_most = h->frame_most;
            memcpy(s->iface, h->iface, sizeof(s->iface));
            s->iface[sizeof(s->iface) - 1] = '\0';
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

static const struct raw_source_ops ops = {
    .receive = served_receive,
    .done = served_done,
    .room = served_room,
    .send = served_send,
    .flush = served_flush,
    .wait = served_wait,
    .rules = served_rules,
    .counts = served_counts,
    .now = now_ns,
    .close = served_close,
};

int raw_served_open(struct raw_source **source, const struct raw_served_options *o,
                    const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR])
{
    struct served *s = calloc(1, sizeof(*s));
    int rc = 0;
    unsigned slots = 0;
    if (s == NULL || strlen(o->path) >= sizeof(s->path)) {
        snprintf(error, RAW_ERROR, "%s", s == NULL ? "no memory" : "the socket's path is too long");
        rc = s == NULL ? -ENOMEM : -ENAMETOOLONG;
        free(s);
        return rc;
    }
    s->source = (struct raw_source){.ops = &ops, .name = "served"};
    s->o = *o;
    s->o.path = memcpy(s->path, o->path, strlen(o->path));
    s->contexts = wanted->contexts;
    for (unsigned c = 0; c < RAW_CONTEXTS; c++) {
        s->lane[c] = (struct lane){.fd = -1, .ring = {.fd = -1}};
    }
    for (unsigned c = 0; c < s->contexts && rc == 0; c++) {
        rc = ask(s, c, wanted, error);
        slots = s->lane[c].fd >= 0 && rc == 0 ? s->lane[c].ring.slots : slots;
    }
    if (rc != 0) {
        served_close(&s->source);
        return rc;
    }
    s->rules = *wanted->rules;
    s->wanted = *wanted;
    s->wanted.rules = &s->rules;
    snprintf(said, RAW_ERROR, "%s: a queue of %u slots, by %s", s->iface, slots, s->path);
    *source = &s->source;
    return 0;
}

const char *raw_served_why(const struct raw_source *source)
{
    return source->ops == &ops ? served_of(source)->why : "";
}
