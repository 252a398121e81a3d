/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes SLMP: the parser with the input itself as a packet, and two engines between which
 * the input is the network, and a hostile one. Each step is a byte that says what happens
 * and one or two that say to what: a message is sent, a packet is delivered, lost, repeated,
 * changed, or changed with its checksum made right again, so that wrong fields come as far
 * as they can; time passes; applications say later. With a job key the network has it, too:
 * it makes tags right again, with the keys of sessions that it makes from their first
 * packets as docs/slmp.md says.
 *
 * Whatever happens, a message is delivered within its length, ends once and is given back
 * once, and what an engine holds stays within its bound.
 */
#include "fuzz.h"

#include "fabric/slmp/mac.h"
#include "fabric/slmp/slmp.h"
#include "fabric/slmp/wire.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKETS = 256, PACKET = 256, MESSAGES = 512, BODY = 4000, STEPS = 3000 };

static uint8_t body[BODY];

struct side {
    struct slmp *engine;
    bool later;
    unsigned begun, done, given, back;
    struct slmp_message message[MESSAGES];
};

/* Packets that have left and were not delivered; the oldest is overwritten. */
struct packet {
    unsigned to;
    size_t length;
    uint8_t bytes[PACKET];
};

static struct side side[2];
static struct packet packets[PACKETS];
static unsigned packet_count;
static int64_t now;

/* The input, byte by byte; zeros behind its end. */
static const uint8_t *input;
static size_t input_left;

static uint8_t next(void)
{
    if (input_left == 0) {
        return 0;
    }
    input_left--;
    return *input++;
}

/* ---- The applications ---- */

struct progress {
    uint64_t length, got;
};

static void opened(void *c, struct slmp_peer *p, const struct slmp_address *a, uint64_t i)
{
}

static void closed(void *c, struct slmp_peer *p, const struct slmp_address *a)
{
}

static enum slmp_step begin(void *c, struct slmp_incoming *in, const void *first, size_t length)
{
    struct side *s = c;
    struct progress *g = s->later ? NULL : calloc(1, sizeof(*g));
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum = (uint8_t)(sum + ((const uint8_t *)first)[i]);
    }
    if (g == NULL) {
        return SLMP_LATER;
    }
    g->length = in->length;
    in->user = g;
    s->begun++;
    return SLMP_GO;
}

static enum slmp_step data(void *c, struct slmp_incoming *in, uint64_t offset, const void *bytes,
                           size_t length)
{
    struct side *s = c;
    struct progress *g = in->user;
    MUST(length > 0 &&
         (g->length == SLMP_UNKNOWN || (offset <= g->length && length <= g->length - offset)));
    if (s->later) {
        return SLMP_LATER;
    }
    g->got += length;
    MUST(g->length == SLMP_UNKNOWN || g->got <= g->length);
    return SLMP_GO;
}

static void done(void *c, struct slmp_incoming *in, enum slmp_status status)
{
    struct side *s = c;
    struct progress *g = in->user;
    MUST(status != SLMP_OK || g->got == in->length);
    free(g);
    in->user = NULL;
    s->done++;
}

static void sent(void *c, struct slmp_message *m, enum slmp_status status)
{
    struct side *s = c;
    MUST(m >= s->message && m < s->message + MESSAGES && m->body == body);
    m->body = NULL; /* a second time would be seen */
    s->back++;
}

/* ---- What the network knows of the job key ---- */

static const struct slmp_key key = {.length = SLMP_KEY_MIN};
static struct slmp_mac *mac;             /* NULL: no key */
static struct slmp_session_key *keys[2]; /* of the last session, by the side that receives */
static struct slmp_wire last_open;

static void put64(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(v >> (56 - 8 * i));
    }
}

static void forget_session(void)
{
    slmp_session_key_free(keys[0]);
    slmp_session_key_free(keys[1]);
    keys[0] = keys[1] = NULL;
}

/* Sees the first packets of sessions; `from` sends this one. */
static void learn(unsigned from, const uint8_t *bytes, size_t length)
{
    struct slmp_wire w;
    if (mac == NULL || slmp_wire_parse(&w, bytes, length) != SLMP_PARSED || !w.tagged) {
        return;
    }
    if (w.kind == SLMP_KIND_OPEN) {
        last_open = w;
    } else if (w.kind == SLMP_KIND_OPENED && w.number == last_open.number) {
        uint8_t names[56];
        const uint64_t v[] = {w.number,      w.nonce,         last_open.incarnation,
                              w.incarnation, last_open.token, w.token};
        forget_session();
        for (unsigned i = 0; i < 6; i++) {
            put64(names + (size_t)8 * i, v[i]);
        }
        for (unsigned k = 0; k < 2; k++) { /* 0: what the initiator sends, to `from` */
            put64(names + 48, k);
            keys[k == 0 ? from : !from] = slmp_mac_session_key(mac, names, sizeof(names));
        }
    }
}

/* ---- The network ---- */

static void collect(unsigned from)
{
    struct slmp_packet p;
    for (unsigned i = 0; i < 1000 && slmp_output(side[from].engine, now, &p); i++) {
        struct packet *q = &packets[packet_count++ % PACKETS];
        MUST(p.length <= PACKET && p.header_length <= SLMP_HEADER_ROOM);
        q->to = p.to.ip & 1;
        q->length = p.header_length;
        memcpy(q->bytes, p.header, q->length);
        for (unsigned k = 0; k < p.parts; k++) {
            memcpy(q->bytes + q->length, p.part[k].iov_base, p.part[k].iov_len);
            q->length += p.part[k].iov_len;
        }
        MUST(q->length == p.length);
        learn(from, q->bytes, q->length);
    }
}

static struct packet *chosen(void)
{
    unsigned known = packet_count < PACKETS ? packet_count : PACKETS;
    return known > 0 ? &packets[next() % known] : NULL;
}

static void deliver(const struct packet *p)
{
    struct slmp_address from = {2 + !p->to, 5};
    uint8_t *exact = malloc(p->length + (p->length == 0));
    MUST(exact != NULL);
    memcpy(exact, p->bytes, p->length);
    slmp_input(side[p->to].engine, now, &from, exact, p->length);
    free(exact);
}

static void seal_tag(struct packet *p, size_t header, bool session)
{
    uint8_t *tag = p->bytes + header - SLMP_TAG;
    const struct iovec part[2] = {{p->bytes, header - SLMP_TAG},
                                  {p->bytes + header, p->length - header}};
    struct slmp_session_key *session_key = keys[p->to];
    uint64_t number = 0;
    memset(p->bytes + 14, 0, 4);
    if (!session) {
        MUST(mac == NULL || slmp_mac_greeting(mac, p->bytes, header - SLMP_TAG, tag));
    } else if (session_key != NULL) {
        for (int i = 0; i < 8; i++) {
            number = number << 8 | tag[i - 8];
        }
        MUST(slmp_mac_tag(mac, session_key, number, part, 2, tag));
    }
}

/* Makes the checksum, or tag, right for what the packet says that it is. */
static void seal(struct packet *p)
{
    static const uint8_t lengths[] = {0, 34, 42, 42, 44, 44, 30, 18, 30};
    unsigned kind = p->length >= 18 ? p->bytes[10] : 0;
    bool ranges = kind == SLMP_KIND_DATA || kind == SLMP_KIND_ACK;
    bool session = ranges || kind == SLMP_KIND_LEAVE;
    size_t more = session                   ? SLMP_TAGGED_MORE
                  : kind == SLMP_KIND_RESET ? SLMP_RESET_MORE
                                            : SLMP_GREETING_MORE;
    bool tagged = p->bytes[13] & SLMP_TAGGED;
    size_t header = kind < sizeof(lengths) ? lengths[kind] : 0;
    header += ranges ? 4u * p->bytes[12] : 0;
    header += (p->bytes[13] & SLMP_PIECE) != 0 ? SLMP_PIECE_MORE : 0;
    header += tagged ? more : 0;
    if (kind > 0 && kind < sizeof(lengths) && header <= p->length) {
        if (tagged) {
            seal_tag(p, header, session);
        } else {
            struct iovec payload = {p->bytes + header, p->length - header};
            slmp_wire_seal(p->bytes, header, &payload, 1);
        }
    }
}

static void change(struct packet *p)
{
    uint8_t what = next(), at = next();
    if (what % 8 == 0) {
        p->length = at % (PACKET + 1);
    } else if (p->length > 0) {
        p->bytes[at % p->length] ^= what;
    }
}

static void send_message(unsigned from, uint8_t how)
{
    struct side *s = &side[from];
    struct slmp_message *m = &s->message[s->given];
    if (s->given == MESSAGES) {
        return;
    }
    *m = (struct slmp_message){.to = {2 + !from, 5},
                               .channel = how & 1,
                               .way = (how >> 1) % 3,
                               .gap = 1000,
                               .body = body,
                               .body_length = (uint64_t)next() * 8 * (how >> 4) % BODY};
    s->given += slmp_send(s->engine, now, m) == 0;
}

static void step(uint8_t what)
{
    struct packet *p, copy;
    unsigned at = what & 1;
    switch (what >> 1 & 15) {
    case 0:
    case 1:
        send_message(at, next());
        break;
    case 2:
        side[at].later = next() & 1;
        break;
    case 3: {
        struct slmp_address peer = {2 + !at, 5};
        struct slmp_peer *known = slmp_known(side[at].engine, &peer);
        if (known != NULL) {
            slmp_resume(side[at].engine, now, known, next());
        }
        break;
    }
    case 4:
        now += (int64_t)next() << (next() % 32);
        break;
    case 5:
        slmp_flush(side[at].engine);
        break;
    case 6:
    case 7:
        if ((p = chosen()) != NULL) {
            copy = *p;
            change(&copy);
            if ((what & 0x40) != 0) {
                seal(&copy);
            }
            deliver(&copy);
        }
        break;
    case 8:
        copy = (struct packet){.to = at, .length = next()};
        for (uint8_t *b = copy.bytes; b < copy.bytes + copy.length; b++) {
            *b = next();
        }
        deliver(&copy);
        break;
    case 11: {
        struct slmp_address peer = {2 + !at, 5};
        slmp_path(side[at].engine, now, &peer, 64u + next());
        break;
    }
    case 12: {
        struct slmp_address peer = {2 + !at, 5};
        struct slmp_peer *known = slmp_known(side[at].engine, &peer);
        if (known != NULL) {
            slmp_leave(side[at].engine, known);
        }
        break;
    }
    case 9:
        if ((p = chosen()) != NULL) {
            p->length = 0; /* lost, or rather: arrives empty */
        }
        break;
    default:
        if ((p = chosen()) != NULL) {
            deliver(p);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        if (slmp_deadline(side[i].engine) <= now) {
            slmp_advance(side[i].engine, now);
        }
        collect(i);
    }
}

/* The input as one packet: what is parsed and written again is the same. */
static void parse_alone(const uint8_t *bytes, size_t size)
{
    struct slmp_wire w;
    uint8_t again[SLMP_HEADER_ROOM];
    if (slmp_wire_parse(&w, bytes, size) == SLMP_PARSED && !(w.kind && w.cover)) {
        size_t header = slmp_wire_write(&w, again);
        MUST(header == size - w.payload_length || w.kind == SLMP_KIND_PLAIN);
        MUST(memcmp(again, bytes, SLMP_HEADER) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    parse_alone(bytes, size);
    input = bytes;
    input_left = size;
    packet_count = 0;
    now = 1;
    uint8_t how = next();
    mac = (how & 0x80) != 0 ? slmp_mac_open(&key, &(struct reason){""}) : NULL;
    MUST((how & 0x80) == 0 || mac != NULL);
    for (unsigned i = 0; i < 2; i++) {
        struct slmp_upcalls up = {.context = &side[i],
                                  .opened = opened,
                                  .closed = closed,
                                  .begin = begin,
                                  .data = data,
                                  .done = done,
                                  .sent = sent};
        struct slmp_config c = slmp_defaults();
        c.incarnation = i + 1;
        c.secret = 77 + i;
        c.mode = mac != NULL ? SLMP_OWN : (how >> (2 * i) & 3) % 3;
        c.key = mac != NULL ? &key : NULL;
        c.self = (struct slmp_address){2 + i, 5};
        c.ordered = how >> (4 + i) & 1;
        c.cover = how >> 6 & 1;
        c.packet_size = 200;
        c.window = 16;
        c.plain_window = 8;
        c.peers_max = 2;
        c.held_max = 3000;
        memset(&side[i], 0, sizeof(side[i]));
        side[i].engine = slmp_open(&c, &up, &(struct reason){""});
        MUST(side[i].engine != NULL);
    }
    for (unsigned n = 0; input_left > 0 && n < STEPS; n++) {
        step(next());
        MUST(slmp_held(side[0].engine) <= 3000 && slmp_held(side[1].engine) <= 3000);
    }
    for (unsigned i = 0; i < 2; i++) {
        slmp_close(side[i].engine);
        MUST(side[i].begun == side[i].done && side[i].given == side[i].back);
    }
    forget_session();
    slmp_mac_close(mac);
    return 0;
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A session that works, and messages in it: mostly sends and deliveries. */
size_t fuzz_seed(uint64_t number, uint8_t *to, size_t max)
{
    uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
    size_t length = 0, most = 20 + draw(&state) % 600;
    most = most < max - 4 ? most : max - 4;
    to[length++] = number % 4 == 0  ? (uint8_t)draw(&state)
                   : number % 4 < 3 ? 0x4a
                                    : 0x8a; /* sessions, without and with a key */
    to[length++] = 0;
    to[length++] = 0xf0;
    to[length++] = (uint8_t)draw(&state);
    for (uint8_t i = 0; i < 6 && length + 2 <= most; i++) { /* the first exchange */
        to[length++] = 10 << 1;
        to[length++] = i;
    }
    while (length + 4 <= most) {
        uint64_t what = draw(&state);
        to[length++] = what % 4 == 0 ? (uint8_t)(what >> 8) : (uint8_t)(20 + (what >> 8) % 12);
        to[length++] = (uint8_t)(what >> 16);
        to[length++] = (uint8_t)(what >> 24);
    }
    return length;
}
