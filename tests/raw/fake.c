/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface and the users of fake.h. */
#include "fake.h"

#include "base/list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fake *fake_of(struct raw_source *s)
{
    return container_of(s, struct fake, source);
}

static int fake_receive(struct raw_source *s, unsigned context, struct raw_frame *frames,
                        unsigned most)
{
    struct fake *f = fake_of(s);
    unsigned n = 0;
    for (; n < most && f->queue[context].count > 0; n++) {
        struct fake_frame *one = &f->queue[context].of[f->queue[context].first];
        frames[n] =
            (struct raw_frame){.bytes = one->bytes, .length = one->length, .verdict = one->verdict};
        f->queue[context].first = (f->queue[context].first + 1) % FAKE_QUEUE;
        f->queue[context].count--;
    }
    return (int)n;
}

static void fake_done(struct raw_source *s, const struct raw_frame *frame, enum raw_fate fate,
                      uint32_t length)
{
}

static uint8_t *fake_room(struct raw_source *s, uint32_t length)
{
    struct fake *f = fake_of(s);
    return f->full || length > FAKE_FRAME ? NULL : f->room.bytes;
}

static int fake_send(struct raw_source *s, uint32_t length)
{
    struct fake *f = fake_of(s);
    f->room.length = length;
    f->sent[f->sent_count++ % FAKE_QUEUE] = f->room;
    return 0;
}

static void fake_flush(struct raw_source *s)
{
}

static int fake_wait(struct raw_source *s, int milliseconds)
{
    return 0;
}

static int fake_rules(struct raw_source *s, const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    struct fake *f = fake_of(s);
    if (f->refuses) {
        snprintf(error, RAW_ERROR, "the interface refuses these");
        return -1;
    }
    f->swaps++;
    f->rules = *wanted->rules;
    f->wanted = *wanted;
    return 0;
}

static unsigned fake_fds(struct raw_source *s, int *fds, unsigned most)
{
    return 0;
}

static uint64_t fake_lost(struct raw_source *s, unsigned context)
{
    return fake_of(s)->lost[context];
}

void fake_open(struct fake *f)
{
    static const struct raw_source_ops ops = {.receive = fake_receive,
                                              .done = fake_done,
                                              .room = fake_room,
                                              .send = fake_send,
                                              .flush = fake_flush,
                                              .wait = fake_wait,
                                              .rules = fake_rules,
                                              .fds = fake_fds,
                                              .lost = fake_lost};
    for (unsigned c = 0; c < RAW_CONTEXTS; c++) {
        f->queue[c].first = f->queue[c].count = 0;
        f->lost[c] = 0;
    }
    f->rules.count = f->swaps = f->sent_count = 0;
    f->passed = 0;
    f->refuses = f->full = false;
    f->source = (struct raw_source){.ops = &ops, .name = "fake", .frame_most = FAKE_FRAME};
}

int fake_arrive(struct fake *f, const uint8_t *frame, uint32_t length)
{
    int verdict = raw_match(&f->rules, frame, length);
    if (verdict == RAW_NONE) {
        f->passed++;
        return -1;
    }
    unsigned c = f->wanted.context[verdict >> 1];
    if (f->queue[c].count == FAKE_QUEUE) {
        f->lost[c]++;
        return (int)c;
    }
    struct fake_frame *to = &f->queue[c].of[(f->queue[c].first + f->queue[c].count++) % FAKE_QUEUE];
    to->length = length;
    to->verdict = verdict;
    memcpy(to->bytes, frame, length);
    return (int)c;
}

uint32_t fake_udp(uint8_t *frame, unsigned sport, unsigned dport, uint32_t size, uint8_t fill)
{
    static const uint8_t head[] = {2,    0,    0,    0, 0, 2, 2, 0, 0, 0, 0,  1,
                                   0x08, 0x00, 0x45, 0, 0, 0, 0, 7, 0, 0, 64, 17};
    memset(frame, 0, 42);
    memcpy(frame, head, sizeof(head));
    frame[16] = (uint8_t)((28 + size) >> 8);
    frame[17] = (uint8_t)(28 + size);
    memcpy(frame + 26, (const uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
    frame[34] = (uint8_t)(sport >> 8);
    frame[35] = (uint8_t)sport;
    frame[36] = (uint8_t)(dport >> 8);
    frame[37] = (uint8_t)dport;
    frame[38] = (uint8_t)((8 + size) >> 8);
    frame[39] = (uint8_t)(8 + size);
    memset(frame + 42, fill, size);
    return 42 + size;
}

/* ---- Users ---- */

void fake_join(struct owner *o, struct fake_user *u, uid_t uid)
{
    int pair[2];
    struct policy_peer peer = {.uid = uid, .pid = 1, .groups = 1, .group = {uid}};
    *u = (struct fake_user){.fd = -1, .ring = {.fd = -1}};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0) {
        u->fd = pair[0];
        owner_admit(o, pair[1], &peer);
    }
}

int fake_say(struct fake_user *u, enum serve_kind kind, unsigned ring, const char *text)
{
    struct serve_head h = {.kind = kind, .version = SERVE_VERSION, .ring = ring};
    return serve_send(u->fd, &h, text, -1);
}

int fake_hear(struct fake_user *u, struct serve_message *m)
{
    int fd;
    int rc = serve_receive(u->fd, m, &fd);
    if (rc == 1 && m->length < sizeof(m->text)) {
        m->text[m->length] = '\0';
    }
    if (rc == 1 && m->head.kind == SERVE_GRANT) {
        rc = ring_map(&u->ring, fd, m->head.ring, m->head.frame_most);
        return rc == 0 ? SERVE_GRANT : rc;
    }
    return rc == 1 ? (int)m->head.kind : rc;
}

void fake_end(struct fake_user *u)
{
    ring_close(&u->ring);
    if (u->fd >= 0) {
        close(u->fd);
    }
    u->fd = -1;
}
