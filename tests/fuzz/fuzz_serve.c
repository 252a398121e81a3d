/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users of an interface against its owner (src/raw/serve): the input says who comes, what he sends
 * as messages, with rules or rubbish in them, what he writes into his ring, which frames arrive,
 * and who leaves when. Beside them is one user who does as she should: she has every frame of hers,
 * byte by byte, and hers alone; and nothing leaves that the policy does not let anybody send.
 */
#include "fuzz.h"

#include "../raw/fake.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { USERS = 4, GOOD = 7, TEXT = 400 };

static const char policy_text[] =
    "allow user 7 ring 16 { udp.dport = 5000..5999; send udp.sport = 5000..5999 }\n"
    "allow user 1 contexts 2 ring 8 { udp.dport = 5500..6999; send udp.sport = 6000 }\n"
    "allow user 2 contexts 4 ring 4 sets 2 { udp; send udp.sport = 6001 }\n"
    "allow group 3 ring 16 { ipv4; send udp.sport = 6001 }\n";

static const char *const texts[] = {
    "set a { udp.dport = 6000 }",
    "set a { udp }",
    "set a { all }\nset b { udp.dport = 6001; end udp.sport = 9 }",
    "set a { udp.dport = 5000..7000 or udp.dport = 1 }",
    "set a priority 3 { ip.src = 10.0.0.1 }",
};

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t take(struct input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->at++;
}

static size_t take_bytes(struct input *in, uint8_t *to, size_t most)
{
    size_t n = take(in) % most;
    for (size_t i = 0; i < n; i++) {
        to[i] = take(in);
    }
    return n;
}

static struct policy policy;
static struct fake fake;
static uint8_t frame[FAKE_FRAME];
static struct serve_message message;

static void turn(struct owner *o)
{
    unsigned before = fake.sent_count;
    o->news = true;
    MUST(owner_turn(o) >= 0);
    for (unsigned i = before; i < fake.sent_count && fake.sent_count - i <= FAKE_QUEUE; i++) {
        const struct fake_frame *f = &fake.sent[i % FAKE_QUEUE];
        bool may = false;
        for (unsigned p = 0; p < policy.count; p++) {
            may = may || raw_match_sets(&policy.of[p].send, 1, f->bytes, f->length) != RAW_NONE;
        }
        MUST(may && memcmp(f->bytes + 6, o->o.address, 6) == 0);
    }
}

static void good(struct owner *o, struct fake_user *alice, struct input *in)
{
    uint8_t fill = take(in);
    uint32_t length = fake_udp(frame, 9, 5000 + fill, 4u * take(in), fill);
    MUST(fake_arrive(&fake, frame, length) >= 0);
    for (int i = 0; i < 40 && ring_next(&alice->ring, 0) == NULL; i++) {
        turn(o);
    }
    const struct ring_slot *s = ring_next(&alice->ring, 0);
    MUST(s != NULL && s->length == length && memcmp(s->bytes, frame, length) == 0);
    ring_done(&alice->ring);
    MUST(ring_next(&alice->ring, 0) == NULL);
}

static void say(struct fake_user *u, struct input *in)
{
    char text[TEXT + 1];
    uint8_t how = take(in);
    enum serve_kind kind = how % 4 == 0 ? SERVE_RULES : SERVE_ASK;
    if (how < 150) {
        (void)fake_say(u, kind, (how & 16) != 0 ? 4 : 0,
                       texts[how % (sizeof(texts) / sizeof(texts[0]))]);
    } else if (how < 200) {
        size_t n = take_bytes(in, (uint8_t *)text, TEXT);
        text[n] = '\0';
        (void)fake_say(u, kind, take(in), text);
    } else if (how < 240) {
        (void)fake_say(u, SERVE_BELL, 0, "");
    } else {
        size_t n = take_bytes(in, (uint8_t *)text, TEXT);
        (void)send(u->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void scribble(struct fake_user *u, struct input *in)
{
    uint8_t bytes[64];
    size_t n = take_bytes(in, bytes, sizeof(bytes)), where = take(in);
    if (u->ring.shared == NULL) {
        return;
    }
    if (where < 100) { /* the counts, also with sound ones */
        atomic_store(&u->ring.shared->given, (uint32_t)take(in) + u->ring.at_up);
        atomic_store(&u->ring.shared->taken, (uint32_t)take(in) - 100);
    } else if (where < 160) { /* a frame that he may send, or nearly */
        uint8_t *slot = u->ring.up + (size_t)(where % u->ring.slots) * u->ring.stride;
        uint32_t length =
            fake_udp(slot + RING_SLOT_HEAD, 6000 + take(in) % 3, 9, (uint32_t)n, (uint8_t)n);
        memcpy(slot, &length, sizeof(length));
        slot[RING_SLOT_HEAD + 11] = take(in) < 200;
        memcpy(slot + take(in), bytes, n / 16);
        atomic_store(&u->ring.shared->given, u->ring.at_up += take(in) % 3);
    } else {
        where = (where << 16 | (size_t)take(in) << 8 | take(in)) % (u->ring.length - sizeof(bytes));
        memcpy((uint8_t *)u->ring.shared + where, bytes, n);
    }
}

static void step(struct owner *o, struct fake_user *u, struct fake_user *alice, struct input *in)
{
    uint8_t what = take(in);
    if (u->fd < 0) {
        fake_join(o, u, what % 4);
    }
    if (what < 80) {
        say(u, in);
    } else if (what < 140) {
        scribble(u, in);
    } else if (what < 180) {
        (void)fake_arrive(&fake, frame, fake_udp(frame, 9, 5990 + what % 30u, what, what));
        turn(o);
    } else if (what < 210) {
        turn(o);
    } else if (what < 225) {
        o->o.patience = what % 3 == 0 ? 0 : INT64_MAX; /* hers are taken */
        o->looked = 0;
        turn(o);
        o->o.patience = INT64_MAX;
    } else if (what < 235) {
        fake_end(u);
    } else {
        good(o, alice, in);
    }
    if (u->fd >= 0 && fake_hear(u, &message) == 0) {
        fake_end(u);
    }
    if (u->ring.shared != NULL && u->ring.slots > 16) {
        MUST(false); /* more than the policy lets anybody have */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct fake_user user[USERS], alice;
    struct owner *o;
    char error[RAW_ERROR];
    struct owner_options options = {.source = &fake.source,
                                    .policy = &policy,
                                    .contexts = 4,
                                    .listen = -1,
                                    .patience = INT64_MAX,
                                    .iface = "fake0",
                                    .own_source = true,
                                    .address = {2, 0, 0, 0, 0, 1}};
    fake_open(&fake);
    MUST(policy_parse(&policy, "p", policy_text, strlen(policy_text), error) == 0);
    MUST(owner_open(&o, &options) == 0);
    fake_join(o, &alice, GOOD);
    MUST(fake_say(&alice, SERVE_ASK, 0, "set a { udp.dport = 5000..5255 }") == 0);
    turn(o);
    MUST(fake_hear(&alice, &message) == SERVE_GRANT);
    for (unsigned i = 0; i < USERS; i++) {
        user[i] = (struct fake_user){.fd = -1, .ring = {.fd = -1}};
    }
    while (in.left > 0) {
        step(o, &user[take(&in) % USERS], &alice, &in);
    }
    good(o, &alice, &in);
    for (unsigned i = 0; i < USERS; i++) {
        fake_end(&user[i]);
    }
    for (unsigned i = 0; i < 12; i++) {
        turn(o);
    }
    MUST(fake.rules.count == 1); /* hers: those of the others have gone with them */
    fake_end(&alice);
    owner_close(o, -ESHUTDOWN, "over");
    return 0;
}
