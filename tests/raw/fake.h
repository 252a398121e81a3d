/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An interface that is not there, for tests of who owns one: frames are put into it, sorted by the
 * rules as the kernel would, and what is sent is kept. And users of it who say and write what they
 * like.
 */
#ifndef TESTS_RAW_FAKE_H
#define TESTS_RAW_FAKE_H

#include "raw/serve/owner.h"

enum { FAKE_QUEUE = 256, FAKE_FRAME = 1518 };

struct fake_frame {
    uint32_t length;
    int verdict;
    uint8_t bytes[FAKE_FRAME];
};

struct fake {
    struct raw_source source;
    struct raw_rules rules;
    struct raw_wanted wanted;
    bool refuses; /* other rules */
    unsigned swaps;
    struct {
        unsigned first, count;
        struct fake_frame of[FAKE_QUEUE];
    } queue[RAW_CONTEXTS];
    uint64_t lost[RAW_CONTEXTS];
    uint64_t passed; /* frames that no rule matched: the kernel's */
    struct fake_frame room, sent[FAKE_QUEUE];
    unsigned sent_count;
    bool full; /* nothing more can leave */
};

void fake_open(struct fake *f);
/* fake_arrive() brings a frame, and returns the context whose it is, -1: the kernel's. */
int fake_arrive(struct fake *f, const uint8_t *frame, uint32_t length);
/* fake_udp() writes a datagram of `size` bytes, all of them `fill`, and returns its length. */
uint32_t fake_udp(uint8_t *frame, unsigned sport, unsigned dport, uint32_t size, uint8_t fill);

/* A user, by hand. */
struct fake_user {
    int fd;
    struct ring ring;
};

/* fake_join() connects somebody; fake_say() sends a message for him. fake_hear() takes the answer,
 * with a ring if there is one: its kind, 0: closed, or -EAGAIN. */
void fake_join(struct owner *o, struct fake_user *u, uid_t uid);
int fake_say(struct fake_user *u, enum serve_kind kind, unsigned ring, const char *text);
int fake_hear(struct fake_user *u, struct serve_message *m);
void fake_end(struct fake_user *u);

#endif
